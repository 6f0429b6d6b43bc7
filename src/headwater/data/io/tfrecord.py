"""TFRecord files: a sequence of byte strings, each with checksums.

One record is ``uint64 length``, ``uint32 masked CRC-32C of the length``, ``length`` bytes, ``uint32 masked CRC-32C of
the bytes``, all little-endian; the whole may be compressed with gzip or zlib. Source:
https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

from headwater.data.io import crc32c
from headwater.data.io.files import BUFFER_BYTES, Path, as_op_error, as_path, open_file, translated
from headwater.data.io.record_compression import Inflater, TFRecordCompressionType, TFRecordOptions
from headwater.errors import DataLossError, FailedPreconditionError

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordReader", "TFRecordWriter", "tf_record_iterator"]

_HEADER_BYTES: Final = 12
_FOOTER_BYTES: Final = 4
_HEADER: Final = struct.Struct("<QI")
_CRC: Final = struct.Struct("<I")
_ITERATED_BLOCK: Final = 256
_PIECE_BYTES: Final = 16 << 20
"""Maximum number of bytes that are requested from the file at once."""
_LARGE_BYTES: Final = 64 << 10
"""Records from this size on are written without a copy."""
_KNOWN_LENGTHS: Final = 4096
"""Number of headers in the cache, so that the checksum of a length that occurs again is not computed again."""


class TFRecordWriter:
    """Writes records to a new file.

    Args:
      path: the file; an existing one is replaced.
      options: `TFRecordOptions`, or a compression type.

    Raises:
      NotFoundError: the folder does not exist.
      ResourceExhaustedError: the disk is full, from `write`, `flush` and `close`.
    """

    def __init__(self, path: Path, options: object = None) -> None:
        self._path = as_path(path)
        self._options = TFRecordOptions.of(options)
        self._compressor = self._options.compressor()
        self._stream: BinaryIO | None = open_file(path, "wb")
        self._headers: dict[int, bytes] = {}

    def write(self, record: bytes) -> None:
        """Appends one record."""
        if not isinstance(record, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"expected bytes, {type(record).__name__} found")
        length = len(record)
        header = self._headers.get(length)
        if header is None:
            packed = struct.pack("<Q", length)
            header = packed + _CRC.pack(crc32c.masked(packed))
            if len(self._headers) < _KNOWN_LENGTHS:
                self._headers[length] = header
        footer = _CRC.pack(crc32c.masked(record))
        if length < _LARGE_BYTES:
            self._append(b"%b%b%b" % (header, record, footer))
        else:
            self._append(header)
            self._append(record)
            self._append(footer)

    def write_all(self, records: Iterable[bytes]) -> None:
        """Appends records."""
        for record in records:
            self.write(record)

    def _open_stream(self) -> BinaryIO:
        if self._stream is None:
            raise FailedPreconditionError(f"{self._path}: the writer is closed")
        return self._stream

    def _append(self, data: bytes) -> None:
        stream = self._open_stream()
        try:
            stream.write(data if self._compressor is None else self._compressor.compress(data))
        except OSError as error:  # the `translated` context would take as long as the rest
            raise as_op_error(error, self._path) from error

    def flush(self) -> None:
        """Passes all records to the operating system, so that readers see them."""
        stream = self._open_stream()
        with translated(self._path):
            if self._compressor is not None:
                stream.write(self._compressor.flush(self._options.flush_mode or zlib.Z_SYNC_FLUSH))
            stream.flush()

    def close(self) -> None:
        """Closes the file. Closing again does nothing."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        with translated(self._path), stream:
            if self._compressor is not None:
                stream.write(self._compressor.flush(zlib.Z_FINISH))

    def __del__(self) -> None:
        if getattr(self, "_stream", None) is not None:
            self.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TFRecordReader:
    """Reads the records of a file one after the other; also an iterator over them.

    Args:
      options: `TFRecordOptions`, or a compression type.

    Attributes:
      offset: position of the next record, in bytes from the start of the decompressed file.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: a record is damaged, or the file ends after its header; the records before it are returned first.
        If the file grows after that, reading can continue.
    """

    def __init__(self, path: Path, options: object = None) -> None:
        self._path = as_path(path)
        stream = open_file(path, "rb")
        parsed = TFRecordOptions.of(options)
        self._chunk = parsed.input_buffer_size or BUFFER_BYTES
        bits = parsed.zlib_window_bits
        self._stream: BinaryIO | Inflater = stream if bits is None else Inflater(stream, self._path, bits)
        self._buffer = b""
        self._position = 0
        self._buffer_offset = 0
        self._lengths: dict[bytes, int] = {}

    @property
    def offset(self) -> int:
        return self._buffer_offset + self._position

    def read_block(self, count: int) -> list[bytes]:
        """Returns the next ``count`` records; fewer if the file ends or is damaged before that, none at its end."""
        records: list[bytes] = []
        try:
            while len(records) < count and self._advance(records, count):
                pass
        except DataLossError:
            if not records:
                raise
        return records

    def _advance(self, records: list[bytes], count: int) -> bool:
        """Performs one of three steps: adds records of the buffer, up to ``count``; adds one record that is larger than
        the buffer; or fills the buffer. Returns False at the end of the file."""
        before = len(records)
        try:
            needed = self._parse_records(records, count)
        except DataLossError:
            if len(records) == before:
                raise
            needed = 0
        if len(records) > before:
            return True
        missing = needed - (len(self._buffer) - self._position)
        if needed > _HEADER_BYTES and missing > max(self._chunk, _FOOTER_BYTES):
            records.append(self._read_large(needed))
            return True
        return self._fill(needed)

    def _parse_records(self, records: list[bytes], count: int) -> int:
        """Adds records that are complete in the buffer, up to ``count``.

        Returns the number of bytes of the next record, for the buffer; 0 when there are ``count`` records.
        """
        buffer, position, end = self._buffer, self._position, len(self._buffer)
        lengths, checksum, unpack, mask_delta = self._lengths, crc32c.value, _CRC.unpack_from, crc32c.MASK_DELTA
        try:
            for _ in range(count - len(records)):
                start = position + _HEADER_BYTES
                header = buffer[position:start]
                length = lengths.get(header)
                if length is None:
                    if len(header) < _HEADER_BYTES:
                        return _HEADER_BYTES
                    length = self._check_length(header, position)
                stop = start + length
                if stop + _FOOTER_BYTES > end:
                    return _HEADER_BYTES + length + _FOOTER_BYTES
                record = buffer[start:stop]
                crc = checksum(record)
                # Inlined `crc32c.mask`: the time for small records is spent in this loop.
                if (((crc >> 15) | (crc << 17)) + mask_delta) & 0xFFFFFFFF != unpack(buffer, stop)[0]:
                    raise self._damage("the record is damaged", position)
                records.append(record)
                position = stop + _FOOTER_BYTES
        finally:
            self._position = position
        return 0

    def _check_length(self, header: bytes, position: int) -> int:
        length, crc = _HEADER.unpack(header)
        if crc32c.masked(header[:8]) != crc:
            raise self._damage("the record's length is damaged", position)
        if len(self._lengths) < _KNOWN_LENGTHS:
            self._lengths[header] = length
        return length

    def _fill(self, needed: int) -> bool:
        """Reads until ``needed`` bytes are in the buffer; False when the file ends, here or within a header.

        Like TensorFlow, this treats an incomplete header as the end of the file.
        """
        parts = [self._buffer[self._position :]]
        have = self._read(parts, len(parts[0]), needed, at_least=self._chunk)
        self._buffer_offset += self._position
        self._position = 0
        self._buffer = b"".join(parts)
        if have >= needed:
            return True
        if have and needed > _HEADER_BYTES:
            raise self._damage("the record is cut off", 0)
        return False

    def _read_large(self, needed: int) -> bytes:
        """Reads the next record, which takes ``needed`` bytes, without a copy of it in the buffer."""
        start = self._position + _HEADER_BYTES
        parts = [self._buffer[start:]]
        held = len(parts[0])
        body = needed - _HEADER_BYTES - _FOOTER_BYTES
        if self._read(parts, held, body, at_least=0) == body:
            footer: list[bytes] = []
            self._read(footer, 0, _FOOTER_BYTES, at_least=0)
            record = b"".join(parts)
            if b"".join(footer) == _CRC.pack(crc32c.masked(record)):
                self._buffer_offset += self._position + needed
                self._position = 0
                self._buffer = b""
                return record
            parts += footer
        self._buffer = b"".join((self._buffer[:start], *parts))
        raise self._damage(
            "the record is damaged" if len(self._buffer) >= self._position + needed else "the record is cut off",
            self._position,
        )

    def _read(self, parts: list[bytes], have: int, needed: int, at_least: int) -> int:
        """Appends the next bytes of the file to ``parts``, up to ``needed`` bytes; returns their number."""
        with translated(self._path):
            while have < needed:
                # Read piece by piece: a (perhaps damaged) length must not allocate memory before the bytes are there.
                part = self._stream.read(max(at_least, min(needed - have, _PIECE_BYTES)))
                if not part:
                    break
                parts.append(part)
                have += len(part)
        return have

    def _damage(self, what: str, position: int) -> DataLossError:
        return DataLossError(f"{self._path}: {what} at offset {self._buffer_offset + position}")

    def close(self) -> None:
        """Closes the file. Closing again does nothing."""
        self._stream.close()

    def __enter__(self) -> TFRecordReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        records: list[bytes] = []
        while self._advance(records, _ITERATED_BLOCK):
            yield from records
            records.clear()


def tf_record_iterator(path: Path, options: object = None) -> Iterator[bytes]:
    """Yields the records of a file; errors as for `TFRecordReader`."""
    with TFRecordReader(path, options) as reader:
        yield from reader
