"""Sparse tensors: nonzero elements with their indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor, SparseTensorValue, as_sparse
from headwater.graph.types import SparseLike, TensorLike
from headwater.shapes import ShapeLike, as_shape
from headwater.tf1.functional import arrays, indexing
from headwater.tf1.functional.apply import one

if TYPE_CHECKING:
    from headwater.dtypes import DType


def sparse_placeholder(dtype: DTypeLike, shape: ShapeLike | None = None, name: str | None = None) -> SparseTensor:
    """Returns a sparse placeholder, whose value every run must feed.

    Args:
      shape: its shape, if known.
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
    sp_input: SparseTensor,
    default_value: TensorLike | None = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """Converts to a dense tensor; missing elements are ``default_value``, zero or an empty string if None."""
    sp_input = as_sparse(sp_input)
    missing = arrays.zeros([], sp_input.dtype.base_dtype) if default_value is None else default_value
    return indexing.sparse_to_dense(
        sp_input.indices, sp_input.dense_shape, sp_input.values, missing, validate_indices, name=name
    )


def sparse_tensor_dense_matmul(
    sp_a: SparseTensor, b: TensorLike, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """A sparse matrix times a dense one."""
    sp_a = as_sparse(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul", [sp_a.indices, b]):
        b = convert_to_tensor(b, name="b")
        b.shape.with_rank(2)
        sp_a.shape.with_rank(2)
        right = arrays.matrix_transpose(b, conjugate=True) if adjoint_b else b
        out_of, into = (0, 1) if adjoint_a else (1, 0)
        shapes = (sp_a.shape, out_of), (right.shape, 0)
        inner, length = (shape.as_list()[at] if shape.ndims else None for shape, at in shapes)
        if None not in (inner, length) and inner != length:
            raise ValueError(f"Dimensions must be equal, but are {inner} and {length}")
        rows = indexing.gather(right, sp_a.indices[:, out_of])
        scaled = rows * arrays.expand_dims(sp_a.values, -1)
        return one("UnsortedSegmentSum", scaled, sp_a.indices[:, into], sp_a.dense_shape[into])


def convert_to_tensor_or_sparse_tensor(value: SparseLike, dtype: DType | None = None, name: str | None = None) -> Any:
    """Converts ``value`` to a tensor, or to a sparse tensor if it is one or the value of one.

    Raises:
      RuntimeError: a sparse tensor has a different element type than ``dtype``.
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and not value.dtype.is_compatible_with(dtype):
        raise RuntimeError(f"Sparse dtype: requested = {as_dtype(dtype).name}, actual = {value.dtype.name}")
    return value
