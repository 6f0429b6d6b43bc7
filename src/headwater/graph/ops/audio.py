"""Sound in files: WAV with samples of 16 bits."""

from __future__ import annotations

import io
import wave
from collections.abc import Sequence

import numpy as np

from headwater.dtypes import float32, int32, string
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec

_BYTES = 2
_SCALE = 2.0**15


def _decoded_specs(inference: Inference) -> Sequence[Spec]:
    wanted = (inference.attrs.get("desired_samples", -1), inference.attrs.get("desired_channels", -1))
    return [Spec(float32, tuple(None if size == -1 else size for size in wanted)), Spec(int32, ())]


@host("DecodeWav", inputs="contents:string", infer=_decoded_specs)
def decode_wav(
    contents: HostArray, *, desired_channels: int = -1, desired_samples: int = -1
) -> tuple[HostArray, HostArray]:
    """Returns the samples, [samples, channels] between -1 and 1, and the number of samples per second."""
    try:
        with wave.open(io.BytesIO(bytes(contents.item()))) as file:
            if file.getsampwidth() != _BYTES:
                raise InvalidArgumentError(f"Can only read 16-bit WAV files, but received {8 * file.getsampwidth()}")
            rate, channels = file.getframerate(), file.getnchannels()
            flat = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    except (wave.Error, EOFError) as error:
        raise InvalidArgumentError(f"Header mismatch: this is no WAV file ({error})") from error
    samples = flat.reshape(-1, channels).astype(np.float32) / np.float32(_SCALE)
    if desired_channels != -1:
        # Further channels repeat the last one.
        samples = samples[:, np.minimum(np.arange(desired_channels), channels - 1)]
    if desired_samples != -1:
        behind = max(desired_samples - len(samples), 0)
        samples = np.pad(samples[:desired_samples], [(0, behind), (0, 0)])
    return np.ascontiguousarray(samples), np.array(rate, np.int32)


def _encoded_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    if dims is not None and len(dims) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
    return [Spec(string, ())]


@host("EncodeWav", inputs="audio:float32, sample_rate:int32", infer=_encoded_spec)
def encode_wav(audio: HostArray, sample_rate: HostArray) -> HostArray:
    """Encodes samples [samples, channels] as a WAV file; values are clipped to [-1, 1]."""
    if audio.ndim != 2:
        raise InvalidArgumentError(f"audio must be 2-dimensional but got shape {list(audio.shape)}")
    away = np.copysign(np.floor(np.abs(audio * np.float32(_SCALE)) + 0.5), audio)
    whole = np.clip(away, -_SCALE, _SCALE - 1).astype("<i2")
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(audio.shape[1])
        file.setsampwidth(_BYTES)
        file.setframerate(int(sample_rate))
        file.writeframes(whole.tobytes())
    return np.array(written.getvalue(), object)
