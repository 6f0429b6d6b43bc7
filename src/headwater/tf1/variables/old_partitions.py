"""Partitioned variables as lists of their parts, as programs created them before partitioners existed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.dtypes import float32
from headwater.tf1.variables.partitioned import Partitioner
from headwater.tf1.variables.scope_settings import VariableScope
from headwater.tf1.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.tf1.variables.types import InitializerLike


def _always(slicing: Sequence[int]) -> Partitioner:
    """Returns a partitioner that divides every variable into these numbers of parts."""

    def cut(**of: object) -> Sequence[int]:
        del of
        return list(slicing)

    return cut


def create_partitioned_variables(
    shape: Sequence[int],
    slicing: Sequence[int],
    initializer: InitializerLike,
    dtype: DTypeLike = float32,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    name: str | None = None,
    reuse: bool | None = None,
) -> list[Variable]:
    """The parts of a variable.

    Args:
      shape: the shape of the whole.
      slicing: number of parts of each dimension; only one of the numbers may be above 1.
      name: the name of the whole; if None, ``PartitionedVariable``, with a number if that name is taken.
      reuse: use the existing parts.

    Raises:
      ValueError: ``slicing`` has a different length than ``shape``, or both are empty.
    """
    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a partitioned Variable must have the length: shape: "
            f"{list(shape)}, slicing: {list(slicing)}"
        )
    if not shape:
        raise ValueError(f"A partitioned Variable must have rank at least 1: shape: {list(shape)}")
    outer: VariableScope = get_variable_scope()
    with variable_scope(name, "PartitionedVariable") as scope:
        own = scope.name.rpartition("/")[2]
    with variable_scope(outer, reuse=reuse):
        whole = get_variable(
            own,
            list(shape),
            dtype,
            initializer,
            trainable=trainable,
            collections=collections,
            partitioner=_always(slicing),
        )
    return list(whole)
