"""Normalisation: of neighbouring channels, and of a batch by its moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, channels_last, sum_over
from headwater.graph.kernels.pieces import by_rows
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray


def _lrn(x: HostArray, depth_radius: int, bias: float, alpha: float) -> tuple[HostArray, HostArray]:
    """Returns the matrix of neighbouring channels, and the base of the power."""
    channels = np.arange(x.shape[-1])
    near = (np.abs(channels[:, np.newaxis] - channels) <= depth_radius).astype(x.dtype)
    return near, bias + alpha * np.matmul(x * x, near)


@kernel("LRN")
def local_response_normalization(
    input: HostArray, *, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5
) -> HostArray:
    """x / (bias + alpha Σ x²)^beta, the sum over ``depth_radius`` channels to each side."""
    return by_rows(lambda x: x * np.power(_lrn(x, depth_radius, bias, alpha)[1], -beta), input)


@gradient_kernel("LRN")
def lrn_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """The gradient through the element itself and through the sums that it is part of."""
    alpha, beta = attrs.get("alpha", 1.0), attrs.get("beta", 0.5)

    def pull(x: HostArray, g: HostArray) -> HostArray:
        near, total = _lrn(x, attrs.get("depth_radius", 5), attrs.get("bias", 1.0), alpha)
        scale = np.power(total, -beta)
        return g * scale - 2 * alpha * beta * x * np.matmul(g * x * scale / total, near)

    return (by_rows(pull, inputs[0], grads[0]),)


def _channels_back(x: HostArray, data_format: str) -> HostArray:
    return np.moveaxis(x, -1, 1) if data_format == "NCHW" else x


def _per_channel(wide: HostArray) -> int:
    """Returns the number of elements of each channel, which is the last dimension."""
    return wide.size // max(wide.shape[-1], 1)


def _moments(wide: HostArray, mean: HostArray, variance: HostArray, is_training: bool) -> tuple[HostArray, HostArray]:
    if not is_training:
        return mean, variance
    count = wide.dtype.type(_per_channel(wide))
    found = sum_over(wide, 0, wide.ndim - 1) / count
    return found, sum_over(np.square(wide - found), 0, wide.ndim - 1) / count


@kernel("FusedBatchNorm", "FusedBatchNormV2")
def fused_batch_norm(
    x: HostArray,
    scale: HostArray,
    offset: HostArray,
    mean: HostArray,
    variance: HostArray,
    *,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[HostArray, ...]:
    """Returns y = scale (x - mean) / √(variance + epsilon) + offset, and the mean and the variance of each channel.

    In training, mean and variance are computed from the batch; the returned variance has Bessel's correction
    n / (n - 1).
    """
    wide = channels_last(x, data_format).astype(scale.dtype, copy=False)
    mean, variance = _moments(wide, mean, variance, is_training)
    count = _per_channel(wide)
    shown = variance * scale.dtype.type(count / max(count - 1, 1)) if is_training else variance
    factor = scale / np.sqrt(variance + scale.dtype.type(epsilon))
    y = (wide - mean) * factor + offset
    return _channels_back(y, data_format).astype(x.dtype, copy=False), mean, shown, mean, variance


@kernel("FusedBatchNormV3")
def fused_batch_norm_v3(*inputs: HostArray, **settings: object) -> tuple[HostArray, ...]:
    """Like `fused_batch_norm`, with one more output, which only the gradient operation reads."""
    return *fused_batch_norm(*inputs, **settings), inputs[4]


def _norm_gradients(
    g: HostArray,
    x: HostArray,
    scale: HostArray,
    mean: HostArray,
    variance: HostArray,
    *,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[HostArray, HostArray, HostArray]:
    """Returns the gradients of x, scale and offset."""
    wide, g = (channels_last(value, data_format).astype(scale.dtype, copy=False) for value in (x, g))
    mean, variance = _moments(wide, mean, variance, is_training)
    inverse = 1 / np.sqrt(variance + scale.dtype.type(epsilon))
    normal = (wide - mean) * inverse
    for_offset, for_scale = (sum_over(value, 0, g.ndim - 1) for value in (g, g * normal))
    if is_training:
        g = g - (for_offset + normal * for_scale) / scale.dtype.type(max(_per_channel(wide), 1))
    return _channels_back(g * (scale * inverse), data_format).astype(x.dtype, copy=False), for_scale, for_offset


_SETTINGS = ("epsilon", "data_format", "is_training")


@gradient_kernel("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """Returns the gradients through y. Executables compute gradients through the moments."""
    if any(grad is not None for grad in grads[1:]):
        raise NoKernel
    x, scale, _, mean, variance = inputs
    settings: Any = {key: attrs[key] for key in _SETTINGS if key in attrs}
    return *_norm_gradients(grads[0], x, scale, mean, variance, **settings), None, None


@kernel("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(
    y_backprop: HostArray,
    x: HostArray,
    scale: HostArray,
    reserve_space_1: HostArray,
    reserve_space_2: HostArray,
    *unused: HostArray,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[HostArray, ...]:
    """The gradients of FusedBatchNorm for x, scale and offset, and two outputs that are not read."""
    del unused
    found = _norm_gradients(
        y_backprop,
        x,
        scale,
        reserve_space_1,
        reserve_space_2,
        epsilon=epsilon,
        data_format=data_format,
        is_training=is_training,
    )
    nothing = np.zeros((0,) if is_training else scale.shape, scale.dtype)
    return *found, nothing, nothing
