"""Conversion of arrays to ``TensorProto`` and back (https://github.com/tensorflow/tensorflow, ``tensor.proto``)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from headwater import dtypes
from headwater.dtypes import DType, as_dtype, from_numpy, to_string_array
from headwater.shapes import TensorShape
from headwater.tensorboard_protos import tensor_pb2

# By element type, the field of the proto that has the elements if they are not in ``tensor_content``.
_FIELDS: Final[dict[DType, str]] = {
    dtypes.float32: "float_val",
    dtypes.float64: "double_val",
    dtypes.int64: "int64_val",
    dtypes.bool_: "bool_val",
    dtypes.uint32: "uint32_val",
    dtypes.uint64: "uint64_val",
    dtypes.string: "string_val",
    dtypes.float16: "half_val",
    dtypes.bfloat16: "half_val",
    dtypes.complex64: "scomplex_val",
    dtypes.complex128: "dcomplex_val",
}


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False, allow_broadcast: bool = False
) -> Any:
    """Converts ``values`` to a ``TensorProto``; element type and shape are by default the array's own.

    Args:
      shape: the proto's shape; if it has more elements than ``values``, the last value is repeated.
      verify_shape: whether to refuse values of another shape.
      allow_broadcast: whether to repeat a value only if there is a single one.

    Raises:
      ValueError: there are more values than elements in the shape, or both ``verify_shape`` and ``allow_broadcast`` are
        set.
      TypeError: ``verify_shape`` or ``allow_broadcast`` does not permit the shape of the values.
    """
    if allow_broadcast and verify_shape:
        raise ValueError("allow_broadcast and verify_shape are not both allowed.")
    array = np.asarray(values) if dtype is None else np.asarray(values, as_dtype(dtype).numpy_dtype)
    found = from_numpy(array.dtype)
    if shape is not None:
        dims = tuple(int(size) for size in shape)
        count = math.prod(dims)
        refused = array.size not in (1, count) if allow_broadcast else verify_shape and array.shape != dims
        if refused:
            raise TypeError(f"Expected Tensor's shape: {dims}, got {array.shape}.")
        if array.size > count:
            raise ValueError(f"Too many elements provided. Needed at most {count}, but received {array.size}")
        missing = count - array.size if array.size else 0
        array = np.concatenate([array.ravel(), np.repeat(array.ravel()[-1:], missing)]).reshape(dims)
    proto = tensor_pb2.TensorProto(dtype=found.as_datatype_enum, tensor_shape=TensorShape(array.shape).as_proto())
    if found == dtypes.string:
        proto.string_val.extend(to_string_array(array).ravel().tolist())
    else:
        proto.tensor_content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return proto


def numbers_proto(array: np.ndarray[Any, Any]) -> Any:
    """Returns a ``TensorProto`` that has only the values, in the field of their type."""
    dtype = from_numpy(array.dtype)
    flat: Any = to_string_array(array).ravel() if dtype == dtypes.string else array.ravel()
    if dtype in (dtypes.float16, dtypes.bfloat16):
        flat = flat.view(np.uint16)
    elif dtype.is_complex:
        flat = flat.view(flat.real.dtype)
    proto = tensor_pb2.TensorProto()
    getattr(proto, _FIELDS.get(dtype, "int_val")).extend(flat.tolist())
    return proto


def make_ndarray(tensor: Any) -> np.ndarray[Any, Any]:
    """Converts a ``TensorProto`` to an array; strings become objects of type ``bytes``.

    Raises:
      ValueError: content and shape do not fit.
      TypeError: arrays cannot have the element type.
    """
    proto = tensor
    dtype = as_dtype(int(proto.dtype))
    dims = [int(dim.size) for dim in proto.tensor_shape.dim]
    if any(size < 0 for size in dims):
        raise ValueError(f"A TensorProto needs a fully known shape, not {dims}")
    count = math.prod(dims)
    if proto.tensor_content:
        size = dtype.numpy_dtype.itemsize
        if len(proto.tensor_content) != count * size or dtype == dtypes.string:
            raise ValueError(f"{len(proto.tensor_content)} bytes of content for shape {dims} of {dtype.name}")
        return np.frombuffer(proto.tensor_content, dtype.numpy_dtype.newbyteorder("<")).reshape(dims).copy()
    stored: list[Any] = list(getattr(proto, _FIELDS.get(dtype, "int_val")))
    if dtype in (dtypes.float16, dtypes.bfloat16):
        flat: np.ndarray[Any, Any] = np.array(stored, np.uint16).view(dtype.numpy_dtype)
    elif dtype.is_complex:
        pairs = np.array(stored, dtype.real_dtype.numpy_dtype)
        flat = pairs.view(dtype.numpy_dtype)
    elif dtype == dtypes.string:
        flat = to_string_array(stored) if stored else np.zeros(0, object)
    else:
        flat = np.array(stored).astype(dtype.numpy_dtype)
    if flat.size > count or (count and not flat.size and dtype == dtypes.string):
        raise ValueError(f"{flat.size} elements for shape {dims}")
    if flat.size < count:  # the last element is repeated; without any, all are zero
        if dtype.numpy_dtype.itemsize * count > 1 << 31:
            raise ValueError(f"A repeated element would fill {count} elements")
        last = flat[-1:] if flat.size else np.zeros(1, dtype.numpy_dtype)
        flat = np.concatenate([flat, np.repeat(last, count - flat.size)])
    return flat.reshape(dims)
