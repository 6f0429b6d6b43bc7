"""Specs of a dataset's elements: types and static shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import DType, as_dtype, float32, from_numpy, string, to_string_array
from headwater.shapes import Dims, TensorShape, as_shape

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.registry import HostArray
    from headwater.graph.types import Structure
    from headwater.shapes import ShapeLike


class TensorSpec:
    """Element type and static shape of one component.

    Args:
      shape: anything `headwater.shapes.as_shape` takes; None for an unknown one.
      dtype: element type.
      name: for messages.
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: ShapeLike, dtype: DTypeLike = float32, name: str | None = None) -> None:
        self._shape = as_shape(shape)
        self._dtype = as_dtype(dtype)
        self._name = name

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def dims(self) -> Dims:
        """The shape as a tuple with None for unknown sizes; None when the rank is unknown."""
        return self._shape.as_dims

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Returns the spec of a tensor or array."""
        return cls(tensor.shape, tensor.dtype, name or getattr(getattr(tensor, "op", None), "name", None))

    @classmethod
    def from_spec(cls, spec: Structure, name: str | None = None) -> TensorSpec:
        """Returns a copy of ``spec``, with another name if given."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    # Arrays of a component. Sparse and ragged components have several: `headwater.data.composites`.

    @property
    def code(self) -> str:
        """Name of the component's class in operations of a graph."""
        return "dense"

    @property
    def parts(self) -> tuple[TensorSpec, ...]:
        """The specs of the component's arrays."""
        return (self,)

    def joined(self, arrays: Sequence[Any]) -> Any:
        """Assembles a component from ``arrays``."""
        return arrays[0]

    def converted(self, value: object) -> Any:
        """Converts a program's value to such a component.

        Raises:
          TypeError, ValueError: it cannot be converted.
        """
        return as_array(value, self._dtype)

    def with_shape(self, shape: ShapeLike) -> TensorSpec:
        """Returns the spec with another shape."""
        return TensorSpec(shape, self._dtype)

    def batched(self, size: int | None) -> TensorSpec:
        """Returns the spec of ``size`` such components, stacked."""
        return self.with_shape(None if self.dims is None else [size, *self.dims])

    def sliced(self) -> TensorSpec:
        """Returns the spec of a row."""
        return self.with_shape(None if self.dims is None else self.dims[1:])

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Returns whether a tensor or spec could have this type and shape."""
        other = spec_or_tensor
        return self._dtype == as_dtype(other.dtype).base_dtype and self._shape.is_compatible_with(other.shape)

    def accepts(self, array: HostArray) -> bool:
        """Returns whether an array has this type and shape."""
        return array.dtype == self._dtype.numpy_dtype and fits(self.dims, array.shape)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and (self.dims, self._dtype) == (other.dims, other.dtype)  # pyright: ignore

    def __hash__(self) -> int:
        return hash((type(self), self.dims, self._dtype))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


def fits(dims: Dims, found: Dims) -> bool:
    """Returns whether two shapes are equal where both are known."""
    if dims is None or found is None:
        return True
    return len(dims) == len(found) and all(
        want is None or got is None or want == got for want, got in zip(dims, found, strict=True)
    )


def is_array(value: object) -> bool:
    """Returns whether ``value`` is a NumPy array."""
    return isinstance(value, np.ndarray)


def as_array(value: object, dtype: DType | None = None) -> HostArray:
    """Converts a value to an array as TensorFlow does: text to bytes, Python's floats to float32, ints to int32."""
    array: HostArray = np.asarray(value)
    if dtype is None and not hasattr(value, "dtype"):
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        elif array.dtype == np.int64 and (not array.size or np.abs(array).max() <= np.iinfo(np.int32).max):
            array = array.astype(np.int32)
    if array.dtype.kind in "USO":
        if dtype not in (None, string):
            raise TypeError(f"expected {dtype.name}, got {value!r}")
        return to_string_array(array)
    return array if dtype is None else array.astype(dtype.numpy_dtype, copy=False)


def spec_of(array: HostArray) -> TensorSpec:
    """Returns the spec of an array."""
    return TensorSpec(array.shape, from_numpy(array.dtype))


def relaxed(first: TensorSpec, second: TensorSpec) -> TensorSpec:
    """Returns the most specific spec that fits two components of the same class and type."""
    one, two = first.dims, second.dims
    if one is None or two is None or len(one) != len(two):
        return first.with_shape(None)
    return first.with_shape([a if a == b else None for a, b in zip(one, two, strict=True)])
