"""Arrays of tensors, represented by one tensor with the elements along its first dimension.

Until the first write, an array with elements of unknown shape has shape ``[size, 0]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType
from headwater.graph.ops.common import constant_int
from headwater.graph.ops.define import pure
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp
from headwater.shapes import TensorShape, as_shape, merge_dims


def _new_spec(inference: Inference) -> Sequence[Spec]:
    shape = as_shape(inference.attrs.get("element_shape")).as_dims
    size = constant_int(inference, 0)
    return [Spec(inference.attrs["dtype"], None if shape is None else (size, *shape))]


@pure("TensorArray", inputs="size:int32", infer=_new_spec, static=(0,), differentiable=False)
def new(size: HostArray, *, dtype: DType, element_shape: TensorShape | None = None) -> jax.Array:
    """Returns an array of ``size`` elements for a loop to fill. If the elements' shape is known, they are zeros."""
    shape = None if element_shape is None else element_shape.as_dims
    known: tuple[object, ...] = (0,) if shape is None or None in shape else shape
    return jnp.zeros((int(size), *known), dtype.numpy_dtype)


def _write_spec(inference: Inference) -> Sequence[Spec]:
    array, _, value = inference.inputs
    if value.dims is None:
        return [Spec(array.dtype.base_dtype, array.dims)]
    size = array.dims[0] if array.dims else None
    dims = (None if inference.attrs.get("grows") else size, *value.dims)
    return [Spec(array.dtype.base_dtype, dims if array.dims is None else merge_dims(dims, (None, *array.dims[1:])))]


def _write_static(attrs: Any, count: int) -> frozenset[int]:
    del count
    return frozenset({1}) if attrs.get("grows") else frozenset()


@pure("TensorArrayWrite", inputs="array:T, index:int32, value:T", infer=_write_spec, static_of=_write_static)
def write(array: jax.Array, index: jax.Array, value: jax.Array, *, grows: bool = False) -> jax.Array:
    """Returns ``array`` with ``value`` at ``index``."""
    value = jnp.asarray(value)
    array = jnp.asarray(array)
    if array.shape[1:] != value.shape and array.size == 0:
        array = jnp.zeros((array.shape[0], *value.shape), array.dtype)
    if grows and int(index) >= array.shape[0]:
        array = jnp.pad(array, [(0, int(index) + 1 - array.shape[0]), *[(0, 0)] * value.ndim])
    return array.at[jnp.asarray(index).astype(np.int32)].set(value)
