"""Operations of TensorFlow's own gradients, which occur only in graphs built by TensorFlow.

Headwater's own gradients are vector-Jacobian products (`headwater.graph.ops.core.vjp`). With the operations here,
graphs built by TensorFlow run unchanged; most of these operations compute such a product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.graph.ops.common import as_ints, output
from headwater.graph.ops.define import pure
from headwater.graph.ops.slopes import masked_product, reciprocal_slope, rsqrt_slope, sqrt_slope
from headwater.graph.registry import HostArray, Inference, Spec, lookup
from headwater.lazy_jax import jax, jnp
from headwater.shapes import merge_dims

Function = Callable[..., Any]


def _pulled(forward: Function, at: jax.Array, gradient: jax.Array) -> jax.Array:
    """Returns the gradient for the input ``at`` of a function, given its output's gradient."""
    _, pull = jax.vjp(forward, at)
    return pull(jnp.asarray(gradient))[0]


def _like(index: int) -> Callable[[Inference], Sequence[Spec]]:
    return lambda inference: output(inference, inference.inputs[index].dims, index)


def _merged(inference: Inference) -> Sequence[Spec]:
    return output(inference, merge_dims(inference.inputs[0].dims, inference.inputs[1].dims))


# Of each element --------------------------------------------------------------------------------------------------

# Given the function's result y.
for _type, _compute in {
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SqrtGrad": lambda y, dy: masked_product(dy, sqrt_slope(y)),
    "RsqrtGrad": lambda y, dy: masked_product(dy, rsqrt_slope(y)),
    "ReciprocalGrad": lambda y, dy: masked_product(dy, reciprocal_slope(y)),
    "InvGrad": lambda y, dy: masked_product(dy, reciprocal_slope(y)),
}.items():
    pure(_type, inputs="y:T|inexact, dy:T", infer=_merged)(_compute)

_SELU_SCALE = 1.0507009873554805
_SELU_SCALE_ALPHA = 1.7580993408473766

# Given the activation's input x, or for Elu and Selu its result.
for _type, _compute in {
    "ReluGrad": lambda gradients, x: jnp.where(x > 0, gradients, 0).astype(gradients.dtype),
    "Relu6Grad": lambda gradients, x: jnp.where((x > 0) & (x < 6), gradients, 0).astype(gradients.dtype),
    "SoftplusGrad": lambda gradients, x: gradients * jax.nn.sigmoid(x),
    "SoftsignGrad": lambda gradients, x: gradients / (1 + abs(x)) ** 2,
    "EluGrad": lambda gradients, y: jnp.where(y < 0, gradients * (y + 1), gradients),
    "SeluGrad": lambda gradients, y: (
        gradients * jnp.where(y < 0, y + _SELU_SCALE_ALPHA, _SELU_SCALE).astype(gradients.dtype)
    ),
}.items():
    pure(_type, inputs="gradients:T|numeric, features:T", infer=_merged)(_compute)


@pure("LeakyReluGrad", inputs="gradients:T|floating=float32, features:T", infer=_merged)
def leaky_relu_grad(gradients: jax.Array, features: jax.Array, *, alpha: float = 0.2) -> jax.Array:
    """The gradient of LeakyRelu."""
    return jnp.where(features > 0, gradients, gradients * jnp.asarray(alpha, gradients.dtype))


# Shapes -----------------------------------------------------------------------------------------------------------


def _two_vectors(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.inputs[0].dtype.base_dtype, (None,))] * 2


@pure("BroadcastGradientArgs", inputs="s0:T|index=int32, s1:T", static=(0, 1), infer=_two_vectors, differentiable=False)
def broadcast_gradient_args(s0: HostArray, s1: HostArray) -> tuple[HostArray, ...]:
    """The dimensions along which each of two tensors was repeated when they were broadcast."""
    left, right = as_ints(s0), as_ints(s1)
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    # A dimension of size 1 in both tensors is listed for both: summing along it changes nothing.
    return tuple(np.array([axis for axis in range(rank) if sizes[axis] == 1], s0.dtype) for sizes in (left, right))


def _vectors(inference: Inference) -> Sequence[Spec]:
    return [Spec(spec.dtype.base_dtype, spec.dims) for spec in inference.inputs[1:]]


@pure(
    "ConcatOffset",
    inputs="concat_dim:int32, shape:int32*",
    static_of=lambda attrs, count: frozenset(range(count)),
    infer=_vectors,
    differentiable=False,
)
def concat_offset(concat_dim: HostArray, *shape: jax.Array) -> tuple[HostArray, ...]:
    """Returns the offset of each tensor in the concatenation."""
    axis = int(concat_dim)
    sizes = [as_ints(value)[axis] for value in shape]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    offsets = np.zeros((len(shape), shape[0].size), np.int32)
    offsets[:, axis] = starts
    return tuple(offsets)


def _sized_by_first(inference: Inference) -> Sequence[Spec]:
    return output(inference, inference.partial(0), len(inference.inputs) - 1)


@pure(
    "StridedSliceGrad",
    inputs="shape:Index|index, begin:Index, end:Index, strides:Index, dy:T",
    static=(0, 1, 2, 3),
    infer=_sized_by_first,
)
def strided_slice_grad(
    shape: HostArray,
    begin: HostArray,
    end: HostArray,
    strides: HostArray,
    dy: jax.Array,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> jax.Array:
    """Returns zeros of a shape, with ``dy`` at the positions of the elements that a strided slice takes."""
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    take = lookup("StridedSlice").lower
    return _pulled(lambda x: take(x, begin, end, strides, **masks), jnp.zeros(as_ints(shape), dy.dtype), dy)


@pure(
    "MirrorPadGrad",
    inputs="input:T, paddings:Tpaddings|index=int32",
    static=(1,),
    infer=lambda inference: output(
        inference, None if inference.inputs[0].dims is None else (None,) * len(inference.inputs[0].dims)
    ),
)
def mirror_pad_grad(input: jax.Array, paddings: HostArray, *, mode: str) -> jax.Array:
    """The gradient of MirrorPad."""
    pads = np.asarray(paddings)
    shape = [size - int(pair.sum()) for size, pair in zip(input.shape, pads, strict=True)]
    forward = lookup("MirrorPad").lower
    return _pulled(lambda x: forward(x, pads, mode=mode), jnp.zeros(shape, input.dtype), input)


# Networks ---------------------------------------------------------------------------------------------------------


def _channels(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    channel = 1 if inference.attrs.get("data_format") == "NCHW" else -1
    return output(inference, (None if dims is None else dims[channel],))


@pure("BiasAddGrad", inputs="out_backprop:T|numeric", infer=_channels)
def bias_add_grad(out_backprop: jax.Array, *, data_format: str = "NHWC") -> jax.Array:
    """Returns the sum over all dimensions except the channels."""
    channel = 1 if data_format == "NCHW" else out_backprop.ndim - 1
    return jnp.sum(out_backprop, axis=tuple(axis for axis in range(out_backprop.ndim) if axis != channel))


@pure("LRNGrad", inputs="input_grads:T|floating=float32, input_image:T, output_image:T", infer=_like(1))
def lrn_grad(
    input_grads: jax.Array,
    input_image: jax.Array,
    output_image: jax.Array,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> jax.Array:
    """The gradient of LRN."""
    del output_image
    forward = lookup("LRN").lower
    settings = {"depth_radius": depth_radius, "bias": bias, "alpha": alpha, "beta": beta}
    return _pulled(lambda x: forward(x, **settings), input_image, input_grads)


def _average_grad(op_type: str) -> None:
    def lower(
        orig_input_shape: object, grad: jax.Array, *, ksize: Sequence[int], strides: Sequence[int], padding: str
    ) -> jax.Array:
        """The gradient of an average pooling."""
        forward = lookup(op_type).lower
        zeros = jnp.zeros(as_ints(orig_input_shape), grad.dtype)
        return _pulled(lambda x: forward(x, ksize=ksize, strides=strides, padding=padding), zeros, grad)

    pure(f"{op_type}Grad", inputs="orig_input_shape:int32, grad:T|floating", static=(0,), infer=_sized_by_first)(lower)


def _maximum_grad(op_type: str, inputs: str) -> None:
    def lower(
        orig_input: jax.Array,
        orig_output: object,
        grad: jax.Array,
        *,
        ksize: Sequence[int],
        strides: Sequence[int],
        padding: str,
    ) -> jax.Array:
        """The gradient of a maximum pooling."""
        del orig_output
        forward = lookup(op_type).lower
        return _pulled(lambda x: forward(x, ksize=ksize, strides=strides, padding=padding), orig_input, grad)

    pure(f"{op_type}Grad", inputs=inputs, infer=_like(0))(lower)


_average_grad("AvgPool")
_average_grad("AvgPool3D")
_maximum_grad("MaxPool", "orig_input:T|numeric=float32, orig_output:T, grad:T")
_maximum_grad("MaxPool3D", "orig_input:TInput|floating=float32, orig_output:TInput, grad:T|floating")


def _sized_by(position: int) -> Callable[[Inference], Sequence[Spec]]:
    return lambda inference: output(inference, inference.partial(position), 1 - position)


def _convolution_grads(op_type: str, for_input: str, for_filter: str) -> None:
    def input_grad(
        input_sizes: jax.Array,
        filter: jax.Array,
        out_backprop: jax.Array,
        *,
        strides: Sequence[int],
        padding: str,
        data_format: str,
        dilations: Sequence[int] = (),
    ) -> jax.Array:
        """The gradient of a convolution for its input."""
        settings = {"strides": strides, "padding": padding, "data_format": data_format, "dilations": dilations}
        forward = lookup(op_type).lower
        zeros = jnp.zeros(as_ints(input_sizes), filter.dtype)
        return _pulled(lambda x: forward(x, filter, **settings), zeros, out_backprop)

    def filter_grad(
        input: jax.Array,
        filter_sizes: jax.Array,
        out_backprop: jax.Array,
        *,
        strides: Sequence[int],
        padding: str,
        data_format: str,
        dilations: Sequence[int] = (),
    ) -> jax.Array:
        """The gradient of a convolution for its filter."""
        settings = {"strides": strides, "padding": padding, "data_format": data_format, "dilations": dilations}
        forward = lookup(op_type).lower
        zeros = jnp.zeros(as_ints(filter_sizes), input.dtype)
        return _pulled(lambda f: forward(input, f, **settings), zeros, out_backprop)

    sizes = "int32" if op_type != "Conv3D" else "Tshape=int32"
    pure(for_input, inputs=f"input_sizes:{sizes}, filter:T|floating, out_backprop:T", static=(0,), infer=_sized_by(0))(
        input_grad
    )
    pure(for_filter, inputs="input:T|floating, filter_sizes:int32, out_backprop:T", static=(1,), infer=_sized_by(1))(
        filter_grad
    )


_convolution_grads("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter")
_convolution_grads("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")


def _norm_specs(inference: Inference) -> Sequence[Spec]:
    x, scale = inference.inputs[1], inference.inputs[2]
    other = Spec(scale.dtype.base_dtype, scale.dims)
    unread = Spec(other.dtype, (0,)) if inference.attrs.get("is_training", True) else other
    return [Spec(x.dtype.base_dtype, x.dims), other, other, unread, unread]


def _batch_norm_grad(
    y_backprop: jax.Array,
    x: jax.Array,
    scale: jax.Array,
    reserve_space_1: jax.Array,
    reserve_space_2: jax.Array,
    *unused: object,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[jax.Array, jax.Array]:
    """The gradients of FusedBatchNorm for x, scale and offset, and two outputs that are not read."""
    del unused
    forward = lookup("FusedBatchNorm").lower
    settings = {"epsilon": epsilon, "data_format": data_format, "is_training": is_training}

    def normalised(x: jax.Array, scale: object, offset: object) -> jax.Array:
        return forward(x, scale, offset, reserve_space_1, reserve_space_2, **settings)[0]

    _, pull = jax.vjp(normalised, x, scale, jnp.zeros_like(scale))
    nothing = jnp.zeros((0,) if is_training else scale.shape, scale.dtype)
    return *pull(jnp.asarray(y_backprop)), nothing, nothing


for _type, _scale, _more in (
    ("FusedBatchNormGrad", "T", ""),
    ("FusedBatchNormGradV2", "float32", ""),
    ("FusedBatchNormGradV3", "float32", ", reserve_space_3:U"),
):
    _kind = "T" if _type == "FusedBatchNormGrad" else "U"
    pure(
        _type,
        infer=_norm_specs,
        inputs=f"y_backprop:T|floating, x:T, scale:{_scale}, reserve_space_1:{_kind}, reserve_space_2:{_kind}{_more}",
    )(_batch_norm_grad)
