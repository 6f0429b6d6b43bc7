"""Summaries as messages, computed from NumPy arrays like TensorFlow's summary operations.

Each function returns a ``Summary``. Values, names and encodings were determined from TensorFlow 1.15's output.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from headwater.data.io.pillow import pillow
from headwater.data.io.tensor_proto import make_tensor_proto
from headwater.errors import InvalidArgumentError
from headwater.tensorboard_protos import summary_pb2

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

_FLOAT_MAX: Final = float(np.finfo(np.float64).max)
_COLOURS: Final = (1, 3, 4)
_ZERO_IMAGE: Final = 1e-6
"""An image with only smaller values is shown as zeros."""

RED: Final = (255, 0, 0, 255)
"""Colour of pixels that are not finite."""


def _bucket_limits() -> npt.NDArray[np.float64]:
    """Returns upper bounds of the buckets of a histogram: from 1e-12 to 1e20 by factors of 1.1, the same below zero."""
    positive: list[float] = []
    limit = 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    positive.append(_FLOAT_MAX)
    return np.array([*(-limit for limit in reversed(positive)), 0.0, *positive])


_SORTED_AS_THEY_ARE: Final = "fd"
_LIMITS: Final = _bucket_limits()


def scalar(tags: npt.ArrayLike, values: npt.ArrayLike) -> Any:
    """Stores one value for each tag.

    Args:
      tags: names, bytes or text.
      values: numbers, of the shape of ``tags``.

    Raises:
      InvalidArgumentError: the shapes differ.
    """
    names = np.asarray(tags, object)
    numbers = np.asarray(values)
    if names.shape != numbers.shape:
        raise InvalidArgumentError(f"tags and values not the same shape: {list(names.shape)} != {list(numbers.shape)}")
    summary = summary_pb2.Summary()
    for name, number in zip(names.ravel(), numbers.ravel(), strict=True):
        summary.value.add(tag=_text(name), simple_value=float(number))
    return summary


def histogram(tag: str | bytes, values: npt.ArrayLike) -> Any:
    """Counts the values in buckets.

    A value is counted in the first bucket with a greater limit. Of adjacent empty buckets only the last is kept.

    Args:
      tag: the name.
      values: numbers of any shape; may be empty.

    Raises:
      InvalidArgumentError: a value is not finite.
    """
    array = np.asarray(values).ravel()
    ordered = np.sort(array if array.dtype.char in _SORTED_AS_THEY_ARE else array.astype(np.float64))
    if ordered.size and np.isnan(ordered[-1]):
        raise InvalidArgumentError(f"Nan in summary histogram for: {_text(tag)}")
    if ordered.size and not (np.isfinite(ordered[0]) and np.isfinite(ordered[-1])):
        raise InvalidArgumentError(f"Infinity in summary histogram for: {_text(tag)}")
    below = np.searchsorted(ordered, _LIMITS, side="left")
    below[-1] = ordered.size
    counts = np.diff(below, prepend=0)
    kept = (counts > 0) | np.append(counts[1:] > 0, True)
    summary = summary_pb2.Summary()
    histo = summary.value.add(tag=_text(tag)).histo
    histo.min = float(ordered[0]) if ordered.size else _FLOAT_MAX
    histo.max = float(ordered[-1]) if ordered.size else -_FLOAT_MAX
    histo.num = ordered.size
    with np.errstate(over="ignore"):
        histo.sum = float(ordered.sum(dtype=np.float64))
        histo.sum_squares = float(np.square(ordered, dtype=np.float64).sum())
    histo.bucket_limit.extend(_LIMITS[kept].tolist())
    histo.bucket.extend(counts[kept].astype(np.float64).tolist())
    return summary


def image(tag: str | bytes, tensor: HostArray, max_images: int = 3, bad_color: npt.ArrayLike = RED) -> Any:
    """Encodes pictures as PNG, named ``tag/image/0`` and so on; ``tag/image`` when ``max_images`` is 1.

    Bytes are used unchanged. Other numbers are scaled for each picture: its greatest value becomes 255; if it has
    negative ones, 0 becomes 128 and the greatest magnitude is mapped to a distance of 127 from there.

    Args:
      tag: the name.
      tensor: (pictures, height, width, channels), with 1 (grey), 3 (RGB) or 4 (RGBA) channels.
      max_images: maximum number of pictures, at least 1.
      bad_color: the colour of pixels that are not finite, one number from 0 to 255 for each channel.

    Raises:
      InvalidArgumentError: ``tensor`` has the wrong shape, or ``bad_color`` has too few numbers.
    """
    if tensor.ndim != 4 or tensor.shape[3] not in _COLOURS:
        raise InvalidArgumentError(f"Tensor must be 4-D with last dim 1, 3, or 4, not {_shape(tensor)}")
    colour = np.asarray(bad_color, np.uint8).ravel()[: tensor.shape[3]]
    if colour.size < tensor.shape[3]:
        raise InvalidArgumentError(f"expected bad_color to have {tensor.shape[3]} channels, has {colour.size}")
    summary = summary_pb2.Summary()
    for name, picture in _numbered(f"{_text(tag)}/image", tensor, max_images):
        encoded = picture if picture.dtype == np.uint8 else _normalised(picture, colour)
        height, width, channels = picture.shape
        summary.value.add(tag=name).image.CopyFrom(
            summary_pb2.Summary.Image(
                height=height, width=width, colorspace=channels, encoded_image_string=_encode_png(encoded)
            )
        )
    return summary


def _normalised(picture: HostArray, bad_colour: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    values = picture if picture.dtype == np.float64 else picture.astype(np.float32, copy=False)
    finite = np.isfinite(values).all(axis=2)
    good = values[finite]
    least = np.float32(good.min(initial=0))
    greatest = max(np.float32(good.max(initial=0)), -least)
    offset, span = (np.float32(128), np.float32(127)) if least < 0 else (np.float32(0), np.float32(255))
    scale = np.float32(0) if greatest < _ZERO_IMAGE else span / greatest
    result = np.empty(picture.shape, np.uint8)
    result[finite] = (good * scale + offset).astype(np.uint8)
    result[~finite] = bad_colour
    return result


def _encode_png(picture: npt.NDArray[np.uint8]) -> bytes:
    if not picture.size:
        raise InvalidArgumentError(f"A picture of shape {_shape(picture)} has no pixels to encode")
    buffer = io.BytesIO()
    pillow().fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture).save(buffer, "PNG")
    return buffer.getvalue()


def audio(tag: str | bytes, tensor: HostArray, sample_rate: float, max_outputs: int = 3) -> Any:
    """Encodes sounds as WAV of 16 bits, named ``tag/audio/0`` and so on; ``tag/audio`` when ``max_outputs`` is 1.

    Args:
      tag: the name.
      tensor: (sounds, frames, channels), or (sounds, frames) for one channel; from -1 to 1.
      sample_rate: frames per second.
      max_outputs: maximum number of sounds, at least 1.

    Raises:
      InvalidArgumentError: ``tensor`` has the wrong shape, or ``sample_rate`` is not positive.
    """
    if tensor.ndim not in (2, 3):
        raise InvalidArgumentError(f"Tensor must be 3-D or 2-D, not {_shape(tensor)}")
    if sample_rate <= 0:
        raise InvalidArgumentError(f"sample_rate must be positive, is {sample_rate}")
    summary = summary_pb2.Summary()
    for name, sound in _numbered(f"{_text(tag)}/audio", tensor.reshape(*tensor.shape[:2], -1), max_outputs):
        frames, channels = sound.shape
        summary.value.add(tag=name).audio.CopyFrom(
            summary_pb2.Summary.Audio(
                sample_rate=sample_rate,
                num_channels=channels,
                length_frames=frames,
                encoded_audio_string=_encode_wav(sound, int(sample_rate)),
                content_type="audio/wav",
            )
        )
    return summary


def _encode_wav(sound: HostArray, rate: int) -> bytes:
    scaled = np.nan_to_num(sound.astype(np.float32)) * np.float32(1 << 15)
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    samples = np.clip(rounded, -(1 << 15), (1 << 15) - 1).astype("<i2").tobytes()
    channels = sound.shape[1]
    frame = 2 * channels
    chunk = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, rate * frame, frame, 16)
    chunk += struct.pack("<4sI", b"data", len(samples))
    return struct.pack("<4sI4s", b"RIFF", 4 + len(chunk) + len(samples), b"WAVE") + chunk + samples


def tensor(tag: str | bytes, value: npt.ArrayLike, summary_metadata: Any = None) -> Any:
    """Stores a whole tensor.

    Args:
      tag: the name.
      value: any array, also of strings.
      summary_metadata: a ``SummaryMetadata`` message or its bytes: selects the plugin of TensorBoard that shows it.
    """
    if not isinstance(summary_metadata, bytes | None):
        summary_metadata = summary_metadata.SerializeToString()
    summary = summary_pb2.Summary()
    added = summary.value.add(tag=_text(tag), tensor=make_tensor_proto(value))
    added.metadata.MergeFromString(summary_metadata or b"")
    return summary


def metadata(summary_metadata: object = None, display_name: str | None = None, description: str | None = None) -> bytes:
    """Returns a serialized ``SummaryMetadata``: a given one, completed by a name and a description for TensorBoard."""
    message = summary_pb2.SummaryMetadata()
    if summary_metadata is not None:
        message.CopyFrom(summary_metadata)
    if display_name is not None:
        message.display_name = display_name
    if description is not None:
        message.summary_description = description
    return message.SerializeToString()


def text_metadata() -> Any:
    """Returns the ``SummaryMetadata`` with which TensorBoard shows a tensor of strings as text."""
    return summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text"))


def text(tag: str | bytes, value: npt.ArrayLike) -> Any:
    """Stores a text, or a table of texts."""
    return tensor(tag, np.asarray(value, object), text_metadata())


def merge(summaries: Iterable[bytes]) -> Any:
    """Merges several serialized summaries.

    Raises:
      InvalidArgumentError: a tag occurs in two of them, or one is not a summary.
    """
    merged = summary_pb2.Summary()
    for packed in summaries:
        try:
            merged.MergeFromString(packed)
        except DecodeError as error:
            raise InvalidArgumentError("Could not parse one of the summary inputs") from error
    seen: set[str] = set()
    for value in merged.value:
        if value.tag in seen:
            raise InvalidArgumentError(f"Duplicate tag {value.tag} found in summary inputs")
        seen.add(value.tag)
    return merged


def _numbered(name: str, batch: HostArray, at_most: int) -> Iterable[tuple[str, HostArray]]:
    """Yields the first elements of a batch with their tags."""
    for index, element in enumerate(batch[:at_most]):
        yield (f"{name}/{index}" if at_most > 1 else name), element


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _shape(array: HostArray) -> str:
    return f"[{','.join(map(str, array.shape))}]"
