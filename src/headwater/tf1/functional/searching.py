"""Searching and sorting: distinct elements, differences of sets, sorting."""

from __future__ import annotations

from typing import Any, NamedTuple

from headwater import dtypes
from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.indexing import where_v2


class Unique(NamedTuple):
    """The distinct elements of a vector in order of appearance, and each element's index in these."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """Result of `Unique`, and the count of each element."""

    y: Tensor
    idx: Tensor
    count: Tensor  # pyright: ignore[reportIncompatibleMethodOverride]


class ListDiff(NamedTuple):
    """The elements of one vector that are not in another, and their indices."""

    out: Tensor
    idx: Tensor


def unique(x: TensorLike, out_idx: Any = dtypes.int32, name: str | None = None) -> Unique:
    """The different elements of a vector."""
    return Unique(*apply("Unique", x, out_idx=as_dtype(out_idx), name=name).outputs)


def unique_with_counts(x: TensorLike, out_idx: Any = dtypes.int32, name: str | None = None) -> UniqueWithCounts:
    """Returns the distinct elements of a vector, and their counts."""
    return UniqueWithCounts(*apply("UniqueWithCounts", x, out_idx=as_dtype(out_idx), name=name).outputs)


def setdiff1d(x: TensorLike, y: TensorLike, index_dtype: DTypeLike = dtypes.int32, name: str | None = None) -> ListDiff:
    """The elements of x that are not in y."""
    return ListDiff(*apply("ListDiff", x, y, out_idx=as_dtype(index_dtype), name=name).outputs)


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The elements in order along a dimension."""
    with name_scope(name, "sort"):
        return _ordered(values, axis, direction)[0]


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The positions of the elements in order along a dimension; equal ones stay in their order."""
    del stable
    with name_scope(name, "argsort"):
        return _ordered(values, axis, direction)[1]


def _ordered(values: Tensor, axis: int, direction: str) -> list[Tensor]:
    """The sorted elements, and their original positions."""
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"direction should be either 'ASCENDING' or 'DESCENDING', not {direction!r}")
    values = convert_to_tensor(values, name="values")
    order: Any
    if values.dims is not None:
        order = list(range(len(values.dims)))
        if not -len(order) <= axis < len(order):
            raise ValueError(f"slice index {axis} of dimension 0 out of bounds.")
        order[axis], order[-1] = order[-1], order[axis]
    else:
        rank = arrays.rank(values)
        last, place = rank - 1, math.floormod(axis, rank)
        order = arrays.range(rank)
        order = where_v2(math.equal(order, place), last, where_v2(math.equal(order, last), place, order))
    moved = arrays.transpose(values, order)
    turned = math.negative(moved) if direction == "ASCENDING" else moved
    found, places = apply("TopKV2", turned, arrays.shape(moved)[-1]).outputs
    results = [math.negative(found) if direction == "ASCENDING" else found, places]
    return [arrays.transpose(result, order) for result in results]


def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: str = "left",
    out_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Returns the positions of values in ascending rows: before equal elements (``left``) or after (``right``).

    Raises:
      ValueError: ``side`` is unknown.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'. Saw: {side}.")
    rows = convert_to_tensor(sorted_sequence, name="sorted_sequence")
    values = convert_to_tensor(values, rows.dtype.base_dtype, name="values")
    flat_rows = arrays.reshape(rows, [-1, arrays.shape(rows)[-1]])
    flat_values = arrays.reshape(values, [-1, arrays.shape(values)[-1]])
    op_type = "LowerBound" if side == "left" else "UpperBound"
    found = one(op_type, flat_rows, flat_values, out_type=as_dtype(out_type), name=name)
    return arrays.reshape(found, arrays.shape(values))


def unravel_index(indices: TensorLike, dims: int, name: str | None = None) -> Tensor:
    """The coordinates, one row for each dimension, of places in a tensor of shape ``dims`` that is laid out flat."""
    return one("UnravelIndex", indices, dims, name=name)
