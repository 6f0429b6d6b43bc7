"""Host operations that decode and encode image files with Pillow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.data.io.pillow import pillow
from headwater.dtypes import DType, bool_, int32, string, uint8, uint16
from headwater.errors import InvalidArgumentError, UnimplementedError
from headwater.graph.ops.define import fixed, host
from headwater.graph.registry import HostArray, Inference, Spec

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_GREY_OF_PNG = np.array([6968, 23434, 2366], np.uint32)
"""The weights of red, green and blue in libpng's conversion to grey, in 1/32768."""
_JPEG = b"\xff\xd8\xff"


def _open(contents: bytes, formats: Sequence[str]) -> Any:
    images = pillow()
    try:
        image = images.open(io.BytesIO(contents), formats=list(formats))
        image.load()
    except (images.UnidentifiedImageError, OSError, SyntaxError, ValueError, images.DecompressionBombError) as error:
        what = " or ".join(formats)
        raise InvalidArgumentError(f"Invalid {what} data, size {len(contents)}: {error}") from None
    return image


def _pixels(image: Any, channels: int, dtype: DType = uint8) -> HostArray:
    """Returns the pixels, (height, width, channels); the image's own number of channels if ``channels`` is 0."""
    if image.mode.startswith("I"):
        grey = np.asarray(image).astype(np.uint16)[:, :, None]
        if dtype == uint8:
            grey = (grey >> 8).astype(np.uint8)
        return grey if channels < 2 else np.repeat(grey, channels, axis=2)
    if not channels:
        channels = len(image.getbands())
        if image.mode == "P":
            channels = 4 if "transparency" in image.info else 3
    if channels == 1 and image.format == "PNG" and image.mode != "L":
        colours = np.asarray(image.convert("RGB")).astype(np.uint32)
        pixels = (colours @ _GREY_OF_PNG >> 15).astype(np.uint8)
    else:
        pixels = np.asarray(image.convert(_MODES.get(channels, "RGB")))
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return pixels.astype(np.uint16) * np.uint16(257) if dtype == uint16 else pixels


def _channels(attrs: Any) -> int | None:
    return attrs.get("channels") or None


def _image_spec(inference: Inference) -> Sequence[Spec]:
    dtype = inference.attrs.get("dtype", uint8)
    return [Spec(dtype, (None, None, _channels(inference.attrs)))]


def _check_channels(channels: int, allowed: Sequence[int]) -> None:
    if channels not in allowed:
        raise InvalidArgumentError(f"channels must be one of {list(allowed)}, got {channels}")


@host("DecodeJpeg", infer=_image_spec, inputs="contents:string")
def decode_jpeg(
    contents: HostArray,
    *,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str = "",
) -> HostArray:
    if dct_method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise InvalidArgumentError("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}")
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    if not fancy_upscaling or try_recover_truncated or acceptable_fraction != 1:
        # Graphs built by other programs use these attributes.
        raise UnimplementedError(
            "DecodeJpeg has no fancy_upscaling=False, try_recover_truncated or acceptable_fraction"
        )
    _check_channels(channels, (0, 1, 3))
    image = _open(contents.item(), ("JPEG", "PNG", "GIF", "BMP"))
    if ratio != 1:
        image = image.reduce(ratio)
    return _pixels(image, channels)


@host("DecodeAndCropJpeg", infer=_image_spec, inputs="contents:string, crop_window:int32")
def decode_and_crop_jpeg(
    contents: HostArray,
    crop_window: HostArray,
    *,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str = "",
) -> HostArray:
    whole = decode_jpeg(
        contents,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
    )
    top, left, height, width = (int(value) for value in crop_window)
    if min(top, left) < 0 or height < 1 or width < 1 or top + height > whole.shape[0] or left + width > whole.shape[1]:
        raise InvalidArgumentError(f"crop window {crop_window.tolist()} is not inside {whole.shape[:2]}")
    return whole[top : top + height, left : left + width]


@host("DecodePng", infer=_image_spec, inputs="contents:string")
def decode_png(contents: HostArray, *, channels: int = 0, dtype: DType = uint8) -> HostArray:
    _check_channels(channels, (0, 1, 3, 4))
    return _pixels(_open(contents.item(), ("PNG", "JPEG", "GIF", "BMP")), channels, dtype)


@host("DecodeBmp", infer=_image_spec, inputs="contents:string")
def decode_bmp(contents: HostArray, *, channels: int = 0) -> HostArray:
    _check_channels(channels, (0, 1, 3, 4))
    return _pixels(_open(contents.item(), ("BMP",)), channels)


def _frames(image: object, mode: str = "RGB") -> HostArray:
    return np.stack([np.asarray(frame.convert(mode)) for frame in pillow("ImageSequence").Iterator(image)])


def _webp_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(uint8, (None, None, None, _channels(inference.attrs)))]


@host("DecodeWebP", infer=_webp_spec, inputs="contents:string")
def decode_webp(contents: HostArray, *, channels: int = 0, dtype: DType = uint8) -> HostArray:
    """Decodes a WebP image to (frames, height, width, channels)."""
    if dtype != uint8:
        raise InvalidArgumentError(f"DecodeWebP returns uint8, not {dtype.name}")
    if channels not in (0, 3, 4):
        raise InvalidArgumentError("WebP only supports 3 or 4 channels")
    image = _open(contents.item(), ("WEBP",))
    own = 4 if "A" in image.mode else 3
    if channels not in (0, own):
        raise InvalidArgumentError("Number of channels requested does not match input")
    return _frames(image, _MODES[own])


@host("DecodeGif", infer=fixed(uint8, (None, None, None, 3)), inputs="contents:string")
def decode_gif(contents: HostArray) -> HostArray:
    return _frames(_open(contents.item(), ("GIF",)))


def _any_image_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs.get("dtype", uint8), None)]


@host("DecodeImage", infer=_any_image_spec, inputs="contents:string")
def decode_image(
    contents: HostArray, *, channels: int = 0, dtype: DType = uint8, expand_animations: bool = True
) -> Any:
    """Decodes an image of any format to (height, width, channels). A GIF yields all frames, with the frame as first
    dimension.

    Pixels of a floating type are between 0 and 1.
    """
    image = _open(contents.item(), ("JPEG", "PNG", "GIF", "BMP"))
    if image.format == "GIF":
        if channels in (1, 4):
            raise InvalidArgumentError("channels must be in (None, 0, 3) when decoding GIF images")
        pixels = _frames(image)
        pixels = pixels if expand_animations else pixels[0]
    else:
        pixels = _pixels(image, channels, uint16 if dtype == uint16 else uint8)
    if dtype.is_floating:
        return (pixels.astype(np.float32) / 255).astype(dtype.numpy_dtype)
    return pixels


def _encoded(image: Any, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _as_image(pixels: HostArray, allowed: Sequence[int]) -> Any:
    if pixels.ndim != 3:
        raise InvalidArgumentError(f"image must be 3-dimensional, not of shape {pixels.shape}")
    _check_channels(pixels.shape[2], allowed)
    plain = np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    if plain.dtype == np.uint16 and plain.ndim == 3:
        plain = (plain >> 8).astype(np.uint8)
    return pillow().fromarray(plain)


@host("EncodeJpeg", infer=fixed(string, ()), inputs="image:uint8")
def encode_jpeg(
    image: HostArray,
    *,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
) -> Any:
    del density_unit, xmp_metadata
    wanted = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}.get(format)
    if wanted is None:
        raise InvalidArgumentError(f"format must be '', grayscale or rgb, got {format}")
    return _encoded(
        _as_image(image, wanted),
        "JPEG",
        quality=quality,
        progressive=progressive,
        optimize=optimize_size,
        subsampling=2 if chroma_downsampling else 0,
        dpi=(x_density, y_density),
    )


@host("EncodePng", infer=fixed(string, ()), inputs="image:T")
def encode_png(image: HostArray, *, compression: int = -1) -> bytes:
    if not -1 <= compression <= 9:
        raise InvalidArgumentError(f"compression should be in [-1,9], got {compression}")
    return _encoded(_as_image(image, (1, 2, 3, 4)), "PNG", compress_level=6 if compression < 0 else compression)


def _shape_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs.get("output_type", int32), (3,))]


@host("ExtractJpegShape", infer=_shape_spec, inputs="contents:string")
def extract_jpeg_shape(contents: HostArray, *, output_type: DType = int32) -> HostArray:
    image = _open(contents.item(), ("JPEG",))
    return np.array([image.height, image.width, len(image.getbands())], output_type.numpy_dtype)


@host("IsJpeg", infer=fixed(bool_, ()), inputs="contents:string")
def is_jpeg(contents: HostArray) -> Any:
    """Returns whether the data start like a JPEG file."""
    return np.bool_(contents.item()[:3] == _JPEG)
