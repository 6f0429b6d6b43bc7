"""Transformations of images of shape [batch, height, width, channels]."""

from __future__ import annotations

from typing import Any

from headwater.errors import FailedPreconditionError
from headwater.graph.ops.common import as_ints
from headwater.graph.ops.define import pure
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp


def _like_first(inference: Inference) -> list[Spec]:
    first = inference.inputs[0]
    return [Spec(first.dtype.base_dtype, first.dims)]


@pure("AdjustContrastv2", inputs="images:T|floating, contrast_factor:float32", infer=_like_first)
def adjust_contrast(images: jax.Array, contrast_factor: jax.Array) -> jax.Array:
    """(x - mean) factor + mean, with the mean of each channel of each image."""
    mean = jnp.mean(images, axis=(-3, -2), keepdims=True)
    return (images - mean) * contrast_factor.astype(images.dtype) + mean


@pure("RGBToHSV", inputs="images:T|floating", infer=_like_first)
def rgb_to_hsv(images: jax.Array) -> jax.Array:
    """Hue, saturation and value, each in [0, 1]."""
    if images.shape[-1] != 3:
        said = f"input must have 3 channels but input only has {images.shape[-1]} channels."
        raise FailedPreconditionError(said)
    red, green, blue = images[..., 0], images[..., 1], images[..., 2]
    # If channels are equal, only one of them gets the gradient, as in TensorFlow: the first of the highest channels,
    # and the last of the lowest.
    most_red, more_green = (red >= green) & (red >= blue), green >= blue
    value = jnp.where(most_red, red, jnp.where(more_green, green, blue))
    least_blue, less_green = (blue <= red) & (blue <= green), green <= red
    spread = value - jnp.where(least_blue, blue, jnp.where(less_green, green, red))
    saturation = jnp.where(value > 0, spread / jnp.where(value > 0, value, 1), 0)
    norm = 1 / (6 * jnp.where(spread > 0, spread, 1))
    hue = jnp.where(
        most_red,
        norm * (green - blue),
        jnp.where(more_green, norm * (blue - red) + 2 / 6, norm * (red - green) + 4 / 6),
    )
    hue = jnp.where(spread > 0, hue, 0)
    return jnp.stack([jnp.where(hue < 0, hue + 1, hue), saturation, value], -1)


@pure("HSVToRGB", inputs="images:T|floating", infer=_like_first)
def hsv_to_rgb(images: jax.Array) -> jax.Array:
    """Red, green and blue of hue, saturation and value."""
    hue, saturation, value = images[..., 0], images[..., 1], images[..., 2]
    wheel = hue * 6
    parts = [jnp.abs(wheel - 3) - 1, 2 - jnp.abs(wheel - 2), 2 - jnp.abs(wheel - 4)]
    return jnp.stack([((jnp.clip(part, 0, 1) - 1) * saturation + 1) * value for part in parts], -1)


def _of_output_shape(inference: Inference) -> list[Spec]:
    images, size = inference.inputs[0], inference.constant(2)
    if size is not None and size.shape != (2,):
        raise ValueError(f"Dimension must be 2 but is {size.size} for the size of {inference.op_type!r}")
    height, width = (None, None) if size is None else (int(size[0]), int(size[1]))
    batch, channels = (None, None) if images.dims is None else (images.dims[0], images.dims[-1])
    return [Spec(images.dtype.base_dtype, (batch, height, width, channels))]


@pure(
    "ImageProjectiveTransformV2",
    inputs="images:dtype|real, transforms:float32, output_shape:int32",
    static=(2,),
    infer=_of_output_shape,
    differentiable=False,
)
def projective_transform(
    images: jax.Array, transforms: jax.Array, output_shape: HostArray, *, interpolation: str = "NEAREST"
) -> jax.Array:
    """Takes each pixel (x, y) from ((a₀ x + a₁ y + a₂) / k, (b₀ x + b₁ y + b₂) / k), k = c₀ x + c₁ y + 1; outside of
    the image, pixels are 0.

    Args:
      transforms: a row of eight numbers for each image, or one row for all images.
      output_shape: height and width of the results.
    """
    images = jnp.asarray(images)
    height, width = images.shape[1:3]
    rows, columns = as_ints(output_shape)
    numbers = jnp.broadcast_to(transforms, (images.shape[0], 8))[:, :, None, None]
    y, x = (grid.astype(jnp.float32) for grid in jnp.meshgrid(jnp.arange(rows), jnp.arange(columns), indexing="ij"))
    k = numbers[:, 6] * x + numbers[:, 7] * y + 1
    from_x = (numbers[:, 0] * x + numbers[:, 1] * y + numbers[:, 2]) / k
    from_y = (numbers[:, 3] * x + numbers[:, 4] * y + numbers[:, 5]) / k

    def at(rows: jax.Array, columns: Any) -> jax.Array:
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


def _rounded(value: jax.Array) -> jax.Array:
    """Rounds to the nearest integer, halves away from zero."""
    return jnp.sign(value) * jnp.floor(jnp.abs(value) + 0.5)
