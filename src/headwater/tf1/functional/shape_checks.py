"""``tf.debugging.assert_shapes``: sizes of several tensors that belong together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Operation, Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays
from headwater.tf1.functional.checks import Assert, assert_equal
from headwater.tf1.functional.control_flow import group, no_op
from headwater.tf1.functional.math import greater_equal

_ANY_SIZE = (None, ".")
_ANY_DIMENSIONS = (..., "*")


def assert_shapes(
    shapes: Mapping[TensorLike, Iterable[Hashable]],
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks shapes: sizes with the same symbol must be equal.

    Args:
      shapes: for each tensor its dimensions: a number, a symbol, or None or ``"."`` for any size; ``...`` or ``"*"``
        in front for any dimensions before them. A scalar counts as one dimension of size 1.
      data: tensors that a failing run prints.
      summarize: how many elements of each it prints.
      message: text in front of the printed tensors.
      name: of the operations.

    Returns:
      An operation that raises `InvalidArgumentError` where a shape is wrong.

    Raises:
      ValueError: a shape is known to be wrong.
    """
    with name_scope(name, "assert_shapes", [*shapes, *(data or ())]):
        checks: list[Operation] = []
        sizes: dict[Hashable, tuple[Tensor, int | Tensor]] = {}
        text = message or ""
        for key, wanted in shapes.items():
            tensor = convert_to_tensor(key)
            symbols = list(wanted)
            inner = bool(symbols) and symbols[0] in _ANY_DIMENSIONS
            symbols = symbols[1:] if inner else symbols
            if any(symbol in _ANY_DIMENSIONS for symbol in symbols):
                raise ValueError(
                    f"{text}Symbol `...` or `*` for a variable number of dimensions comes first, or not at all."
                )
            symbols = symbols or ([] if inner else [1])
            checks += _rank_checks(tensor, len(symbols), inner, text, data, summarize)
            for place, symbol in enumerate(symbols):
                if symbol in _ANY_SIZE:
                    continue
                size = _size(tensor, place - len(symbols))
                explicit = _as_int(symbol)
                known = sizes.setdefault(symbol, (tensor, size))[1] if explicit is None else explicit
                checks += _size_checks(
                    tensor, size, known, f"{text}Size of dimension {place} of {tensor.name}", data, summarize
                )
        return group(*checks) if checks else no_op()


def _as_int(symbol: Any) -> int | None:
    try:
        return int(symbol)
    except (TypeError, ValueError):
        return None


def _size(tensor: Tensor, axis: int) -> int | Tensor:
    if tensor.dims == ():
        return 1
    size = None if tensor.dims is None else tensor.dims[axis]
    return arrays.shape(tensor)[axis] if size is None else size


def _rank_checks(
    tensor: Tensor, rank: int, inner: bool, text: str, data: Sequence[TensorLike] | None, summarize: int | None
) -> list[Operation]:
    if tensor.dims is not None:
        have = len(tensor.dims) or 1
        if have < rank or (have > rank and not inner):
            raise ValueError(
                f"{text}Tensor {tensor.name} must have rank {rank}. Received rank {have}, shape {tensor.shape}"
            )
        return []
    found = arrays.rank(tensor)
    if inner:
        return [Assert(greater_equal(found, rank), list(data or [text, "rank of", tensor.name, found]), summarize)]
    return [assert_equal(found, rank, data, summarize, text or None)]


def _size_checks(
    tensor: Tensor,
    size: int | Tensor,
    known: int | Tensor,
    text: str,
    data: Sequence[TensorLike] | None,
    summarize: int | None,
) -> list[Operation]:
    if isinstance(size, int) and isinstance(known, int):
        if size != known:
            raise ValueError(f"{text} must have size {known}. Received size {size}, shape {tensor.shape}")
        return []
    return [assert_equal(size, known, data, summarize, text)]
