"""Python functions and prints as operations of a graph."""

from __future__ import annotations

import pprint
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from headwater.dtypes import DType, as_dtype, string
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, holds_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import HostFunction
from headwater.graph.sparse_tensor import SparseTensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, ragged_reductions, strings
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.ragged_tensor import RaggedTensor

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike


_FUNCTIONS = ("headwater", "python functions")
"""Key of the collection by which a graph keeps its functions alive."""


def py_func(
    func: Callable[..., object], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """Calls a Python function in each step, in this process, with arrays.

    Args:
      func: takes an array for each input, and returns an array, or a list of arrays.
      inp: its inputs.
      Tout: element type of its result, or a list of types.
      stateful: whether results may differ for the same inputs.

    Returns:
      A tensor of unknown shape, or a list of tensors; the operation if there are no results.

    Raises:
      ValueError: ``func`` is not callable.
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable, got func of type {type(func)}")
    several = isinstance(Tout, list | tuple)
    types: tuple[DType, ...] = tuple(as_dtype(t) for t in (Tout if several else [Tout]))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    held = HostFunction(func)
    get_default_graph().get_collection_ref(_FUNCTIONS).append(held)
    op = apply("PyFunc" if stateful else "PyFuncStateless", list(inp), token=held.token, Tout=types, name=name)
    if not types:
        return op
    return op.outputs if several else op.outputs[0]


def numpy_function(
    func: Callable[..., object], inp: Sequence[object], Tout: DTypeLike | Sequence[DTypeLike], name: str | None = None
) -> Any:
    """Same as `py_func`."""
    return py_func(func, inp, Tout, name=name)


def Print(
    input_: TensorLike,
    data: Sequence[TensorLike],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns ``input_``; each step that computes it prints ``data`` to standard error of its task.

    Args:
      message: text before it.
      first_n: number of steps that print, from the first on; all if None.
      summarize: how many elements of each tensor to print; 3 if None, all when negative.
    """
    return one(
        "Print",
        input_,
        list(data),
        message=message or "",
        first_n=-1 if first_n is None else first_n,
        summarize=3 if summarize is None else summarize,
        name=name,
    )


class _Hole:
    """Placeholder of a tensor in a string."""

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def __repr__(self) -> str:
        return self._mark


def print_(*inputs: Any, **options: Any) -> Operation:
    """Returns an operation that prints tensors and other objects, also within lists and dictionaries.

    Args:
      inputs: the objects to print, separated by blanks unless ``sep`` is given.
      options: ``output_stream`` (``sys.stderr`` by default, ``sys.stdout``, or ``"file://…"``), ``summarize`` (how
        many elements from both ends of each dimension; 3, and all when negative), ``sep``, ``end`` and ``name``.

    Raises:
      ValueError: the option or the stream is unknown.
    """
    known: dict[str, Any] = {"output_stream": sys.stderr, "summarize": 3, "sep": " ", "end": "\n", "name": None}
    unknown = set(options) - set(known)
    if unknown:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {sorted(unknown)}")
    chosen = known | options
    marks = ("{}", "[]")  # of tensors, and of texts of ragged tensors
    while any(mark in repr(item) for item in inputs if not holds_tensor(item) for mark in marks):
        marks = (f"<{marks[0]}>", f"<{marks[1]}>")
    holes = _Holes(*marks, chosen["summarize"])
    parts = [item if isinstance(item, str) else pprint.pformat(holes.made(item), sort_dicts=False) for item in inputs]
    text = holes.filled(chosen["sep"].join(parts))
    stream = _stream_name(chosen["output_stream"])
    return apply("PrintV2", text, output_stream=stream, end=chosen["end"], name=chosen["name"])


class _Holes:
    """Creates placeholders for tensors within a text, in the order of the text.

    Args:
      mark: the placeholder of a tensor.
      ragged_mark: the placeholder of the text of a ragged tensor, which, unlike another text, has no quotation marks.
      limit: the number of elements to print from both ends of each dimension; all when negative.
    """

    def __init__(self, mark: str, ragged_mark: str, limit: int) -> None:
        self._mark, self._ragged_mark, self._limit = mark, ragged_mark, limit
        self._tensors: list[Tensor] = []
        self._ragged_texts: list[Tensor] = []

    def made(self, value: Any) -> Any:
        """Returns ``value``, also a nested structure, with placeholders in place of its tensors."""
        if isinstance(value, dict):
            items: list[tuple[Any, Any]] = list(value.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
            if type(value) is dict:  # pyright: ignore[reportUnknownArgumentType]
                with suppress(TypeError):  # keys of different types keep their order
                    items.sort(key=lambda item: item[0])
            made = [(key, self.made(item)) for key, item in items]
            return OrderedDict(made) if isinstance(value, OrderedDict) else dict(made)
        if isinstance(value, SparseTensor):
            self._tensors += [value.indices, value.values, value.dense_shape]
            return f"SparseTensor(indices={self._mark}, values={self._mark}, shape={self._mark})"
        if isinstance(value, RaggedTensor):
            self._ragged_texts.append(_joined(arrays.expand_dims(_row_texts(value, self._limit), 0), self._limit)[0])
            return _Hole(self._ragged_mark)
        if isinstance(value, list | tuple):
            parts = [self.made(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportCallIssue]
        if holds_tensor(value) or hasattr(value, "_as_graph_element"):
            self._tensors.append(convert_to_tensor(value))
            return _Hole(self._mark)
        return value

    def filled(self, template: str) -> Tensor:
        """Returns a text with the tensors in place of their placeholders."""
        rest = iter(self._tensors)
        found: list[Tensor] = []
        for number, piece in enumerate(template.split(self._ragged_mark)):
            tensors = list(islice(rest, piece.count(self._mark)))
            found += self._ragged_texts[number - 1 : number] if number else []
            found.append(one("StringFormat", tensors, template=piece, placeholder=self._mark, summarize=self._limit))
        return strings.string_join(found) if len(found) > 1 else found[0]


def _row_texts(ragged: RaggedTensor, limit: int) -> Tensor:
    """Returns the text of each row of a ragged tensor, a vector."""
    inner: Any = ragged.values
    if not isinstance(inner, RaggedTensor) and inner.shape.ndims > 1:
        inner = RaggedTensor.from_tensor(inner, ragged_rank=inner.shape.ndims - 1)
    if isinstance(inner, RaggedTensor):
        texts = _row_texts(inner, limit)
    elif inner.dtype.base_dtype == string:
        texts = strings.string_join(["'", inner, "'"])
    else:
        texts = strings.as_string(inner)
    return _joined(RaggedTensor.from_row_splits(texts, ragged.row_splits), limit)


def _joined(rows: Any, limit: int) -> Tensor:
    """Joins the texts of each row to one text in brackets, with three dots in place of those beyond the limit."""

    def join(part: Any) -> Tensor:
        return ragged_reductions.reduce_join(part, 1, separator=", ")

    rows = rows if isinstance(rows, RaggedTensor) else RaggedTensor.from_tensor(rows)
    texts = join(rows)
    if limit >= 0:
        ends = strings.string_join([join(rows[:, :limit]), ", ..., ", join(rows[:, -limit:])])
        texts = indexing.where_v2(rows.row_lengths() > 2 * limit, ends, texts)
    return strings.string_join(["[", texts, "]"])


def _stream_name(stream: object) -> str:
    if stream in (sys.stdout, "stdout"):
        return "stdout"
    if stream in (sys.stderr, "stderr"):
        return "stderr"
    if isinstance(stream, str) and stream.startswith("file://"):
        return stream
    raise ValueError(f"Unsupported output stream: {stream!r}; use sys.stdout, sys.stderr or 'file://…'")


def timestamp(name: str | None = None) -> Tensor:
    """Seconds since 1970 when the step runs, as float64."""
    return one("Timestamp", name=name)
