"""Parts of a tensor in a checkpoint, and the keys under which they are stored.

A variable that is partitioned over several ``ps`` tasks is saved part by part, each under a key of its own; the entry
under its name has the whole shape and the list of parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.errors import InvalidArgumentError

if TYPE_CHECKING:
    from headwater.dtypes import DType
    from headwater.graph.registry import HostArray

_FULL: Final = -1
_HEADER_OF_LENGTH: Final = (0, 0x8000, 0xC000, 0xE000, 0xF000, 0xF800, 0xFC00, 0xFE00, 0xFF00, 0xFF80, 0xFFC0)
"""Bits that mark the length of an ordered signed number in its first two bytes, by its length in bytes."""


@dataclass(frozen=True, kw_only=True)
class TensorSlice:
    """A box of a tensor.

    Attributes:
      starts: first index of the box in each dimension.
      lengths: number of indices in each dimension; -1 for the whole dimension (its start is 0).
    """

    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    @classmethod
    def whole(cls, rank: int) -> TensorSlice:
        """Returns the box of a whole tensor."""
        return cls(starts=(0,) * rank, lengths=(_FULL,) * rank)

    @classmethod
    def parse(cls, text: str) -> TensorSlice:
        """Parses ``start,length`` or ``-`` for each dimension, with colons between, e.g. ``0,10:-``.

        Raises:
          InvalidArgumentError: ``text`` does not have that form.
        """
        starts: list[int] = []
        lengths: list[int] = []
        for part in text.split(":") if text else []:
            start, comma, length = part.partition(",")
            if part == "-":
                starts.append(0)
                lengths.append(_FULL)
            elif comma and start.isdecimal() and length.isdecimal() and int(length) > 0:
                starts.append(int(start))
                lengths.append(int(length))
            else:
                raise InvalidArgumentError(f"Slice {text!r}: {part!r} must be START,LENGTH (with LENGTH > 0) or -")
        return cls(starts=tuple(starts), lengths=tuple(lengths))

    @classmethod
    def from_proto(cls, proto: Any) -> TensorSlice:
        """Returns the slice of a ``TensorSliceProto`` message.

        Raises:
          InvalidArgumentError: a number is negative, or a whole dimension does not start at 0.
        """
        starts = tuple(extent.start for extent in proto.extent)
        lengths = tuple(extent.length if extent.HasField("length") else _FULL for extent in proto.extent)
        for start, length, extent in zip(starts, lengths, proto.extent, strict=True):
            if start < 0 or (length < 0 and extent.HasField("length")) or (length == _FULL and start):
                raise InvalidArgumentError(f"Slice {starts}, {lengths} is not a part of any tensor")
        return cls(starts=starts, lengths=lengths)

    def to_proto(self, proto: Any) -> None:
        """Adds the dimensions of this slice to an empty ``TensorSliceProto`` message."""
        for start, length in zip(self.starts, self.lengths, strict=True):
            extent = proto.extent.add(start=start)
            if length != _FULL:
                extent.length = length

    @property
    def rank(self) -> int:
        return len(self.starts)

    def resolve(self, shape: tuple[int, ...]) -> tuple[slice, ...]:
        """Returns the index of this box in an array of ``shape``.

        Raises:
          InvalidArgumentError: the box is not inside ``shape``.
        """
        if len(shape) != self.rank:
            raise InvalidArgumentError(f"Slice {self} has {self.rank} dimensions, but shape {shape} has {len(shape)}")
        for start, length, size in zip(self.starts, self.lengths, shape, strict=True):
            if start + max(length, 0) > size:
                raise InvalidArgumentError(f"Slice {self} is not inside the shape {shape}")
        return tuple(
            slice(start, size if length == _FULL else start + length)
            for start, length, size in zip(self.starts, self.lengths, shape, strict=True)
        )

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the shape of this box in an array of ``shape``; InvalidArgumentError when it is not inside."""
        return tuple(index.stop - index.start for index in self.resolve(shape))

    def key(self, name: str) -> bytes:
        """Returns the key of this part of the tensor ``name`` in a checkpoint's index."""
        numbers = (n for pair in zip(self.starts, self.lengths, strict=True) for n in pair)
        return b"".join(
            (_ordered_unsigned(0), _ordered_text(name.encode()), _ordered_unsigned(self.rank), *map(_ordered, numbers))
        )

    def __str__(self) -> str:
        return ":".join(
            "-" if length == _FULL else f"{start},{length}"
            for start, length in zip(self.starts, self.lengths, strict=True)
        )


def joined(
    box: tuple[slice, ...], dtype: DType, parts: Iterable[tuple[tuple[slice, ...], Callable[[], HostArray]]]
) -> HostArray:
    """Assembles a box of a tensor that is stored in parts.

    Args:
      box: index of the box in the tensor.
      parts: index of each part, and a function that reads it; called only for parts that overlap the box.
    """
    result = np.empty([b.stop - b.start for b in box], dtype.numpy_dtype)
    for where, read in parts:
        shared = [
            (max(b.start, w.start), min(b.stop, w.stop), b.start, w.start) for b, w in zip(box, where, strict=True)
        ]
        if all(start < stop for start, stop, _, _ in shared):
            target = tuple(slice(start - offset, stop - offset) for start, stop, offset, _ in shared)
            source = tuple(slice(start - offset, stop - offset) for start, stop, _, offset in shared)
            result[target] = read()[source]
    return result


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], TensorSlice]:
    """Parses the whole shape and the part in a ``shape_and_slice`` of a save or restore operation.

    Args:
      text: sizes of all dimensions and then the slice, separated by blanks, e.g. ``10 4 0,5:-``.

    Raises:
      InvalidArgumentError: ``text`` does not have that form, or the slice is not inside the shape.
    """
    *sizes, last = text.split(" ")
    if not sizes or not all(size.isdecimal() for size in sizes):
        raise InvalidArgumentError(
            f"shape_and_slice {text!r} must be the sizes of all dimensions, then START,LENGTH or - of each"
        )
    shape = tuple(map(int, sizes))
    part = TensorSlice.parse(last)
    part.resolve(shape)
    return shape, part


# Encodings of numbers and text whose bytes sort in the order of the values.


def _ordered_unsigned(value: int) -> bytes:
    """Encodes the number of bytes, then the bytes, the highest first."""
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _ordered_text(text: bytes) -> bytes:
    """Encodes the bytes with 00 escaped (FF would be, too, but does not occur in UTF-8), then an end mark."""
    return text.replace(b"\x00", b"\x00\xff") + b"\x00\x01"


def _ordered(value: int) -> bytes:
    """Encodes a signed number in as few bytes as possible. The number of leading 1 bits is the number of bytes; the
    bits of a negative number are inverted."""
    magnitude = ~value if value < 0 else value
    size = magnitude.bit_length() // 7 + 1
    encoded = bytearray(value.to_bytes(max(size, 2), "big", signed=True))
    header = _HEADER_OF_LENGTH[size]
    if size == 1:
        return bytes([encoded[1] ^ header >> 8])
    encoded[0] ^= header >> 8
    encoded[1] ^= header & 0xFF
    return bytes(encoded)
