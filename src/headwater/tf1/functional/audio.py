"""``tf.audio``: sound in files."""

from __future__ import annotations

from typing import NamedTuple

from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.apply import apply, one


class DecodedWav(NamedTuple):
    """What a file holds.

    Attributes:
      audio: float32 [samples, channels].
      sample_rate: samples in a second, int32.
    """

    audio: Tensor
    sample_rate: Tensor


def decode_wav(
    contents: TensorLike, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodedWav:
    """The samples of a WAV file with 16 bits, between -1 and 1.

    Args:
      contents: what is in the file.
      desired_channels: how many channels to give; -1 for those of the file.
      desired_samples: how many samples to give, with zeros behind those of the file; -1 for all.
      name: of the operation.
    """
    attrs = {"desired_channels": desired_channels, "desired_samples": desired_samples}
    return DecodedWav(*apply("DecodeWav", contents, name=name, **attrs).outputs)


def encode_wav(audio: TensorLike, sample_rate: TensorLike, name: str | None = None) -> Tensor:
    """A WAV file with 16 bits of samples between -1 and 1, [samples, channels]."""
    return one("EncodeWav", audio, sample_rate, name=name)
