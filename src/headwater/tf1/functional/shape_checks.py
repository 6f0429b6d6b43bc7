"""``tf.debugging.assert_shapes``: sizes of several tensors that belong together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, cast

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
    shapes: Mapping[TensorLike, Iterable[Hashable] | None] | Iterable[tuple[TensorLike, Iterable[Hashable] | None]],
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks shapes: sizes with the same symbol must be equal.

    Args:
      shapes: for each tensor, in a mapping or in pairs, its dimensions: a number, a symbol, or None or ``"."`` for any
        size; ``...`` or ``"*"`` in front for any dimensions before them. A scalar counts as one dimension of size 1.
      data: tensors that a failing run prints.
      summarize: how many elements of each it prints.
      message: text in front of the printed tensors.

    Returns:
      An operation that raises `InvalidArgumentError` where a shape is wrong.

    Raises:
      ValueError: a shape is known to be wrong.
    """
    pairs: list[tuple[Any, Any]] = list(cast("Any", shapes.items() if isinstance(shapes, Mapping) else shapes))
    with name_scope(name, "assert_shapes", [*(tensor for tensor, _ in pairs), *(data or ())]):
        checks: list[Operation] = []
        sizes: dict[Hashable, tuple[Tensor, int, int | Tensor]] = {}
        text = message or ""
        for key, wanted in pairs:
            tensor = convert_to_tensor(key)
            if wanted is None:
                continue
            if not isinstance(wanted, Iterable):
                raise ValueError(
                    f"{text}Tensor {tensor.name}.  Specified shape must be an iterable.  An iterable has the attribute "
                    f"`__iter__` or `__getitem__`.  Received specified shape: {wanted}"
                )
            symbols = list(cast("Iterable[Hashable]", wanted))
            inner = bool(symbols) and symbols[0] in _ANY_DIMENSIONS
            symbols = symbols[1:] if inner else symbols
            if any(symbol in _ANY_DIMENSIONS for symbol in symbols):
                raise ValueError(
                    f"{text}Tensor {tensor.name} specified shape {symbols}.  Symbol `...` or `*` for a variable number "
                    "of unspecified dimensions is only allowed as the first entry"
                )
            symbols = symbols or ([] if inner else [1])
            checks += _rank_checks(tensor, len(symbols), inner, text, data, summarize)
            for place, symbol in enumerate(symbols):
                if symbol in _ANY_SIZE:
                    continue
                size = _size(tensor, place - len(symbols))
                explicit = _as_int(symbol)
                number = place - len(symbols) if inner else place
                known: int | Tensor
                if explicit is not None:
                    source, known = "Specified explicitly", explicit
                else:
                    first, where, known = sizes.setdefault(symbol, (tensor, number, size))
                    source = f"Specified by tensor {first.name} dimension {where}"
                checks += _size_checks(tensor, size, known, number, (text, source), data, summarize)
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
                f"{text}Tensor {tensor.name} must have rank {rank}.  Received rank {have}, shape {tensor.shape}"
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
    dimension: int,
    start: tuple[str, str],
    data: Sequence[TensorLike] | None,
    summarize: int | None,
) -> list[Operation]:
    if isinstance(size, int) and isinstance(known, int):
        if size != known:
            raise ValueError(
                f"{start[0]}{start[1]}.  Tensor {tensor.name} dimension {dimension} must have size {known}.  Received "
                f"size {size}, shape {tensor.shape}"
            )
        return []
    shown = [*start, f"Tensor {tensor.name} dimension", dimension, "must have size", known, "Received size", size]
    return [assert_equal(size, known, list(data or shown), summarize)]
