"""Element types of frames and their codes, which are the numbers of TensorFlow's ``types.proto``."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from headwater import dtypes

#: Strings: object arrays of ``bytes``.
STRING: int = dtypes.string.as_datatype_enum

_OWN_DTYPES = (
    dtypes.bfloat16,
    dtypes.bool_,
    dtypes.complex64,
    dtypes.complex128,
    dtypes.float16,
    dtypes.float32,
    dtypes.float64,
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.uint32,
    dtypes.uint64,
)
# Graphs have no tensors of these types; models from other frameworks may have them.
_OTHERS = {
    24: ml_dtypes.float8_e5m2,
    25: ml_dtypes.float8_e4m3fn,
    26: ml_dtypes.float8_e4m3fnuz,
    27: ml_dtypes.float8_e4m3b11fnuz,
    28: ml_dtypes.float8_e5m2fnuz,
    29: ml_dtypes.int4,
    30: ml_dtypes.uint4,
}

#: The NumPy dtype of each code, except strings.
DTYPES: dict[int, np.dtype[Any]] = {dtype.as_datatype_enum: dtype.numpy_dtype for dtype in _OWN_DTYPES} | {
    number: np.dtype(scalar) for number, scalar in _OTHERS.items()
}
_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}


def dtype_code(dtype: np.dtype[Any]) -> int | None:
    """Returns the code of ``dtype``, in any byte order; None if a frame cannot carry it."""
    return STRING if dtype.kind in "OSU" else _NUMBERS.get(dtype.newbyteorder("="))
