"""Checks, prints, and Python functions in a step."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from headwater.dtypes import DType, float64, string, to_string_array
from headwater.errors import InvalidArgumentError, error_of_function
from headwater.graph.ops.common import AnyArray, output
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.ops.formatting import both_ends, first_elements
from headwater.graph.registry import HostArray, Inference, Spec, function_of
from headwater.graph.resources.host_context import HostContext

# Checks -----------------------------------------------------------------------------------------------------------


@host("Assert", inputs="condition:bool, data:T**", infer=no_outputs)
def check(condition: HostArray, *data: HostArray, summarize: int = 3) -> None:
    """Raises an error that shows ``data``, unless the condition holds."""
    if not condition:
        shown = " ".join(f"[{first_elements(value, summarize)}]" for value in data)
        raise InvalidArgumentError(f"assertion failed: {shown}")


def _like_first(inference: Inference) -> Sequence[Spec]:
    return output(inference, inference.inputs[0].dims)


@host("CheckNumerics", inputs="tensor:T|floating", infer=_like_first)
def check_numerics(tensor: HostArray, *, message: str) -> HostArray:
    """Returns ``tensor``; raises an error if an element is infinite or NaN."""
    found = [word for word, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(tensor).any()]
    if found:
        raise InvalidArgumentError(f"{message} : Tensor had {' and '.join(found)} values")
    return tensor


# Prints -----------------------------------------------------------------------------------------------------------


class _Count:
    """The number of times that an operation has printed."""

    def __init__(self) -> None:
        self.printed = 0


@host("Print", inputs="input:T, data:U**", infer=_like_first, effect=True)
def print_(
    context: HostContext, input: HostArray, *data: HostArray, message: str = "", first_n: int = -1, summarize: int = 3
) -> HostArray:
    """Returns ``input``; prints the first elements of ``data`` to standard error, in the first ``first_n`` steps
    only."""
    count = context.resource("", "", _Count, _Count)
    if first_n < 0 or count.printed < first_n:
        count.printed += 1
        shown = "".join(f"[{first_elements(value, summarize)}]" for value in data)
        print(f"{message}{shown}", file=sys.stderr, flush=True)
    return input


@host("StringFormat", inputs="inputs:T**", infer=fixed(string, ()))
def string_format(*inputs: HostArray, template: str = "%s", placeholder: str = "%s", summarize: int = 3) -> HostArray:
    """``template`` with each placeholder replaced by a tensor."""
    pieces = template.split(placeholder)
    if len(pieces) != len(inputs) + 1:
        raise ValueError(f"num placeholders in template and num inputs must match: {len(pieces) - 1} vs. {len(inputs)}")
    shown = [both_ends(_octal(value) if value.dtype == object else value, summarize) for value in inputs]
    text = "".join(piece + value for piece, value in zip(pieces, [*shown, ""], strict=True))
    return to_string_array(text)


def _octal(texts: HostArray) -> HostArray:
    """Returns strings with octal escapes for bytes outside of ASCII."""
    return np.vectorize(lambda text: re.sub(rb"[^ -~]", lambda at: b"\\%03o" % at[0][0], text), otypes=[object])(texts)


@host("PrintV2", inputs="input:string", infer=no_outputs)
def print_v2(input: HostArray, *, output_stream: str = "stderr", end: str = "\n") -> None:
    """Writes a string to a stream, or to the end of a file (``file://path``)."""
    text = input.item().decode(errors="replace") + end
    if output_stream.startswith("file://"):
        with Path(output_stream.removeprefix("file://")).open("a") as file:
            file.write(text)
    elif output_stream.startswith("log("):
        print(text, end="", file=sys.stderr, flush=True)
    else:
        print(text, end="", file=sys.stdout if output_stream == "stdout" else sys.stderr, flush=True)


@host("Timestamp", inputs="", infer=fixed(float64, ()))
def timestamp() -> HostArray:
    """Seconds since 1970."""
    return np.array(time.time())


# Python functions -------------------------------------------------------------------------------------------------


def _function_specs(inference: Inference) -> Sequence[Spec]:
    return [Spec(dtype, None) for dtype in inference.attrs["Tout"]]


def _call(context: HostContext, *input: HostArray, token: str, Tout: Sequence[DType]) -> Any:
    """Calls this process's Python function with the given ``token``.

    Raises:
      InvalidArgumentError: the types of the results differ from the declared types.
      OpError: the function raised an exception; the error has its message and a matching class.
    """
    function = function_of(token)
    if function is None:
        raise InvalidArgumentError(
            f"{context.op_name!r} calls a Python function of another process; run it in the process that made it"
        )
    try:
        results: Any = function(*input)
    except Exception as error:
        raise error_of_function(error) from error
    values: list[Any] = [results]
    if isinstance(results, list | tuple):
        values = list(cast("Sequence[Any]", results))
    elif results is None:
        values = []
    if len(values) != len(Tout):
        raise InvalidArgumentError(f"{token} returns {len(values)} values, but expects to see {len(Tout)} values.")
    return tuple(
        _converted(value, dtype, index, token) for index, (value, dtype) in enumerate(zip(values, Tout, strict=True))
    )


def _converted(value: AnyArray, dtype: DType, index: int, token: str) -> HostArray:
    if dtype.base_dtype == string:
        return to_string_array(value)
    array = np.asarray(value)
    if array.dtype != dtype.numpy_dtype:
        names = [_C_NAMES.get(name, name) for name in (array.dtype.name, dtype.name)]
        raise InvalidArgumentError(f"{index}-th value returned by {token} is {names[0]}, but expects {names[1]}")
    return array


_C_NAMES: Final = {"float32": "float", "float64": "double"}


@host("PyFunc", inputs="input:Tin**", infer=_function_specs, effect=True)
def py_func(context: HostContext, *input: HostArray, token: str, Tout: Sequence[DType] = ()) -> HostArray:
    """Calls a Python function with arrays."""
    return _call(context, *input, token=token, Tout=Tout)


@host("PyFuncStateless", inputs="input:Tin**", infer=_function_specs)
def py_func_stateless(context: HostContext, *input: HostArray, token: str, Tout: Sequence[DType] = ()) -> HostArray:
    """Like `py_func`, for deterministic functions."""
    return _call(context, *input, token=token, Tout=Tout)
