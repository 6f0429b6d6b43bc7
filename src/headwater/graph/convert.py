"""Conversion of Python values to tensors: constants, and conversions registered by other types."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headwater.dtypes import (
    DType,
    DTypeLike,
    as_dtype,
    float32,
    float64,
    from_numpy,
    int32,
    int64,
    string,
    to_string_array,
)
from headwater.graph.context import get_default_graph
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import FunctionAttr, HostArray
from headwater.graph.types import TensorLike
from headwater.shapes import Dimension, ShapeLike, TensorShape, as_shape

if TYPE_CHECKING:
    from types import NotImplementedType

    from headwater.graph.graph import Graph

Conversion = Callable[[Any, "DType | None", "str | None", bool], "Tensor | NotImplementedType"]
_conversions: list[tuple[int, type | tuple[type, ...], Conversion]] = []


def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: Conversion, priority: int = 100
) -> None:
    """Registers a conversion of values of ``base_type`` to tensors.

    Args:
      base_type: one type or several.
      conversion_func: ``f(value, dtype, name, as_ref)`` returns a tensor, or NotImplemented to try the next conversion.
      priority: conversions with lower values are tried first.
    """
    _conversions.append((priority, base_type, conversion_func))
    _conversions.sort(key=lambda entry: entry[0])


def to_array(value: Any, dtype: DType | None = None) -> HostArray:
    """Converts ``value`` to the array of a constant; a copy, so that ``value`` may change afterwards.

    Python numbers, and NumPy's in lists, become int32 and float32 (int64 where int32 is too small), text becomes bytes.

    Raises:
      TypeError: ``value`` cannot be converted to ``dtype``, or has no element type.
      ValueError: nested sequences of unequal length, a shape that is not fully known, or None.
    """
    if value is None:
        raise ValueError("None values not supported.")
    if isinstance(value, TensorShape):
        if not value.is_fully_defined():
            raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {value}")
        value = value.as_list()
    if dtype is not None and dtype.base_dtype == string:
        return to_string_array(value)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"Argument must be a dense tensor: {value!r}: {error}") from None
    if array.dtype.kind in "SU" or (array.dtype == object and _all_text(array)):
        if dtype is not None:
            raise TypeError(f"Expected {dtype.name}, got {value!r} of type '{type(value).__name__}' instead.")
        return to_string_array(value)
    if array.dtype == object and any(isinstance(item, Dimension) for item in array.ravel()):
        array = np.array([int(item) for item in array.ravel()]).reshape(array.shape)
    if array.dtype == object:
        raise TypeError(f"Failed to convert object of type {type(value)} to Tensor. Contents: {value!r}.")
    typed = hasattr(value, "__array__")
    if dtype is None:
        wanted = from_numpy(array.dtype)
        if wanted == float64 and not typed:
            wanted = float32
        elif (
            wanted == int64
            and not typed
            and (not array.size or (array.min() >= int32.min and array.max() <= int32.max))
        ):
            wanted = int32
    else:
        wanted = dtype.base_dtype
        if not typed and array.size and not _fits(array.dtype, wanted):
            raise TypeError(f"Expected {wanted.name}, got {value!r} of type '{type(value).__name__}' instead.")
    with np.errstate(all="ignore"):  # as in all operations of a step, values that are too large become infinite
        return np.array(array, dtype=wanted.numpy_dtype, order="C")


def _all_text(array: HostArray) -> bool:
    return array.size > 0 and all(isinstance(item, str | bytes) for item in array.ravel())


def _fits(found: np.dtype[np.generic], wanted: DType) -> bool:
    if wanted.is_bool:
        return found.kind == "b"
    if found.kind == "f":
        return wanted.is_floating or wanted.is_complex
    if found.kind == "c":
        return wanted.is_complex
    return True


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """Creates a constant tensor.

    Args:
      value: a number, string, or nested sequence or array of them.
      dtype: element type; inferred from the value if None.
      shape: the shape; a value with fewer elements is padded with its last one, or with zeros if it is empty.
      verify_shape: require that ``value`` has exactly ``shape``.

    Raises:
      TypeError: the value does not fit the element type.
      ValueError: the value has more elements than the shape.
    """
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    array = to_array(value, wanted)
    if shape is not None:
        array = _shaped(array, tuple(int(d) for d in as_shape(shape)), verify_shape)
    return make_const(array, name, wanted)


def make_const(array: HostArray, name: str = "Const", dtype: DType | None = None) -> Tensor:
    """Creates a constant of ``array`` without a copy; the array must not change afterwards.

    Args:
      dtype: its element type, for quantized types, which the type of ``array`` does not determine.
    """
    value = np.asarray(array).view()
    value.flags.writeable = False
    attrs = {"value": value, "dtype": dtype or from_numpy(value.dtype)}
    return get_default_graph().create_op("Const", [], attrs, name).outputs[0]


def _shaped(array: HostArray, shape: tuple[int, ...], verify: bool) -> HostArray:
    if array.shape == shape:
        return array
    if verify:
        raise TypeError(f"Expected Tensor's shape: {shape}, got {array.shape}.")
    count = int(np.prod(shape, dtype=np.int64))
    if array.size > count and count:
        raise ValueError(f"Too many elements provided. Needed at most {count}, but received {array.size}")
    if not count or (not array.size and array.dtype != object):
        return np.zeros(shape, array.dtype)
    flat = array.ravel()
    if flat.size < count:
        flat = np.concatenate([flat, np.repeat(flat[-1:], count - flat.size)])
    return flat.reshape(shape)


def convert_to_tensor(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    preferred_dtype: DTypeLike | None = None,
    dtype_hint: DTypeLike | None = None,
    as_ref: bool = False,
) -> Tensor:
    """Converts ``value`` to a tensor of the default graph.

    Args:
      value: a tensor, variable, number, string, array, or nested sequence of these.
      dtype: required element type.
      name: name of new operations.
      preferred_dtype, dtype_hint: the older and the newer name of the element type to use if ``value`` allows it and
        ``dtype`` is None.
      as_ref: return a variable's reference rather than its value.

    Raises:
      TypeError: there is no conversion.
      ValueError: a tensor of another element type than ``dtype``, or both names of the preferred type are given.
    """
    if dtype_hint is not None:
        if preferred_dtype is not None:
            raise ValueError("Cannot specify both 'dtype_hint' and 'preferred_dtype'")
        preferred_dtype = dtype_hint
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    if isinstance(value, Tensor):
        if wanted is not None and not wanted.is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype {value.dtype.name}: {value!r}"
            )
        return value
    if wanted is None and preferred_dtype is not None:
        try:
            return convert_to_tensor(value, preferred_dtype, name, as_ref=as_ref)
        except (TypeError, ValueError):
            pass
    for _, base_type, conversion in _conversions:
        if isinstance(value, base_type):
            result = conversion(value, wanted, name, as_ref)
            if result is not NotImplemented:
                if wanted is not None and not wanted.is_compatible_with(result.dtype):
                    raise ValueError(f"{value!r} has dtype {result.dtype.name}, not the requested {wanted.name}")
                return result
    if isinstance(value, Operation):
        raise TypeError(f"Can't convert Operation '{value.name}' to Tensor: it has no value of its own")
    if isinstance(value, list | tuple) and holds_tensor(value):
        return _pack(cast("Sequence[TensorLike]", value), wanted, name or "packed")
    if isinstance(value, TensorShape | Dimension):
        if wanted not in (None, int32, int64):
            raise TypeError(f"Cannot convert a {type(value).__name__} to dtype {wanted.name}")
        return constant(value, wanted, name=name or "shape_as_tensor")
    return constant(value, wanted, name=name or "Const")


def holds_tensor(value: object) -> bool:
    """Returns whether ``value`` is a tensor, has a registered conversion to one, or is a sequence that contains one."""
    if isinstance(value, list | tuple):
        return any(map(holds_tensor, value))  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, Tensor) or any(isinstance(value, base) for _, base, _ in _conversions)


def _pack(value: Sequence[TensorLike], dtype: DType | None, name: str) -> Tensor:
    """Packs a nested sequence that contains tensors into one tensor: of the first one's type, or all cast to
    ``dtype``."""
    graph = get_default_graph()
    found = next(_element_types(value), None)
    with graph.name_scope(name) as scope:
        items = [_packed_item(item, found, dtype, str(index)) for index, item in enumerate(value)]
        return graph.create_op("Pack", items, {"axis": 0, "N": len(items)}, scope).outputs[0]


def _packed_item(item: TensorLike, found: DType | None, dtype: DType | None, name: str) -> Tensor:
    if isinstance(item, list | tuple) and holds_tensor(item):
        return _pack(cast("Sequence[TensorLike]", item), dtype or found, name)
    if not holds_tensor(item):
        return convert_to_tensor(item, dtype or found, name)
    tensor = convert_to_tensor(item, name=name)
    if dtype is not None and tensor.dtype.base_dtype != dtype:
        if tensor.dtype.base_dtype == string or dtype == string:
            raise TypeError(f"Cannot convert a list containing {tensor!r} to dtype {dtype.name}")
        return tensor.graph.create_op("Cast", [tensor], {"DstT": dtype}, "Cast").outputs[0]
    if dtype is None and found is not None and tensor.dtype.base_dtype != found:
        raise TypeError(f"Cannot convert a list containing {tensor!r}, whose first tensor is of type {found.name}")
    return tensor


def _element_types(value: Any) -> Iterator[DType]:
    for item in value:
        if isinstance(item, list | tuple):
            yield from _element_types(item)
        elif isinstance(getattr(item, "dtype", None), DType):
            yield item.dtype.base_dtype


def graph_of(values: Sequence[object]) -> Graph:
    """Returns the graph of the first tensor or operation of ``values``, or the default graph if there is none or if it
    captures tensors of other graphs."""
    graph = get_default_graph()
    if not graph.captures:
        for value in values:
            if isinstance(value, Tensor | Operation):
                return value.graph
            if isinstance(value, list | tuple):
                for item in value:  # pyright: ignore[reportUnknownVariableType]
                    if isinstance(item, Tensor):
                        return item.graph
    return graph


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[object] | None = None
) -> Generator[str]:
    """Enters a name scope of the graph of ``values`` (the default graph if there are none).

    Yields:
      The scope with a trailing ``/``.

    Raises:
      ValueError: ``values`` are given without ``name`` or ``default_name``, or are of two graphs.
    """
    chosen = default_name if name is None else name
    if chosen is None and values is not None:
        raise ValueError(f"At least one of name ({name}) and default_name ({default_name}) must be provided.")
    elements = [value for value in values or () if isinstance(value, Tensor | Operation)]
    graph = graph_of(elements)
    for element in elements:
        if element.graph is not graph and not graph.captures:
            raise ValueError(f"{element!r} must be from the same graph as {elements[0]!r}.")
    with graph.as_default(), graph.name_scope(chosen) as scope:
        yield scope


def function_attr(op: Operation) -> FunctionAttr:
    """Encodes the type of ``op`` and the attributes that its lowering takes as an attribute of another operation."""
    taken = sorted((key, value) for key, value in op.attrs.items() if key in op.definition.attrs)
    return FunctionAttr(op.type, tuple(taken))
