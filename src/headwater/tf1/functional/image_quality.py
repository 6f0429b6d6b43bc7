"""Similarity of images, image gradients, and conversions of colour models (``tf.image``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, convolution, linalg, math, nn, reductions
from headwater.tf1.functional.checks import assert_equal, assert_greater_equal
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.functional.images import convert_image_dtype, pad_to_bounding_box
from headwater.tf1.functional.resizing import ResizeMethod, resize_images

# Likeness ---------------------------------------------------------------------------------------------------------


def _pair(first: TensorLike, second: TensorLike) -> tuple[Tensor, Tensor]:
    """Two images of one shape and type.

    Raises:
      ValueError: their shapes or types are known to differ, or have less than three dimensions.
    """
    a, b = convert_to_tensor(first), convert_to_tensor(second)
    for tensor in (a, b):
        if tensor.dims is not None and len(tensor.dims) < 3:
            raise ValueError(f"images must have at least 3 dimensions, not shape {tensor.shape}")
    a.shape[-3:].assert_is_compatible_with(b.shape[-3:])
    checks = [assert_equal(arrays.shape(a)[-3:], arrays.shape(b)[-3:])]
    return with_dependencies(checks, a), b


def _as_float(value: Tensor, like: Tensor) -> Tensor:
    """Converts ``value`` from the range of the image type of ``like`` to the range of float images."""
    return convert_image_dtype(math.cast(value, like.dtype), dtypes.float32)


def psnr(a: TensorLike, b: TensorLike, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of each pair of images: 10 log₁₀(max_val² / mean squared difference), in dB.

    Args:
      max_val: the difference between the largest and the smallest value that pixels can have.
    """
    with name_scope(name, "PSNR", [a, b]):
        a, b = _pair(a, b)
        most = _as_float(max_val, a)
        a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        error = reductions.reduce_mean(math.squared_difference(a, b), [-3, -2, -1])
        decibels = 10 / np.log(10)
        return math.subtract(2 * decibels * math.log(most), decibels * math.log(error), name="psnr")


def _window(size: int, sigma: float) -> Any:
    """Gaussian weights [size, size] with sum 1."""
    places = np.arange(size, dtype=np.float32) - np.float32((size - 1) / 2)
    line = -np.square(places) / np.float32(2 * sigma**2)
    weights = np.exp(line[:, None] + line)
    return (weights / weights.sum()).astype(np.float32)


def _ssim_per_channel(
    a: Tensor, b: Tensor, most: Tensor, size: int, sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """The mean over windows of structural similarity, and of its part of contrast and structure: [..., channels]."""
    for tensor in (a, b):
        if any(side is not None and side < size for side in (tensor.dims or ())[-3:-1]):
            raise ValueError(f"images of shape {tensor.shape} are smaller than the window, {size}")
    sizes = arrays.shape(a)
    channels = (a.dims or (None,))[-1]
    kernel = _window(size, sigma)[:, :, None, None]
    tiled = arrays.tile(kernel, [1, 1, sizes[-1] if channels is None else channels, 1])
    checks = [assert_greater_equal(sizes[-3:-1], size)]

    def smooth(x: Tensor) -> Tensor:
        flat = arrays.reshape(x, arrays.concat([[-1], arrays.shape(x)[-3:]], 0))
        y = convolution.depthwise_conv2d(flat, tiled, [1, 1, 1, 1], "VALID")
        return arrays.reshape(y, arrays.concat([arrays.shape(x)[:-3], arrays.shape(y)[1:]], 0))

    c1, c2 = math.square(k1 * most), math.square(k2 * most)
    a = with_dependencies(checks, a)
    mean_a, mean_b = smooth(a), smooth(b)
    shared, alone = mean_a * mean_b * 2.0, math.square(mean_a) + math.square(mean_b)
    luminance = (shared + c1) / (alone + c1)
    both, squares = smooth(a * b) * 2.0, smooth(math.square(a) + math.square(b))
    structure = (both - shared + c2) / (squares - alone + c2)
    axes = [-3, -2]
    return reductions.reduce_mean(luminance * structure, axes), reductions.reduce_mean(structure, axes)


def ssim(
    img1: TensorLike,
    img2: TensorLike,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of each pair of images, at most 1.

    Wang et al., Image quality assessment: from error visibility to structural similarity, 2004.

    Args:
      max_val: the difference between the largest and the smallest value that pixels can have.
      filter_size, filter_sigma: of the Gaussian window.
    """
    with name_scope(None, "SSIM", [img1, img2]):
        a, b = _pair(img1, img2)
        most = _as_float(max_val, a)
        a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        value, _ = _ssim_per_channel(a, b, most, filter_size, filter_sigma, k1, k2)
        return reductions.reduce_mean(value, [-1])


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Any = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """`ssim` at several scales, each half of the one before, multiplied with powers.

    Wang et al., Multiscale structural similarity for image quality assessment, 2003.

    Args:
      power_factors: the power of each scale, the full one first.
    """
    with name_scope(None, "MS-SSIM", [img1, img2]):
        a, b = _pair(img1, img2)
        most = _as_float(max_val, a)
        a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        factors = list(power_factors)
        parts: list[Tensor] = []
        for scale in range(len(factors)):
            if scale:
                a, b = _halved(a), _halved(b)
            value, structure = _ssim_per_channel(a, b, most, filter_size, filter_sigma, k1, k2)
            parts.append(nn.relu(value if scale == len(factors) - 1 else structure))
        stacked = arrays.stack(parts, -1)
        return reductions.reduce_mean(reductions.reduce_prod(math.pow(stacked, factors), [-1]), [-1])


def _halved(image: Tensor) -> Tensor:
    """Halves an image by the mean of four pixels; repeats an odd last row or column."""
    shape = arrays.shape(image)
    flat = arrays.reshape(image, arrays.concat([[-1], shape[-3:]], 0))
    odd = math.floormod(shape[-3:-1], 2)
    pads = arrays.stack([[0, 0], arrays.stack([0, odd[0]]), arrays.stack([0, odd[1]]), [0, 0]])
    half = convolution.avg_pool(arrays.pad(flat, pads, "SYMMETRIC"), 2, 2, "VALID")
    return arrays.reshape(half, arrays.concat([shape[:-3], arrays.shape(half)[1:]], 0))


# Change -----------------------------------------------------------------------------------------------------------


def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """The differences of each pixel to the one below, and to the one right of it; 0 at the end.

    Raises:
      ValueError: ``image`` does not have four dimensions.
    """
    image = convert_to_tensor(image)
    if image.dims is None or len(image.dims) != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {image.shape}.")
    down, right = image[:, 1:] - image[:, :-1], image[:, :, 1:] - image[:, :, :-1]
    return (
        arrays.concat([down, arrays.zeros_like(image[:, :1])], 1),
        arrays.concat([right, arrays.zeros_like(image[:, :, :1])], 2),
    )


def sobel_edges(image: TensorLike) -> Tensor:
    """Sobel's filters for changes downwards and to the right: [batch, height, width, channels, 2]."""
    image = convert_to_tensor(image)
    channels = (image.dims or (None,) * 4)[3]
    count = arrays.shape(image)[3] if channels is None else channels
    down = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], np.float32)
    kernels = arrays.tile(np.stack([down, down.T], -1)[:, :, None], [1, 1, count, 1])
    padded = arrays.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    edges = convolution.depthwise_conv2d(padded, kernels, [1, 1, 1, 1], "VALID")
    return arrays.reshape(edges, arrays.concat([arrays.shape(image), [2]], 0))


def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the absolute differences of neighbouring pixels, of each image.

    Raises:
      ValueError: ``images`` has neither three nor four dimensions.
    """
    with name_scope(name, "total_variation"):
        images = convert_to_tensor(images)
        rank = images.shape.ndims
        if rank not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        if rank == 3:
            steps, axes = (images[1:] - images[:-1], images[:, 1:] - images[:, :-1]), None
        else:
            steps, axes = (images[:, 1:] - images[:, :-1], images[:, :, 1:] - images[:, :, :-1]), [1, 2, 3]
        down, right = (reductions.reduce_sum(math.abs(step), axes) for step in steps)
        return down + right


# Colour -----------------------------------------------------------------------------------------------------------

_YIQ = np.array([[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]])
_YUV = np.array([[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]])


def _mixed(images: TensorLike, weights: TensorLike) -> Tensor:
    """Multiplies each pixel's channels by a matrix."""
    images = convert_to_tensor(images, name="images")
    kernel = convert_to_tensor(weights, images.dtype.base_dtype, name="kernel")
    rank = images.shape.ndims
    return linalg.tensordot(images, kernel, [[(rank or 1) - 1], [0]])


# Rounded as in TensorFlow.
_FROM_YIQ = np.array([[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]])


def rgb_to_yiq(images: TensorLike) -> Tensor:
    """Luma and the two colour differences of American television, from red, green and blue."""
    return _mixed(images, _YIQ)


def yiq_to_rgb(images: TensorLike) -> Tensor:
    """The reverse of `rgb_to_yiq`."""
    return _mixed(images, _FROM_YIQ)


def rgb_to_yuv(images: TensorLike) -> Tensor:
    """Luma and the two colour differences of European television, from red, green and blue."""
    return _mixed(images, _YUV)


def yuv_to_rgb(images: TensorLike) -> Tensor:
    """The reverse of `rgb_to_yuv`."""
    return _mixed(images, np.linalg.inv(_YUV))


def adjust_gamma(image: TensorLike, gamma: Any = 1, gain: TensorLike = 1) -> Tensor:
    """gain x^gamma, x and the result in [0, 1]; integers are converted there and back.

    Raises:
      ValueError: ``gamma`` is negative.
    """
    with name_scope(None, "adjust_gamma", [image, gamma, gain]):
        image = convert_to_tensor(image, name="image")
        own = image.dtype.base_dtype
        flat = image if own in (dtypes.float16, dtypes.float32) else convert_image_dtype(image, dtypes.float32)
        if not isinstance(gamma, Tensor) and gamma < 0:
            raise ValueError("Gamma should be a non-negative real number.")
        changed = gain * math.pow(flat, math.cast(gamma, flat.dtype))
        return convert_image_dtype(changed, own, saturate=True)


# Size -------------------------------------------------------------------------------------------------------------


def resize_image_with_pad(
    image: TensorLike,
    target_height: int,
    target_width: int,
    method: int | str = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """Resizes to fit the target's size with the same aspect ratio, padded with zeros.

    Raises:
      ValueError: a size is not positive, or ``image`` has neither three nor four dimensions.
    """
    with name_scope(None, "resize_image_with_pad", [image]):
        tensor = convert_to_tensor(image, name="image")
        if tensor.dims is None or len(tensor.dims) not in (3, 4):
            raise ValueError("'image' must have either 3 or 4 dimensions.")
        if target_height <= 0 or target_width <= 0:
            raise ValueError("target_height and target_width must be > 0.")
        sides = tensor.dims[-3:-1]
        if None in sides:
            raise ValueError("resize_image_with_pad needs an image whose height and width are known")
        height, width = (float(side or 0) for side in sides)
        ratio = max(height / target_height, width / target_width)
        rows, columns = int(height / ratio), int(width / ratio)
        above = max(0, int((target_height - height / ratio) / 2))
        beside = max(0, int((target_width - width / ratio) / 2))
        resized = resize_images(tensor, [rows, columns], method, align_corners)
        return pad_to_bounding_box(resized, above, beside, target_height, target_width)
