"""Operations on sparse tensors that occur in TensorFlow's graphs, but are not used by Headwater's own functions.

A sparse tensor is passed as its indices, in order, its values and its shape. The functions of
`headwater.tf1.functional.sparse` are composed of other operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.dtypes import int64
from headwater.graph.ops.common import as_ints, normal_axis
from headwater.graph.ops.define import host, pure
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import deferred, jax, jnp

_SPARSE = "sp_indices:int64, sp_values:T, sp_shape:int64"


def _product_spec(inference: Inference) -> Sequence[Spec]:
    values, b = inference.inputs[1], inference.inputs[3]
    shape = inference.partial(2)
    adjoint_a, adjoint_b = inference.attrs.get("adjoint_a", False), inference.attrs.get("adjoint_b", False)
    rows = None if shape is None else shape[1 if adjoint_a else 0]
    columns = None if b.dims is None else b.dims[0 if adjoint_b else 1]
    return [Spec(values.dtype.base_dtype, (rows, columns))]


@pure(
    "SparseTensorDenseMatMul",
    inputs="a_indices:Tindices|int32_or_64, a_values:T, a_shape:int64, b:T",
    infer=_product_spec,
    static=(2,),
    constants=(0,),
)
def product(
    indices: jax.Array,
    values: jax.Array,
    shape: HostArray,
    b: jax.Array,
    *,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> jax.Array:
    """Returns the matrix product of a sparse matrix and ``b``, each replaced by its conjugate transpose if
    requested."""
    into, out_of = (indices[:, 1], indices[:, 0]) if adjoint_a else (indices[:, 0], indices[:, 1])
    right = jnp.conj(jnp.asarray(b).T) if adjoint_b else jnp.asarray(b)
    left = jnp.conj(jnp.asarray(values)) if adjoint_a else jnp.asarray(values)
    rows = as_ints(shape)[1 if adjoint_a else 0]
    return jax.ops.segment_sum(right[out_of] * left[:, None], into, rows)


def _beside_dense(combine: Callable[[Any, Any], Any]) -> Callable[..., jax.Array]:
    def lower(indices: jax.Array, values: jax.Array, shape: HostArray, dense: jax.Array) -> jax.Array:
        whole = jnp.broadcast_to(dense, as_ints(shape))
        return combine(values, whole[tuple(jnp.asarray(indices).T)])

    return lower


for _name, _combine in {"Add": "add", "Mul": "multiply", "Div": "divide"}.items():
    pure(
        f"SparseDenseCwise{_name}",
        inputs=f"{_SPARSE}, dense:T",
        infer=lambda inference: [Spec(inference.inputs[1].dtype.base_dtype, inference.inputs[1].dims)],
        static=(2,),
        constants=(0,),
    )(_beside_dense(deferred(jnp, _combine)))


@pure(
    "SparseTensorDenseAdd",
    inputs="a_indices:Tindices|int32_or_64, a_values:T, a_shape:Tindices, b:T",
    infer=lambda inference: [Spec(inference.inputs[3].dtype.base_dtype, inference.inputs[3].dims)],
    constants=(0, 2),
)
def add_to_dense(indices: jax.Array, values: jax.Array, shape: jax.Array, b: jax.Array) -> jax.Array:
    del shape
    return jnp.asarray(b).at[tuple(jnp.asarray(indices).T)].add(values)


# Host operations, because shapes of results depend on values
# -----------------------------------------------------------


def _reduced_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.inputs[1].dtype.base_dtype, None)]


def _define_reduction(name: str, reduce: np.ufunc, lowest: bool) -> None:
    @host(name, inputs="input_indices:int64, input_values:T, input_shape:int64, axes:int32", infer=_reduced_spec)
    def lower(  # pyright: ignore[reportUnusedFunction]
        indices: HostArray, values: HostArray, shape: HostArray, axes: HostArray, *, keep_dims: bool = False
    ) -> HostArray:
        """Returns a dense tensor, with zeros at positions without elements."""
        rank = len(shape)
        gone = {normal_axis(int(axis), rank) for axis in axes.ravel()} or set(range(rank))
        kept = [axis for axis in range(rank) if axis not in gone]
        sizes = [int(shape[axis]) for axis in kept]
        at = tuple(indices[:, kept].T)
        found = np.zeros(sizes, values.dtype)
        if lowest:
            found[at] = np.finfo(values.dtype).min if values.dtype.kind == "f" else np.iinfo(values.dtype).min
        reduce.at(found, at, values)
        return found.reshape([1 if axis in gone else int(shape[axis]) for axis in range(rank)]) if keep_dims else found


_define_reduction("SparseReduceSum", np.add, lowest=False)
_define_reduction("SparseReduceMax", np.maximum, lowest=True)


@host(
    "SparseSoftmax",
    inputs=_SPARSE,
    infer=lambda inference: [Spec(inference.inputs[1].dtype.base_dtype, inference.inputs[1].dims)],
)
def softmax(indices: HostArray, values: HostArray, shape: HostArray) -> HostArray:
    """Computes the softmax of each row's values, as if missing elements were −∞."""
    del shape
    if not len(values):
        return values
    _, rows = np.unique(indices[:, :-1], axis=0, return_inverse=True)
    rows = rows.ravel()
    largest = np.full(rows.max() + 1, -np.inf, values.dtype)
    np.maximum.at(largest, rows, values)
    powers = np.exp(values - largest[rows])
    return powers / np.bincount(rows, powers)[rows].astype(values.dtype)


def _joined_spec(inference: Inference) -> Sequence[Spec]:
    count = inference.attrs["N"]
    return [Spec(int64, (None, None)), Spec(inference.inputs[count].dtype.base_dtype, (None,)), Spec(int64, (None,))]


@host("SparseConcat", infer=_joined_spec)
def concat(*inputs: HostArray, concat_dim: int, N: int) -> Sequence[HostArray]:
    """Concatenates sparse tensors along a dimension. ``inputs`` are the indices of all tensors, then their values, then
    their shapes."""
    all_indices, all_values, shapes = inputs[:N], inputs[N : 2 * N], inputs[2 * N :]
    axis = normal_axis(concat_dim, len(shapes[0]))
    moved: list[HostArray] = []
    offset = 0
    for indices, shape in zip(all_indices, shapes, strict=True):
        moved.append(indices + np.where(np.arange(len(shape)) == axis, offset, 0))
        offset += int(shape[axis])
    whole = np.concatenate(moved)
    order = np.lexsort(whole.T[::-1])
    shape = shapes[0].copy()
    shape[axis] = offset
    return whole[order], np.concatenate(all_values)[order], shape


@host(
    "SparseSlice",
    inputs="indices:int64, values:T, shape:int64, start:int64, size:int64",
    infer=lambda inference: [
        Spec(int64, (None, None)),
        Spec(inference.inputs[1].dtype.base_dtype, (None,)),
        Spec(int64, (None,)),
    ],
)
def part(
    indices: HostArray, values: HostArray, shape: HostArray, start: HostArray, size: HostArray
) -> Sequence[HostArray]:
    """Returns the part of a sparse tensor that starts at ``start`` and has at most ``size`` elements per dimension."""
    size = np.maximum(np.minimum(size, shape - start), 0)
    inside = ((indices >= start) & (indices < start + size)).all(axis=1)
    return indices[inside] - start, values[inside], size
