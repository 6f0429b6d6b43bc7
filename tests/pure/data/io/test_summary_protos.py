"""Summaries as messages. That they equal TensorFlow's is tested with it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from headwater.data.io import summary_protos
from headwater.errors import InvalidArgumentError


def pixels(value: Any) -> list[object]:
    encoded = value.image.encoded_image_string
    return np.asarray(Image.open(io.BytesIO(encoded))).tolist()


def test_scalars() -> None:
    (value,) = summary_protos.scalar("loss", 0.5).value
    assert (value.tag, value.simple_value) == ("loss", 0.5)
    found = summary_protos.scalar(np.array([b"a", b"b"], object), np.array([1, 2])).value
    assert [(value.tag, value.simple_value) for value in found] == [("a", 1), ("b", 2)]
    with pytest.raises(InvalidArgumentError, match=r"\[2\] != \[1\]"):
        summary_protos.scalar(["a", "b"], [1.0])


class TestHistogram:
    def test_buckets(self) -> None:
        # As TensorFlow 1.15 answers.
        (value,) = summary_protos.histogram("h", [-1.0, 0.0, 1.0, 1.0, 2.0]).value
        histo = value.histo
        assert (histo.min, histo.max, histo.num, histo.sum, histo.sum_squares) == (-1, 2, 5, 3, 7)
        assert list(histo.bucket) == [0, 1, 0, 1, 0, 2, 0, 1, 0]
        assert list(histo.bucket_limit) == [
            -1.0089710279437536,
            -0.917246389039776,
            0.0,
            1e-12,
            0.917246389039776,
            1.0089710279437536,
            1.9661990955585713,
            2.1628190051144287,
            np.finfo(float).max,
        ]

    def test_nothing(self) -> None:
        (value,) = summary_protos.histogram("h", []).value
        greatest = np.finfo(float).max
        assert (value.histo.min, value.histo.max, value.histo.num) == (greatest, -greatest, 0)
        assert list(value.histo.bucket_limit) == [greatest]
        assert list(value.histo.bucket) == [0]

    @given(hnp.arrays(st.sampled_from([np.float32, np.float64, np.int32, np.uint8, np.bool_]), st.integers(0, 50)))
    def test_every_value_is_counted_once(self, values: np.ndarray) -> None:
        if not np.isfinite(values).all():
            return
        (value,) = summary_protos.histogram("h", values).value
        values = values.astype(np.float64)
        lower = -np.inf
        for limit, count in zip(value.histo.bucket_limit, value.histo.bucket, strict=True):
            upper = np.inf if limit == np.finfo(float).max else limit
            assert count == ((values >= lower) & (values < upper)).sum()
            lower = limit
        assert sum(value.histo.bucket) == value.histo.num == values.size

    @pytest.mark.parametrize(("bad", "word"), [(np.nan, "Nan"), (np.inf, "Infinity"), (-np.inf, "Infinity")])
    def test_values_that_are_not_finite(self, bad: float, word: str) -> None:
        with pytest.raises(InvalidArgumentError, match=f"{word} in summary histogram for: h"):
            summary_protos.histogram(b"h", [1.0, bad])


class TestImage:
    def test_names(self) -> None:
        batch = np.zeros((3, 2, 2, 1), np.uint8)
        assert [v.tag for v in summary_protos.image("i", batch, 2).value] == ["i/image/0", "i/image/1"]
        assert [v.tag for v in summary_protos.image("i", batch, 1).value] == ["i/image"]
        assert [v.tag for v in summary_protos.image("i", batch[:1], 3).value] == ["i/image/0"]
        assert not summary_protos.image("i", batch[:0]).value

    def test_values(self) -> None:
        def grey(*values: float) -> list[object]:
            (value,) = summary_protos.image("i", np.array(values).reshape(1, 1, -1, 1)).value
            assert (value.image.height, value.image.width, value.image.colorspace) == (1, len(values), 1)
            return pixels(value)

        assert grey(0, 1, 2, 4) == [[0, 63, 127, 255]]
        assert grey(-1, 0, 0.5, 2) == [[64, 128, 159, 255]]
        assert grey(-1, 0, 0.5, np.nan) == [[1, 128, 191, 255]]
        assert grey(0, 1e-7) == [[0, 0]]
        assert grey(0, -1e-7) == [[128, 128]]

    def test_colours(self) -> None:
        picture = np.array([[[np.inf, 0, 0.5], [1, 2, 3]]], np.float16)[None]
        (value,) = summary_protos.image("i", picture).value
        assert pixels(value) == [[[255, 0, 0], [85, 170, 255]]]
        (value,) = summary_protos.image("i", picture, bad_color=[1, 2, 3]).value
        assert pixels(value) == [[[1, 2, 3], [85, 170, 255]]]
        raw = np.arange(8, dtype=np.uint8).reshape(1, 1, 2, 4)
        (value,) = summary_protos.image("i", raw).value
        assert pixels(value) == raw[0].tolist()

    def test_wrong_arguments(self) -> None:
        for shape in ((1, 2, 2, 2), (2, 2, 1), (1, 0, 2, 1)):
            with pytest.raises(InvalidArgumentError):
                summary_protos.image("i", np.zeros(shape))
        with pytest.raises(InvalidArgumentError, match="3 channels, has 1"):
            summary_protos.image("i", np.zeros((1, 1, 1, 3)), bad_color=[0])


class TestAudio:
    def test_wav(self) -> None:
        # As TensorFlow 1.15 answers.
        (value,) = summary_protos.audio("a", np.array([[0.0, 0.5, -0.5, 1.0, 2.0]]), 8000).value
        assert value.tag == "a/audio/0"
        assert (value.audio.sample_rate, value.audio.num_channels, value.audio.length_frames) == (8000, 1, 5)
        assert value.audio.encoded_audio_string == (
            b"RIFF.\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\n\0\0\0"
            b"\0\0\0@\0\xc0\xff\x7f\xff\x7f"
        )

    def test_wrong_arguments(self) -> None:
        with pytest.raises(InvalidArgumentError, match="3-D or 2-D"):
            summary_protos.audio("a", np.zeros(3), 8000)
        with pytest.raises(InvalidArgumentError, match="sample_rate"):
            summary_protos.audio("a", np.zeros((1, 3)), 0)


def test_text_and_tensors() -> None:
    (value,) = summary_protos.text("t", [["a", "b"]]).value
    assert value.metadata.plugin_data.plugin_name == "text"
    assert list(value.tensor.string_val) == [b"a", b"b"]
    (value,) = summary_protos.tensor("t", np.ones(2, np.float32)).value
    assert value.HasField("metadata")
    (value,) = summary_protos.tensor("t", 1.0, summary_protos.text_metadata().SerializeToString()).value
    assert value.metadata.plugin_data.plugin_name == "text"


def test_merging() -> None:
    a, b = (summary_protos.scalar(tag, 1.0).SerializeToString() for tag in "ab")
    assert [value.tag for value in summary_protos.merge([a, b]).value] == ["a", "b"]
    assert not summary_protos.merge([]).value
    with pytest.raises(InvalidArgumentError, match="Duplicate tag a"):
        summary_protos.merge([a, b, a])
    with pytest.raises(InvalidArgumentError, match="parse"):
        summary_protos.merge([b"\xff"])
