"""``tf.audio``: sound in files."""

from __future__ import annotations

from typing import NamedTuple

from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.apply import apply, one


class DecodedWav(NamedTuple):
    """Content of an audio file.

    Attributes:
      audio: float32 [samples, channels].
      sample_rate: samples in a second, int32.
    """

    audio: Tensor
    sample_rate: Tensor


def decode_wav(
    contents: TensorLike, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodedWav:
    """Decodes the samples of a WAV file with 16 bits to numbers between -1 and 1.

    Args:
      contents: bytes of the file.
      desired_channels: number of channels to return; -1 for all of the file.
      desired_samples: number of samples to return, padded with zeros; -1 for all of the file.
    """
    attrs = {"desired_channels": desired_channels, "desired_samples": desired_samples}
    return DecodedWav(*apply("DecodeWav", contents, name=name, **attrs).outputs)


def encode_wav(audio: TensorLike, sample_rate: TensorLike, name: str | None = None) -> Tensor:
    """A WAV file with 16 bits of samples between -1 and 1, [samples, channels]."""
    return one("EncodeWav", audio, sample_rate, name=name)
