"""Applies a Keras optimizer to the blocks of one ``ps``.

The optimizer has the class and configuration of the program's optimizer, and is built for the blocks of this ``ps``.
Its ``apply`` is compiled once: one executable takes gradients, values and state, and changes values and state in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import jax
import keras
import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.keras.embeddings.variables import TableVariable, as_table
from headwater.keras.parameter_server.table_updates import TableUpdates
from headwater.keras.programs import settings_for_copies
from headwater.ps.block_values import BlockValues, fill_state, scaled_steps
from headwater.ps.layout import Layout
from headwater.ps.leaf_dependencies import sources_of_update
from headwater.ps.memory import MemoryChecked
from headwater.ps.updater import Array

if TYPE_CHECKING:
    from headwater.keras.types import Tree


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerPart:
    """The parts of an optimizer that run on the ``ps`` besides its update rule; workers do the rest before they push.

    Attributes:
      clips: how the ``ps`` clip gradients by norms. With ``"each"``, each ``ps`` uses the norms of its own gradients.
        With ``"jointly"``, ``global_clipnorm`` applies to the norm over all ``ps``, and the square of this norm is the
        last hyperparameter of an update.
      momentum: whether the ``ps`` keep momentum.
    """

    clips: Literal["no", "each", "jointly"]
    momentum: bool = True


def clone_optimizer(optimizer: keras.Optimizer, part: ServerPart) -> keras.Optimizer:
    """Returns an unbuilt optimizer like ``optimizer`` that does only the work of a ``ps``, ``part``."""
    config = settings_for_copies(optimizer)
    # Workers push gradients of the unscaled loss.
    config["loss_scale_factor"] = None
    if part.clips != "each":
        config["clipnorm"] = config["global_clipnorm"] = None
    if not part.momentum:
        config["momentum"], config["nesterov"] = 0.0, False
    kind: Any = type(optimizer)  # pyright: ignore[reportUnknownVariableType]
    clone = kind.from_config(config)
    for name in ("_exclude_from_weight_decay_pattern",):
        if hasattr(optimizer, name):
            setattr(clone, name, getattr(optimizer, name))
    return clone


def stand_in(variable: keras.Variable, shape: Sequence[int], value: object = 0) -> Any:
    """Returns a variable that stands in for ``variable``, or a part of it, in an optimizer."""
    created = keras.Variable(
        np.broadcast_to(np.asarray(value, np.float32), shape),
        dtype=variable.dtype,
        name=variable.name,
        trainable=True,
    )
    created._path = variable.path
    created.constraint = variable.constraint
    if hasattr(variable, "overwrite_with_gradient"):
        created.overwrite_with_gradient = variable.overwrite_with_gradient
    return created


def _build(
    original: keras.Optimizer,
    part: ServerPart,
    variables: Sequence[keras.Variable],
    shapes: Sequence[Sequence[int]],
    values: Sequence[object] | None = None,
) -> keras.Optimizer:
    """Returns an optimizer like ``original`` for parts of ``variables`` with ``shapes`` and ``values``, or zeros."""
    optimizer = clone_optimizer(original, part)
    stand_ins = [stand_in(*each) for each in zip(variables, shapes, values or [0] * len(shapes), strict=True)]
    excluded: set[Any] = getattr(original, "_exclude_from_weight_decay", set())
    if excluded:
        key = original._var_key  # pyright: ignore[reportPrivateUsage]
        pairs = zip(stand_ins, variables, strict=True)
        optimizer.exclude_from_weight_decay(var_list=[one for one, v in pairs if key(v) in excluded])
    optimizer.build(stand_ins)
    return optimizer


def starts_from_values(optimizer: Any, variables: Sequence[keras.Variable], shapes: Sequence[Sequence[int]]) -> bool:
    """Returns whether the initial state of an optimizer depends on the initial values of variables
    (`ScheduleFreeAdamW`)."""
    if inner := getattr(optimizer, "_inner_optimizers", None):
        return any(starts_from_values(one, variables, shapes) for one in inner)
    part, small = ServerPart(clips="no"), [(2,) * len(shape) for shape in shapes[:1]]
    zeros, ones = (_build(optimizer, part, variables[:1], small, [value] * len(small)) for value in (0, 1))
    pairs = zip(zeros.variables, ones.variables, strict=True)
    return any(not np.array_equal(np.asarray(one.value), np.asarray(other.value)) for one, other in pairs)


def indivisible(optimizer: keras.Optimizer, part: ServerPart, variables: Sequence[keras.Variable]) -> set[str]:
    """Returns the paths of the variables that cannot be updated in parts, because their update combines rows, for
    example by a norm."""
    # An optimizer of two rows and columns has the same dependencies, and takes no memory.
    small = _build(optimizer, part, variables, [(2,) * len(variable.shape) for variable in variables])
    values = [variable.value for variable in small._trainable_variables]
    state = [variable.value for variable in small.variables]

    def update(gradients: object, state: object, values: object) -> object:
        return small.stateless_apply(state, gradients, values)

    sources = sources_of_update(update, values, state)
    return {variable.path for at, variable in enumerate(variables) if sources[at].combines_rows(at)}


def state_names(optimizer: keras.Optimizer) -> list[str]:
    """Returns names for an optimizer's variables that are equal for all optimizers of the same variables or parts.

    If Keras gives several variables the same name (such as Adafactor's means over rows and columns), the name includes
    the trained variable. If Keras's name has a counter (such as Nadam's product of momenta), the name has the
    variable's position among the variables with such names.
    """
    paths = [str(variable.path) for variable in optimizer.variables]
    owned = _slots_by_variable(optimizer)
    names: list[str] = []
    unnamed = 0
    for variable, path in zip(optimizer.variables, paths, strict=True):
        if path.startswith(f"{optimizer.name}/") and paths.count(path) == 1:
            names.append(path.removeprefix(f"{optimizer.name}/"))  # Keras numbers optimizers
        elif id(variable) in owned:
            names.append(owned[id(variable)])
        else:
            names.append(f"unnamed {unnamed}")
            unnamed += 1
    return names


def _slots_by_variable(optimizer: keras.Optimizer) -> dict[int, str]:
    """Returns names for slots, by ``id``. Many optimizers have lists with a slot for each trainable variable; the name
    of such a slot consists of the list's name and the variable's path."""
    trained: list[Any] = optimizer._trainable_variables  # pyright: ignore[reportPrivateUsage]
    lists = [
        (name.strip("_"), slots)
        for name, slots in vars(optimizer).items()
        if name != "_variables" and isinstance(slots, list)
    ]
    return {
        id(slot): f"{name} of {variable.path}"
        for name, slots in lists
        if len(slots) == len(trained)
        for slot, variable in zip(slots, trained, strict=True)
        if slot is not variable
    }


class KerasUpdater:
    """See `headwater.ps.updater.Updater`.

    Args:
      layout: placement of variables on the ``ps``.
      index: the number of this ``ps``.
      variables: the model's variables, in the layout's order.
      optimizer: the model's optimizer.
      part: the parts of the optimizer that run here.
      exact: paths of the tables with exact updates, see `headwater.keras.parameter_server.table_updates`.
    """

    def __init__(
        self,
        layout: Layout,
        index: int,
        variables: Sequence[Any],
        optimizer: keras.Optimizer,
        *,
        part: ServerPart,
        exact: Sequence[str] = (),
    ) -> None:
        self._blocks = BlockValues(layout, index)
        self._original = optimizer
        self._part = part
        self._variables = [variables[block.variable] for block in self._blocks.blocks]
        optimized = self._blocks.optimized_at
        self._optimizer = _build(
            optimizer, part, [self._variables[at] for at in optimized], [self._blocks.shapes[at] for at in optimized]
        )
        self._state: list[Any] = [variable.value for variable in self._optimizer.variables]
        self._fresh = [np.asarray(value) for value in self._state]
        self._names = state_names(self._optimizer)
        rate = getattr(self._optimizer, "_learning_rate", None)
        self._rate_at = next((at for at, one in enumerate(self._optimizer.variables) if one is rate), None)
        self._update = MemoryChecked(self._step, donated=2)
        self.tables = [self._table(at, self._variables[at].path in exact) for at in self._blocks.tables_at]

    def _table(self, at: int, exact: bool) -> TableUpdates:
        variable, shape = as_table(self._variables[at]), self._blocks.shapes[at]
        first = max(0, self._blocks.blocks[at].start)

        def initial() -> Callable[[int, int], Array]:
            rows = variable.initial()
            return lambda start, stop: rows(first + start, first + stop)

        return TableUpdates(
            shape,
            self._blocks.specs[at].dtype,
            lambda rows: _build(self._original, self._part, [variable], [(rows, *shape[1:])]),
            initial=initial,
            names_of=state_names,
            exact=exact,
        )

    def _step(
        self, values: list[jax.Array], state: list[Tree], gradients: list[jax.Array], scale: object
    ) -> tuple[list[Any], list[Any]]:
        after, state = self._optimizer.stateless_apply(state, gradients, values)
        return scaled_steps(values, after, scale), state

    @property
    def optimizer(self) -> str:
        return str(self._original.name)

    def state_sizes(self) -> list[tuple[str, tuple[int, ...], str]]:
        sizes = [
            (name, tuple(value.shape), str(value.dtype)) for name, value in zip(self._names, self._fresh, strict=True)
        ]
        for at, table in zip(self._blocks.tables_at, self.tables, strict=True):
            path = self._variables[at].path
            sizes += [(f"{path}: {name}", shape, dtype) for name, shape, dtype in table.sizes()]
        return sizes

    def fill(self, values: Sequence[Array], state: Sequence[Array] | None) -> None:
        self._blocks.set(values)
        like = dict(zip(self._names, self._fresh, strict=True))
        own = len(self._names)
        self._state = fill_state(like, self._initial_state() if state is None else state[:own])
        for table in self.tables:
            count = len(table.shared_names)
            table.set_shared_state(None if state is None else state[own : own + count])
            own += count

    def _initial_state(self) -> Sequence[Array]:
        """The initial state for the present values."""
        at, blocks = self._blocks.optimized_at, self._blocks
        variables, shapes = [self._variables[it] for it in at], [blocks.shapes[it] for it in at]
        if not starts_from_values(self._original, variables, shapes):
            return self._fresh
        optimizer = _build(self._original, self._part, variables, shapes, blocks.optimized)
        return [np.asarray(variable.value) for variable in optimizer.variables]

    def assign(self, values: Sequence[Array]) -> None:
        self._blocks.set(values)

    def values(self, extras: Sequence[int] | None) -> list[Array]:
        return self._blocks.get(extras)

    def state(self) -> dict[str, Array]:
        arrays = {name: np.asarray(value) for name, value in zip(self._names, self._state, strict=True)}
        for at, table in zip(self._blocks.tables_at, self.tables, strict=True):
            # Each table has its own number of updates and similar values.
            path = self._variables[at].path
            arrays |= {f"{path}: {n}": value for n, value in zip(table.shared_names, table.shared_state(), strict=True)}
        return arrays

    def apply(
        self,
        gradients: Sequence[Array],
        changes: Mapping[int, Array],
        tables: Sequence[tuple[Array, Array]],
        hyperparameters: Sequence[float],
        scale: float = 1.0,
    ) -> None:
        self._blocks.check_gradients(gradients)
        self._blocks.change(changes)
        if self._part.clips == "jointly":
            *hyperparameters, total = hyperparameters
            gradients = _clip(gradients, float(self._original.global_clipnorm or 0), math.sqrt(total))
        if hyperparameters:
            self._set_rate(hyperparameters[0])
        if not scale:
            return
        if self._blocks.optimized:
            self._blocks.optimized, self._state = self._update(
                self._blocks.optimized, self._state, list(gradients), None if scale == 1 else np.float32(scale)
            )
        for updates, (numbers, rows) in zip(self.tables, tables, strict=True):
            table = updates.values
            # The step of a stale gradient is multiplied by ``scale``: make the whole step, then move the values back by
            # the rest.
            before = table.copy() if scale != 1 and updates.exact else table[numbers] if scale != 1 else None
            updates.apply(numbers, rows)
            if before is not None:
                changed = slice(None) if updates.exact else numbers
                table[changed] = before + scale * (table[changed] - before)

    def _set_rate(self, rate: float) -> None:
        if self._rate_at is not None:
            dtype = self._fresh[self._rate_at].dtype
            self._state[self._rate_at] = jax.numpy.asarray(np.asarray(rate, dtype))
        for table in self.tables:
            table.set_rate(rate)

    def rows(self, numbers: Sequence[Array]) -> list[Array]:
        rows: list[Array] = []
        for table, wanted in zip([updates.values for updates in self.tables], numbers, strict=True):
            if len(wanted) and not 0 <= int(wanted.min()) <= int(wanted.max()) < len(table):
                raise InvalidArgumentError(
                    f"there are no rows {wanted.min()} to {wanted.max()}: the table has {len(table)}"
                )
            rows.append(table[wanted])
        return rows


def _clip(gradients: Sequence[Array], clipnorm: float, norm: float) -> Sequence[Array]:
    """Scales gradients by min(1, clipnorm / norm); ``norm`` is the joint norm of the gradients on all ``ps``.

    If the norm is not finite, the gradients become NaN, as in Keras.
    """
    if norm <= clipnorm:
        return gradients
    factor = clipnorm / norm if math.isfinite(norm) else math.nan
    return [gradient * np.asarray(factor, gradient.dtype) for gradient in gradients]


def join_state(
    optimizer: keras.Optimizer, layout: Layout, variables: Sequence[object], states: Sequence[Mapping[str, Array]]
) -> None:
    """Assembles the state of the model's optimizer from the states of all ``ps``.

    Args:
      optimizer: the model's optimizer, built.
      layout: placement of variables on the ``ps``.
      variables: the model's variables, in the layout's order.
      states: the state of each ``ps``, by name.

    Raises:
      InvalidArgumentError: a part of the state is missing.
    """
    for slot, name in zip(optimizer.variables, state_names(optimizer), strict=True):
        if isinstance(slot, TableVariable):
            continue
        parts = [(task, state[name]) for task, state in enumerate(states) if name in state]
        if not parts:
            continue  # a slot of variables that are on no ps
        shape = tuple(slot.shape)
        value = parts[0][1]
        if value.shape != shape:
            value = np.concatenate(
                [part for _, part in sorted(parts, key=lambda it: _first_row(layout, variables, name, it[0]))]
            )
        if value.shape != shape:
            raise InvalidArgumentError(f"{slot.path} has shape {shape}; its parts have {value.shape}")
        slot.assign(value)


def split_state(
    optimizer: keras.Optimizer, layout: Layout, variables: Sequence[object], updater: KerasUpdater, index: int
) -> list[Array]:
    """Returns a ``ps``'s part of the model's optimizer state, in the order of its updater."""
    like = updater.state()
    slots = dict(zip(state_names(optimizer), optimizer.variables, strict=True))
    parts: list[Array] = []
    for name, part in like.items():
        # A table keeps its own copy of values that the model's optimizer has once for all variables.
        name = name.rpartition(": ")[2]
        value = np.asarray(slots[name].value) if name in slots else part
        if value.shape != part.shape:
            start = _first_row(layout, variables, name, index)
            value = value[start : start + part.shape[0]]
        parts.append(value)
    return parts


def _first_row(layout: Layout, variables: Sequence[Any], slot: str, task: int) -> int:
    """The first row of a ``ps``'s part of the variable that the slot of this name belongs to."""
    for block in layout.blocks[task]:
        path = variables[block.variable].path
        if block.stop >= 0 and (path.replace("/", "_") in slot or slot.endswith(f" of {path}")):
            return block.start
    return 0
