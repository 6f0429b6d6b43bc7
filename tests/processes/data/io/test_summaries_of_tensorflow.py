"""Summaries equal TensorFlow 1.15's; Headwater and TensorFlow read each other's event files."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tensorboard.compat.proto import summary_pb2

from headwater.data.io import summary_protos
from headwater.data.io.event_file import summary_iterator
from headwater.data.io.tfrecord import tf_record_iterator
from headwater.tf1.training.file_writer import FileWriter

pytestmark = [pytest.mark.peer, pytest.mark.slow]


def arrays() -> dict[str, Any]:
    random = np.random.default_rng(0)
    # float16 arithmetic differs between the two.
    pictures = {
        f"image_{name}": picture.astype(np.float32)
        for name, picture in {
            "positive": random.random((3, 5, 4, 3)),
            "negative": random.normal(size=(3, 5, 4, 1)) * 1000,
            "below_zero": -random.random((1, 4, 4, 1)),
            "zeros": np.zeros((1, 2, 2, 4)),
            "tiny": np.full((1, 2, 2, 1), 0.99e-6),
            "small": np.full((1, 2, 2, 1), 1.01e-6),
            "tiny_negative": np.full((1, 2, 2, 1), -0.99e-6),
            "not_finite": np.where(random.random((2, 6, 6, 3)) < 0.1, np.inf, random.normal(size=(2, 6, 6, 3))),
            "nan": np.full((1, 2, 2, 4), np.nan),
        }.items()
    }
    return {
        "histogram_normal": random.normal(size=10_000).astype(np.float32),
        "histogram_double": random.normal(size=(100, 10)) * 1e-6,
        "histogram_zeros": np.zeros(7),
        "histogram_empty": np.zeros(0, np.float32),
        "histogram_integers": np.arange(-50, 200, dtype=np.int64),
        "histogram_bytes": np.arange(256, dtype=np.uint8),
        "histogram_wide": np.concatenate([-np.geomspace(1e-30, 1e30, 50), np.geomspace(1e-30, 1e30, 50)]),
        "histogram_limits": np.array([1e-12, -1e-12, 1.1e-12, 0.0, 1e20, -1e20, 1e308]),
        "image_bytes": random.integers(0, 256, (3, 4, 4, 4), np.uint8),
        **pictures,
        "image_double": random.normal(size=(2, 5, 5, 3)),
        "audio_mono": (random.normal(size=(2, 50)) * 0.6).astype(np.float32),
        "audio_stereo": (random.normal(size=(2, 50, 2)) * 0.6).astype(np.float32),
    }


def ours(name: str, value: Any) -> Any:
    if name.startswith("histogram"):
        return summary_protos.histogram(name, value)
    if name.startswith("image"):
        return summary_protos.image(name, value, max_images=2)
    return summary_protos.audio(name, value, 8000, max_outputs=1)


def pixels(value: Any) -> Any:
    return np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string)))


def test_summaries_are_tensorflows(tmp_path: Path, tf1: Callable[..., str]) -> None:
    inputs = arrays()
    np.savez(tmp_path / "arrays.npz", **inputs)
    tf1("tf1_summaries.py", tmp_path / "arrays.npz", tmp_path / "summaries")
    for name, packed in zip(sorted(inputs), tf_record_iterator(tmp_path / "summaries"), strict=True):
        theirs = summary_pb2.Summary.FromString(packed)
        mine = ours(name, inputs[name])
        assert [value.tag for value in mine.value] == [value.tag for value in theirs.value]
        for found, expected in zip(mine.value, theirs.value, strict=True):
            if found.HasField("histo"):
                for field in ("min", "max", "num"):
                    assert getattr(found.histo, field) == getattr(expected.histo, field), name
                np.testing.assert_allclose(found.histo.sum, expected.histo.sum, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(found.histo.sum_squares, expected.histo.sum_squares, rtol=1e-9)
                assert list(found.histo.bucket_limit) == list(expected.histo.bucket_limit), name
                assert list(found.histo.bucket) == list(expected.histo.bucket), name
            elif found.HasField("image"):
                np.testing.assert_array_equal(pixels(found), pixels(expected), name)
                found.image.ClearField("encoded_image_string")
                expected.image.ClearField("encoded_image_string")
                assert found == expected
            else:
                assert found == expected


def test_tensorflow_reads_our_events(tmp_path: Path, tf1: Callable[..., str]) -> None:
    with FileWriter(tmp_path) as writer:
        writer.add_summary(summary_protos.scalar(["loss", "w"], [0.5, 2]), 3)
        writer.add_summary(summary_protos.text("note", "hello"), 4)
    (path,) = tmp_path.iterdir()
    lines = tf1("tf1_events.py", "read", path).splitlines()
    assert lines == ["0 file_version []", "3 summary ['loss', 'w']", "4 summary ['note']"]


def test_tensorflows_events_are_read(tmp_path: Path, tf1: Callable[..., str]) -> None:
    tf1("tf1_events.py", "write", tmp_path)
    (path,) = tmp_path.iterdir()
    events = list(summary_iterator(path))
    assert [event.step for event in events] == [0, 3, 4]
    assert events[0].file_version == "brain.Event:2"
    assert events[1].summary.value[0].simple_value == 0.5
    assert events[2].session_log.status == 1
