"""Values that differ between replicas, and how they become one."""

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
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def of(value: ReduceOp | str) -> ReduceOp:
        """``value``, or what its name says, in any case of letters.

        Raises:
          ValueError: it is neither a sum nor a mean.
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
    """The values of this process's replicas; a value that is the same everywhere is one value."""
    return value.values if isinstance(value, PerReplica) else (value,)


def map_structure(function: Callable[..., object], *structures: object) -> Tree:
    """``function`` of the leaves of equal structures, where a `PerReplica` is a leaf."""
    tree = jax.tree_util
    return tree.tree_map(function, *structures, is_leaf=_is_leaf)


def _is_leaf(value: object) -> bool:
    return value is None or isinstance(value, PerReplica)


def regroup(outputs: Sequence[object]) -> Tree:
    """The outputs of all local replicas as one structure, whose leaves are `PerReplica` where there are several."""
    if len(outputs) == 1:
        return outputs[0]

    def together(*leaves: object) -> PerReplica:
        return PerReplica(leaves)

    return map_structure(together, *outputs)


def select(structure: object, replica: int) -> Tree:
    """``structure`` as the local replica of that number sees it."""

    def of_replica(leaf: object) -> Tree:
        return leaf.values[replica] if isinstance(leaf, PerReplica) else leaf

    return map_structure(of_replica, structure)


def total_of(values: Sequence[Any], axis: int | None) -> tuple[object, float]:
    """The sum of this process's ``values``, and what to divide the sum over all processes by for a mean.

    Args:
      values: one for each replica of this process.
      axis: the dimension to sum over, too; None to sum over the replicas only.
    """
    if len(values) > 1:
        # They may lie on different devices, between which nothing is added up by itself.
        values = [np.asarray(value) for value in values]
    if axis is None:
        return sum(values[1:], values[0]), float(len(values))
    sums = [jnp.sum(value, axis=axis) for value in values]
    return sum(sums[1:], sums[0]), float(sum(np.shape(value)[axis] for value in values))
