"""``tf.py_function``: Python functions of values that may use functions of ``tf`` eagerly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from headwater.dtypes import DType, DTypeLike, as_dtype, string
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.graph.session.session import Session
from headwater.tf1.functional.gradients import RegisterGradient
from headwater.tf1.functional.script import py_func

_NO_GRADIENT = "EagerPyFunc"


class Value(np.ndarray[Any, Any]):
    """An argument: an array that also has the method `numpy`."""

    def numpy(self) -> Any:
        """The plain array, or the bytes of a single string."""
        plain = np.asarray(self)
        return plain.item() if plain.dtype == object and plain.ndim == 0 else plain


def py_function(
    func: Callable[..., object], inp: Sequence[Any], Tout: DTypeLike | Sequence[DTypeLike], name: str | None = None
) -> Any:
    """Calls a Python function in each step, in this process, with values.

    Args:
      func: takes an array with ``numpy()`` for each input; returns arrays, or tensors that functions of ``tf`` made
        of them, which are computed when it returns.
      inp: its inputs.
      Tout: element type of its result, or a list of types.

    Returns:
      A tensor of unknown shape, or a list of tensors; the operation if there are no results. It has no gradient:
      `tf.gradients` raises LookupError.
    """
    several = isinstance(Tout, list | tuple)
    kinds: Sequence[Any] = Tout if isinstance(Tout, list | tuple) else [Tout]  # pyright: ignore[reportUnknownVariableType]
    types = [as_dtype(each) for each in kinds]

    def call(*given: object) -> Any:
        with Graph().as_default() as graph:
            result: Any = func(*[np.asarray(each).view(Value) for each in given])
            parts: list[Any] = list(result) if isinstance(result, list | tuple) else [result]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            if not types:
                return None
            if any(isinstance(part, Tensor) for part in parts):
                with Session(graph=graph) as session:
                    parts = session.run([convert_to_tensor(part) for part in parts])
        if len(parts) != len(types):
            raise ValueError(f"The function gave {len(parts)} results; Tout names {len(types)}")
        found = [_typed(part, dtype) for part, dtype in zip(parts, types, strict=True)]
        return found if several else found[0]

    with get_default_graph().gradient_override_map({"PyFunc": _NO_GRADIENT}):
        return py_func(call, list(inp), types if several else types[0] if types else [], name=name)


def _typed(part: object, dtype: DType) -> object:
    array = np.asarray(part)
    if dtype == string:
        return array
    wanted = dtype.numpy_dtype
    if array.dtype != wanted and isinstance(part, np.ndarray | np.generic):
        raise TypeError(f"The function gave {array.dtype.name}; Tout says {dtype.name}")
    return array.astype(wanted)


@RegisterGradient(_NO_GRADIENT)
def _refused(op: Operation, *grads: object) -> NoReturn:
    del grads
    raise LookupError(
        f"no gradient through the py_function {op.name!r}: Python functions are not differentiated. Define a gradient "
        "by tf.custom_gradient, or declare by tf.stop_gradient that none is wanted"
    )
