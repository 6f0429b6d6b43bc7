"""Updates of pytrees of parameters by optax, on a ``ps`` of a JAX program."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.ps.block_values import BlockValues, fill_state, scaled_steps
from headwater.ps.global_norms import norms_from, sums_of_gradients
from headwater.ps.layout import Layout, VariableSpec
from headwater.ps.memory import MemoryChecked
from headwater.ps.round_sums import Squares
from headwater.ps.updater import Array, HostedTable

if TYPE_CHECKING:
    from optax import GradientTransformation

_jax: Any = jax
_jnp: Any = _jax.numpy
_tree: Any = _jax.tree_util


class OptaxUpdater:
    """Applies an optax optimizer to the blocks of one ``ps``.

    The optimizer gets the program's own tree, with None in place of leaves on other tasks, and with parts of leaves
    that are split by rows. So optimizers that select leaves by name work. The norm of all leaves together, which
    `optax.clip_by_global_norm` uses, arrives with the gradients; see `headwater.ps.global_norms`.

    Args:
      layout: the placement of all blocks on all ``ps``.
      index: the number of this ``ps``.
      structure: structure of the tree.
      optimizer: an ``optax.GradientTransformation``.
      norms: whether updates take the sum of the squares of all gradients, as a hyperparameter.
    """

    def __init__(
        self, layout: Layout, index: int, structure: Any, optimizer: GradientTransformation, *, norms: bool = False
    ) -> None:
        self._blocks = BlockValues(layout, index)
        self._structure = structure
        self._optimizer = optimizer
        self._norms = norms
        self._places = [block.variable for block in self._blocks.blocks]
        self._state: Any = None
        self._update = MemoryChecked(self._step, donated=2)

    def _as_tree(self, leaves: Sequence[Any]) -> Any:
        tree_leaves: list[Any] = [None] * self._structure.num_leaves
        for place, leaf in zip(self._places, leaves, strict=True):
            tree_leaves[place] = leaf
        return _tree.tree_unflatten(self._structure, tree_leaves)

    def _step(
        self, values: list[Any], state: Any, gradients: list[Any], total: object, scale: object = None
    ) -> tuple[list[Any], Any]:
        params = self._as_tree(values)
        with norms_from(lambda _: total) if self._norms else nullcontext():
            updates, state = self._optimizer.update(self._as_tree(gradients), state, params)
        after = [
            (value + update).astype(value.dtype)
            for value, update in zip(values, _tree.tree_leaves(updates), strict=True)
        ]
        return scaled_steps(values, after, scale), state

    @property
    def optimizer(self) -> str:
        kinds = {type(part).__name__.removesuffix("State") for part in _parts(self._state)}
        return ", ".join(sorted(kinds - {"Empty"})) or "optax"

    def state_sizes(self) -> list[tuple[str, tuple[int, ...], str]]:
        # Compute with types only: an update may be about to take the buffers.
        types = _jax.eval_shape(_plain, _tree.tree_map(_jax.typeof, self._state))
        return [(name, tuple(leaf.shape), str(leaf.dtype)) for name, leaf in _named(types).items()]

    def fill(self, values: Sequence[Array], state: Sequence[Array] | None) -> None:
        self._blocks.set(values)
        self._state = self._optimizer.init(self._as_tree(self._blocks.optimized))
        # optax may use one array in two places of the state. Copy it, as an update cannot donate one buffer twice.
        self._state = _tree.tree_map(_jnp.array, self._state)
        if state is not None:
            leaves = fill_state(_named(_plain(self._state)), state)
            arrays = _tree.tree_unflatten(_tree.tree_structure(self._state), leaves)
            self._state = _tree.tree_map(_like, self._state, arrays)

    def assign(self, values: Sequence[Array]) -> None:
        self._blocks.set(values)

    def values(self, extras: Sequence[int] | None) -> list[Array]:
        return self._blocks.get(extras)

    def state(self) -> dict[str, Array]:
        return {name: np.asarray(leaf) for name, leaf in _named(_plain(self._state)).items()}

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
        if not scale:
            return
        if self._norms and not hyperparameters:
            raise InvalidArgumentError("gradients arrived without their global norm")
        total = np.float32(hyperparameters[-1]) if self._norms else None
        self._blocks.optimized, self._state = self._update(
            self._blocks.optimized, self._state, list(gradients), total, None if scale == 1 else np.float32(scale)
        )

    def squares(self) -> Squares:
        """Returns a function that computes, from the gradients of these blocks, their part of the sum of squares.

        Raises:
          SumsError: see `headwater.ps.global_norms.sums_of_gradients`.
        """
        shapes = zip(self._blocks.shapes, self._blocks.specs, strict=True)
        params = self._as_tree([_jax.ShapeDtypeStruct(shape, spec.dtype) for shape, spec in shapes])
        part = sums_of_gradients(self._optimizer, params)
        return lambda gradients: float(part(self._as_tree(gradients)))

    def rows(self, numbers: Sequence[Array]) -> list[Array]:
        return []

    @property
    def tables(self) -> Sequence[HostedTable]:
        return ()


def _is_key(leaf: object) -> bool:
    """Returns whether a leaf is an array of random keys, whose numbers are an array of another shape."""
    return bool(_jnp.issubdtype(_jax.typeof(leaf).dtype, _jax.dtypes.prng_key))


def _plain(state: object) -> Any:
    """Returns ``state`` with random keys replaced by their numbers."""

    def plain(leaf: object) -> Any:
        return _jax.random.key_data(leaf) if _is_key(leaf) else leaf

    return _tree.tree_map(plain, state)


def _like(leaf: object, array: object) -> Any:
    """Converts ``array`` to the kind of ``leaf``: unchanged, or wrapped as random keys."""
    return _jax.random.wrap_key_data(array, impl=_jax.random.key_impl(leaf)) if _is_key(leaf) else array


def _named(tree: object) -> dict[str, Any]:
    return {_tree.keystr(path): leaf for path, leaf in _tree.tree_leaves_with_path(tree)}


def _parts(state: object) -> Iterator[Any]:
    """Yields the states of the transformations that an optax optimizer is composed of."""
    if isinstance(state, tuple):
        parts: tuple[Any, ...] = state  # pyright: ignore[reportUnknownVariableType]
        if hasattr(parts, "_fields"):
            yield parts
        for part in parts:
            yield from _parts(part)


def update_digest(optimizer: GradientTransformation, params: object) -> str:
    """Returns a digest, equal for optimizers that make equal updates, rates and other constants included.

    Args:
      optimizer: an optimizer of optax.
      params: a tree whose leaves have shapes and types.
    """
    state = _jax.eval_shape(optimizer.init, params)
    closed = _jax.make_jaxpr(optimizer.update)(params, state, params)
    # Remove the addresses of objects, which differ between processes.
    digest = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", str(closed)).encode())
    # The text of a jaxpr does not contain the values of its constants.
    for constant in closed.consts:
        digest.update(np.asarray(_plain(constant)).tobytes())
    return digest.hexdigest()[:16]


def leaf_specs(params: object) -> list[VariableSpec]:
    """Returns the leaves of a tree as variables of a layout, named by their paths.

    Raises:
      ValueError: a leaf is not an array of real or complex numbers.
    """
    return [_leaf_spec(_tree.keystr(path), leaf) for path, leaf in _tree.tree_leaves_with_path(params)]


def _leaf_spec(name: str, leaf: Any) -> VariableSpec:
    try:
        dtype = _jax.typeof(leaf).dtype
    except TypeError as error:
        raise ValueError(f"params{name} is of type {type(leaf).__name__}, which is not an array of numbers") from error
    if not _jnp.issubdtype(dtype, _jnp.inexact):
        raise ValueError(
            f"params{name} is of type {dtype}, which has no gradient: parameters are real numbers; keep counters, "
            "masks, seeds and random keys outside of params"
        )
    return VariableSpec(name=name, shape=tuple(np.shape(leaf)), dtype=str(dtype))


def check_update(optimizer: GradientTransformation, params: object) -> None:
    """Refuses an optimizer whose update needs arguments besides gradients, its state and parameters.

    Args:
      optimizer: an optimizer of optax.
      params: a tree whose leaves have shapes and types.

    Raises:
      ValueError: the update needs more; the message names the arguments.
    """
    state = _jax.eval_shape(optimizer.init, params)
    try:
        _jax.eval_shape(optimizer.update, params, state, params)
    except TypeError as error:
        function, missing, names = str(error).partition("missing ")
        _, keyword_only, names = names.partition("keyword-only argument")
        if not missing or not keyword_only:
            raise
        raise ValueError(
            f"the optimizer cannot run on parameter servers: {function.partition('.')[0]} requires the further argument"
            f"{names}, which push does not provide. Use a schedule by steps instead, or `optax.inject_hyperparams`"
        ) from error
