"""Sparse tensors: the elements that are not zero, and where they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headwater import dtypes
from headwater.dtypes import DType, as_dtype
from headwater.functional import arrays, indexing
from headwater.functional.apply import one
from headwater.graph.constants import partial_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.shapes import TensorShape, as_shape, merge_dims


class SparseTensorValue(NamedTuple):
    """The value of a `SparseTensor`: arrays."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """A tensor of which only the elements ``values[i]`` at ``indices[i]`` are not zero.

    Args:
      indices: int64 matrix, a row of rank many numbers for each element, in row-major order of the elements.
      values: the elements, a vector.
      dense_shape: int64 vector.
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = convert_to_tensor(indices, dtypes.int64, name="indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, dtypes.int64, name="dense_shape")
        count, rank = merge_dims(self._indices.dims, (None, None)) or (None, None)
        merge_dims(self._values.dims, (count,))
        merge_dims(self._dense_shape.dims, (rank,))

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """The sparse tensor with a `SparseTensorValue`, or itself."""
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
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def op(self) -> Operation:
        return self._values.op

    @property
    def graph(self) -> Graph:
        return self._values.graph

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value in ``session``, or in the default one."""
        parts = [self._indices, self._values, self._dense_shape]
        return SparseTensorValue(*(part.eval(feed_dict, session) for part in parts))

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self._indices}, values={self._values}, dense_shape={self._dense_shape})"


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor whose value every run must feed.

    Args:
      shape: its shape, where the program knows it.
    """
    prefix = f"{name}/" if name else ""
    dims = None if shape is None else as_shape(shape).as_dims
    rank = None if dims is None else len(dims)
    known = dims is not None and None not in dims
    fixed = np.array(dims, np.int64) if known else None
    return SparseTensor(
        arrays.placeholder(dtypes.int64, [None, rank], name=f"{prefix}indices"),
        arrays.placeholder(as_dtype(dtype), [None], name=f"{prefix}values"),
        arrays.placeholder(dtypes.int64, [rank], name=f"{prefix}shape") if fixed is None else fixed,
    )


def sparse_tensor_to_dense(
    sp_input: SparseTensor, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """All elements; those that the sparse tensor lacks are ``default_value``, zero or empty text when None."""
    missing = arrays.zeros([], sp_input.dtype.base_dtype) if default_value is None else default_value
    return indexing.sparse_to_dense(
        sp_input.indices, sp_input.dense_shape, sp_input.values, missing, validate_indices, name=name
    )


def sparse_tensor_dense_matmul(
    sp_a: SparseTensor, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """A sparse matrix times a dense one."""
    with name_scope(name, "SparseTensorDenseMatMul", [sp_a.indices, b]):
        b = convert_to_tensor(b, name="b")
        right = arrays.matrix_transpose(b, conjugate=True) if adjoint_b else b
        out_of, into = (0, 1) if adjoint_a else (1, 0)
        rows = indexing.gather(right, sp_a.indices[:, out_of])
        scaled = rows * arrays.expand_dims(sp_a.values, -1)
        return one("UnsortedSegmentSum", scaled, sp_a.indices[:, into], sp_a.dense_shape[into])


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """``value`` as a tensor, or as a sparse tensor where it is one or the value of one.

    Raises:
      RuntimeError: a sparse tensor of another element type than ``dtype``.
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and not value.dtype.is_compatible_with(dtype):
        raise RuntimeError(f"Sparse dtype: requested = {as_dtype(dtype).name}, actual = {value.dtype.name}")
    return value
