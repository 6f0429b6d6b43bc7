"""Python's operators on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Tensor, set_operator
from headwater.graph.sparse_tensor import SparseTensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import indexing, linalg, math

Function = Callable[..., Any]


def _add(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    return math.add(x, y, name=name) if x.dtype.base_dtype == dtypes.string else math.add_v2(x, y, name=name)


def _mod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return math.floormod(x, y, name=name)


def _binary(operator: str, function: Function) -> None:
    """``x operator y`` and its reflection: the operand that is not a tensor takes the other's type if it can."""

    def forward(x: TensorLike, y: TensorLike) -> Any:
        with name_scope(None, operator, [x, y]) as scope:
            x = convert_to_tensor(x, name="x")
            if isinstance(y, IndexedSlices):
                return NotImplemented
            if isinstance(y, SparseTensor) and operator == "mul":
                return y * x
            if not isinstance(y, Tensor):
                try:
                    y = convert_to_tensor(y, name="y", preferred_dtype=x.dtype.base_dtype)
                except (TypeError, ValueError):
                    # Python asks the other operand next.
                    if hasattr(type(y), f"__r{operator}__"):  # pyright: ignore[reportUnknownArgumentType]
                        return NotImplemented
                    raise
            return function(x, y, name=scope)

    def reflected(y: TensorLike, x: TensorLike) -> Any:
        with name_scope(None, operator, [x, y]) as scope:
            y = convert_to_tensor(y, name="y")
            x = convert_to_tensor(x, y.dtype.base_dtype, name="x")
            return function(x, y, name=scope)

    set_operator(f"__{operator}__", forward)
    set_operator(f"__r{operator}__", reflected)


for _name, _function in {
    "add": _add,
    "sub": math.subtract,
    "mul": math.multiply,
    "div": math.div,
    "truediv": math.truediv,
    "floordiv": math.floordiv,
    "mod": _mod,
    "pow": math.pow,
    "matmul": linalg.matmul,
    "and": math.logical_and,
    "or": math.logical_or,
    "xor": math.logical_xor,
}.items():
    _binary(_name, _function)
for _name, _function in {
    "lt": math.less,
    "le": math.less_equal,
    "gt": math.greater,
    "ge": math.greater_equal,
    "neg": math.negative,
    "abs": math.abs,
    "invert": math.logical_not,
    "getitem": indexing.getitem,
}.items():
    set_operator(f"__{_name}__", _function)
