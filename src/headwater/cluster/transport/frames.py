"""Frames, the messages on a channel: a kind, a small header, and tensors.

On the wire, little-endian::

    prefix   32 bytes   magic "HWF1", version u8, flags u8, kind u16,
                        header length u32, layout length u32, payload length u64, slot u64
    header              msgpack array; its values depend on the kind
    layout              msgpack array, one entry per tensor: [dtype code, [dimensions]],
                        and for strings [dtype code, [dimensions], bytes in the payload]
    payload             the tensors' buffers, each starting at a multiple of 64 bytes

The layout is separate from the header because the layout is the same in every step, while the header changes: both ends
cache layouts instead of building and parsing them in every step.

A dtype code is TensorFlow's ``DataType`` number. Strings are object arrays of ``bytes``; in the payload they are one
u64 length for each, then all bytes in a row. With flag `IN_SHARED_MEMORY` the payload is not in the stream but in the
shared memory that ``slot`` names (see `headwater.cluster.transport.shared`).

Every length is checked before anything is allocated for it. Malformed data raise `InvalidArgumentError`, and the
channel is closed, because the start of the next frame is unknown.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, cast

import msgpack
import numpy as np
from numpy.typing import NDArray

from headwater.cluster.machine_memory import machine_memory
from headwater.cluster.transport.wire_dtypes import DTYPES, STRING, dtype_code
from headwater.errors import InvalidArgumentError, ResourceExhaustedError

MAGIC = b"HWF1"
VERSION = 1
PREFIX = struct.Struct("<4sBBHIIQQ")
PREFIX_SIZE = PREFIX.size

#: Flag of the prefix: the payload is in shared memory, not in the stream.
IN_SHARED_MEMORY = 1

#: Alignment of each tensor's buffer in a payload, and of payloads in memory, in bytes: XLA can then use the buffer
#: without copying it.
ALIGNMENT = 64

MAX_HEADER_BYTES = 1 << 20
MAX_LAYOUT_BYTES = 1 << 20
MAX_TENSORS = 1 << 16
MAX_RANK = 32
#: The default of the largest payload that a channel accepts, in bytes.
DEFAULT_MAX_PAYLOAD_BYTES = 8 << 30

#: Kinds from here on belong to the transport itself; smaller ones to the user of a channel.
FIRST_RESERVED_KIND = 0xFF00

_MAX_KIND = 0xFFFF
_MAX_REMEMBERED = 1024
_MAX_REMEMBERED_LAYOUT_BYTES = 1 << 14
_ASK_FOR_MEMORY_FROM_BYTES = 64 << 20

Array = NDArray[Any]
#: bytes, bytearray, memoryview, or a contiguous array: before Python 3.12, types cannot express this.
Buffer: TypeAlias = Any


class Frame(NamedTuple):
    """One message.

    Attributes:
      kind: the kind of message, 0 to 65,535; numbers from `FIRST_RESERVED_KIND` on are reserved for the transport.
      header: values that msgpack can encode (None, bool, int, float, str, bytes, lists, dicts with str keys). It
        arrives as a tuple, and so do the lists in it. At most 1 MiB packed.
      tensors: arrays of any shape and any dtype of `dtype_code`, or object arrays of ``bytes`` (``str`` is sent as
        UTF-8 and arrives as ``bytes``). The receiver owns the tensors of a received frame and may write to them.
    """

    kind: int
    header: Sequence[Any] = ()
    tensors: Sequence[Array] = ()


# --- encoding ---------------------------------------------------------------------------------------------------------


class Encoded(NamedTuple):
    """A frame ready to be sent: `prefix`, then ``header``, ``layout`` and ``body``.

    Attributes:
      kind: the frame's kind.
      header: the packed header.
      layout: the packed layout.
      body: the buffers of the payload in order, padding included. They are the caller's arrays where possible: send
        them before the arrays change.
      payload_bytes: the length of ``body``.
      arrays: the frame's tensors, if ``layout`` suffices to place them; otherwise empty.
    """

    kind: int
    header: bytes
    layout: bytes
    body: list[Buffer]
    payload_bytes: int
    arrays: Sequence[Array] = ()

    def prefix(self, flags: int = 0, slot: int = 0) -> bytes:
        """Returns the first 32 bytes of the frame."""
        return PREFIX.pack(
            MAGIC, VERSION, flags, self.kind, len(self.header), len(self.layout), self.payload_bytes, slot
        )


class _OutgoingLayout(NamedTuple):
    packed: bytes
    padding: tuple[bytes, ...]
    payload_bytes: int


_outgoing: dict[tuple[tuple[np.dtype[Any], tuple[int, ...]], ...], _OutgoingLayout] = {}
_form_of: Callable[[Array], tuple[np.dtype[Any], tuple[int, ...]]] = attrgetter("dtype", "shape")
_packers: list[Any] = []
_new_packer = cast("Callable[..., Any]", msgpack.Packer)  # pyright: ignore[reportUnknownMemberType]
_PADDING = [bytes(n) for n in range(ALIGNMENT)]


def pack(values: object) -> bytes:
    """Packs ``values`` with msgpack; raises TypeError, ValueError or OverflowError for values that it cannot encode."""
    # Making a Packer costs ten times as much as packing a small header, so idle ones are kept. list.pop and list.append
    # are atomic, so that no two threads ever use the same Packer.
    try:
        packer = _packers.pop()
    except IndexError:
        packer = _new_packer(autoreset=True)
    packed: bytes = packer.pack(values)
    _packers.append(packer)
    return packed


def encode(frame: Frame) -> Encoded:
    """Encodes ``frame`` as buffers, without copies where possible.

    Raises:
      InvalidArgumentError: a dtype, rank, header or kind is invalid.
    """
    kind, values, tensors = frame
    if not 0 <= kind <= _MAX_KIND:
        raise _malformed(f"kind is {kind}, but must be from 0 to {_MAX_KIND}")
    try:
        header = pack(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise _malformed(f"the header of kind {kind} cannot be packed: {error}") from error
    if len(header) > MAX_HEADER_BYTES:
        raise _malformed(f"the header of kind {kind} has {len(header)} bytes, more than {MAX_HEADER_BYTES}")
    layout = _outgoing.get(tuple(map(_form_of, tensors)))
    if layout is None:
        return _encode_new_layout(kind, header, tensors)
    body: list[Buffer] = []
    for tensor, padding in zip(tensors, layout.padding, strict=True):
        body.append(tensor if tensor.flags.c_contiguous else np.ascontiguousarray(tensor))
        if padding:
            body.append(padding)
    return Encoded(kind, header, layout.packed, body, layout.payload_bytes, tensors)


def encode_joined(frame: Frame, payload_bytes: int) -> bytes | None:
    """Encodes a frame as one buffer, in a fraction of the time that `encode` takes.

    Args:
      payload_bytes: maximum length of its payload, in bytes.

    Returns:
      The buffer; None if the layout of its tensors is not cached, its payload is longer, or it is invalid: use
      `encode` then.
    """
    kind, values, tensors = frame
    layout = _outgoing.get(tuple(map(_form_of, tensors)))
    if layout is None or layout.payload_bytes > payload_bytes:
        return None
    try:
        header = pack(values)
        prefix = PREFIX.pack(MAGIC, VERSION, 0, kind, len(header), len(layout.packed), layout.payload_bytes, 0)
    except (TypeError, ValueError, OverflowError, struct.error):
        return None
    if len(header) > MAX_HEADER_BYTES:
        return None
    parts = [prefix, header, layout.packed]
    for tensor, padding in zip(tensors, layout.padding, strict=True):
        parts += tensor.tobytes(), padding
    return b"".join(parts)


def _encode_new_layout(kind: int, header: bytes, tensors: Sequence[Array]) -> Encoded:
    if len(tensors) > MAX_TENSORS:
        raise _malformed(f"a frame has {len(tensors)} tensors, more than {MAX_TENSORS}")
    entries: list[Any] = []
    body: list[Buffer] = []
    paddings: list[bytes] = []
    payload_bytes = 0
    as_they_are = True
    for tensor in tensors:
        code = dtype_code(tensor.dtype)
        if code is None:
            raise _malformed(f"a frame cannot carry a tensor of dtype {tensor.dtype}")
        shape = list(tensor.shape)
        if len(shape) > MAX_RANK:
            raise _malformed(f"a tensor has rank {len(shape)}, more than {MAX_RANK}")
        if code == STRING:
            data: Buffer = _string_buffer(tensor)
            size = len(data)
            entries.append([code, shape, size])
            as_they_are = False
        else:
            dtype = DTYPES[code]
            as_they_are = as_they_are and tensor.dtype == dtype
            data = np.asarray(tensor, dtype, order="C")
            size = data.nbytes
            entries.append([code, shape])
        padding = _PADDING[-size % ALIGNMENT]
        body.append(data)
        body.append(padding)
        paddings.append(padding)
        payload_bytes += size + len(padding)
    packed = pack(entries)
    if len(packed) > MAX_LAYOUT_BYTES:
        raise _malformed(f"the layout of {len(tensors)} tensors has {len(packed)} bytes, more than {MAX_LAYOUT_BYTES}")
    if as_they_are and len(packed) <= _MAX_REMEMBERED_LAYOUT_BYTES:
        if len(_outgoing) >= _MAX_REMEMBERED:
            _outgoing.clear()
        _outgoing[tuple(map(_form_of, tensors))] = _OutgoingLayout(packed, tuple(paddings), payload_bytes)
    return Encoded(kind, header, packed, body, payload_bytes)


def _string_buffer(tensor: Array) -> bytes:
    elements: list[bytes] = []
    for element in tensor.reshape(-1).tolist():
        if isinstance(element, str):
            elements.append(element.encode())
        elif isinstance(element, bytes):
            elements.append(element)
        else:
            raise _malformed(f"an object array holds a {type(element).__name__}; a frame supports bytes and str only")
    lengths = np.fromiter((len(element) for element in elements), np.uint64, len(elements))
    return b"".join([lengths.tobytes(), *elements])


# --- decoding ---------------------------------------------------------------------------------------------------------


class Prefix(NamedTuple):
    """The first 32 bytes of a frame, checked."""

    flags: int
    kind: int
    header_bytes: int
    layout_bytes: int
    payload_bytes: int
    slot: int


class PayloadLayout(NamedTuple):
    """The layout of a payload.

    Attributes:
      tensors: for each tensor its shape, dtype and offset in the payload, in bytes; a string tensor has dtype
        ``object``.
      string_bytes: the length of each string tensor in the payload, by number of the tensor.
      payload_bytes: the required length of the payload.
    """

    tensors: tuple[tuple[tuple[int, ...], np.dtype[Any], int], ...]
    string_bytes: dict[int, int]
    payload_bytes: int

    def arrays(self, payload: Buffer) -> tuple[Array, ...]:
        """Returns arrays over a payload without strings. The caller must not use the payload for anything else."""
        return tuple([np.ndarray(shape, dtype, payload, at) for shape, dtype, at in self.tensors])


_OBJECT = np.dtype(object)
_unpack = cast("Callable[..., Any]", msgpack.unpackb)  # pyright: ignore[reportUnknownMemberType]
_incoming: dict[bytes, PayloadLayout] = {}


def parse_prefix(
    data: Buffer, offset: int = 0, *, max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES, known_flags: int = 0
) -> Prefix:
    """Reads and checks the 32 bytes at ``offset``.

    Args:
      data: at least ``offset + 32`` bytes.
      offset: the start of the prefix.
      max_payload_bytes: reject payloads longer than this.
      known_flags: the flags that this channel understands, or-ed.

    Raises:
      InvalidArgumentError: the data are not a frame, of another version, or too long.
      ResourceExhaustedError: this machine does not have enough memory for the payload.
    """
    magic, version, flags, kind, header_bytes, layout_bytes, payload_bytes, slot = PREFIX.unpack_from(data, offset)
    if magic != MAGIC:
        raise _malformed(f"the received data start with {bytes(magic)!r}, which is not a frame")
    if version != VERSION:
        raise _malformed(f"a frame of version {version} arrived; this end reads version {VERSION}")
    if flags & ~known_flags:
        raise _malformed(f"a frame has flags {flags:#x}, of which this channel knows {known_flags:#x}")
    if header_bytes > MAX_HEADER_BYTES:
        raise _malformed(f"a frame declares a header of {header_bytes} bytes, more than {MAX_HEADER_BYTES}")
    if layout_bytes > MAX_LAYOUT_BYTES:
        raise _malformed(f"a frame declares a layout of {layout_bytes} bytes, more than {MAX_LAYOUT_BYTES}")
    if payload_bytes > max_payload_bytes:
        raise _malformed(f"a frame announces {payload_bytes} bytes of tensors; {max_payload_bytes} are allowed")
    # Query the memory for large payloads only: for a small one, the query takes longer than the allocation.
    if payload_bytes >= _ASK_FOR_MEMORY_FROM_BYTES:
        available = machine_memory("MemAvailable")
        if payload_bytes > available:
            raise ResourceExhaustedError(
                f"a frame announces {payload_bytes} bytes of tensors; {available} are available here"
            )
    return Prefix(flags, kind, header_bytes, layout_bytes, payload_bytes, slot)


def parse_header(packed: Buffer) -> tuple[Any, ...]:
    """Unpacks a header; raises `InvalidArgumentError` if it is not one msgpack array."""
    try:
        values = _unpack(packed, use_list=False)
    except (ValueError, TypeError, OverflowError) as error:
        raise _malformed(f"a frame's header is not msgpack: {error}") from error
    if type(values) is not tuple:
        raise _malformed(f"a frame's header is a {type(values).__name__}, not an array")
    return values  # pyright: ignore[reportUnknownVariableType]


def parse_layout(packed: bytes, payload_bytes: int) -> PayloadLayout:
    """Parses the layout of a payload of ``payload_bytes``.

    Raises:
      InvalidArgumentError: ``packed`` is not a layout, or is the layout of a payload of another length.
    """
    layout = _incoming.get(packed)
    if layout is None:
        layout = _parse_new_layout(packed, payload_bytes)
    if layout.payload_bytes != payload_bytes:
        raise _malformed(f"a frame's tensors take {layout.payload_bytes} bytes, but it declares {payload_bytes}")
    return layout


def _parse_new_layout(packed: bytes, payload_bytes: int) -> PayloadLayout:
    entries = parse_header(packed)
    if len(entries) > MAX_TENSORS:
        raise _malformed(f"a frame has {len(entries)} tensors, more than {MAX_TENSORS}")
    tensors: list[tuple[tuple[int, ...], np.dtype[Any], int]] = []
    string_bytes: dict[int, int] = {}
    offset = 0
    for number, entry in enumerate(entries):
        shape, dtype, size = _parse_entry(entry, number)
        if offset + size > payload_bytes:
            raise _malformed(f"tensor {number} of a frame reaches beyond its {payload_bytes} bytes")
        if dtype is _OBJECT:
            string_bytes[number] = size
        tensors.append((shape, dtype, offset))
        offset += size + -size % ALIGNMENT
    layout = PayloadLayout(tuple(tensors), string_bytes, offset)
    if not string_bytes and len(packed) <= _MAX_REMEMBERED_LAYOUT_BYTES:
        if len(_incoming) >= _MAX_REMEMBERED:
            _incoming.clear()
        _incoming[packed] = layout
    return layout


def _parse_entry(entry: object, number: int) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    fields = cast("tuple[Any, ...]", entry if type(entry) is tuple else ())
    code, dimensions, *rest = fields if len(fields) >= 2 else (None, None)
    is_string = code == STRING and len(rest) == 1 and type(rest[0]) is int
    if type(dimensions) is not tuple or not (is_string or not rest):
        raise _malformed(f"tensor {number} of a frame has no proper layout entry")
    shape = cast("tuple[Any, ...]", dimensions)
    if len(shape) > MAX_RANK:
        raise _malformed(f"tensor {number} of a frame has rank {len(shape)}, more than {MAX_RANK}")
    if not all(type(dimension) is int and dimension >= 0 for dimension in shape):
        raise _malformed(f"tensor {number} of a frame has a dimension that is not a length: {shape}")
    # NumPy requires that the product of the other dimensions fits, even if one dimension is 0.
    if math.prod(dimension or 1 for dimension in shape) >= 1 << 56:
        raise _malformed(f"tensor {number} of a frame has a shape that no memory can hold: {shape}")
    elements = math.prod(shape)
    if is_string:
        if rest[0] < 8 * elements:
            raise _malformed(f"string tensor {number} of a frame has {elements} elements in {rest[0]} bytes")
        return shape, _OBJECT, rest[0]
    dtype = DTYPES.get(code) if type(code) is int else None
    if dtype is None:
        raise _malformed(f"tensor {number} of a frame has the unknown dtype code {code!r}")
    return shape, dtype, elements * dtype.itemsize


def decode_tensors(layout: PayloadLayout, payload: Buffer, offset: int = 0) -> tuple[Array, ...]:
    """Returns arrays over ``payload``, without a copy (string tensors are copied).

    Args:
      layout: from `parse_layout`.
      payload: a buffer with at least ``layout.payload_bytes`` after ``offset``, which must not be used for anything
        else while an array refers to it.
      offset: the offset of the first tensor in ``payload``.
    """
    if layout.string_bytes:
        return tuple(
            _decode_strings(shape, memoryview(payload)[offset + at : offset + at + layout.string_bytes[number]])
            if number in layout.string_bytes
            else np.ndarray(shape, dtype, payload, offset + at)
            for number, (shape, dtype, at) in enumerate(layout.tensors)
        )
    if not offset:
        return layout.arrays(payload)
    return tuple([np.ndarray(shape, dtype, payload, offset + at) for shape, dtype, at in layout.tensors])


def decode_whole(data: memoryview, start: int, end: int, max_payload_bytes: int) -> tuple[Frame, int] | None:
    """Decodes the frame at ``start`` of ``data``, if it ends at or before ``end``. The tensors are copies.

    Returns:
      The frame and its end; None if it is incomplete, malformed, has flags, or its layout is not cached: use
      `parse_prefix` and the functions below then.
    """
    if end - start < PREFIX_SIZE:
        return None
    magic, version, flags, kind, header_bytes, layout_bytes, payload_bytes, _ = PREFIX.unpack_from(data, start)
    layout_at = start + PREFIX_SIZE + header_bytes
    payload_at = layout_at + layout_bytes
    stop = payload_at + payload_bytes
    if flags or stop > end or magic != MAGIC or version != VERSION or payload_bytes > max_payload_bytes:
        return None
    layout = _incoming.get(bytes(data[layout_at:payload_at]))
    if layout is None or layout.payload_bytes != payload_bytes:
        return None
    header = parse_header(data[start + PREFIX_SIZE : layout_at])
    tensors = layout.arrays(bytearray(data[payload_at:stop])) if layout.tensors else ()
    return Frame(kind, header, tensors), stop


def _decode_strings(shape: tuple[int, ...], data: memoryview) -> Array:
    elements = math.prod(shape)
    # Copy the lengths before checking them: in shared memory the other end could change them in between.
    lengths = np.frombuffer(data, np.uint64, elements).tolist()
    if 8 * elements + sum(lengths) != len(data):
        raise _malformed(f"the {elements} elements of a string tensor do not fill its {len(data)} bytes")
    strings = np.empty(elements, object)
    at = 8 * elements
    for number, length in enumerate(lengths):
        strings[number] = bytes(data[at : at + length])
        at += length
    return strings.reshape(shape)


def decode(data: Buffer, *, max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES) -> Frame:
    """Decodes ``data``, which is one whole frame; its tensors are copies."""
    if len(data) < PREFIX_SIZE:
        raise _malformed(f"{len(data)} bytes are too few for a frame")
    prefix = parse_prefix(data, max_payload_bytes=max_payload_bytes)
    view = memoryview(data)
    layout_at = PREFIX_SIZE + prefix.header_bytes
    payload_at = layout_at + prefix.layout_bytes
    if len(view) != payload_at + prefix.payload_bytes:
        raise _malformed(f"a frame announces {payload_at + prefix.payload_bytes} bytes, but {len(view)} arrived")
    header = parse_header(view[PREFIX_SIZE:layout_at])
    layout = parse_layout(bytes(view[layout_at:payload_at]), prefix.payload_bytes)
    return Frame(prefix.kind, header, decode_tensors(layout, bytearray(view[payload_at:])))


def _malformed(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(message)
