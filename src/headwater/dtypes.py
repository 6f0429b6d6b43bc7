"""Element types, with TensorFlow's names and numbers.

The numbers are those of ``DataType`` in TensorFlow's ``types.proto``; a *reference* type (of a variable's own output)
is its base type plus 100.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

REF_OFFSET: Final = 100

DTypeLike: TypeAlias = "DType | str | int | type[object] | np.dtype[Any]"
"""Arguments of `as_dtype`: an element type, its name, its number in ``types.proto``, or a NumPy or Python type."""


class DType:
    """One element type. Compare with ``==``; instances are shared and hashable.

    Attributes:
      name: TensorFlow's name, e.g. ``float32`` or ``float32_ref``.
      as_datatype_enum: its number in ``types.proto``.
      as_numpy_dtype: the NumPy scalar type; ``numpy.object_`` for strings.
    """

    __slots__ = ("_base", "_numpy", "as_datatype_enum", "name")

    def __init__(self, name: str, number: int, numpy_type: Any, base: DType | None = None) -> None:
        self.name: str = name
        self.as_datatype_enum: int = number
        self._numpy: np.dtype[Any] = np.dtype(numpy_type)
        self._base = base

    @property
    def as_numpy_dtype(self) -> Any:
        return self._numpy.type

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The `numpy.dtype` itself."""
        return self._numpy

    @property
    def is_ref(self) -> bool:
        """Whether this is the type of a variable's reference rather than of a value."""
        return self._base is not None

    _is_ref_dtype = is_ref

    @property
    def base_dtype(self) -> DType:
        return self._base or self

    @property
    def real_dtype(self) -> DType:
        """The type of the real part of a complex number; itself otherwise."""
        return {complex64: float32, complex128: float64}.get(self.base_dtype, self)

    @property
    def is_floating(self) -> bool:
        return self.base_dtype in (float16, float32, float64, bfloat16)

    @property
    def is_complex(self) -> bool:
        return self.base_dtype in (complex64, complex128)

    @property
    def is_integer(self) -> bool:
        return self._numpy.kind in "iu" and not self.is_quantized

    @property
    def is_unsigned(self) -> bool:
        return self._numpy.kind == "u" and not self.is_quantized

    @property
    def is_bool(self) -> bool:
        return self.base_dtype == bool_

    @property
    def is_quantized(self) -> bool:
        return self.name.startswith("q")

    @property
    def is_differentiable(self) -> bool:
        """Whether a gradient can flow through a tensor of this type."""
        return self.is_floating or self.is_complex

    @property
    def is_numpy_compatible(self) -> bool:
        return self.base_dtype not in (resource, variant)

    @property
    def size(self) -> int:
        """Bytes per element; 8 for strings and 1 for resources, as in TensorFlow."""
        return self._numpy.itemsize if self.is_numpy_compatible else 1

    @property
    def min(self) -> Any:
        """The smallest finite number; raises TypeError for types that are neither integer nor floating point."""
        return self._bound("min")

    @property
    def max(self) -> Any:
        """The largest finite number; raises TypeError for types that are neither integer nor floating point."""
        return self._bound("max")

    @property
    def limits(self) -> tuple[Any, Any]:
        """Least and greatest intensity in an image of this type: 0, and 1 for floating point or `max` for integers."""
        return 0, 1 if self.is_floating else self.max

    def _bound(self, which: str) -> object:
        if self.is_floating:
            return getattr(cast(Any, ml_dtypes.finfo)(self._numpy), which)
        if self.is_integer:
            return getattr(np.iinfo(self._numpy), which)
        raise TypeError(f"Cannot find {which}imum value of {self!r}.")

    def is_compatible_with(self, other: Any) -> bool:
        """Returns whether a tensor of type ``other`` is accepted for this type, as a reference is for its value."""
        other = as_dtype(other)
        return self in (other, other.base_dtype)

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return as_dtype(cast("DTypeLike", other)) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return self.as_datatype_enum

    def __int__(self) -> int:
        return self.as_datatype_enum

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


float32: DType = DType("float32", 1, np.float32)
float64: DType = DType("float64", 2, np.float64)
int32: DType = DType("int32", 3, np.int32)
uint8: DType = DType("uint8", 4, np.uint8)
int16: DType = DType("int16", 5, np.int16)
int8: DType = DType("int8", 6, np.int8)
string: DType = DType("string", 7, np.object_)
complex64: DType = DType("complex64", 8, np.complex64)
int64: DType = DType("int64", 9, np.int64)
bool_: DType = DType("bool", 10, np.bool_)
qint8: DType = DType("qint8", 11, np.int8)
quint8: DType = DType("quint8", 12, np.uint8)
qint32: DType = DType("qint32", 13, np.int32)
qint16: DType = DType("qint16", 15, np.int16)
quint16: DType = DType("quint16", 16, np.uint16)
bfloat16: DType = DType("bfloat16", 14, ml_dtypes.bfloat16)
uint16: DType = DType("uint16", 17, np.uint16)
complex128: DType = DType("complex128", 18, np.complex128)
float16: DType = DType("float16", 19, np.float16)
resource: DType = DType("resource", 20, np.object_)
variant: DType = DType("variant", 21, np.object_)
uint32: DType = DType("uint32", 22, np.uint32)
uint64: DType = DType("uint64", 23, np.uint64)

half = float16
double = float64

VALUE_DTYPES: Final = (
    float32,
    float64,
    int32,
    uint8,
    int16,
    int8,
    string,
    complex64,
    int64,
    bool_,
    qint8,
    quint8,
    qint32,
    qint16,
    quint16,
    bfloat16,
    uint16,
    complex128,
    float16,
    resource,
    variant,
    uint32,
    uint64,
)
_REFS: Final = {
    dtype: DType(f"{dtype.name}_ref", dtype.as_datatype_enum + REF_OFFSET, dtype.numpy_dtype, dtype)
    for dtype in VALUE_DTYPES
}
QUANTIZED_DTYPES: Final = frozenset(
    each for dtype in (qint8, quint8, qint16, quint16, qint32) for each in (dtype, _REFS[dtype])
)
_BY_NUMBER: Final = {d.as_datatype_enum: d for d in (*VALUE_DTYPES, *_REFS.values())}
_BY_NAME: Final = {d.name: d for d in _BY_NUMBER.values()} | {
    "float": float32,
    "double": float64,
    "half": float16,
    "float_ref": _REFS[float32],
    "double_ref": _REFS[float64],
    "half_ref": _REFS[float16],
}
_BY_NUMPY: Final = {
    d.numpy_dtype: d for d in VALUE_DTYPES if not d.is_quantized and d is not resource and d is not variant
}
_BY_PYTHON: Final[dict[object, DType]] = {
    float: float32,
    int: int64,
    bool: bool_,
    complex: complex128,
    str: string,
    bytes: string,
    object: string,
}


def as_ref(dtype: DType) -> DType:
    """Returns the reference type of ``dtype``."""
    return dtype if dtype.is_ref else _REFS[dtype]


def as_dtype(type_value: DTypeLike) -> DType:
    """Returns the `DType` that ``type_value`` names.

    Args:
      type_value: a `DType`, its name, its number in ``types.proto``, or a NumPy or Python type.

    Raises:
      TypeError: ``type_value`` names no element type.
    """
    value = type_value
    if isinstance(value, DType):
        return value
    found: DType | None = None
    if isinstance(value, str):
        found = _BY_NAME.get(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        found = _BY_NUMBER.get(value)
    elif isinstance(value, type) and not issubclass(value, np.generic):
        found = _BY_PYTHON.get(value)
    elif value is not None:  # pyright: ignore[reportUnnecessaryComparison]
        try:
            numpy_type = np.dtype(cast(Any, value))
            found = from_numpy(numpy_type)
        except TypeError:
            found = None
    if found is None:
        raise TypeError(f"Cannot convert value {value!r} to a TensorFlow DType.")
    return found


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """Returns the `DType` of arrays of ``dtype``; raises TypeError if there is none."""
    found = _BY_NUMPY.get(dtype)
    if found is None and dtype.kind in "SUO":
        found = string
    if found is None:
        found = _BY_NUMPY.get(dtype.newbyteorder("="))
    if found is None:
        raise TypeError(f"NumPy's {dtype!r} has no TensorFlow element type.")
    return found


def to_string_array(value: npt.ArrayLike) -> npt.NDArray[np.object_]:
    """Returns ``value`` as an object array of ``bytes``; text is encoded as UTF-8.

    Raises:
      TypeError: an element is neither text nor bytes.
    """
    array = np.asarray(value, dtype=object) if not isinstance(value, bytes | str) else np.array(value, dtype=object)
    if {*map(type, array.ravel().tolist())} <= {bytes}:
        return array.copy()
    flat = np.empty(array.size, dtype=object)
    for index, item in enumerate(array.ravel()):
        if isinstance(item, str):
            flat[index] = item.encode()
        elif isinstance(item, bytes):
            flat[index] = bytes(item)
        else:
            raise TypeError(f"Expected a string, got {item!r} of type {type(item).__name__}.")
    return flat.reshape(array.shape)
