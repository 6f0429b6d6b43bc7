"""Transformations of images (TensorFlow 1.15's ``tf.image``): flips, crops, padding, colours.

Images are [height, width, channels], or [batch, height, width, channels].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater import dtypes
from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, linalg, math, random, reductions
from headwater.tf1.functional.apply import one


def _image(image: TensorLike) -> Tensor:
    """Converts ``image`` to a tensor of three or four dimensions.

    Raises:
      ValueError: it has the wrong number of dimensions.
    """
    tensor = convert_to_tensor(image, name="image")
    if tensor.dims is not None and len(tensor.dims) not in (3, 4):
        raise ValueError(f"'image' (shape {tensor.shape}) must have either 3 or 4 dimensions.")
    return tensor


def _sizes(image: Tensor) -> tuple[Any, Any]:
    """Returns height and width: numbers if they are known, else tensors."""
    known = image.dims
    axis = -3
    sizes = arrays.shape(image)
    found = [(known[i] if known is not None and known[i] is not None else sizes[i]) for i in (axis, axis + 1)]
    return found[0], found[1]


# Flips and rotations -------------------------------------------------------------------------------------------------


def flip_left_right(image: TensorLike) -> Tensor:
    """Flips images horizontally."""
    tensor = _image(image)
    return arrays.reverse(tensor, [len(tensor.dims or (0, 0, 0)) - 2])


def flip_up_down(image: TensorLike) -> Tensor:
    """Flips images vertically."""
    tensor = _image(image)
    return arrays.reverse(tensor, [len(tensor.dims or (0, 0, 0)) - 3])


def _random_flip(flip: Callable[[Tensor], Tensor], image: TensorLike, seed: int | None, scope: str) -> Tensor:
    with name_scope(None, scope, [image]):
        tensor = _image(image)
        batch = len(tensor.dims or ()) == 4
        count: Any = arrays.shape(tensor)[:1] if batch else []
        draw = random.random_uniform(count, 0.0, 1.0, seed=seed)
        chosen = math.less(draw, 0.5)
        if batch:
            return one("Select", chosen, flip(tensor), tensor)
        chosen = math.logical_and(arrays.ones_like(tensor, dtypes.bool_), chosen)
        result = one("Select", chosen, flip(tensor), tensor)
        result.set_shape(tensor.dims)
        return result


def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Tensor:
    """Flips each image horizontally with a probability of 0.5."""
    return _random_flip(flip_left_right, image, seed, "random_flip_left_right")


def random_flip_up_down(image: TensorLike, seed: int | None = None) -> Tensor:
    """Flips each image vertically with a probability of 0.5."""
    return _random_flip(flip_up_down, image, seed, "random_flip_up_down")


def transpose_image(image: TensorLike, name: str | None = None) -> Tensor:
    """Exchanges rows and columns."""
    with name_scope(name, "transpose", [image]):
        tensor = _image(image)
        order = [0, 2, 1, 3] if len(tensor.dims or ()) == 4 else [1, 0, 2]
        return arrays.transpose(tensor, order)


def rot90(image: TensorLike, k: int = 1, name: str | None = None) -> Tensor:
    """Rotates counterclockwise by ``k`` right angles."""
    with name_scope(name, "rot90", [image]):
        tensor = _image(image)
        for _ in range(int(k) % 4):
            tensor = flip_up_down(transpose_image(tensor))
        return tensor


# Crops and padding ---------------------------------------------------------------------------------------------------


def crop_to_bounding_box(
    image: Tensor, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The part that begins at the offsets and has the target's size.

    Raises:
      ValueError: the part is known to exceed the image.
    """
    with name_scope(None, "crop_to_bounding_box", [image]):
        tensor = _image(image)
        height, width = _sizes(tensor)
        for begin, size, whole, what in (
            (offset_width, target_width, width, "width"),
            (offset_height, target_height, height, "height"),
        ):
            if isinstance(begin, int) and begin < 0:
                raise ValueError(f"offset_{what} must be >= 0.")
            if isinstance(size, int) and size <= 0:
                raise ValueError(f"target_{what} must be > 0.")
            if all(isinstance(value, int) for value in (begin, size, whole)) and begin + size > whole:
                raise ValueError(f"{what} must be >= target + offset.")
        batch = len(tensor.dims or ()) == 4
        begins = [*([0] if batch else []), offset_height, offset_width, 0]
        sizes = [*([-1] if batch else []), target_height, target_width, -1]
        result = indexing.slice(tensor, arrays.stack(begins), arrays.stack(sizes))
        _set_known_shape(result, tensor, target_height, target_width)
        return result


def _set_known_shape(result: Tensor, source: Tensor, height: object, width: object) -> None:
    """Sets the known part of the result's static shape."""
    if source.dims is not None:
        space = [size if isinstance(size, int) else None for size in (height, width)]
        result.set_shape([*source.dims[:-3], *space, source.dims[-1]])


def pad_to_bounding_box(
    image: Tensor, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Pads with zeros to the target's size, with the image at the offsets.

    Raises:
      ValueError: the image is known not to fit.
    """
    with name_scope(None, "pad_to_bounding_box", [image]):
        tensor = _image(image)
        height, width = _sizes(tensor)
        after_height = target_height - offset_height - height
        after_width = target_width - offset_width - width
        for value, what in ((offset_height, "offset_height"), (offset_width, "offset_width")):
            if isinstance(value, int) and value < 0:
                raise ValueError(f"{what} must be >= 0")
        for value, what in ((after_height, "height"), (after_width, "width")):
            if isinstance(value, int) and value < 0:
                raise ValueError(f"{what} must be <= target - offset")
        batch = len(tensor.dims or ()) == 4
        flat = [*([0, 0] if batch else []), offset_height, after_height, offset_width, after_width, 0, 0]
        result = arrays.pad(tensor, arrays.reshape(arrays.stack(flat), [4 if batch else 3, 2]))
        _set_known_shape(result, tensor, target_height, target_width)
        return result


def resize_image_with_crop_or_pad(image: TensorLike, target_height: TensorLike, target_width: TensorLike) -> Tensor:
    """Crops, or pads with zeros, around the centre to the target's size.

    Raises:
      ValueError: a target size is not positive.
    """
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        tensor = _image(image)
        for value, what in ((target_width, "target_width"), (target_height, "target_height")):
            if isinstance(value, int) and value <= 0:
                raise ValueError(f"{what} must be > 0.")
        height, width = _sizes(tensor)
        more_height, more_width = target_height - height, target_width - width
        cut = crop_to_bounding_box(
            tensor,
            _most(-more_height // 2, 0),
            _most(-more_width // 2, 0),
            _least(target_height, height),
            _least(target_width, width),
        )
        return pad_to_bounding_box(
            cut, _most(more_height // 2, 0), _most(more_width // 2, 0), target_height, target_width
        )


def _most(a: Any, b: Any) -> Any:
    return math.maximum(a, b) if isinstance(a, Tensor) or isinstance(b, Tensor) else max(a, b)


def _least(a: Any, b: Any) -> Any:
    return math.minimum(a, b) if isinstance(a, Tensor) or isinstance(b, Tensor) else min(a, b)


def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """Returns the central part with this fraction of height and width.

    Raises:
      ValueError: the fraction is not in (0, 1].
    """
    with name_scope(None, "central_crop", [image]):
        tensor = _image(image)
        if central_fraction <= 0.0 or central_fraction > 1.0:
            raise ValueError("central_fraction must be within (0, 1]")
        if central_fraction == 1.0:
            return tensor
        if tensor.dims is None:
            raise ValueError("`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = None.")
        height, width = _sizes(tensor)

        def part(size: Any) -> tuple[Any, Any]:
            if isinstance(size, int):
                begin = int((size - size * central_fraction) / 2)
            else:
                begin = math.to_int32((math.to_float(size) - math.to_float(size) * central_fraction) / 2)
            return begin, size - begin * 2

        (top, rows), (left, columns) = part(height), part(width)
        return crop_to_bounding_box(tensor, top, left, rows, columns)


# Colours -------------------------------------------------------------------------------------------------------------


def convert_image_dtype(image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> Tensor:
    """Converts the element type: floating images are in [0, 1], integer images in [0, largest number of the type]."""
    with name_scope(name, "convert_image", [image]) as scope:
        tensor = convert_to_tensor(image, name="image")
        wanted, own = as_dtype(dtype), tensor.dtype.base_dtype
        if wanted == own:
            return arrays.identity(tensor, name=scope)
        cast = math.saturate_cast if saturate else math.cast
        if own.is_floating and wanted.is_floating:
            return math.cast(tensor, wanted, name=scope)
        if own.is_integer and wanted.is_floating:
            return math.multiply(math.cast(tensor, wanted), 1.0 / own.max, name=scope)
        if own.is_floating:
            return cast(math.multiply(tensor, wanted.max + 0.5), wanted, name=scope)
        if own.max > wanted.max:
            return cast(math.floordiv(tensor, (own.max + 1) // (wanted.max + 1)), wanted, name=scope)
        return math.multiply(cast(tensor, wanted), (wanted.max + 1) // (own.max + 1), name=scope)


def _as_floats(image: TensorLike, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies ``change`` to a floating image; converts other types there and back."""
    tensor = convert_to_tensor(image, name="image")
    own = tensor.dtype.base_dtype
    if own.is_floating:
        return change(tensor)
    return convert_image_dtype(change(convert_image_dtype(tensor, dtypes.float32)), own, saturate=True)


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """Adds ``delta``, between 0 and 1, to every element."""
    with name_scope(None, "adjust_brightness", [image, delta]):
        return _as_floats(image, lambda values: math.add(values, math.cast(delta, values.dtype)))


def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Tensor:
    """(x - mean) ``contrast_factor`` + mean, with the mean of each channel of each image."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]):
        factor = math.cast(contrast_factor, dtypes.float32)
        return _as_floats(images, lambda values: one("AdjustContrastv2", values, factor))


def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Hue, saturation and value, each in [0, 1]."""
    return one("RGBToHSV", images, name=name)


def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Red, green and blue of hue, saturation and value."""
    return one("HSVToRGB", images, name=name)


def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """Turns the hue by ``delta``, between -1 and 1."""

    def change(values: Tensor) -> Tensor:
        hue, saturation, value = arrays.split(rgb_to_hsv(values), 3, -1)
        return hsv_to_rgb(arrays.concat([math.floormod(hue + delta, 1.0), saturation, value], -1))

    with name_scope(name, "adjust_hue", [image]):
        return _as_floats(image, change)


def adjust_saturation(image: TensorLike, saturation_factor: TensorLike, name: str | None = None) -> Tensor:
    """Multiplies the saturation by a factor."""

    def change(values: Tensor) -> Tensor:
        hue, saturation, value = arrays.split(rgb_to_hsv(values), 3, -1)
        stronger = math.minimum(math.maximum(saturation * saturation_factor, 0.0), 1.0)
        return hsv_to_rgb(arrays.concat([hue, stronger, value], -1))

    with name_scope(name, "adjust_saturation", [image]):
        return _as_floats(image, change)


def _require_order(lower: float, upper: float, what: str) -> None:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError(f"lower must be non-negative for {what}.")


def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a random number of [-max_delta, max_delta).

    Raises:
      ValueError: ``max_delta`` is negative.
    """
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, random.random_uniform([], -max_delta, max_delta, seed=seed))


def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_contrast` by a random factor of [lower, upper).

    Raises:
      ValueError: the bounds are not ascending, or ``lower`` is negative.
    """
    _require_order(lower, upper, "random_contrast")
    return adjust_contrast(image, random.random_uniform([], lower, upper, seed=seed))


def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a random number of [-max_delta, max_delta).

    Raises:
      ValueError: ``max_delta`` is not in [0, 0.5].
    """
    if not 0 <= max_delta <= 0.5:
        raise ValueError("max_delta must be in [0, 0.5].")
    return adjust_hue(image, random.random_uniform([], -max_delta, max_delta, seed=seed))


def random_saturation(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_saturation` by a random factor of [lower, upper).

    Raises:
      ValueError: the bounds are not ascending, or ``lower`` is negative.
    """
    _require_order(lower, upper, "random_saturation")
    return adjust_saturation(image, random.random_uniform([], lower, upper, seed=seed))


def per_image_standardization(image: TensorLike) -> Tensor:
    """Returns (x - mean) / max(standard deviation, 1 / √count) of each image, in its own element type.

    For integer images the result is converted with `convert_image_dtype` and clipped to the type's range: cast such
    images to a floating type first.
    """

    def change(tensor: Tensor) -> Tensor:
        axes = [-1, -2, -3]
        mean = reductions.reduce_mean(tensor, axes, keepdims=True)
        away = tensor - mean
        deviation = math.sqrt(reductions.reduce_mean(math.square(away), axes, keepdims=True))
        count = math.cast(reductions.reduce_prod(arrays.shape(tensor)[-3:]), tensor.dtype)
        return math.div(away, math.maximum(deviation, math.rsqrt(count)))

    with name_scope(None, "per_image_standardization", [image]):
        return _as_floats(_image(image), change)


_GREY = (0.2989, 0.5870, 0.1140)


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """Converts to one channel: 0.2989 red + 0.5870 green + 0.1140 blue."""

    def change(values: Tensor) -> Tensor:
        weights = convert_to_tensor(list(_GREY), values.dtype.base_dtype)
        return arrays.expand_dims(linalg.tensordot(values, weights, [[-1], [0]]), -1)

    with name_scope(name, "rgb_to_grayscale", [images]):
        tensor = convert_to_tensor(images, name="images")
        own = tensor.dtype.base_dtype
        return convert_image_dtype(change(convert_image_dtype(tensor, dtypes.float32)), own)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """The one channel three times."""
    with name_scope(name, "grayscale_to_rgb", [images]):
        tensor = convert_to_tensor(images, name="images")
        rank = len(tensor.dims or ())
        if tensor.dims and tensor.dims[-1] not in (None, 1):
            raise ValueError("Last dimension of a grayscale image should be size 1.")
        return arrays.tile(tensor, [*[1] * (rank - 1), 3])
