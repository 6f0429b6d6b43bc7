"""Functions that decode and encode image formats (TensorFlow 1.15's ``tf.image.decode_jpeg`` and others)."""

from __future__ import annotations

from headwater.dtypes import DTypeLike, as_dtype, int32, uint8
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.apply import one


def decode_jpeg(
    contents: TensorLike,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decodes a JPEG image to uint8 (height, width, channels).

    Args:
      channels: 1 for grey, 3 for colours, 0 for the image's number of channels.
      ratio: 1, 2, 4 or 8: factor by which to reduce the image.
      dct_method: ``INTEGER_FAST`` or ``INTEGER_ACCURATE``; the latter is always used.
      fancy_upscaling, try_recover_truncated, acceptable_fraction: only the defaults are supported.

    Raises:
      ValueError: one of the last three is not the default.
    """
    decoding = (fancy_upscaling, try_recover_truncated, acceptable_fraction, name)
    return _jpeg("DecodeJpeg", [contents], *decoding, channels=channels, ratio=ratio, dct_method=dct_method)


def _jpeg(
    op_type: str,
    inputs: list[TensorLike],
    fancy: bool,
    recovers: bool,
    fraction: float,
    name: str | None,
    **more: object,
) -> Tensor:
    if not fancy:
        raise ValueError("fancy_upscaling=False is not supported; omit it")
    if recovers or fraction != 1:
        raise ValueError("truncated images are not read: omit try_recover_truncated and acceptable_fraction")
    more |= {"fancy_upscaling": True, "try_recover_truncated": False, "acceptable_fraction": 1.0}
    return one(op_type, *inputs, name=name, **more)


def decode_and_crop_jpeg(
    contents: TensorLike,
    crop_window: TensorLike,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decodes a part of a JPEG image as `decode_jpeg`; ``crop_window`` is its top, left, height and width."""
    decoding = (fancy_upscaling, try_recover_truncated, acceptable_fraction, name)
    settings = {"channels": channels, "ratio": ratio, "dct_method": dct_method}
    return _jpeg("DecodeAndCropJpeg", [contents, crop_window], *decoding, **settings)


def decode_png(contents: TensorLike, channels: int = 0, dtype: DTypeLike = uint8, name: str | None = None) -> Tensor:
    """Decodes a PNG image to uint8 or uint16 (height, width, channels); see `decode_jpeg` for ``channels``."""
    return one("DecodePng", contents, channels=channels or 0, dtype=as_dtype(dtype), name=name)


def decode_bmp(contents: TensorLike, channels: int = 0, name: str | None = None) -> Tensor:
    """Decodes a BMP image to uint8 (height, width, channels)."""
    return one("DecodeBmp", contents, channels=channels, name=name)


def decode_webp(contents: TensorLike, channels: int = 0, dtype: DTypeLike = uint8, name: str | None = None) -> Tensor:
    """Decodes a WebP image to uint8 (frames, height, width, channels); the image must have the required channels."""
    return one("DecodeWebP", contents, channels=channels, dtype=as_dtype(dtype), name=name)


def decode_gif(contents: TensorLike, name: str | None = None) -> Tensor:
    """Decodes a GIF image to uint8 (frames, height, width, 3)."""
    return one("DecodeGif", contents, name=name)


def decode_image(
    contents: TensorLike,
    channels: int | None = None,
    dtype: DTypeLike = uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """Decodes a JPEG, PNG, GIF or BMP image to (height, width, channels); a GIF to (frames, height, width, channels).

    Args:
      dtype: type of the pixels; values of a floating type are between 0 and 1.
      expand_animations: return all frames of a GIF; else the first one, without a dimension for frames.
    """
    settings = {"channels": channels or 0, "dtype": as_dtype(dtype), "expand_animations": expand_animations}
    return one("DecodeImage", contents, **settings, name=name)


def encode_jpeg(
    image: TensorLike,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """Encodes an image, uint8 (height, width, 1 or 3), as JPEG.

    Args:
      format: ``grayscale``, ``rgb``, or empty: by the number of channels.
      quality: 0 to 100.
      x_density, y_density: pixels per inch.
      density_unit, xmp_metadata: accepted for compatibility.
    """
    arguments = dict(locals())
    return one("EncodeJpeg", arguments.pop("image"), **arguments)


def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> Tensor:
    """Encodes an image, uint8 or uint16 (height, width, 1 to 4), as PNG; ``compression`` is -1 (default) or 0 to 9."""
    return one("EncodePng", image, compression=compression, name=name)


def extract_jpeg_shape(contents: TensorLike, output_type: DTypeLike = int32, name: str | None = None) -> Tensor:
    """Height, width and channels of a JPEG image."""
    return one("ExtractJpegShape", contents, output_type=as_dtype(output_type), name=name)


def is_jpeg(contents: TensorLike, name: str | None = None) -> Tensor:
    """Returns whether a string is a JPEG image."""
    return one("IsJpeg", contents, name=name)
