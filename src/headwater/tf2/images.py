"""Image functions that differ in TensorFlow 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headwater.dtypes import float32, int32
from headwater.graph.convert import convert_to_tensor
from headwater.tf1.compat import tf as graphs
from headwater.tf1.functional.ragged_dispatch import dispatching
from headwater.tf1.functional.resizing import resize_images_v2
from headwater.tf2.at_once import at_once

resize = at_once(dispatching(resize_images_v2, resize_images_v2.__module__, "resize_images_v2"), "image.resize")


@at_once
def resize_with_pad(
    image: Any, target_height: int, target_width: int, method: Any = "bilinear", antialias: bool = False
) -> Any:
    """Resizes an image without distortion, and pads it with zeros to the size."""
    image = convert_to_tensor(image)
    dims = image.dims
    if dims is None or dims[-3] is None or dims[-2] is None:
        raise ValueError("resize_with_pad needs an image whose height and width are known")
    # TensorFlow computes in float32, which determines how quotients are rounded.
    sizes, target = np.array(dims[-3:-1], np.float32), np.array([target_height, target_width], np.float32)
    whole = sizes / (sizes / target).max()
    height, width = (int(size) for size in whole)
    above, beside = (max(0, int(gap)) for gap in (target - whole) / 2)
    resized = resize_images_v2(image, [height, width], method, antialias=antialias)
    return graphs.image.pad_to_bounding_box(resized, above, beside, target_height, target_width)


def _uniform(seed: Any, low: Any, high: Any, shape: Any = ()) -> Any:
    return graphs.random.stateless_uniform(shape, seed, low, high)


def stateless_random_brightness(image: Any, max_delta: float, seed: Any) -> Any:
    """Changes the brightness by a random number below ``max_delta``, which depends on ``seed`` only."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return graphs.image.adjust_brightness(image, _uniform(seed, -max_delta, max_delta))


def stateless_random_contrast(image: Any, lower: float, upper: float, seed: Any) -> Any:
    """Changes the contrast by a random factor, which depends on ``seed`` only."""
    if not 0 <= lower < upper:
        raise ValueError("upper must be > lower, and lower non-negative.")
    return graphs.image.adjust_contrast(image, _uniform(seed, lower, upper))


def stateless_random_saturation(image: Any, lower: float, upper: float, seed: Any = None) -> Any:
    """Changes the saturation by a random factor, which depends on ``seed`` only."""
    if not 0 <= lower < upper:
        raise ValueError("upper must be > lower, and lower non-negative.")
    return graphs.image.adjust_saturation(image, _uniform(seed, lower, upper))


def stateless_random_hue(image: Any, max_delta: float, seed: Any) -> Any:
    """Changes the hue by a random number below ``max_delta``, which depends on ``seed`` only."""
    if not 0 <= max_delta <= 0.5:
        raise ValueError("max_delta must be between 0 and 0.5.")
    return graphs.image.adjust_hue(image, _uniform(seed, -max_delta, max_delta))


def _flipped(flip: Callable[[Any], Any], image: Any, seed: Any) -> Any:
    image = convert_to_tensor(image)
    batch = image.shape.ndims == 4
    chosen = _uniform(seed, 0.0, 1.0, graphs.shape(image)[:1] if batch else ()) < 0.5
    return graphs.where_v2(graphs.reshape(chosen, [-1, 1, 1, 1]) if batch else chosen, flip(image), image)


def stateless_random_flip_left_right(image: object, seed: object) -> Any:
    """Mirrors each image with a probability of one half, which depends on ``seed`` only."""
    return _flipped(graphs.image.flip_left_right, image, seed)


def stateless_random_flip_up_down(image: object, seed: object) -> Any:
    """Turns each image upside down with a probability of one half, which depends on ``seed`` only."""
    return _flipped(graphs.image.flip_up_down, image, seed)


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Any:
    """Cuts a part of shape ``size`` at a random position, which depends on ``seed`` only."""
    value, size = convert_to_tensor(value), convert_to_tensor(size, int32)
    room = graphs.shape(value) - size + 1
    part = graphs.random.stateless_uniform(graphs.shape(size), seed)
    start = graphs.cast(graphs.floor(part * graphs.cast(room, float32)), int32)
    return graphs.slice(value, start, size, name=name)


for _function in (
    stateless_random_brightness,
    stateless_random_contrast,
    stateless_random_crop,
    stateless_random_flip_left_right,
    stateless_random_flip_up_down,
    stateless_random_hue,
    stateless_random_saturation,
):
    globals()[_function.__name__] = at_once(_function, f"image.{_function.__name__}")
