"""Elementwise functions and operators of ragged tensors, which keep the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from headwater import dtypes
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import operator
from headwater.graph.ragged_value import RaggedTensorValue
from headwater.tf1.functional import arrays, indexing, math
from headwater.tf1.functional.ragged_tensor import (
    RaggedTensor,
    as_ragged_or_tensor,
    map_flat_values,
    same_kind_of_splits,
)

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike


Function = Callable[..., Any]

_OPERATORS: Final = (
    "abs add radd and rand div rdiv floordiv rfloordiv ge gt invert le lt mod rmod mul rmul neg or ror pow rpow sub "
    "rsub truediv rtruediv xor rxor"
)


def of_one(function: Function, *args: object, **kwargs: object) -> Any:
    """Applies ``function`` to the innermost values of ragged tensors with the same rows, also of items of lists."""
    return map_flat_values(function, *args, **kwargs)


def of_list(function: Function, values: object, *args: object, **kwargs: object) -> Any:
    """Applies ``function([…], …)`` to the innermost values of the items of a list, some of which are ragged."""
    given: Any = values
    if isinstance(values, list | tuple):
        same_kind_of_splits(cast("Sequence[Any]", values))
    return map_flat_values(function, given, *args, **kwargs)


def of_two(function: Function, x: object, y: object, *args: object, **kwargs: object) -> Any:
    """Applies ``function(x, y, …)`` to the innermost values of two operands, at least one of them ragged.

    Dimensions of size 1 are broadcast, as between tensors. Two ragged tensors of the same rank must have the same rows,
    as in TensorFlow.
    """
    x, y = broadcast(x, y)
    return map_flat_values(function, x, y, *args, **kwargs)


def of_check(function: Function, x: object, y: object, *args: object, **kwargs: object) -> Any:
    """Applies an assertion about two values to the innermost values."""
    found = (getattr(part, "flat_values", part) for part in broadcast(x, y))
    return function(*found, *args, **kwargs)


def broadcast(x: Any, y: Any) -> tuple[Any, Any]:
    """Broadcasts two operands to common rows; an operand that broadcasts against each value stays unchanged."""
    x, y = _operand(x, y), _operand(y, x)
    if _fits_each_value(x, y) or _fits_each_value(y, x):
        return x, y
    if isinstance(x, RaggedTensor) and isinstance(y, RaggedTensor):
        same_kind_of_splits((x, y))
        if _same(x.nested_row_splits, y.nested_row_splits):
            return x, y
        exact = x.ragged_rank == y.ragged_rank and x.shape.ndims == y.shape.ndims
    else:
        exact = False
    kind = (x if isinstance(x, RaggedTensor) else y).row_splits.dtype
    rank = max(_rank(x), _rank(y))
    levels = max(part.ragged_rank + rank - _rank(part) for part in (x, y) if isinstance(part, RaggedTensor))
    one, two = (_with_levels(part, rank, levels, kind) for part in (x, y))
    splits = [math.cast(part, dtypes.int64) for part in (*one.nested_row_splits, *two.nested_row_splits)]
    op = get_default_graph().create_op("RaggedBroadcast", splits, {"exact": exact}, "RaggedBroadcast")
    found = [math.cast(part, kind) for part in op.outputs[:levels]]
    return (
        _of_splits(indexing.gather(one.flat_values, op.outputs[levels]), found),
        _of_splits(indexing.gather(two.flat_values, op.outputs[levels + 1]), found),
    )


def _same(first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> bool:
    return len(first) == len(second) and all(one is other for one, other in zip(first, second, strict=True))


def _operand(value: TensorLike | None, other: object) -> Any:
    if isinstance(value, RaggedTensor | RaggedTensorValue):
        return as_ragged_or_tensor(value)
    if value is None:
        raise TypeError(f"None cannot be combined with {other!r}: a tensor or a ragged tensor is needed")
    dtype = other.dtype if isinstance(other, RaggedTensor) else None
    return convert_to_tensor(value, preferred_dtype=dtype)


def _rank(value: Any) -> int:
    rank = value.shape.ndims
    if rank is None:
        raise ValueError(f"Unable to broadcast: the rank of {value} is not known")
    return rank


def _fits_each_value(dense: Any, ragged: Any) -> bool:
    """Returns whether a tensor has fewer dimensions than follow the ragged ones."""
    if isinstance(dense, RaggedTensor):
        return False
    rank = ragged.flat_values.shape.ndims
    return dense.shape.ndims == 0 or (rank is not None and dense.shape.ndims is not None and dense.shape.ndims < rank)


def _with_levels(value: Any, rank: int, levels: int, kind: Any) -> RaggedTensor:
    """Returns ``value`` with ``rank`` dimensions, with the ``levels`` after the first as ragged rows."""
    for _ in range(rank - _rank(value)):
        if isinstance(value, RaggedTensor):
            count = value.nrows()
            value = RaggedTensor(value, arrays.stack([arrays.zeros_like(count), count]), internal=True)
        else:
            value = arrays.expand_dims(value, 0)
    if not isinstance(value, RaggedTensor):
        return RaggedTensor.from_tensor(value, ragged_rank=levels, row_splits_dtype=kind)
    missing = levels - value.ragged_rank
    if not missing:
        return value
    inner = RaggedTensor.from_tensor(value.flat_values, ragged_rank=missing, row_splits_dtype=kind)
    return _of_splits(inner.flat_values, [*value.nested_row_splits, *inner.nested_row_splits])


def _of_splits(flat: Any, splits: list[Any]) -> RaggedTensor:
    return RaggedTensor.from_nested_row_splits(flat, splits, validate=False)


def _overload(name: str) -> None:
    def method(self: RaggedTensor, *others: object) -> Any:
        function = operator(name)
        return of_two(function, self, *others) if others else of_one(function, self)

    setattr(RaggedTensor, name, method)


for _name in _OPERATORS.split():
    _overload(f"__{_name}__")
