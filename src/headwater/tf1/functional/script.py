"""Python functions and prints as operations of a graph."""

from __future__ import annotations

import pprint
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import DType, as_dtype
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import HostFunction
from headwater.graph.types import TensorLike
from headwater.tf1.functional.apply import apply, one

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
    tensors: list[Tensor] = []
    mark = "{}"
    while any(mark in repr(item) for item in inputs if not isinstance(item, Tensor)):
        mark = f"<{mark}>"
    parts: list[str] = []
    for item in inputs:
        replaced = _with_holes(item, tensors, _Hole(mark))
        parts.append(replaced if isinstance(replaced, str) else pprint.pformat(replaced))
    text = one(
        "StringFormat", tensors, template=chosen["sep"].join(parts), placeholder=mark, summarize=chosen["summarize"]
    )
    stream = _stream_name(chosen["output_stream"])
    return apply("PrintV2", text, output_stream=stream, end=chosen["end"], name=chosen["name"])


def _with_holes(value: Any, tensors: list[Tensor], hole: _Hole) -> Any:
    """Replaces the tensors in ``value`` by placeholders, and appends them to ``tensors``."""
    if isinstance(value, dict):
        return {key: _with_holes(item, tensors, hole) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return type(value)(_with_holes(item, tensors, hole) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportCallIssue]
    if isinstance(value, Tensor) or hasattr(value, "_as_graph_element"):
        tensors.append(convert_to_tensor(value))
        return hole
    return value


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
