"""Sparse tensors in a graph; functions of them are in `headwater.tf1.functional.sparse` and neighbouring modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater import dtypes
from headwater.dtypes import DType
from headwater.graph.composites import CompositeTensor
from headwater.graph.constants import partial_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor, operator
from headwater.shapes import TensorShape, merge_dims

if TYPE_CHECKING:
    from headwater.graph.types import FeedDict, SessionLike, TensorLike


class SparseTensorValue(NamedTuple):
    """The value of a `SparseTensor`: arrays."""

    indices: TensorLike
    values: TensorLike
    dense_shape: TensorLike


class SparseTensor(CompositeTensor):
    """A tensor in which only the elements ``values[i]`` at ``indices[i]`` are not zero.

    Args:
      indices: int64 [elements, rank], in row-major order of the elements.
      values: vector of the elements.
      dense_shape: int64 vector.
    """

    def __init__(self, indices: TensorLike, values: Any, dense_shape: Any) -> None:
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = convert_to_tensor(indices, dtypes.int64, name="indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, dtypes.int64, name="dense_shape")
        count, rank = merge_dims(self._indices.dims, (None, None)) or (None, None)
        merge_dims(self._values.dims, (count,))
        merge_dims(self._dense_shape.dims, (rank,))

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """Converts a `SparseTensorValue`; returns a sparse tensor unchanged."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        return cls(*sparse_tensor_value)

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        return TensorShape(partial_value(self._dense_shape))

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def components(self) -> list[Tensor]:
        return [self._indices, self._values, self._dense_shape]

    def with_components(self, components: Sequence[Tensor]) -> SparseTensor:
        return SparseTensor(*components)

    def component_shapes(self, shape: TensorShape) -> list[TensorShape]:
        """Returns the components' shapes for any number of elements; ``shape`` is the shape of ``dense_shape``, or None
        if unknown."""
        rank = None if self._indices.dims is None else self._indices.dims[1]
        return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def op(self) -> Operation:
        return self._values.op

    @property
    def graph(self) -> Graph:
        return self._values.graph

    def eval(self, feed_dict: FeedDict | None = None, session: SessionLike | None = None) -> Any:
        """Returns the value in ``session``, or in the default one."""
        return SparseTensorValue(*(part.eval(feed_dict, session) for part in self.components))

    def with_values(self, values: Tensor) -> SparseTensor:
        """Returns a sparse tensor with other elements at the same places."""
        return SparseTensor(self._indices, values, self._dense_shape)

    def consumers(self) -> list[Operation]:
        """Returns the operations that read the indices, the values or the shape."""
        return list(dict.fromkeys(op for part in self.components for op in part.consumers()))

    def __mul__(self, other: TensorLike) -> SparseTensor:
        """Multiplies the elements by the elements of a dense tensor, broadcast to the dense shape, at the same
        places."""
        return self._with("__mul__", other)

    def __truediv__(self, other: TensorLike) -> SparseTensor:
        """Divides the elements by the elements of a dense tensor; see `__mul__`."""
        return self._with("__truediv__", other)

    def __div__(self, other: TensorLike) -> SparseTensor:
        """Divides as ``/`` in Python 2."""
        return self._with("__div__", other)

    def _with(self, name: str, other: TensorLike) -> SparseTensor:
        dense = convert_to_tensor(other, self.dtype.base_dtype)
        if dense.dims != ():
            whole = self.graph.create_op("BroadcastTo", [dense, self._dense_shape]).outputs[0]
            dense = self.graph.create_op("GatherNd", [whole, self._indices]).outputs[0]
        return self.with_values(operator(name)(self._values, dense))

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self._indices}, values={self._values}, dense_shape={self._dense_shape})"


def as_sparse(value: object) -> SparseTensor:
    """Converts ``value``, a sparse tensor or the value of a sparse tensor, to a sparse tensor.

    Raises:
      TypeError: ``value`` is neither.
    """
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value
