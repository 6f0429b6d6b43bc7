"""Assertions on tensors: a run fails with InvalidArgumentError if one is violated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.dtypes import as_dtype, float32
from headwater.errors import InvalidArgumentError
from headwater.graph.composites import CompositeTensor
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Operation, Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.control_flow import group, no_op, with_dependencies
from headwater.tf1.functional.default_graph import control_dependencies

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.registry import HostArray
    from headwater.graph.types import Structure


def Assert(
    condition: TensorLike, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that fails if ``condition`` does not hold, with the values of ``data`` in the message.

    Args:
      summarize: how many elements of each tensor to show.
    """
    return apply(
        "Assert", condition, list(data), summarize=3 if summarize is None else summarize, name=name or "Assert"
    )


def assert_that(condition: Tensor, data: Sequence[TensorLike], tensor: Tensor) -> Tensor:
    """Returns ``tensor`` after a check of ``condition``; ValueError if the condition is known to be false."""
    known = constant_value(condition)
    if known is not None:
        if not known.all():
            raise ValueError("".join(str(item.shape if isinstance(item, Tensor) else item) for item in data))
        return tensor
    return with_dependencies([Assert(condition, data, summarize=1000)], tensor)


def _broadcast(left: HostArray, right: HostArray) -> bool:
    try:
        np.broadcast_shapes(left.shape, right.shape)
    except ValueError:
        return False
    return True


def _text(item: object) -> str:
    """Returns a tensor's value if it is known, and the text of anything else."""
    value = constant_value(item) if isinstance(item, Tensor) else item
    return str(item if value is None else value)


def _binary(op_type: str, default: str, sign: str, holds: Callable[[Any, Any], Any]) -> Callable[..., Operation]:
    def check(
        x: Any,
        y: Any,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with name_scope(name, default, [x, y, data]):
            x = convert_to_tensor(x, name="x")
            y = convert_to_tensor(y, preferred_dtype=x.dtype.base_dtype, name="y")
            shown = (
                data
                if data is not None
                else [
                    message or "",
                    f"Condition x {sign} y did not hold element-wise:",
                    f"x ({x.name}) = ",
                    x,
                    f"y ({y.name}) = ",
                    y,
                ]
            )
            left, right = constant_value(x), constant_value(y)
            if left is not None and right is not None and _broadcast(left, right):
                if not np.all(holds(left, right)):
                    raise InvalidArgumentError("\n".join(map(_text, shown)))
                return no_op("static_checks_determined_all_ok")
            return Assert(reductions.reduce_all(one(op_type, x, y)), shown, summarize)

    check.__doc__ = (
        f"An operation that fails unless x {sign} y, element by element; fails immediately if the values are known."
    )
    return check


assert_equal: Callable[..., Operation] = _binary("Equal", "assert_equal", "==", np.equal)
assert_none_equal: Callable[..., Operation] = _binary("NotEqual", "assert_none_equal", "!=", np.not_equal)
assert_less: Callable[..., Operation] = _binary("Less", "assert_less", "<", np.less)
assert_less_equal: Callable[..., Operation] = _binary("LessEqual", "assert_less_equal", "<=", np.less_equal)
assert_greater: Callable[..., Operation] = _binary("Greater", "assert_greater", ">", np.greater)
assert_greater_equal: Callable[..., Operation] = _binary("GreaterEqual", "assert_greater_equal", ">=", np.greater_equal)


def _against_zero(compare: Callable[..., Operation], default: str, sign: str, what: str) -> Callable[..., Operation]:
    def check(
        x: TensorLike,
        data: object = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with name_scope(name, default, [x, data]):
            x = convert_to_tensor(x, name="x")
            zero = np.zeros((), x.dtype.numpy_dtype)
            if data is None:
                data = [message or "", f"Condition x {sign} 0 did not hold element-wise:", f"x ({x.name}) = ", x]
            return compare(x, zero, data=data, summarize=summarize, message=message)

    check.__doc__ = f"An operation that fails unless all elements are {what}."
    return check


assert_positive: Callable[..., Operation] = _against_zero(assert_greater, "assert_positive", ">", "above 0")
assert_negative: Callable[..., Operation] = _against_zero(assert_less, "assert_negative", "<", "below 0")
assert_non_negative: Callable[..., Operation] = _against_zero(
    assert_greater_equal, "assert_non_negative", ">=", "at least 0"
)
assert_non_positive: Callable[..., Operation] = _against_zero(
    assert_less_equal, "assert_non_positive", "<=", "at most 0"
)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Returns an operation that fails unless |x - y| ≤ atol + rtol |y|; by default both are ten times the precision."""
    with name_scope(name, "assert_near", [x, y]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        precision = float(10 * np.finfo(x.dtype.numpy_dtype).eps)
        bound = (precision if atol is None else atol) + (precision if rtol is None else rtol) * math.abs(y)
        shown = data if data is not None else [message or "", "x and y not equal to tolerance", x, y]
        return Assert(reductions.reduce_all(math.abs(x - y) <= bound), shown, summarize)


# Ranks and types, most of which are known when the graph is built
# --------------------------------------------------------------------


def _scalar_rank(rank: Any) -> int | Tensor:
    if isinstance(rank, int):
        return rank
    tensor = convert_to_tensor(rank, name="rank")
    if not tensor.dtype.is_integer:
        raise TypeError(f"{tensor.name} must be of type {dtypes.int32!s}, not {tensor.dtype!s}")
    if tensor.dims not in (None, ()):
        raise ValueError("Rank must be a scalar.")
    value = constant_value(tensor)
    return tensor if value is None else int(value)


def _check_rank(
    x: TensorLike,
    allowed: Sequence[object],
    default: str,
    wanted: str,
    data: Any,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    with name_scope(name, default, [x]):
        x = convert_to_tensor(x, name="x")
        at_least = default == "assert_rank_at_least"
        ranks = [_scalar_rank(each) for each in allowed]
        if x.dims is not None and all(isinstance(each, int) for each in ranks):
            if not (len(x.dims) >= ranks[0] if at_least else len(x.dims) in ranks):
                raise ValueError(f"{message or ''}Tensor {x.name} must have rank {wanted}. Received shape: {x.shape}")
            return no_op("static_checks_determined_all_ok")
        rank = arrays.rank(x)
        if at_least:
            condition: Tensor = rank >= ranks[0]
        else:
            condition = reductions.reduce_any(arrays.stack([math.equal(rank, each) for each in ranks]))
        if data is None:
            data = [message or "", f"Tensor {x.name} must have rank {wanted}. Received shape: ", arrays.shape(x)]
        return Assert(condition, data, summarize)


def assert_rank(
    x: TensorLike,
    rank: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Returns an operation that fails unless ``x`` has ``rank`` dimensions; ValueError if this is known.

    Args:
      data: tensors to print in the error; the shape if None.
      summarize: how many elements of each tensor to print.
    """
    return _check_rank(x, [rank], "assert_rank", str(rank), data, summarize, message, name)


def assert_rank_at_least(
    x: TensorLike,
    rank: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Returns an operation that fails if ``x`` has less than ``rank`` dimensions; ValueError if this is known.

    Args:
      data: tensors to print in the error; the shape if None.
      summarize: how many elements of each tensor to print.
    """
    return _check_rank(x, [rank], "assert_rank_at_least", f"at least {rank}", data, summarize, message, name)


def assert_rank_in(
    x: TensorLike,
    ranks: Sequence[TensorLike],
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Returns an operation that fails unless the rank is one of ``ranks``; ValueError if it is known to be another.

    Args:
      data: tensors to print in the error; the shape if None.
      summarize: how many elements of each tensor to print.
    """
    return _check_rank(x, ranks, "assert_rank_in", f"in {tuple(ranks)}", data, summarize, message, name)


def assert_scalar(tensor: TensorLike, name: str | None = None, message: str | None = None) -> Tensor:
    """Returns ``tensor``; ValueError if it is known not to be a scalar."""
    with name_scope(name, "assert_scalar", [tensor]):
        tensor = convert_to_tensor(tensor)
        if tensor.dims not in (None, ()):
            raise ValueError(f"{message or ''}Expected scalar shape for {tensor.name}, saw shape: {tensor.shape}.")
        return tensor


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> Operation:
    """Raises TypeError unless ``x`` has an integer type."""
    with name_scope(name, "assert_integer", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            raise TypeError(f"{message or ''}Expected 'x' to be integer type. Found: {x.dtype.name} of tensor {x.name}")
        return no_op("statically_determined_was_integer")


def assert_type(tensor: TensorLike, tf_type: object, message: str | None = None, name: str | None = None) -> Operation:
    """Raises TypeError unless ``tensor`` has the element type ``tf_type``."""
    with name_scope(name, "assert_type", [tensor]):
        tensor = convert_to_tensor(tensor, name="tensor")
        if tensor.dtype.base_dtype != tf_type:
            raise TypeError(f"{message or ''}{tensor.name} must be of type {tf_type!r}")
        return no_op("statically_determined_correct_type")


def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """Returns ``tensor``; a run fails if an element is not finite."""
    return one("CheckNumerics", tensor, message=message, name=name)


def add_check_numerics_ops() -> Operation:
    """Returns an operation that checks all floating tensors of the graph, in the order of their creation. It fails at
    the first tensor with an element that is not finite.

    Raises:
      ValueError: the graph has branches or loops.
    """
    checked: list[Operation] = []
    for op in get_default_graph().get_operations():
        if op.type in ("If", "StatelessIf", "StatelessWhile", "While"):
            raise ValueError(
                "`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow operations such as "
                "`tf.cond()` or `tf.while_loop()`."
            )
        for index, output in enumerate(op.outputs):
            if output.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
                with control_dependencies(checked[-1:]):
                    checked.append(check_numerics(output, f"{op.name}:{index}").op)
    return group(*checked)


def verify_tensor_all_finite(
    t: TensorLike | None = None,
    msg: str | None = None,
    name: str | None = None,
    x: TensorLike | None = None,
    message: str | None = None,
) -> Tensor:
    """Same as `check_numerics`."""
    tensor = convert_to_tensor(reductions.either(x, t, "x", "t"), name="x")
    text = reductions.either(message, msg, "message", "msg")
    with name_scope(name, "VerifyFinite", [tensor]):
        return with_dependencies([check_numerics(tensor, text or "")], tensor)


def assert_same_float_dtype(tensors: Structure = None, dtype: DTypeLike | None = None) -> Any:
    """Returns the floating type of all ``tensors``; without tensors ``dtype``, or float32.

    Raises:
      ValueError: a tensor has a different type than ``dtype`` or the first tensor, or the type is not floating.
    """
    expected = None if dtype is None else as_dtype(dtype).base_dtype
    for tensor in tensors or ():
        found = tensor.dtype.base_dtype
        expected = expected or found
        if found != expected:
            raise ValueError(f"Tensor {tensor!r} must be from the same type as the others: {expected.name}")
    expected = expected or float32
    if not expected.is_floating:
        raise ValueError(f"Expected floating point type, got {expected.name}.")
    return expected


def assert_proper_iterable(values: TensorLike) -> None:
    """Raises TypeError unless ``values`` is an iterable other than a tensor, an array or a string."""
    if not hasattr(values, "__iter__") and not isinstance(values, Tensor | CompositeTensor):
        raise TypeError(f"Expected argument 'values' to be iterable.  Found: {type(values)}")  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(values, Tensor | CompositeTensor | np.ndarray | bytes | str):
        raise TypeError(f"Expected argument 'values' to be a 'proper' iterable. Found: {type(values)}")  # pyright: ignore[reportUnknownArgumentType]
