"""Values that differ between replicas, and their reduction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from headwater.keras.types import Tree


class ReduceOp(Enum):
    """The reduction of the values of replicas."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def of(value: ReduceOp | str) -> ReduceOp:
        """Converts ``value``, a `ReduceOp` or its name in upper or lower case.

        Raises:
          ValueError: ``value`` is neither a sum nor a mean.
        """
        if isinstance(value, ReduceOp):
            return value
        try:
            return ReduceOp[str(value).rpartition(".")[2].upper()]
        except KeyError:
            raise ValueError(f"reduce_op must be ReduceOp.SUM or ReduceOp.MEAN, but is {value!r}") from None


class PerReplica:
    """One value for each replica of this process, in the order of the replicas.

    Attributes:
      values: the values.
    """

    def __init__(self, values: Sequence[object]) -> None:
        self.values: tuple[Any, ...] = tuple(values)

    def __repr__(self) -> str:
        return f"PerReplica{self.values!r}"


def local_values(value: object) -> tuple[Any, ...]:
    """Returns the values of this process's replicas; a single value if all replicas share it."""
    return value.values if isinstance(value, PerReplica) else (value,)


def map_structure(function: Callable[..., object], *structures: object) -> Tree:
    """Applies ``function`` to the leaves of equal structures; a `PerReplica` is a leaf."""
    tree = jax.tree_util
    return tree.tree_map(function, *structures, is_leaf=_is_leaf)


def _is_leaf(value: object) -> bool:
    return value is None or isinstance(value, PerReplica)


def regroup(outputs: Sequence[object]) -> Tree:
    """Merges the outputs of all local replicas into one structure, with leaves of `PerReplica` if there are several."""
    if len(outputs) == 1:
        return outputs[0]

    def together(*leaves: object) -> PerReplica:
        return PerReplica(leaves)

    return map_structure(together, *outputs)


def select(structure: object, replica: int) -> Tree:
    """Returns ``structure`` with the values of the local replica number ``replica``."""

    def of_replica(leaf: object) -> Tree:
        return leaf.values[replica] if isinstance(leaf, PerReplica) else leaf

    return map_structure(of_replica, structure)


def total_of(values: Sequence[Any], axis: int | None) -> tuple[object, float]:
    """Returns the sum of this process's ``values``, and their count, the process's part of the divisor of a mean.

    Args:
      values: one value for each replica of this process.
      axis: a dimension to sum over as well; None to sum over the replicas only.
    """
    if len(values) > 1:
        # The values may be on different devices, and JAX does not add arrays of different devices.
        values = [np.asarray(value) for value in values]
    if axis is None:
        return sum(values[1:], values[0]), float(len(values))
    sums = [jnp.sum(value, axis=axis) for value in values]
    return sum(sums[1:], sums[0]), float(sum(np.shape(value)[axis] for value in values))
