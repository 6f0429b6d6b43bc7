"""Components of elements, and the tensors that represent them in a graph.

`headwater.data.composites` contains the corresponding functions for arrays. All conversions between elements and graph
tensors use the functions of this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.data.composites import Composite, RaggedArray, RaggedSpec, SparseArray, SparseSpec, as_component
from headwater.data.dataset import Nested
from headwater.data.spec import TensorSpec, is_array
from headwater.dtypes import variant
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import make_const
from headwater.graph.operation import Tensor
from headwater.graph.ragged_value import RaggedTensorValue, ragged_value
from headwater.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headwater.tf1.functional.ragged_tensor import RaggedTensor
from headwater.tf1.input.specs import DatasetSpec, RaggedTensorSpec, SparseTensorSpec, TypeSpec

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.shapes import ShapeLike


class StepValue:
    """A sparse or ragged value that is known only in a step, for a node.

    Args:
      value: a `SparseTensor` or `RaggedTensor`.
    """

    def __init__(self, value: SparseTensor | RaggedTensor) -> None:
        self.value = value
        self.spec: TensorSpec = spec_of_tensors(value)

    @property
    def shape(self) -> Any:
        """The dense shape."""
        return self.spec.shape

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The tensors that it consists of."""
        return tuple(self.value.components)


def is_composite(value: object) -> bool:
    """Returns whether a program's value is sparse or ragged."""
    return isinstance(value, SparseTensor | SparseTensorValue | RaggedTensor | RaggedTensorValue | Composite)


def as_value(value: object) -> Any:
    """A sparse or ragged value as a value of a node: arrays if they are known without a step."""
    if not isinstance(value, SparseTensor | RaggedTensor):
        return as_component(value)
    arrays: list[Any] = [constant_value(part) for part in value.components]
    if any(array is None for array in arrays):
        return StepValue(value)
    return spec_of_tensors(value).joined(arrays)


def spec_of_tensors(value: Any) -> TensorSpec:
    """The spec of a tensor, sparse tensor or ragged tensor of a graph."""
    if isinstance(value, SparseTensor):
        return SparseSpec(value.shape, value.dtype.base_dtype)
    if isinstance(value, RaggedTensor):
        return RaggedSpec(value.shape, value.dtype.base_dtype, value.ragged_rank, value.row_splits.dtype)
    return TensorSpec(value.dims, value.dtype.base_dtype)


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors that a component consists of."""
    return value.components if isinstance(value, SparseTensor | RaggedTensor) else [value]


def packed_tensors(specs: Sequence[TensorSpec], tensors: Sequence[Tensor]) -> list[Any]:
    """The components that consist of ``tensors``, in order."""
    rest: Iterator[Tensor] = iter(tensors)
    return [_component(spec, list(islice(rest, len(spec.parts)))) for spec in specs]


def _component(spec: TensorSpec, tensors: list[Tensor]) -> Any:
    if isinstance(spec, SparseSpec):
        return SparseTensor(*tensors)
    if isinstance(spec, RaggedSpec) and spec.ragged_rank:
        return RaggedTensor.from_nested_row_splits(tensors[0], tensors[1:], validate=False)
    return tensors[0]


def value_tensor(value: Any) -> Tensor:
    """A value of a node as one tensor of the default graph; a sparse or ragged one as a ``variant``."""
    if not isinstance(value, StepValue | Composite):
        return make_const(value) if is_array(value) else value
    spec = value.spec
    parts: list[Any] = list(value.parts)
    parts = [make_const(part) if is_array(part) else part for part in parts]
    attrs = {"dtype": spec.dtype, "shape": spec.shape, "code": spec.code}
    return get_default_graph().create_op("DatasetComponent", parts, attrs, "DatasetComponent").outputs[0]


# Specs ----------------------------------------------------------------------------------------------------------------


def described(spec: TensorSpec) -> RaggedTensorSpec | SparseTensorSpec | TensorSpec:
    """Returns the spec of a component in the form that programs get."""
    if isinstance(spec, SparseSpec):
        return SparseTensorSpec(spec.shape, spec.dtype)
    if isinstance(spec, RaggedSpec):
        return RaggedTensorSpec(spec.shape, spec.dtype, spec.ragged_rank, spec.splits_dtype)
    return spec


def specified(spec: object) -> TensorSpec:
    """Converts a program's specification of a component to a `TensorSpec`.

    Raises:
      TypeError: components of this class are not supported.
    """
    if isinstance(spec, TensorSpec):
        return spec
    if isinstance(spec, SparseTensorSpec):
        return SparseSpec(spec.shape, spec.dtype)
    if isinstance(spec, RaggedTensorSpec):
        return RaggedSpec(spec.shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    if isinstance(spec, DatasetSpec | Nested):
        return TensorSpec((), variant)
    raise TypeError(f"a component of a dataset's element cannot be of {spec!r}")


def spec_of_class(kind: object, dtype: DTypeLike, shape: ShapeLike) -> RaggedTensorSpec | SparseTensorSpec | TensorSpec:
    """The spec of a component from ``output_classes``, ``output_types`` and ``output_shapes``.

    Raises:
      TypeError: components cannot be of this class.
    """
    if kind is None or kind is Tensor:
        return TensorSpec(shape, dtype)
    if kind is SparseTensor:
        return SparseTensorSpec(shape, dtype)
    if isinstance(kind, RaggedTensorSpec):
        return kind
    if kind is RaggedTensor:
        return RaggedTensorSpec(shape, dtype)
    raise TypeError(f"output_classes: a component of an element cannot be a {kind!r}")


def class_of(spec: object) -> Any:
    """Returns the class of a component for ``output_classes``; for a ragged one its specification."""
    if isinstance(spec, RaggedTensorSpec):
        return spec
    return spec.value_type if isinstance(spec, TypeSpec) else Tensor


def program_value(value: object) -> Any:
    """Converts a component to a value as returned by a session."""
    if isinstance(value, SparseArray):
        return SparseTensorValue(*value.parts)
    if isinstance(value, RaggedArray):
        return ragged_value(value.parts) if value.splits else np.asarray(value.values)
    return value
