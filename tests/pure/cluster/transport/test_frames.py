"""Frames are decoded as they were encoded, and malformed ones are refused."""

from __future__ import annotations

import contextlib
import struct
import tracemalloc

import hypothesis.extra.numpy as npst
import ml_dtypes
import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.compat.proto import types_pb2

from headwater.cluster.transport import frames
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.wire_dtypes import dtype_code
from headwater.errors import InvalidArgumentError, ResourceExhaustedError

DTYPES = [
    np.float16,
    np.float32,
    np.float64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.bool_,
    np.complex64,
    np.complex128,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e4m3b11fnuz,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.int4,
    ml_dtypes.uint4,
]


def wire(frame: Frame) -> bytes:
    encoded = frames.encode(frame)
    return b"".join([encoded.prefix(), encoded.header, encoded.layout, *encoded.body])


def assert_same(received: Frame, sent: Frame) -> None:
    assert received.kind == sent.kind
    assert received.header == tuple(sent.header)
    assert len(received.tensors) == len(sent.tensors)
    for got, expected in zip(received.tensors, sent.tensors, strict=True):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        if expected.dtype == object:
            assert got.tolist() == expected.tolist()
        else:
            assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (1, 0, 5), (1,) * 32])
def test_every_dtype_and_shape(dtype: type, shape: tuple[int, ...]) -> None:
    tensor = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    assert_same(frames.decode(wire(Frame(1, (), [tensor]))), Frame(1, (), [tensor]))


def test_dtype_codes_are_those_of_the_type_proto() -> None:
    named = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF", "bool": "BOOL"}
    known = types_pb2.DataType.items()
    for dtype in DTYPES:
        name = np.dtype(dtype).name
        expected = dict(known).get("DT_" + named.get(name, name.upper()))
        if expected is not None:
            assert dtype_code(np.dtype(dtype)) == expected
    assert dtype_code(np.dtype(object)) == types_pb2.DT_STRING


plain_tensors = npst.arrays(
    dtype=st.sampled_from(DTYPES[:14]).map(np.dtype),
    shape=npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
)
string_tensors = npst.arrays(
    dtype=np.dtype(object),
    shape=npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    elements=st.binary(max_size=80),
)
header_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    kind=st.integers(0, 65535),
    header=st.lists(header_values, max_size=5).map(tuple),
    tensors=st.lists(plain_tensors | string_tensors, max_size=6),
)
def test_round_trip(kind: int, header: tuple[object, ...], tensors: list[np.ndarray]) -> None:
    frame = Frame(kind, header, tensors)
    first = frames.decode(wire(frame))
    assert_same(first, frame)
    # The second time, both ends remember the layout.
    assert_same(frames.decode(wire(frame)), frame)
    for tensor in first.tensors:
        assert tensor.flags.writeable


@given(plain_tensors, st.data())
def test_any_memory_order(tensor: np.ndarray, data: st.DataObject) -> None:
    axes = data.draw(st.permutations(range(tensor.ndim)))
    turned = tensor.transpose(axes)
    if turned.ndim:
        turned = turned[:: data.draw(st.sampled_from([1, 2, -1]))]
    for _ in range(2):
        assert_same(frames.decode(wire(Frame(0, (), [turned]))), Frame(0, (), [turned]))


def test_foreign_byte_order_arrives_as_ours() -> None:
    (tensor,) = frames.decode(wire(Frame(0, (), [np.arange(5, dtype=">f4")]))).tensors
    assert tensor.dtype == np.dtype("=f4")
    assert tensor.tolist() == [0, 1, 2, 3, 4]


def test_text_arrives_as_utf8() -> None:
    sent = [np.array(["ä", "b"]), np.array([b"x", b"yz"]), np.array("ö", object)]
    received = frames.decode(wire(Frame(0, (), sent))).tensors
    assert [tensor.tolist() for tensor in received] == [["ä".encode(), b"b"], [b"x", b"yz"], "ö".encode()]


def test_buffers_start_at_multiples_of_64() -> None:
    encoded = frames.encode(Frame(0, (), [np.zeros(3, np.int8), np.zeros((2, 2)), np.zeros(1, np.float32)]))
    layout = frames.parse_layout(encoded.layout, encoded.payload_bytes)
    assert [at % 64 for _, _, at in layout.tensors] == [0, 0, 0]
    assert encoded.payload_bytes % 64 == 0


@pytest.mark.parametrize(
    ("frame", "word"),
    [
        (Frame(-1), "kind"),
        (Frame(1 << 16), "kind"),
        (Frame(0, (object(),)), "header"),
        (Frame(0, (1 << 64,)), "header"),
        (Frame(0, (bytes(frames.MAX_HEADER_BYTES),)), "header"),
        (Frame(0, (), [np.array([object()])]), "object"),
        (Frame(0, (), [np.zeros(1, "M8[s]")]), "datetime64"),
        (Frame(0, (), [np.zeros((1,) * 33)]), "rank"),
        (Frame(0, (), [np.zeros(())] * (frames.MAX_TENSORS + 1)), "tensors"),
    ],
)
def test_invalid_frames_are_refused(frame: Frame, word: str) -> None:
    with pytest.raises(InvalidArgumentError, match=word):
        frames.encode(frame)
    # A packer that failed is not used again in a half-done state.
    assert_same(frames.decode(wire(Frame(3, ("fine",)))), Frame(3, ("fine",)))


def raw(header: bytes, layout: bytes, payload: bytes) -> bytes:
    lengths = len(header), len(layout), len(payload)
    return frames.PREFIX.pack(frames.MAGIC, frames.VERSION, 0, 0, *lengths, 0) + header + layout + payload


EMPTY = msgpack.packb([])


@pytest.mark.parametrize(
    "layout",
    [
        {},
        3,
        "x",
        [3],
        [[]],
        [[1]],
        [[1, 2]],
        [[1, [1], 4]],
        [["1", [1]]],
        [[1, ["1"]]],
        [[1, [-1]]],
        [[1, [1.0]]],
        [[1, [True]]],
        [[1, [17]]],
        [[0, [1]]],
        [[999, [1]]],
        [[7, [1]]],
        [[7, [9], 64]],
        [[7, [1], 65]],
        [[7, [1], -1]],
        [[7, [1], 8.0]],
        [[7, [2**60], 64]],
        [[1, [2**63, 2**63]]],
        [[1, [0, 2**62]]],
        [[1, [1] * 33]],
        [[1, [1]]] * 2,
        [[None, [1]]],
        [[[1], [1]]],
    ],
)
def test_layouts_that_are_wrong(layout: object) -> None:
    with pytest.raises(InvalidArgumentError):
        frames.decode(raw(EMPTY, msgpack.packb(layout), bytes(64)))


@pytest.mark.parametrize("lengths", [[2**64 - 1], [9], [2**63, 2**63], [4, 4]])
def test_string_lengths_that_are_wrong(lengths: list[int]) -> None:
    payload = struct.pack(f"<{len(lengths)}Q", *lengths).ljust(64, b"\0")
    size = 8 * len(lengths) + 7
    with pytest.raises(InvalidArgumentError, match="string"):
        frames.decode(raw(EMPTY, msgpack.packb([[7, [len(lengths)], size]]), payload))


@pytest.mark.parametrize("header", [b"", b"\xc1", msgpack.packb(5), msgpack.packb({}), EMPTY + b"x", b"\x91" * 5000])
def test_headers_that_are_wrong(header: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="header"):
        frames.decode(raw(header, EMPTY, b""))


def prefix(**changes: int | bytes) -> bytes:
    fields: dict[str, int | bytes] = {
        "magic": frames.MAGIC,
        "version": 1,
        "flags": 0,
        "kind": 0,
        "header": 1,
        "layout": 1,
        "payload": 0,
        "slot": 0,
    }
    return frames.PREFIX.pack(*(fields | changes).values())


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"magic": b"GET "}, "not a frame"),
        ({"version": 2}, "version"),
        ({"flags": 1}, "flags"),
        ({"header": frames.MAX_HEADER_BYTES + 1}, "header"),
        ({"layout": frames.MAX_LAYOUT_BYTES + 1}, "layout"),
        ({"payload": frames.DEFAULT_MAX_PAYLOAD_BYTES + 1}, "allowed"),
        ({"payload": 2**64 - 1}, "allowed"),
    ],
)
def test_prefixes_that_are_wrong(changes: dict[str, int | bytes], word: str) -> None:
    with pytest.raises(InvalidArgumentError, match=word):
        frames.parse_prefix(prefix(**changes))


def test_more_than_this_machine_has() -> None:
    with pytest.raises(ResourceExhaustedError, match="available"):
        frames.parse_prefix(prefix(payload=1 << 62), max_payload_bytes=1 << 63)


@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    with pytest.raises(InvalidArgumentError):
        frames.decode(data)


EXAMPLE = wire(
    Frame(5, (1, "a", {"k": (1, 2)}), [np.arange(6, dtype=np.float32), np.array([b"ab", b""], object), np.array(True)])
)


@given(st.integers(0, len(EXAMPLE) - 1))
def test_truncated(length: int) -> None:
    with pytest.raises(InvalidArgumentError):
        frames.decode(EXAMPLE[:length])


@given(st.lists(st.tuples(st.integers(0, len(EXAMPLE) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_bytes_changed_on_the_way(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(EXAMPLE)
    for position, value in changes:
        damaged[position] = value
    with contextlib.suppress(InvalidArgumentError):
        # Inside a tensor nobody can tell; the rest is a frame like any other.
        sent_again = wire(frames.decode(bytes(damaged)))
        assert wire(frames.decode(sent_again)) == sent_again


def test_giant_announcements_allocate_nothing() -> None:
    layout = msgpack.packb([[1, [1 << 40]]])
    attacks = [
        raw(EMPTY, layout, b""),
        prefix(payload=1 << 40),
        raw(b"\xdd\xff\xff\xff\xff", EMPTY, b""),  # an array of 4 billion elements
        raw(b"\xc6\xff\xff\xff\xff", EMPTY, b""),  # 4 GiB of bytes
        raw(EMPTY, msgpack.packb([[7, [1 << 40], 64]]), bytes(64)),
    ]
    tracemalloc.start()
    try:
        for attack in attacks * 20:
            with pytest.raises(InvalidArgumentError):
                frames.decode(attack)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_remembered_layouts_are_bounded() -> None:
    for number in range(3000):
        frame = Frame(0, (), [np.zeros(number, np.int8)])
        frames.decode(wire(frame))
    assert len(frames._incoming) <= 1024
    assert len(frames._outgoing) <= 1024
