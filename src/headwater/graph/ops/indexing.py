"""Parts of tensors: slices, rows and single elements; selection between two tensors; and assembly from parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.graph.kernels.indexing import stitched_count
from headwater.graph.ops.common import AnyArray, array_module, as_ints, constant_int, normal_axis, output
from headwater.graph.ops.define import pure
from headwater.graph.ops.table_rows import take_rows
from headwater.graph.registry import Attrs, HostArray, Inference, Spec
from headwater.lazy_jax import custom_vjp, jax, jnp
from headwater.shapes import Dims, TensorShape, broadcast_dims, merge_dims

# Rows and elements ------------------------------------------------------------------------------------------------


def _gather_spec(inference: Inference) -> Sequence[Spec]:
    params, indices = inference.inputs[0].dims, inference.inputs[1].dims
    axis = constant_int(inference, 2) if len(inference.inputs) > 2 else 0
    batch = inference.attrs.get("batch_dims", 0)
    if params is None:
        return output(inference, None)
    if not params:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if indices is None:
        return output(inference, None)
    batch = batch % (len(indices) or 1) if batch < 0 else batch
    if axis is None:
        return output(inference, (None,) * (len(params) + len(indices) - 1 - batch))
    axis = normal_axis(axis, len(params))
    return output(inference, params[:axis] + indices[batch:] + params[axis + 1 :])


def require_rows(indices: HostArray, size: int) -> None:
    """Checks that all ``indices`` are from 0 to ``size`` - 1.

    Raises:
      IndexError: an index is out of range; the message has the index and its place.
    """
    bad = (indices < 0) | (indices >= size)
    if bad.any():
        place = np.unravel_index(int(np.argmax(bad)), indices.shape)
        raise IndexError(f"indices{_subscript(place)} = {indices[place]} is not in [0, {size})")


def require_elements(indices: HostArray, shape: Sequence[int]) -> None:
    """Checks that each vector along the last dimension of ``indices`` is a position in ``shape``.

    Raises:
      IndexError: a vector is out of range; the message has the vector and its place.
    """
    bad = ((indices < 0) | (indices >= np.asarray(shape[: indices.shape[-1]]))).any(-1)
    if bad.any():
        place = np.unravel_index(int(np.argmax(bad)), bad.shape)
        shown, sizes = ", ".join(map(str, indices[place])), ",".join(map(str, shape))
        raise IndexError(f"indices{_subscript(place)} = [{shown}] does not index into param shape [{sizes}]")


def _subscript(place: Sequence[object]) -> str:
    return f"[{','.join(map(str, place))}]" if place else ""


def _take(params: jax.Array, indices: jax.Array, axis: int) -> Any:
    """Returns slices of ``params``; for an index out of range, zeros, as in TensorFlow on GPUs. If ``params`` is a
    shape or has strings, such an index is an error."""
    if _is_exact(params) and isinstance(indices, np.ndarray):
        require_rows(indices, params.shape[axis])
        return np.take(params, indices, axis)
    if axis == 0:
        return take_rows(params, indices)
    key = (slice(None),) * axis + (jnp.asarray(indices),)
    return jnp.asarray(params).at[key].get(mode="fill", fill_value=0, wrap_negative_indices=False)


def _is_exact(params: jax.Array) -> bool:
    return isinstance(params, np.ndarray) and params.dtype.kind in "iuO"


@pure("Gather", inputs="params:Tparams, indices:Tindices|index", infer=_gather_spec, strings=True)
def gather(params: jax.Array, indices: jax.Array, *, validate_indices: bool = True) -> tuple[jax.Array, ...]:
    """``params[indices[i, ...]]``."""
    del validate_indices
    return _take(params, indices, 0)


@pure(
    "GatherV2",
    inputs="params:Tparams, indices:Tindices|index, axis:Taxis|index",
    static=(2,),
    infer=_gather_spec,
    strings=True,
)
def gather_v2(params: jax.Array, indices: jax.Array, axis: HostArray, *, batch_dims: int = 0) -> tuple[jax.Array, ...]:
    """Slices of ``params`` along ``axis``; the first ``batch_dims`` dimensions are common to both inputs."""
    where = normal_axis(int(axis), params.ndim)
    batch_dims = batch_dims % indices.ndim if batch_dims < 0 else batch_dims
    if not batch_dims:
        return _take(params, indices, where)

    if params.dtype == object:
        return _take_texts(params, indices, where, batch_dims)

    def take(params: jax.Array, indices: jax.Array) -> Any:
        return _take(params, indices, where - batch_dims)

    for _ in range(batch_dims):
        take = jax.vmap(take)
    return take(params, indices)


def _take_texts(params: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    """`gather_v2` with batch dimensions of an array of objects."""
    batch = params.shape[:batch_dims]
    rest = (*params.shape[batch_dims:axis], *indices.shape[batch_dims:], *params.shape[axis + 1 :])
    found = np.empty((*batch, *rest), object)
    for place in np.ndindex(batch):
        found[place] = np.take(params[place], indices[place], axis=axis - batch_dims)
    return found


def _places(indices: jax.Array) -> tuple[jax.Array, ...]:
    return tuple(indices[..., axis] for axis in range(indices.shape[-1]))


def _gather_nd_spec(inference: Inference) -> Sequence[Spec]:
    params, indices = inference.inputs[0].dims, inference.inputs[1].dims
    if params is None or indices is None or indices[-1] is None:
        return output(inference, None)
    if indices[-1] > len(params):
        raise ValueError(f"indices.shape[-1] must be <= params.rank, but saw {indices[-1]} and rank {len(params)}")
    return output(inference, indices[:-1] + params[indices[-1] :])


@pure("GatherNd", inputs="params:Tparams, indices:Tindices|index", infer=_gather_nd_spec, strings=True)
def gather_nd(params: jax.Array, indices: jax.Array) -> jax.Array:
    """``params[indices[..., 0], indices[..., 1], …]``; for empty indices, ``params`` for each."""
    shape = indices.shape[:-1] + params.shape[indices.shape[-1] :]
    if _is_exact(params) and isinstance(indices, np.ndarray):
        require_elements(indices, params.shape)
        return np.broadcast_to(params[_places(indices)], shape)  # pyright: ignore[reportReturnType]
    places = jnp.asarray(params).at[_places(indices)]
    return jnp.broadcast_to(places.get(mode="fill", fill_value=0, wrap_negative_indices=False), shape)


def _require_fit(indices: Dims, updates: Dims, shape: Dims) -> None:
    """Raises ValueError if static shapes do not fit, or elements are written to a tensor without elements."""
    if shape is not None and 0 in shape and any(has and 0 not in has and None not in has for has in (indices, updates)):
        raise ValueError("Indices and updates specified for empty output shape")
    if indices and indices[-1] is not None and shape is not None and updates is not None:
        if indices[-1] > len(shape):
            raise ValueError(f"indices of depth {indices[-1]} for a tensor of {len(shape)} dimensions")
        merge_dims(updates, indices[:-1] + shape[indices[-1] :])


def _scatter_nd_spec(inference: Inference) -> Sequence[Spec]:
    shape = inference.partial(2)
    _require_fit(inference.inputs[0].dims, inference.inputs[1].dims, shape)
    return output(inference, shape, 1)


def _tensor_scatter_spec(inference: Inference) -> Sequence[Spec]:
    tensor, indices, updates = (each.dims for each in inference.inputs)
    _require_fit(indices, updates, tensor)
    return output(inference, tensor)


@pure("ScatterNd", inputs="indices:Tindices|index, updates:T, shape:Tindices", static=(2,), infer=_scatter_nd_spec)
def scatter_nd(indices: jax.Array, updates: jax.Array, shape: HostArray) -> jax.Array:
    """Zeros of a shape, with ``updates`` added at ``indices``."""
    places = jnp.zeros(as_ints(shape), updates.dtype).at[_places(indices)]
    return places.add(updates, mode="drop", wrap_negative_indices=False)


def _scattered(op_type: str, method: str) -> None:
    def lower(tensor: object, indices: jax.Array, updates: jax.Array) -> jax.Array:
        places = jnp.asarray(tensor).at[_places(indices)]
        return getattr(places, method)(updates, mode="drop", wrap_negative_indices=False)

    pure(op_type, inputs="tensor:T, indices:Tindices|index, updates:T", infer=_tensor_scatter_spec)(lower)


_scattered("TensorScatterUpdate", "set")
_scattered("TensorScatterAdd", "add")
_scattered("TensorScatterSub", "subtract")
_scattered("TensorScatterMax", "max")
_scattered("TensorScatterMin", "min")


def _one_hot_spec(inference: Inference) -> Sequence[Spec]:
    dims, depth = inference.inputs[0].dims, constant_int(inference, 1)
    if depth is not None and depth < 0:
        raise ValueError(f"depth must be non-negative, got: {depth}")
    if dims is None:
        return output(inference, None, 2)
    axis = inference.attrs.get("axis", -1)
    axis = len(dims) if axis == -1 else axis
    return output(inference, (*dims[:axis], depth, *dims[axis:]), 2)


@pure(
    "OneHot",
    inputs="indices:TI|index=int64, depth:int32, on_value:T, off_value:T",
    static=(1,),
    infer=_one_hot_spec,
    differentiable=False,
    strings=True,
)
def one_hot(
    indices: AnyArray, depth: HostArray, on_value: AnyArray, off_value: AnyArray, *, axis: int = -1
) -> AnyArray:
    """Returns ``on_value`` at ``indices`` along a new dimension, ``off_value`` elsewhere."""
    axis = indices.ndim if axis == -1 else axis
    steps = np.arange(int(depth)).reshape((-1,) + (1,) * (indices.ndim - axis))
    module = array_module(indices, on_value, off_value)
    hit = module.expand_dims(indices, axis) == steps.astype(indices.dtype)
    return module.where(hit, on_value, off_value)


# Selection between two tensors
# -------------------------------------------------------------------------------------------------


def _selected(inference: Inference) -> Sequence[Spec]:
    condition, x, y = (spec.dims for spec in inference.inputs)
    if inference.inputs[1].dtype.base_dtype != inference.inputs[2].dtype.base_dtype:
        raise TypeError(f"Input 'e' of '{inference.op_type}' Op has another type than argument 't'.")
    dims = merge_dims(x, y)
    if condition is not None and len(condition) > 1:
        dims = merge_dims(dims, condition)
    elif condition is not None and len(condition) == 1 and dims is not None:
        if not dims:
            raise ValueError(f"Shapes {TensorShape(condition)} and () are not compatible")
        dims = (merge_dims(condition, dims[:1]) or ())[:1] + dims[1:]
    return output(inference, dims, 1)


@pure("Select", inputs="condition:bool, t:T, e:T", infer=_selected, strings=True)
def select(condition: AnyArray, t: AnyArray, e: AnyArray) -> AnyArray:
    """``t`` where the condition holds, else ``e``; a vector of conditions chooses whole rows."""
    if condition.ndim == 1 and t.ndim > 1:
        condition = condition.reshape((-1,) + (1,) * (t.ndim - 1))
    return array_module(condition, t, e).where(condition, t, e)


def _broadcast_selected(inference: Inference) -> Sequence[Spec]:
    dims: Dims = ()
    for spec in inference.inputs:
        dims = broadcast_dims(dims, spec.dims)
    return output(inference, dims, 1)


@pure("SelectV2", inputs="condition:bool, t:T, e:T", infer=_broadcast_selected, strings=True)
def select_v2(condition: AnyArray, t: AnyArray, e: AnyArray) -> AnyArray:
    """``t`` where the condition holds, else ``e``; all three broadcast."""
    return array_module(condition, t, e).where(condition, t, e)


# Assembly -----------------------------------------------------------------------------------------------------


def _reversed_spec(inference: Inference) -> Sequence[Spec]:
    dims, lengths = inference.inputs[0].dims, inference.inputs[1].dims
    if dims is None or lengths is None:
        return output(inference, dims)
    batch = normal_axis(inference.attrs.get("batch_dim", 0), len(dims))
    size = merge_dims(dims[batch : batch + 1], lengths)
    assert size is not None
    return output(inference, (*dims[:batch], *size, *dims[batch + 1 :]))


@pure("ReverseSequence", inputs="input:T, seq_lengths:Tlen|index=int64", infer=_reversed_spec)
def reverse_sequence(input: jax.Array, seq_lengths: jax.Array, *, seq_dim: int, batch_dim: int = 0) -> jax.Array:
    """Reverses the first ``seq_lengths[b]`` elements along ``seq_dim``, for each position b along ``batch_dim``."""
    steps = jnp.arange(input.shape[seq_dim])
    lengths = jnp.asarray(seq_lengths)[:, None]
    order = jnp.where(steps < lengths, lengths - 1 - steps, steps)
    shape = [1] * input.ndim
    shape[batch_dim], shape[seq_dim] = order.shape
    order = order.reshape(shape) if batch_dim < seq_dim else order.T.reshape(shape)
    return jnp.take_along_axis(input, order, axis=seq_dim)


def _to_dense_spec(inference: Inference) -> Sequence[Spec]:
    return output(inference, inference.partial(1), 2)


@pure(
    "SparseToDense",
    inputs="sparse_indices:Tindices|index, output_shape:Tindices, sparse_values:T, default_value:T",
    static=(1,),
    infer=_to_dense_spec,
    strings=True,
)
def sparse_to_dense(
    sparse_indices: jax.Array,
    output_shape: HostArray,
    sparse_values: jax.Array,
    default_value: jax.Array,
    *,
    validate_indices: bool = True,
) -> HostArray | jax.Array:
    """Returns a tensor of ``default_value`` with ``sparse_values`` at some places: one value for all places, or one for
    each."""
    del validate_indices
    shape = as_ints(output_shape)
    places = sparse_indices.reshape((-1, len(shape)))
    if sparse_values.dtype == object:
        result = np.full(shape, default_value, object)
        result[_places(places)] = sparse_values
        return result
    return jnp.full(shape, default_value, sparse_values.dtype).at[_places(places)].set(sparse_values, mode="drop")


def _stitch_static(attrs: Attrs, count: int) -> frozenset[int]:
    del attrs
    return frozenset(range(count // 2))


def _stitched_spec(inference: Inference) -> Sequence[Spec]:
    half = len(inference.inputs) // 2
    rest: Dims = None
    largest: int | None = -1
    for index in range(half):
        where, data = inference.inputs[index].dims, inference.inputs[half + index].dims
        value = inference.constant(index)
        if value is None or largest is None:
            largest = None
        elif value.size:
            largest = max(largest, int(value.max()))
        if where is not None and data is not None:
            merge_dims(where, data[: len(where)])
            rest = merge_dims(rest, data[len(where) :])
    dims = None if rest is None else (None if largest is None else largest + 1, *rest)
    return output(inference, dims, half)


def _stitch(op_type: str) -> None:
    def lower(*inputs: jax.Array) -> HostArray | jax.Array:
        half = len(inputs) // 2
        indices = [np.asarray(value) for value in inputs[:half]]
        data = inputs[half:]
        count = stitched_count(indices, data)
        rest = data[0].shape[indices[0].ndim :]
        if all(isinstance(value, np.ndarray) for value in data):
            result = np.zeros((count, *rest), data[0].dtype)
            for where, rows in zip(indices, data, strict=True):
                result[where.ravel()] = rows.reshape((where.size, *rest))
            return result

        @custom_vjp
        def stitched(*data: jax.Array) -> jax.Array:
            flat = jnp.concatenate([jnp.reshape(r, (w.size, *rest)) for w, r in zip(indices, data, strict=True)])
            origin = np.full(count, flat.shape[0])
            origin[np.concatenate([where.ravel() for where in indices])] = np.arange(flat.shape[0])
            return jnp.take(flat, origin, axis=0, mode="fill", fill_value=0)

        def forward(*data: jax.Array) -> tuple[jax.Array, None]:
            return stitched(*data), None

        def backward(kept: None, grad: jax.Array) -> tuple[jax.Array, ...]:
            del kept  # as in TensorFlow, rows that are overwritten have a gradient, too
            return tuple(jnp.take(grad, where, axis=0) for where in indices)

        stitched.defvjp(forward, backward)
        return stitched(*data)

    pure(op_type, inputs="indices:int32*, data:T*", static_of=_stitch_static, infer=_stitched_spec)(lower)


_stitch("DynamicStitch")
_stitch("ParallelDynamicStitch")
