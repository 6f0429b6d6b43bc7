"""Resizing of images. Shapes are [batch, height, width, channels]; source positions and weights are computed as in
TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from headwater.dtypes import DType, float32
from headwater.graph.kernels.images import nearest, neighbors, places, scale_of
from headwater.graph.ops.common import as_ints
from headwater.graph.ops.define import pure
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp


def _resized(dtype: DType | None) -> Callable[[Inference], list[Spec]]:
    def infer(inference: Inference) -> list[Spec]:
        images = inference.inputs[0]
        size = inference.constant(1)
        if size is not None and size.shape != (2,):
            raise ValueError(f"Dimension must be 2 but is {size.size} for the size of {inference.op_type!r}")
        height, width = (None, None) if size is None else (max(int(size[0]), 0), max(int(size[1]), 0))
        batch, channels = (None, None) if images.dims is None else (images.dims[0], images.dims[-1])
        return [Spec(dtype or images.dtype.base_dtype, (batch, height, width, channels))]

    return infer


def _output_size(size: object) -> tuple[int, ...]:
    sizes = as_ints(size)
    if min(sizes) < 1:
        raise ValueError("output dimensions must be positive")
    return sizes


def _between(values: jax.Array, low: HostArray, high: HostArray, share: HostArray, axis: int) -> jax.Array:
    """Interpolates linearly between the two neighbours of each fractional position along a dimension."""
    shape = [1] * values.ndim
    shape[axis] = -1
    below, above = jnp.take(values, low, axis=axis), jnp.take(values, high, axis=axis)
    return below + (above - below) * share.reshape(shape)


@pure("ResizeBilinear", inputs="images:T|real, size:int32", static=(1,), infer=_resized(float32))
def resize_bilinear(
    images: jax.Array, size: jax.Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> jax.Array:
    """Computes each pixel from the four pixels around its source place."""
    values = images.astype(jnp.float32)
    for axis, count in enumerate(_output_size(size), 1):
        values = _between(values, *neighbors(count, values.shape[axis], align_corners, half_pixel_centers), axis)
    return values


@pure("ResizeNearestNeighbor", inputs="images:T|real, size:int32", static=(1,), infer=_resized(None))
def resize_nearest(
    images: jax.Array, size: jax.Array, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> jax.Array:
    """Computes each pixel as the pixel nearest to its source place."""
    height, width = _output_size(size)
    rows = nearest(height, images.shape[1], align_corners, half_pixel_centers)
    columns = nearest(width, images.shape[2], align_corners, half_pixel_centers)
    return jnp.take(jnp.take(images, rows, axis=1), columns, axis=2)


# Bicubic ----------------------------------------------------------------------------------------------------------

#: TensorFlow rounds fractional positions to this fraction of a pixel, so that it can tabulate the weights.
_STEPS: Final = 1024


def _cubic(distance: HostArray, a: float) -> HostArray:
    """Keys's kernel of cubic convolution at distances from 0 to 2.

    ``(a + 2) x³ - (a + 3) x² + 1`` up to 1, ``a x³ - 5 a x² + 8 a x - 4 a`` beyond. R. Keys, "Cubic convolution
    interpolation for digital image processing", 1981, takes a = -1/2.
    """
    x = distance
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, far)


def _cubic_taps(count: int, size: int, align_corners: bool, half_pixel_centers: bool) -> tuple[HostArray, HostArray]:
    """Returns, for each of ``count`` pixels, its four source pixels of ``size`` and their weights: [count, 4] each.

    With ``half_pixel_centers`` a = -1/2, and pixels beyond the edge are ignored; otherwise a = -3/4, and the edge pixel
    is repeated.
    """
    at = places(count, size, align_corners, half_pixel_centers)
    floor = np.floor(at)
    between = np.rint((at - floor) * _STEPS) / _STEPS
    distances = np.stack([1 + between, between, 1 - between, 2 - between], 1)
    wanted = floor.astype(np.int64)[:, None] + np.arange(-1, 3)
    taps = np.clip(wanted, 0, size - 1)
    weights = _cubic(distances, -0.5 if half_pixel_centers else -0.75)
    if half_pixel_centers:
        weights = np.where(taps == wanted, weights, 0)
        weights /= weights.sum(1, keepdims=True)
    return taps, weights.astype(np.float32)


def _weighted(values: jax.Array, taps: HostArray, weights: HostArray, axis: int) -> jax.Array:
    shape = [1] * values.ndim
    shape[axis] = -1
    parts = [jnp.take(values, taps[:, k], axis=axis) * weights[:, k].reshape(shape) for k in range(taps.shape[1])]
    return sum(parts[1:], parts[0])


@pure("ResizeBicubic", inputs="images:T|real, size:int32", static=(1,), infer=_resized(float32))
def resize_bicubic(
    images: jax.Array, size: object, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> jax.Array:
    """Computes each pixel from the sixteen pixels around its source place."""
    values = images.astype(jnp.float32)
    for axis, count in enumerate(_output_size(size), 1):
        taps, weights = _cubic_taps(count, values.shape[axis], align_corners, half_pixel_centers)
        values = _weighted(values, taps, weights, axis)
    return values


# Area -------------------------------------------------------------------------------------------------------------


def _shares(count: int, size: int, align_corners: bool) -> HostArray:
    """Returns the weights of the ``size`` source pixels in each of ``count`` pixels: [count, size]; rows add up to
    1."""
    scale = scale_of(count, size, align_corners)
    shares = np.zeros((count, size), np.float32)
    for pixel in range(count):
        begin = np.float32(pixel) * scale
        end = np.float32(pixel + 1) * scale
        for covered in range(int(np.floor(begin)), int(np.ceil(end))):
            part = scale if covered < begin and covered + 1 > end else min(covered + 1, end) - max(covered, begin)
            shares[pixel, min(covered, size - 1)] += part
    return shares / scale


@pure("ResizeArea", inputs="images:T|real, size:int32", static=(1,), infer=_resized(float32), differentiable=False)
def resize_area(images: jax.Array, size: jax.Array, *, align_corners: bool = False) -> jax.Array:
    """Computes each pixel as the mean of the part of the image that it covers."""
    height, width = _output_size(size)
    rows = _shares(height, images.shape[1], align_corners)
    columns = _shares(width, images.shape[2], align_corners)
    exact = jax.lax.Precision.HIGHEST
    values = jnp.einsum("hr,brwc->bhwc", rows, images.astype(jnp.float32), precision=exact)
    return jnp.einsum("vw,bhwc->bhvc", columns, values, precision=exact)
