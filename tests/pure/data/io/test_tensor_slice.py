"""Slices of tensors: their text, their keys, and invalid slices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.data.io.protos.tensor_bundle_pb2 import TensorSliceProto
from headwater.data.io.tensor_slice import TensorSlice, parse_shape_and_slice
from headwater.errors import InvalidArgumentError

SLICES = st.lists(st.just((0, -1)) | st.tuples(st.integers(0, 1 << 40), st.integers(1, 1 << 40)), max_size=4).map(
    lambda pairs: TensorSlice(starts=tuple(s for s, _ in pairs), lengths=tuple(n for _, n in pairs))
)


@given(SLICES)
def test_text_and_message_survive_encoding(part: TensorSlice) -> None:
    assert TensorSlice.parse(str(part)) == part
    proto = TensorSliceProto()
    part.to_proto(proto)
    assert TensorSlice.from_proto(TensorSliceProto.FromString(proto.SerializeToString())) == part


def test_keys_are_tensorflows() -> None:
    key = TensorSlice.parse("4,3:0,2").key("p/part")
    assert key == b"\x00p/part\x00\x01\x01\x02\x84\x83\x80\x82"
    assert TensorSlice.parse("0,3:100,100").key("q") == b"\x00q\x00\x01\x01\x02\x80\x83\xc0d\xc0d"
    assert TensorSlice.whole(1).key("a\0b") == b"\x00a\x00\xffb\x00\x01\x01\x01\x80\x7f"
    assert TensorSlice.parse("100000,70000").key("a") == b"\x00a\x00\x01\x01\x01\xe1\x86\xa0\xe1\x11\x70"


@given(st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 63) - 1))
def test_keys_sort_as_their_numbers(a: int, b: int) -> None:
    def key(start: int) -> bytes:
        return TensorSlice(starts=(start,), lengths=(1,)).key("x")

    assert (key(a) < key(b)) == (a < b)


def test_resolving() -> None:
    part = TensorSlice.parse("2,3:-")
    assert part.resolve((5, 4)) == (slice(2, 5), slice(0, 4))
    assert part.shape((5, 4)) == (3, 4)
    assert TensorSlice.parse("").resolve(()) == ()
    for shape in ((4, 4), (5,), (5, 4, 1)):
        with pytest.raises(InvalidArgumentError):
            part.resolve(shape)


def test_shape_and_slice() -> None:
    assert parse_shape_and_slice("10 4 0,5:-") == ((10, 4), TensorSlice.parse("0,5:-"))
    for text in ("", "10", "10 x", "10 0,11", "a 0,1", "10 4 0,5", "10 -1,5", "10 0,0", "10  0,1"):
        with pytest.raises(InvalidArgumentError):
            parse_shape_and_slice(text)


def test_impossible_messages_are_refused() -> None:
    for extent in ({"start": -1}, {"start": 0, "length": -2}, {"start": 3}):
        with pytest.raises(InvalidArgumentError):
            TensorSlice.from_proto(TensorSliceProto(extent=[TensorSliceProto.Extent(**extent)]))
