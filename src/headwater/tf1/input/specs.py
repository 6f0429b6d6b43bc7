"""Type specifications of composite values: sparse and ragged tensors, `IndexedSlices`, tensor arrays, datasets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.data.dataset import Dataset
from headwater.data.spec import TensorSpec
from headwater.dtypes import DType, as_dtype, float32, int64, variant
from headwater.graph.constants import constant_value
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Tensor
from headwater.graph.session.fetches import IndexedSlicesValue
from headwater.graph.sparse_tensor import SparseTensorValue
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.functional.ragged_tensor import RaggedTensor
from headwater.tf1.functional.sparse import SparseTensor
from headwater.tf1.functional.tensor_arrays import TensorArray

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure
    from headwater.shapes import ShapeLike


class TypeSpec(ABC):
    """Specification of a value before it exists: its class and the properties in `_serialize`."""

    @property
    @abstractmethod
    def value_type(self) -> type:
        """The class of values."""

    @abstractmethod
    def _serialize(self) -> tuple[Any, ...]:
        """Returns the arguments of the class, for comparison."""

    @classmethod
    def from_value(cls, value: Any) -> TypeSpec:
        """Returns the specification of a value.

        Raises:
          TypeError: the class does not support it.
        """
        raise TypeError(f"{cls.__name__} cannot describe {value!r}")

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Returns whether a value, or values with another specification, may conform to this specification."""
        if not isinstance(spec_or_value, TypeSpec):
            if not isinstance(spec_or_value, self.value_type):
                return False
            spec_or_value = self.from_value(spec_or_value)
        if type(self) is not type(spec_or_value):
            return False
        pairs = zip(self._serialize(), spec_or_value._serialize(), strict=True)
        return all(_compatible(mine, other) for mine, other in pairs)

    def most_specific_compatible_type(self, other: Any) -> TypeSpec:
        """Returns the most specific specification compatible with this and another one.

        Raises:
          ValueError: there is none.
        """
        if type(self) is not type(other):
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        pairs = zip(self._serialize(), other._serialize(), strict=True)
        make = type(self)
        return make(*(_common(mine, theirs) for mine, theirs in pairs))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and [_key(p) for p in self._serialize()] == [
            _key(p)
            for p in other._serialize()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        ]

    def __hash__(self) -> int:
        return hash((type(self), tuple(_key(part) for part in self._serialize())))

    def __repr__(self) -> str:
        parts = self._serialize()
        inner = ", ".join(repr(part) for part in parts)
        return f"{type(self).__name__}({inner}{',' if len(parts) == 1 else ''})"


def _key(part: Any) -> Any:
    return part.as_dims if isinstance(part, TensorShape) else part


def _compatible(mine: Any, other: Any) -> bool:
    if isinstance(mine, TensorShape):
        return mine.is_compatible_with(other)
    if isinstance(mine, TensorSpec | TypeSpec):
        return mine.is_compatible_with(other)
    return mine == other


def _common(mine: Any, other: Any) -> Any:
    if isinstance(mine, TensorShape):
        if mine.ndims is None or mine.ndims != other.ndims:
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(mine.as_list(), other.as_list(), strict=True)])
    if isinstance(mine, TensorSpec):
        if not isinstance(other, TensorSpec) or mine.dtype != other.dtype:
            raise ValueError(f"No TypeSpec is compatible with both {mine} and {other}")
        return TensorSpec(_common(mine.shape, other.shape), mine.dtype)
    if isinstance(mine, TypeSpec):
        return mine.most_specific_compatible_type(other)
    if mine != other:
        raise ValueError("Types are not compatible")
    return mine


class SparseTensorSpec(TypeSpec):
    """Specification of a `SparseTensor`.

    Args:
      shape: its dense shape.
      dtype: type of its elements.

    Attributes:
      shape: the dense shape.
      dtype: the type of the elements.
    """

    def __init__(self, shape: ShapeLike = None, dtype: DTypeLike = float32) -> None:
        self.shape: TensorShape = as_shape(shape)
        self.dtype: DType = as_dtype(dtype)

    @property
    def value_type(self) -> type:
        return SparseTensor

    def _serialize(self) -> tuple[TensorShape, DType]:
        return self.shape, self.dtype

    @classmethod
    def from_value(cls, value: SparseTensor) -> SparseTensorSpec:
        return cls(value.shape, value.dtype)

    @property
    def _component_specs(self) -> list[TensorSpec]:
        rank = self.shape.ndims
        return [TensorSpec([None, rank], int64), TensorSpec([None], self.dtype), TensorSpec([rank], int64)]

    def _to_components(self, value: SparseTensor | SparseTensorValue) -> list[Any]:
        return [value.indices, value.values, value.dense_shape]

    def _from_components(self, tensor_list: Sequence[Any]) -> SparseTensor | SparseTensorValue:
        make = SparseTensorValue if all(isinstance(part, np.ndarray) for part in tensor_list) else SparseTensor
        return make(*tensor_list)

    def _batch(self, batch_size: int | None) -> SparseTensorSpec:
        return SparseTensorSpec(TensorShape([batch_size]).concatenate(self.shape), self.dtype)

    def _unbatch(self) -> SparseTensorSpec:
        return SparseTensorSpec(self.shape[1:], self.dtype)


class IndexedSlicesSpec(TypeSpec):
    """Specification of `IndexedSlices`.

    Args:
      shape: the dense shape.
      dtype: type of the rows' elements.
      indices_dtype: type of the indices.
      dense_shape_dtype: type of the dense shape; None without a dense shape.
      indices_shape: shape of the indices: a vector.
    """

    def __init__(
        self,
        shape: ShapeLike = None,
        dtype: DTypeLike = float32,
        indices_dtype: DTypeLike = int64,
        dense_shape_dtype: DTypeLike | None = None,
        indices_shape: ShapeLike = None,
    ) -> None:
        self._shape = as_shape(shape)
        self._values_dtype = as_dtype(dtype)
        self._indices_dtype = as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape([None]) if indices_shape is None else as_shape(indices_shape)

    @property
    def value_type(self) -> type:
        return IndexedSlices

    def _serialize(self) -> tuple[TensorShape, DType, DType, DType | None, TensorShape]:
        return (self._shape, self._values_dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape)

    @classmethod
    def from_value(cls, value: IndexedSlices) -> IndexedSlicesSpec:
        dense = value.dense_shape
        shape = None if dense is None else constant_value(dense)
        kind = None if dense is None else dense.dtype
        return cls(shape, value.dtype, value.indices.dtype, kind, value.indices.shape)

    @property
    def _component_specs(self) -> tuple[TensorSpec, ...]:
        rows = self._indices_shape.concatenate(self._shape[1:])
        specs = TensorSpec(rows, self._values_dtype), TensorSpec(self._indices_shape, self._indices_dtype)
        kind = self._dense_shape_dtype
        return specs if kind is None else (*specs, TensorSpec([self._shape.ndims], kind))

    def _to_components(self, value: IndexedSlices | IndexedSlicesValue) -> tuple[Any, ...]:
        parts = value.values, value.indices
        return parts if value.dense_shape is None else (*parts, value.dense_shape)

    def _from_components(self, tensor_list: Sequence[Any]) -> IndexedSlices | IndexedSlicesValue:
        make = IndexedSlicesValue if all(isinstance(part, np.ndarray) for part in tensor_list) else IndexedSlices
        values, indices, *shape = tensor_list
        return make(values, indices, shape[0] if shape else None)


class TensorArraySpec(TypeSpec):
    """Specification of a `TensorArray`.

    Args:
      element_shape: shape of each of its tensors.
      dtype: type of its tensors.
      dynamic_size: whether it grows.
      infer_shape: whether all tensors have the same shape.
    """

    def __init__(
        self,
        element_shape: ShapeLike = None,
        dtype: DTypeLike = float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape = as_shape(element_shape)
        self._dtype = as_dtype(dtype)
        self._dynamic_size = dynamic_size
        self._infer_shape = infer_shape

    @property
    def value_type(self) -> type:
        return TensorArray

    def _serialize(self) -> tuple[TensorShape, DType, bool, bool]:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape

    def is_compatible_with(self, other: object) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Returns whether an array, or arrays with another specification, may conform to this specification."""
        return super().is_compatible_with(other)

    def most_specific_compatible_type(self, other: object) -> TypeSpec:
        """Returns the most specific specification compatible with this and another one.

        Raises:
          ValueError: they are not compatible.
        """
        if not self.is_compatible_with(other):
            raise ValueError("Types are not compatible")
        return super().most_specific_compatible_type(other)


class RaggedTensorSpec(TypeSpec):
    """Specification of a `RaggedTensor`.

    Args:
      shape: its shape; None if unknown.
      dtype: type of its values.
      ragged_rank: number of ragged dimensions: all but the first if None, for which ``shape`` must be known.
      row_splits_dtype: type of its splits.

    Raises:
      ValueError: neither ``ragged_rank`` nor the rank is given, or ``ragged_rank`` is too large.

    Attributes:
      shape: the shape; None for ragged dimensions.
      dtype: the type of the values.
      ragged_rank: the number of ragged dimensions.
      row_splits_dtype: the type of the splits.
    """

    def __init__(
        self,
        shape: ShapeLike = None,
        dtype: DTypeLike = float32,
        ragged_rank: int | None = None,
        row_splits_dtype: DTypeLike = int64,
    ) -> None:
        self.shape: TensorShape = as_shape(shape)
        self.dtype: DType = as_dtype(dtype)
        self.row_splits_dtype: DType = as_dtype(row_splits_dtype)
        rank = self.shape.ndims
        if ragged_rank is None:
            if rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = rank - 1
        self.ragged_rank: int = ragged_rank
        if not isinstance(ragged_rank, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("ragged_rank must be an int")
        if rank is not None and ragged_rank >= rank:
            raise ValueError("ragged_rank must be less than rank.")

    @property
    def value_type(self) -> type:
        return RaggedTensor if self.ragged_rank else Tensor

    def _serialize(self) -> tuple[TensorShape, DType, int, DType]:
        return self.shape, self.dtype, self.ragged_rank, self.row_splits_dtype

    @classmethod
    def from_value(cls, value: RaggedTensor) -> RaggedTensorSpec:
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)


class DatasetSpec(TypeSpec):
    """Specification of a dataset.

    Args:
      element_spec: specification of its elements.
      dataset_shape: the shape of a tensor of datasets.

    Attributes:
      element_spec: the spec of an element.
      shape: the shape of that tensor.
    """

    def __init__(self, element_spec: Structure, dataset_shape: ShapeLike = ()) -> None:
        self.element_spec: Structure = element_spec
        self.shape: TensorShape = as_shape(dataset_shape)

    @property
    def value_type(self) -> type:
        return Dataset

    @property
    def dtype(self) -> DType:
        """The type of a tensor with a dataset."""
        return variant

    def _serialize(self) -> tuple[Any, ...]:
        return self.element_spec, self.shape

    @classmethod
    def from_value(cls, value: Dataset) -> DatasetSpec:
        return cls(value.element_spec)


def tensor_structure(dtype: DTypeLike, shape: ShapeLike) -> TensorSpec:
    """Returns the specification of a tensor."""
    return TensorSpec(shape, dtype)


def sparse_tensor_structure(dtype: DTypeLike, shape: ShapeLike) -> SparseTensorSpec:
    """Returns the specification of a sparse tensor."""
    return SparseTensorSpec(shape, dtype)


def ragged_tensor_structure(dtype: DTypeLike, shape: ShapeLike, ragged_rank: int) -> RaggedTensorSpec:
    """Returns the specification of a ragged tensor."""
    return RaggedTensorSpec(shape, dtype, ragged_rank)


def tensor_array_structure(
    dtype: DTypeLike, element_shape: ShapeLike, dynamic_size: bool, infer_shape: bool
) -> TensorArraySpec:
    """Returns the specification of a tensor array."""
    return TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)


def get_structure(dataset_or_iterator: Structure) -> Any:
    """Returns the specification of the elements of a dataset or iterator.

    Raises:
      TypeError: it is neither.
    """
    spec = getattr(dataset_or_iterator, "element_spec", None)
    if spec is None:
        raise TypeError(
            f"`dataset_or_iterator` must be a Dataset or Iterator object, but got {type(dataset_or_iterator)}."
        )
    return spec
