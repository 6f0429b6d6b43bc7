# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.dtypes import DType as DType
from headwater.dtypes import QUANTIZED_DTYPES as QUANTIZED_DTYPES
from headwater.dtypes import as_dtype as as_dtype
from headwater.dtypes import bfloat16 as bfloat16
from headwater.dtypes import bool_ as bool
from headwater.dtypes import complex128 as complex128
from headwater.dtypes import complex64 as complex64
from headwater.dtypes import double as double
from headwater.dtypes import float16 as float16
from headwater.dtypes import float32 as float32
from headwater.dtypes import float64 as float64
from headwater.dtypes import half as half
from headwater.dtypes import int16 as int16
from headwater.dtypes import int32 as int32
from headwater.dtypes import int64 as int64
from headwater.dtypes import int8 as int8
from headwater.dtypes import qint16 as qint16
from headwater.dtypes import qint32 as qint32
from headwater.dtypes import qint8 as qint8
from headwater.dtypes import quint16 as quint16
from headwater.dtypes import quint8 as quint8
from headwater.dtypes import resource as resource
from headwater.dtypes import string as string
from headwater.dtypes import uint16 as uint16
from headwater.dtypes import uint32 as uint32
from headwater.dtypes import uint64 as uint64
from headwater.dtypes import uint8 as uint8
from headwater.dtypes import variant as variant
from headwater.tf1.functional.math import cast as cast
from headwater.tf1.functional.math import complex as complex
from headwater.tf1.functional.math import saturate_cast as saturate_cast
from headwater.tf1.functional.strings import as_string as as_string

__all__ = [
    "DType",
    "QUANTIZED_DTYPES",
    "as_dtype",
    "as_string",
    "bfloat16",
    "bool",
    "cast",
    "complex",
    "complex128",
    "complex64",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "qint16",
    "qint32",
    "qint8",
    "quint16",
    "quint8",
    "resource",
    "saturate_cast",
    "string",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "variant",
]
