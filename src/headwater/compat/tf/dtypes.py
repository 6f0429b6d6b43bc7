"""``tf.dtypes``: element types."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.dtypes": """
        DType as_dtype bfloat16 bool=bool_ complex128 complex64 double float16 float32 float64 half int16 int32 int64
        int8 qint32 qint8 quint8 resource string uint16 uint32 uint64 uint8 variant""",
    "headwater.functional.math": "cast complex saturate_cast",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
