"""Batches of ``Example`` messages become arrays, as TensorFlow 1.15's ``parse_example`` answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.data.io.example import Example, ExampleBatch, Feature, Features, FloatList, Int64List
from headwater.dtypes import float32, float64, int64, string
from headwater.errors import InvalidArgumentError


def feature(values: list[Any]) -> Feature:
    made = Feature()
    if values and isinstance(values[0], bytes):
        made.bytes_list.value.extend(values)
    elif values and isinstance(values[0], float):
        made.float_list.value.extend(values)
    else:
        made.int64_list.value.extend(values)
    return made


def example(**features: list[Any]) -> bytes:
    held = Features(feature={name: feature(values) for name, values in features.items()})
    return Example(features=held).SerializeToString()


class TestFixed:
    def test_shapes_and_types(self) -> None:
        batch = ExampleBatch([example(a=[1, -2], b=[0.5], c=[b"x"]), example(a=[3, 1 << 40], b=[2.0], c=[b"yy"])])
        assert len(batch) == 2
        found = batch.fixed("a", int64, [2])
        assert found.dtype == np.int64
        assert found.tolist() == [[1, -2], [3, 1 << 40]]
        assert batch.fixed("a", int64, [1, 2, 1]).shape == (2, 1, 2, 1)
        assert batch.fixed("b", float32, []).dtype == np.float32
        assert batch.fixed("b", float32, []).tolist() == [0.5, 2.0]
        assert batch.fixed("c", string, [1]).tolist() == [[b"x"], [b"yy"]]

    def test_defaults(self) -> None:
        for without in (example(), example(b=[1]), Example(features=Features(feature={"a": Feature()}))):
            packed = without if isinstance(without, bytes) else without.SerializeToString()
            batch = ExampleBatch([packed, example(a=[1, 2])])
            assert batch.fixed("a", int64, [2], [7, 8]).tolist() == [[7, 8], [1, 2]]
            assert batch.fixed("a", int64, [2], 7).tolist() == [[7, 7], [1, 2]]
            assert ExampleBatch([packed]).fixed("a", string, [], b"z").tolist() == [b"z"]
            with pytest.raises(InvalidArgumentError, match=r"Name: <unknown>, Feature: a \(data type: int64\) is req"):
                batch.fixed("a", int64, [2])

    def test_no_examples(self) -> None:
        assert ExampleBatch([]).fixed("a", int64, [2, 3]).shape == (0, 2, 3)

    def test_unsuitable_features_are_refused(self) -> None:
        batch = ExampleBatch([example(a=[1]), example(a=[1, 2]), example(a=[])], [b"first", "second"])
        message = (
            r"Name: second, Key: a, Index: 1.  Number of int64 values != expected.  "
            r"Values size: 2 but output shape: \[\]"
        )
        with pytest.raises(InvalidArgumentError, match=message):
            batch.fixed("a", int64, [])
        message = "Name: first, Key: a, Index: 0.  Data types don't match. Data type: int64 but expected type: float"
        with pytest.raises(InvalidArgumentError, match=message):
            batch.fixed("a", float32, [])
        with pytest.raises(InvalidArgumentError, match="float64 is none of"):
            batch.fixed("a", float64, [])
        with pytest.raises(InvalidArgumentError, match=r"Name: n, Index: 0.  Can't parse"):
            ExampleBatch([b"junk"], ["n"])


class TestPadded:
    def test_lists_of_different_lengths(self) -> None:
        batch = ExampleBatch([example(a=[1, 2]), example(a=[3]), example()])
        assert batch.padded("a", int64, []).tolist() == [[1, 2], [3, 0], [0, 0]]
        assert batch.padded("a", int64, [], 9).tolist() == [[1, 2], [3, 9], [9, 9]]
        assert batch.padded("b", string, []).shape == (3, 0)
        words = ExampleBatch([example(a=[b"x"]), example()])
        assert words.padded("a", string, []).tolist() == [[b"x"], [b""]]

    def test_elements_of_a_shape(self) -> None:
        batch = ExampleBatch([example(a=[1, 2, 3, 4]), example(a=[5, 6])])
        assert batch.padded("a", int64, [2]).tolist() == [[[1, 2], [3, 4]], [[5, 6], [0, 0]]]
        with pytest.raises(InvalidArgumentError, match=r"Saw 4 values but output shape is: \[\?,3\]"):
            batch.padded("a", int64, [3])
        with pytest.raises(InvalidArgumentError, match=r"shape \[0\] have no values"):
            batch.padded("a", int64, [0])


class TestSparse:
    def test_lists_of_different_lengths(self) -> None:
        found = ExampleBatch([example(a=[1, 2]), example(b=[2]), example(a=[5])]).sparse("a", int64)
        assert found.indices.tolist() == [[0, 0], [0, 1], [2, 0]]
        assert found.values.tolist() == [1, 2, 5]
        assert found.dense_shape.tolist() == [3, 2]
        assert found.indices.dtype == found.dense_shape.dtype == np.int64

    def test_nothing(self) -> None:
        for batch in (ExampleBatch([]), ExampleBatch([example(b=[1.0])])):
            found = batch.sparse("a", int64)
            assert found.indices.shape == (0, 2)
            assert found.values.dtype == np.int64
            assert found.dense_shape.tolist() == [len(batch), 0]


class TestEncodings:
    def test_numbers_one_by_one(self) -> None:
        """As old writers encode them: a field for each number, or several runs."""
        floats = b"\x0d" + np.float32(1.5).tobytes() + b"\x0a\x04" + np.float32(2.5).tobytes()
        integers = b"\x08\x05\x08\xac\x02\x0a\x02\x01\x02"
        assert list(FloatList.FromString(floats).value) == [1.5, 2.5]
        assert list(Int64List.FromString(integers).value) == [5, 300, 1, 2]
        body = b"".join(
            b"\x0a" + bytes([len(entry)]) + entry
            for entry in (
                b"\x0a\x01f\x12" + bytes([len(floats) + 2]) + b"\x12" + bytes([len(floats)]) + floats,
                b"\x0a\x01i\x12" + bytes([len(integers) + 2]) + b"\x1a" + bytes([len(integers)]) + integers,
            )
        )
        packed = b"\x0a" + bytes([len(body)]) + body
        assert list(Example.FromString(packed).features.feature["f"].float_list.value) == [1.5, 2.5]
        batch = ExampleBatch([packed, example(f=[3.0, 4.0], i=[1, 2, 3, 4])])
        assert batch.fixed("f", float32, [2]).tolist() == [[1.5, 2.5], [3.0, 4.0]]
        assert batch.fixed("i", int64, [4]).tolist() == [[5, 300, 1, 2], [1, 2, 3, 4]]

    def test_the_last_of_two_equal_features_counts(self) -> None:
        batch = ExampleBatch([example(a=[1]) + example(a=[2]), example(a=[1]) + example(b=[5])])
        assert batch.fixed("a", int64, []).tolist() == [2, 1]

    @given(
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "i": st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=5),
                    "f": st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5),
                    "s": st.lists(st.binary(max_size=5), min_size=1, max_size=3),
                },
            ),
            max_size=6,
        )
    )
    def test_examples_survive_encoding(self, examples: list[dict[str, list[Any]]]) -> None:
        batch = ExampleBatch([example(**features) for features in examples])
        for name, dtype in (("i", int64), ("f", float32), ("s", string)):
            found = batch.sparse(name, dtype)
            expected = [
                (row, place, value)
                for row, features in enumerate(examples)
                for place, value in enumerate(features.get(name, []))
            ]
            assert [
                (*index, value) for index, value in zip(found.indices.tolist(), found.values, strict=True)
            ] == expected

    @given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda tail: example(i=[1], f=[2.0]) + tail))
    def test_any_other_bytes_are_read_as_the_message_is_or_refused(self, packed: bytes) -> None:
        for name, dtype in (("i", int64), ("f", float32)):
            try:
                found = ExampleBatch([packed]).sparse(name, dtype).values.tolist()
            except InvalidArgumentError:
                continue
            made = Example.FromString(packed).features.feature
            if name in made:
                kind = made[name].int64_list if dtype == int64 else made[name].float_list
                np.testing.assert_array_equal(found, list(kind.value))
            else:
                assert found == []
