"""Cells that wrap other cells: stacks, dropout, residual connections, devices."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, math, nest, nn, random
from headwater.tf1.layers.configuration import restored
from headwater.tf1.rnn.cells import RNNCell, named_cells
from headwater.tf1.rnn.lstm import LSTMStateTuple
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DType, DTypeLike
    from headwater.graph.types import DeviceLike, Structure, TensorLike
    from headwater.tf1.variables.scope_settings import VariableScope
    from headwater.tf1.variables.variables import Variable

_OPTIONAL = ("dropout_state_filter_visitor", "residual_fn")
"""Arguments that a description of a wrapper contains only if they are given."""


class MultiRNNCell(RNNCell):
    """A stack of cells: each takes the output of the previous one.

    Args:
      state_is_tuple: the state is a tuple of the cells' states, not their concatenation.

    Raises:
      ValueError: there are no cells, or a cell has a tuple as state while ``state_is_tuple`` is False.
      TypeError: ``cells`` is not a list.
    """

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not nest.is_nested(cells):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        if not state_is_tuple and any(nest.is_nested(cell.state_size) for cell in cells):
            raise ValueError("Some cells return tuples of states, but the flag state_is_tuple is not set.")
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Structure:
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Structure:
        return self._cells[-1].output_size

    def get_config(self) -> dict[str, object]:
        return {"cells": [_description(cell) for cell in self._cells], "state_is_tuple": self._state_is_tuple}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, object] | None = None) -> Self:
        made = [restored(each, named_cells(custom_objects)) for each in config["cells"]]
        return cls(made, **{name: value for name, value in config.items() if name != "cells"})

    @property
    def trainable_weights(self) -> list[Any]:
        return [v for cell in self._cells for v in getattr(cell, "trainable_weights", ())] if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        return [v for cell in self._cells for v in getattr(cell, "non_trainable_weights", ())]

    def zero_state(self, batch_size: Any, dtype: DTypeLike | None) -> Structure:
        with name_scope(f"{type(self).__name__}ZeroState", None, [batch_size]):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return super().zero_state(batch_size, dtype)

    def call(self, inputs: Structure, state: Structure) -> tuple[Any, Any]:
        if self._state_is_tuple:
            states: Sequence[object] = state
            if isinstance(state, Tensor) or len(states) != len(self._cells):
                raise ValueError(f"Expected state to be a tuple of length {len(self._cells)}, but received: {state}")
        else:
            states = arrays.split(state, [cell.state_size for cell in self._cells], 1)
        found: list[Any] = []
        for index, (cell, own) in enumerate(zip(self._cells, states, strict=True)):
            with variable_scope(f"cell_{index}"):
                inputs, after = cell(inputs, own)
                found.append(after)
        return inputs, tuple(found) if self._state_is_tuple else arrays.concat(found, 1)


def _description(cell: RNNCell) -> dict[str, object]:
    return {"class_name": type(cell).__name__, "config": cell.get_config()}


class _Wrapper(RNNCell):
    """A cell that wraps another one; the wrapped cell's variables keep their names."""

    def __init__(self, cell: RNNCell) -> None:
        super().__init__()
        for needed in ("state_size", "output_size", "zero_state"):
            kind = cell.__class__
            if not hasattr(kind, needed):
                raise TypeError(f"The parameter cell is not a RNNCell: it has no {needed}")
        self.cell = cell

    def get_config(self) -> dict[str, object]:
        config = super().get_config() | {"cell": _description(self.cell)}
        return {name: value for name, value in config.items() if value is not None or name not in _OPTIONAL}

    @classmethod
    def from_config(cls, config: Mapping[str, object], custom_objects: Mapping[str, object] | None = None) -> Self:
        wanted = inspect.signature(cls).parameters
        return super().from_config({name: config[name] for name in config if name in wanted}, custom_objects)

    @property
    def wrapped_cell(self) -> RNNCell:
        return self.cell

    @property
    def state_size(self) -> Structure:
        return self.cell.state_size

    @property
    def output_size(self) -> Structure:
        return self.cell.output_size

    @property
    def trainable_weights(self) -> list[Variable]:
        return self.cell.trainable_weights

    @property
    def non_trainable_weights(self) -> list[Variable]:
        return self.cell.non_trainable_weights

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike | None) -> Structure:
        with name_scope(f"{type(self).__name__}ZeroState", None, [batch_size]):
            return self.cell.zero_state(batch_size, dtype)

    def __call__(
        self,
        inputs: Structure,
        state: Structure = None,
        scope: str | VariableScope | None = None,
        *args: object,
        **kwargs: object,
    ) -> Structure:
        if args or kwargs:
            raise TypeError(f"{type(self).__name__} takes inputs, state and scope, not {[*args, *kwargs]}")
        return self._step(inputs, state, scope)

    def _step(self, inputs: TensorLike, state: Structure, scope: Any) -> Any:
        return self.cell(inputs, state, scope=scope)


class DropoutWrapper(_Wrapper):
    """A cell with dropout of its inputs, outputs and states.

    Args:
      input_keep_prob, output_keep_prob, state_keep_prob: probabilities of keeping an element: numbers or tensors.
      variational_recurrent: the same elements in every step (Gal and Ghahramani, 2016).
      input_size: the shape of the inputs without the batch; needed with ``variational_recurrent``.
      dtype: the type of the inputs; needed with ``variational_recurrent``.
      seed: the seed of the choice.
      dropout_state_filter_visitor: ``f(state)`` selects the parts of the state; all but an LSTM's c if None.

    Raises:
      ValueError: a probability is not in [0, 1], or ``dtype`` or ``input_size`` is missing.
    """

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: object = None,
        dtype: DType | None = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Structure], Structure] | None = None,
    ) -> None:
        super().__init__(cell)
        self._keep = {"input": input_keep_prob, "state": state_keep_prob, "output": output_keep_prob}
        for what, probability in self._keep.items():
            if isinstance(probability, numbers.Real) and not 0 <= float(probability) <= 1:
                raise ValueError(f"Parameter {what}_keep_prob must be between 0 and 1: {probability}")
        self._seed = seed
        self._filter = dropout_state_filter_visitor or _all_but_c
        self._noise: dict[str, Any] = {}
        if variational_recurrent:
            if dtype is None:
                raise ValueError("When variational_recurrent=True, dtype must be provided")
            sizes = {"input": input_size, "state": cell.state_size, "output": cell.output_size}
            for what, size in sizes.items():
                if self._keeps_all(what):
                    continue
                if size is None:
                    raise ValueError(
                        "When variational_recurrent=True and input_keep_prob < 1.0, input_size must be provided"
                    )
                self._noise[what] = [self._draw(what, n, part, dtype) for n, part in enumerate(nest.flatten(size))]

    def _keeps_all(self, what: str) -> bool:
        probability = self._keep[what]
        return isinstance(probability, numbers.Real) and float(probability) >= 1

    def _seed_of(self, what: str, index: int) -> int | None:
        return None if self._seed is None else (self._seed * 31 + hash_of(f"{what}_{index}")) & 0x7FFFFFFF

    def _draw(self, what: str, index: int, size: Any, dtype: DType) -> Tensor:
        return random.random_uniform([1, int(size)], seed=self._seed_of(what, index), dtype=dtype)

    def _step(self, inputs: TensorLike, state: Structure, scope: Any) -> Structure:
        inputs = self._drop_out("input", inputs, None)
        output, after = self.cell(inputs, state, scope=scope)
        after = self._drop_out("state", after, self._filter)
        return self._drop_out("output", output, None), after

    def _drop_out(self, what: str, values: TensorLike, chosen: Callable[[Any], Any] | None) -> Structure:
        if self._keeps_all(what):
            return values
        leaves = nest.flatten(values)
        wanted = _choices(values, chosen)
        found: list[Any] = []
        for index, (leaf, drop) in enumerate(zip(leaves, wanted, strict=True)):
            if not drop:
                found.append(leaf)
            elif what in self._noise:
                keep = convert_to_tensor(self._keep[what], leaf.dtype.base_dtype)
                mask = keep + self._noise[what][index]
                found.append(leaf / keep * get_default_graph().create_op("Floor", [mask]).outputs[0])
            else:
                found.append(nn.dropout(leaf, keep_prob=self._keep[what], seed=self._seed_of(what, index)))
        return nest.pack(values, found)


def hash_of(text: str) -> int:
    """A number that is the same in every process."""
    value = 0
    for letter in text.encode():
        value = (value * 131 + letter) & 0x7FFFFFFF
    return value


def _all_but_c(state: Structure) -> LSTMStateTuple | bool:
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return True


def _choices(values: Any, chosen: Callable[[Any], Any] | None) -> list[bool]:
    """Returns for every leaf whether ``chosen`` selects it; without ``chosen`` all leaves are selected."""
    if chosen is None:
        return [True] * len(nest.flatten(values))
    found = chosen(values)
    if isinstance(found, bool):
        if nest.is_nested(values) and not isinstance(values, LSTMStateTuple):
            return [choice for part in values for choice in _choices(part, chosen)]
        return [found] * len(nest.flatten(values))
    return [bool(choice) for choice in nest.flatten(found)]


class ResidualWrapper(_Wrapper):
    """Adds a cell's inputs to its outputs.

    Args:
      residual_fn: ``f(inputs, outputs)`` in place of the sum.
    """

    def __init__(self, cell: RNNCell, residual_fn: Callable[[Structure, Structure], Structure] | None = None) -> None:
        super().__init__(cell)
        self._residual_fn = residual_fn

    def _step(self, inputs: Structure, state: Structure, scope: Any) -> Structure:
        outputs, after = self.cell(inputs, state, scope=scope)
        if self._residual_fn is not None:
            return self._residual_fn(inputs, outputs), after
        return nest.map_structure(math.add, inputs, outputs), after


class DeviceWrapper(_Wrapper):
    """A cell on a device.

    Args:
      device: see `Graph.device`.
    """

    def __init__(self, cell: RNNCell, device: DeviceLike) -> None:
        super().__init__(cell)
        self._device = device

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike | None) -> Structure:
        with get_default_graph().device(self._device):
            return super().zero_state(batch_size, dtype)

    def _step(self, inputs: TensorLike, state: Structure, scope: Any) -> Any:
        with get_default_graph().device(self._device):
            return self.cell(inputs, state, scope=scope)
