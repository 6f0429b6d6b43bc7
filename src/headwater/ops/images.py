"""Images resized and transformed. Shapes are [batch, height, width, channels]."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from headwater.dtypes import DType, float32
from headwater.ops.common import as_ints
from headwater.ops.define import pure
from headwater.registry import Inference, Spec


def _resized(dtype: DType | None) -> Any:
    def infer(inference: Inference) -> list[Spec]:
        images = inference.inputs[0]
        size = inference.constant(1)
        height, width = (None, None) if size is None else (int(size[0]), int(size[1]))
        batch, channels = (None, None) if images.dims is None else (images.dims[0], images.dims[-1])
        return [Spec(dtype or images.dtype.base_dtype, (batch, height, width, channels))]

    return infer


def _places(count: int, size: int, align_corners: bool, half_pixel_centers: bool) -> Any:
    """Where in ``size`` pixels each of ``count`` pixels lies."""
    scale = (size - 1) / (count - 1) if align_corners and count > 1 else size / count
    steps = jnp.arange(count, dtype=jnp.float32)
    if half_pixel_centers:
        return (steps + 0.5) * jnp.float32(scale) - 0.5
    return steps * jnp.float32(scale)


def _between(values: Any, places: Any, axis: int) -> Any:
    """Values at fractional places along a dimension, by the two next to each."""
    last = values.shape[axis] - 1
    floor = jnp.floor(places)
    low = jnp.clip(floor, 0, last).astype(jnp.int32)
    high = jnp.clip(floor + 1, 0, last).astype(jnp.int32)
    shape = [1] * values.ndim
    shape[axis] = -1
    share = (places - floor).reshape(shape)
    below, above = jnp.take(values, low, axis=axis), jnp.take(values, high, axis=axis)
    return below + (above - below) * share


@pure("ResizeBilinear", inputs="images:T|real, size:int32", static=(1,), infer=_resized(float32))
def resize_bilinear(images: Any, size: Any, *, align_corners: bool = False, half_pixel_centers: bool = False) -> Any:
    """Each pixel from the four around its place."""
    height, width = as_ints(size)
    values = images.astype(jnp.float32)
    values = _between(values, _places(height, images.shape[1], align_corners, half_pixel_centers), 1)
    return _between(values, _places(width, images.shape[2], align_corners, half_pixel_centers), 2)


def _nearest(count: int, size: int, align_corners: bool, half_pixel_centers: bool) -> Any:
    scale = (size - 1) / (count - 1) if align_corners and count > 1 else size / count
    steps = jnp.arange(count, dtype=jnp.float32) + (0.5 if half_pixel_centers else 0.0)
    places = steps * jnp.float32(scale)
    # To the nearest, halves away from zero; or down.
    chosen = jnp.floor(places + 0.5) if align_corners else jnp.floor(places)
    return jnp.clip(chosen, 0, size - 1).astype(jnp.int32)


@pure("ResizeNearestNeighbor", inputs="images:T|real, size:int32", static=(1,), infer=_resized(None))
def resize_nearest(images: Any, size: Any, *, align_corners: bool = False, half_pixel_centers: bool = False) -> Any:
    """Each pixel as the one nearest to its place."""
    height, width = as_ints(size)
    rows = _nearest(height, images.shape[1], align_corners, half_pixel_centers)
    columns = _nearest(width, images.shape[2], align_corners, half_pixel_centers)
    return jnp.take(jnp.take(images, rows, axis=1), columns, axis=2)


def _like_first(inference: Inference) -> list[Spec]:
    first = inference.inputs[0]
    return [Spec(first.dtype.base_dtype, first.dims)]


@pure("AdjustContrastv2", inputs="images:T|floating, contrast_factor:float32", infer=_like_first)
def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """(x - mean) factor + mean, with the mean of each channel of each image."""
    mean = jnp.mean(images, axis=(-3, -2), keepdims=True)
    return (images - mean) * contrast_factor.astype(images.dtype) + mean


@pure("RGBToHSV", inputs="images:T|floating", infer=_like_first)
def rgb_to_hsv(images: Any) -> Any:
    """Hue, saturation and value, each in [0, 1]."""
    red, green, blue = images[..., 0], images[..., 1], images[..., 2]
    value = jnp.maximum(jnp.maximum(red, green), blue)
    spread = value - jnp.minimum(jnp.minimum(red, green), blue)
    saturation = jnp.where(value > 0, spread / jnp.where(value > 0, value, 1), 0)
    norm = 1 / (6 * jnp.where(spread > 0, spread, 1))
    hue = jnp.where(
        red == value, norm * (green - blue),
        jnp.where(green == value, norm * (blue - red) + 2 / 6, norm * (red - green) + 4 / 6),
    )  # fmt: skip
    hue = jnp.where(spread > 0, hue, 0)
    return jnp.stack([jnp.where(hue < 0, hue + 1, hue), saturation, value], -1)


@pure("HSVToRGB", inputs="images:T|floating", infer=_like_first)
def hsv_to_rgb(images: Any) -> Any:
    """Red, green and blue of hue, saturation and value."""
    hue, saturation, value = images[..., 0], images[..., 1], images[..., 2]
    wheel = hue * 6
    parts = [jnp.abs(wheel - 3) - 1, 2 - jnp.abs(wheel - 2), 2 - jnp.abs(wheel - 4)]
    return jnp.stack([((jnp.clip(part, 0, 1) - 1) * saturation + 1) * value for part in parts], -1)


@pure("ImageProjectiveTransform", inputs="images:dtype|real, transforms:float32", infer=_like_first)
def projective_transform(images: Any, transforms: Any, *, interpolation: str = "NEAREST") -> Any:
    """Each pixel (x, y) from ((a₀ x + a₁ y + a₂) / k, (b₀ x + b₁ y + b₂) / k), k = c₀ x + c₁ y + 1; 0 from outside.

    Args:
      transforms: the eight numbers of each image, or of all, a row each.
    """
    images = jnp.asarray(images)
    height, width = images.shape[1:3]
    numbers = jnp.broadcast_to(transforms, (images.shape[0], 8))[:, :, None, None]
    y, x = (grid.astype(jnp.float32) for grid in jnp.meshgrid(jnp.arange(height), jnp.arange(width), indexing="ij"))
    k = numbers[:, 6] * x + numbers[:, 7] * y + 1
    from_x = (numbers[:, 0] * x + numbers[:, 1] * y + numbers[:, 2]) / k
    from_y = (numbers[:, 3] * x + numbers[:, 4] * y + numbers[:, 5]) / k

    def at(rows: Any, columns: Any) -> Any:
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        row = jnp.clip(rows, 0, height - 1).astype(jnp.int32)
        column = jnp.clip(columns, 0, width - 1).astype(jnp.int32)
        batch = jnp.arange(images.shape[0])[:, None, None]
        return jnp.where(inside[..., None], images[batch, row, column], jnp.zeros((), images.dtype))

    if interpolation == "NEAREST":
        return at(_rounded(from_y), _rounded(from_x))
    top, left = jnp.floor(from_y), jnp.floor(from_x)
    down, right = (from_y - top)[..., None], (from_x - left)[..., None]
    upper = at(top, left) * (1 - right) + at(top, left + 1) * right
    lower = at(top + 1, left) * (1 - right) + at(top + 1, left + 1) * right
    return (upper * (1 - down) + lower * down).astype(images.dtype)


def _rounded(value: Any) -> Any:
    """To the nearest, halves away from zero."""
    return jnp.sign(value) * jnp.floor(jnp.abs(value) + 0.5)
