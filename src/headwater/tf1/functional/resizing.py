"""Resizing of images (TensorFlow 1.15's ``tf.image``).

Images are [height, width, channels], or [batch, height, width, channels].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater import dtypes
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math
from headwater.tf1.functional.apply import one


class ResizeMethod:
    """Interpolation methods."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


def _corners(align: bool, centers: bool) -> dict[str, bool]:
    return {"align_corners": align, "half_pixel_centers": centers}


def resize_bilinear(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resizes to ``size``, [height, width], by bilinear interpolation; float32."""
    return one("ResizeBilinear", images, size, name=name, **_corners(align_corners, half_pixel_centers))


def resize_nearest_neighbor(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resizes to ``size``, [height, width], by the nearest pixel."""
    return one("ResizeNearestNeighbor", images, size, name=name, **_corners(align_corners, half_pixel_centers))


def resize_bicubic(
    images: TensorLike,
    size: TensorLike,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resizes to ``size``, [height, width], by bicubic interpolation; float32."""
    return one("ResizeBicubic", images, size, name=name, **_corners(align_corners, half_pixel_centers))


def resize_area(images: TensorLike, size: TensorLike, align_corners: bool = False, name: str | None = None) -> Tensor:
    """Resizes to ``size``, [height, width], by the mean of the covered area; float32, without a gradient."""
    return one("ResizeArea", images, size, align_corners=align_corners, name=name)


_METHODS: dict[int | str, Callable[..., Tensor]] = {
    ResizeMethod.BILINEAR: resize_bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: resize_nearest_neighbor,
    ResizeMethod.BICUBIC: resize_bicubic,
    ResizeMethod.AREA: resize_area,
    "bilinear": resize_bilinear,
    "nearest": resize_nearest_neighbor,
    "bicubic": resize_bicubic,
    "area": resize_area,
}


def resize_images(
    images: TensorLike,
    size: TensorLike,
    method: int | str = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resizes to ``size``, [height, width]; returns ``images`` if this is known to be their size.

    Args:
      method: one of `ResizeMethod`.
      preserve_aspect_ratio: resize to the largest size with the image's aspect ratio that fits into ``size``.

    Raises:
      ValueError: the method is unknown, or the images or the size have wrong dimensions.
    """

    def resize(batch: Tensor, wanted: Tensor) -> Tensor:
        known: object = constant_value(wanted)
        if known is not None and batch.dims is not None and batch.dims[1:3] == tuple(map(int, known)):
            return batch
        return _method(method)(batch, wanted, align_corners)

    return _resized(images, size, resize, preserve_aspect_ratio, name)


def resize_images_v2(
    images: TensorLike,
    size: TensorLike,
    method: int | str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Like `resize_images`, but positions refer to the centers of square pixels (TensorFlow 2's
    ``tf.image.resize``).

    Raises:
      NotImplementedError: ``antialias`` is true.
      ValueError: see `resize_images`.
    """
    if antialias:
        raise NotImplementedError("tf.image.resize does not smooth images that it shrinks: remove antialias=True")
    function = _method(method)
    centers = {} if function is resize_area else {"half_pixel_centers": True}
    return _resized(images, size, lambda batch, wanted: function(batch, wanted, **centers), preserve_aspect_ratio, name)


def _method(method: int | str) -> Callable[..., Tensor]:
    if method not in _METHODS:
        raise ValueError("Resize method is not implemented.")
    return _METHODS[method]


def _resized(
    images: TensorLike,
    size: TensorLike,
    resize: Callable[[Tensor, Tensor], Tensor],
    preserve_aspect_ratio: bool,
    name: str | None,
) -> Tensor:
    with name_scope(name, "resize", [images, size]):
        tensor = convert_to_tensor(images, name="images")
        if tensor.dims is None:
            raise ValueError("'images' contains no shape.")
        if len(tensor.dims) not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        single = len(tensor.dims) == 3
        batch = arrays.expand_dims(tensor, 0) if single else tensor
        try:
            wanted = convert_to_tensor(size, dtypes.int32, name="size")
        except (TypeError, ValueError):
            raise ValueError("'size' must be a 1-D int32 Tensor") from None
        if wanted.dims is not None and (len(wanted.dims) != 1 or wanted.dims[0] not in (2, None)):
            raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
        if preserve_aspect_ratio:
            wanted = _within(batch, wanted)
        result = resize(batch, wanted)
        return arrays.squeeze(result, [0]) if single else result


def _within(batch: Tensor, size: Tensor) -> Tensor:
    """Returns the largest size with the images' aspect ratio that fits into ``size``."""
    shape = batch.dims or ()
    current: Any = shape[1:3] if None not in shape[1:3] else arrays.shape(batch)[1:3]
    wanted = constant_value(size)
    if wanted is not None and not isinstance(current, Tensor):
        # As TensorFlow computes it, in float32.
        own = dtypes.float32.numpy_dtype.type
        share = min(own(wanted[0]) / own(current[0]), own(wanted[1]) / own(current[1]))
        return convert_to_tensor([int((share * own(side)).round()) for side in current], dtypes.int32, name="size")
    sides = math.cast(current, dtypes.float32)
    ratios = math.divide(math.cast(size, dtypes.float32), sides)
    share = math.minimum(ratios[0], ratios[1])
    return math.cast(math.round(math.multiply(share, sides)), dtypes.int32)
