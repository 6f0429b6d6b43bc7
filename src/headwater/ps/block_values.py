"""Blocks of a ``ps`` as JAX arrays: the common part of the updaters for optax and Keras."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.ps.layout import Block, Layout, VariableSpec, block_shape
from headwater.ps.updater import Array

_jax: Any = jax
jnp: Any = _jax.numpy
_add: Any = _jax.jit(jnp.add, donate_argnums=0)


class BlockValues:
    """The values of one task's blocks.

    Updates donate the buffers of the values to JAX, which reuses them for the new values. If a returned array still
    refers to a buffer, JAX allocates a new one instead. So returned arrays never change.

    Args:
      layout: the placement of all blocks on all ``ps``.
      index: the number of this ``ps``.
    """

    def __init__(self, layout: Layout, index: int) -> None:
        self.blocks: tuple[Block, ...] = layout.blocks[index]
        self.specs: list[VariableSpec] = [layout.variables[block.variable] for block in self.blocks]
        self.shapes: list[tuple[int, ...]] = [
            block_shape(spec, block) for spec, block in zip(self.specs, self.blocks, strict=True)
        ]
        self.optimized_at: list[int] = [at for at, spec in enumerate(self.specs) if spec.optimized]
        self.tables_at: list[int] = [at for at, spec in enumerate(self.specs) if spec.table]
        self.others_at: list[int] = [at for at, spec in enumerate(self.specs) if not spec.optimized and not spec.table]
        self.optimized: list[Any] = []
        self.others: list[Any] = []

    def set(self, values: Sequence[Array]) -> None:
        """Sets the values of all blocks except tables, in order.

        Raises:
          InvalidArgumentError: a shape or dtype differs.
        """
        places = sorted([*self.optimized_at, *self.others_at])
        if len(values) != len(places):
            raise InvalidArgumentError(f"{len(values)} values arrived for {len(places)} blocks")
        new_values = dict(zip(places, values, strict=True))
        for at, value in new_values.items():
            check(self.specs[at].name, value, self.shapes[at], np.dtype(self.specs[at].dtype))
        # Copy the values: updates donate their buffers, and the received arrays share the buffer of a frame.
        self.optimized = [jnp.array(new_values[at]) for at in self.optimized_at]
        self.others = [jnp.array(new_values[at]) for at in self.others_at]

    def get(self, extras: Sequence[int] | None) -> list[Array]:
        """Returns values as `headwater.ps.updater.Updater.values` does."""
        # Views without a copy: while they exist, JAX writes the next update to another buffer.
        optimized = [np.asarray(value) for value in self.optimized]
        if extras is not None:
            return [*optimized, *(np.asarray(self.others[number]) for number in extras)]
        values_by_place = dict(zip(self.optimized_at, optimized, strict=True))
        values_by_place |= {at: np.asarray(value) for at, value in zip(self.others_at, self.others, strict=True)}
        return [values_by_place[at] for at in sorted(values_by_place)]

    def check_gradients(self, gradients: Sequence[Array]) -> None:
        """Raises InvalidArgumentError for gradients that do not fit the optimized blocks."""
        for at, gradient in zip(self.optimized_at, gradients, strict=True):
            check(f"gradient of {self.specs[at].name}", gradient, self.shapes[at], gradient.dtype)

    def change(self, changes: Mapping[int, Array]) -> None:
        """Adds changes to blocks that the optimizer does not update. ``changes`` is by position among these blocks."""
        for number, change in changes.items():
            at = self.others_at[number]
            check(f"change of {self.specs[at].name}", change, self.shapes[at], np.dtype(self.specs[at].dtype))
            self.others[number] = _add(self.others[number], change)


def scaled_steps(before: Sequence[Any], after: Sequence[Any], scale: object) -> list[Any]:
    """Returns ``after`` with each change multiplied by ``scale``; returns ``after`` itself if ``scale`` is None."""
    if scale is None:
        return list(after)
    return [(old + scale * (new - old)).astype(old.dtype) for old, new in zip(before, after, strict=True)]


def check(name: str, value: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raises InvalidArgumentError when ``value`` has the wrong shape or dtype."""
    if value.shape != shape or value.dtype != dtype:
        raise InvalidArgumentError(
            f"{name} has shape {shape} and dtype {dtype}; {value.shape} and {value.dtype} arrived"
        )


def fill_state(like: Mapping[str, Any], state: Sequence[Array]) -> list[Any]:
    """Converts ``state`` to JAX arrays, after checking their shapes and dtypes against the values of ``like``, in
    order."""
    if len(state) != len(like):
        raise InvalidArgumentError(f"{len(state)} arrays of optimizer state arrived; expected {len(like)}")
    for (name, leaf), array in zip(like.items(), state, strict=True):
        check(name, array, tuple(leaf.shape), np.dtype(leaf.dtype))
    return [jnp.array(array) for array in state]
