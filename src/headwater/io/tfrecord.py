"""TFRecord files: a sequence of byte strings, each with checksums.

One record is ``uint64 length``, ``uint32 masked CRC-32C of the length``, ``length`` bytes, ``uint32 masked CRC-32C of
the bytes``, all little-endian; the whole may be compressed with gzip or zlib. Source:
https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final

from headwater.errors import DataLossError, FailedPreconditionError
from headwater.io import crc32c
from headwater.io.files import BUFFER_BYTES, Path, as_path, open_file, translated

_HEADER_BYTES: Final = 12
_FOOTER_BYTES: Final = 4
_HEADER: Final = struct.Struct("<QI")
_CRC: Final = struct.Struct("<I")
_ITERATED_BLOCK: Final = 256
_KNOWN_LENGTHS: Final = 4096
"""How many headers are remembered, so that a length that comes again is not checked or computed again."""

_GZIP_WINDOW: Final = 16
"""What zlib adds to the window bits to mean gzip's framing instead of its own."""


class TFRecordCompressionType:
    """How a file of records is compressed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How to write or read a file of records.

    Args:
      compression_type: ``""``, ``"GZIP"``, ``"ZLIB"``, a number of `TFRecordCompressionType`, or None for none.
      flush_mode: how zlib flushes (``zlib.Z_SYNC_FLUSH`` ...).
      input_buffer_size: bytes read at once.
      output_buffer_size: bytes collected before they are written.
      window_bits: zlib's window, 8 to 15.
      compression_level: 0 (none) to 9 (most), -1 for zlib's choice.
      compression_method: ``zlib.DEFLATED``.
      mem_level: zlib's memory, 1 to 9.
      compression_strategy: zlib's strategy.

    Raises:
      ValueError: an unknown ``compression_type``.
    """

    compression_type_map: Final[dict[Any, str]] = {
        TFRecordCompressionType.NONE: "",
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
    }

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.compression_type: Any = compression_type
        self.get_compression_type_string(compression_type)
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """``""``, ``"GZIP"`` or ``"ZLIB"`` for options, a name, a number or None."""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if not options:
            return ""
        name: Any = cls.compression_type_map.get(options, options)
        if name not in cls.compression_type_map.values():
            raise ValueError(f'Not a valid compression_type: "{options}", must be "", "GZIP" or "ZLIB"')
        return name

    @classmethod
    def of(cls, options: Any) -> TFRecordOptions:
        """``options``, or new ones of that compression type."""
        return options if isinstance(options, TFRecordOptions) else cls(options)

    def compressor(self) -> Any:
        """A fresh compression object of `zlib`, or None without compression."""
        name = self.get_compression_type_string(self)
        if not name:
            return None
        return zlib.compressobj(
            level=-1 if self.compression_level is None else self.compression_level,
            method=self.compression_method or zlib.DEFLATED,
            wbits=(self.window_bits or zlib.MAX_WBITS) + (_GZIP_WINDOW if name == "GZIP" else 0),
            memLevel=self.mem_level or zlib.DEF_MEM_LEVEL,
            strategy=self.compression_strategy or zlib.Z_DEFAULT_STRATEGY,
        )


class TFRecordWriter:
    """Writes records to a new file.

    Args:
      path: the file; what is there is replaced.
      options: `TFRecordOptions`, or a compression type.

    Raises:
      NotFoundError: the folder does not exist.
      ResourceExhaustedError: the disk is full, from `write`, `flush` and `close`.
    """

    def __init__(self, path: Path, options: Any = None) -> None:
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
        self._append(b"%b%b%b" % (header, record, _CRC.pack(crc32c.masked(record))))

    def write_all(self, records: Iterable[bytes]) -> None:
        """Appends records."""
        for record in records:
            self.write(record)

    def _open_stream(self) -> BinaryIO:
        if self._stream is None:
            raise FailedPreconditionError(None, None, f"{self._path}: the writer is closed")
        return self._stream

    def _append(self, data: bytes) -> None:
        stream = self._open_stream()
        with translated(self._path):
            stream.write(data if self._compressor is None else self._compressor.compress(data))

    def flush(self) -> None:
        """Hands all records to the operating system, so that a reader finds them."""
        stream = self._open_stream()
        with translated(self._path):
            if self._compressor is not None:
                stream.write(self._compressor.flush(self._options.flush_mode or zlib.Z_SYNC_FLUSH))
            stream.flush()

    def close(self) -> None:
        """Ends the file. Closing again does nothing."""
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


class _Inflater:
    """The decompressed bytes of a file, which may be several compressed streams one after the other."""

    def __init__(self, stream: BinaryIO, path: str, window_bits: int) -> None:
        self._stream = stream
        self._path = path
        self._window_bits = window_bits
        self._inflater: Any = None
        self._input = b""

    def read(self, count: int) -> bytes:
        """At most ``count`` bytes; empty only at the end of the file."""
        while True:
            if not self._input:
                self._input = self._stream.read(BUFFER_BYTES)
            if self._inflater is None:
                if not self._input:
                    return b""
                self._inflater = zlib.decompressobj(self._window_bits)
            if not self._input:
                raise self._damage("the compressed data is cut off")
            try:
                output = self._inflater.decompress(self._input, count)
            except zlib.error as error:
                raise self._damage(f"the compressed data is damaged ({error})") from error
            if self._inflater.eof:
                self._input, self._inflater = self._inflater.unused_data, None
            else:
                self._input = self._inflater.unconsumed_tail
            if output:
                return output

    def _damage(self, what: str) -> DataLossError:
        return DataLossError(None, None, f"{self._path}: {what} at offset {self._stream.tell() - len(self._input)}")

    def close(self) -> None:
        self._stream.close()


class TFRecordReader:
    """Reads the records of a file one after the other; also an iterator over them.

    Args:
      path: the file.
      options: `TFRecordOptions`, or a compression type.

    Attributes:
      offset: where the next record begins, in bytes from the start of the decompressed file.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: a record is damaged or cut off; the records before it are given first. When more has been
        appended to a file that was cut off, reading again goes on with it.
    """

    def __init__(self, path: Path, options: Any = None) -> None:
        self._path = as_path(path)
        stream = open_file(path, "rb")
        parsed = TFRecordOptions.of(options)
        compression = TFRecordOptions.get_compression_type_string(parsed)
        self._chunk = parsed.input_buffer_size or BUFFER_BYTES
        self._stream: BinaryIO | _Inflater = stream
        if compression:
            bits = (parsed.window_bits or zlib.MAX_WBITS) + (_GZIP_WINDOW if compression == "GZIP" else 0)
            self._stream = _Inflater(stream, self._path, bits)
        self._buffer = b""
        self._position = 0
        self._buffer_offset = 0
        self._lengths: dict[bytes, int] = {}

    @property
    def offset(self) -> int:
        return self._buffer_offset + self._position

    def read_block(self, count: int) -> list[bytes]:
        """The next ``count`` records; fewer where the file ends or is damaged, none at its end."""
        records: list[bytes] = []
        try:
            needed = self._take(records, count)
            while needed and self._fill(needed):
                needed = self._take(records, count)
        except DataLossError:
            if not records:
                raise
        return records

    def _take(self, records: list[bytes], count: int) -> int:
        """Adds records that lie whole in the buffer, up to ``count``.

        Returns how many bytes the next record needs in the buffer; 0 when there are ``count`` records.
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
                # `crc32c.mask` without the call: this loop is what small records cost.
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
        """Reads until ``needed`` bytes lie in the buffer; False when the file ends here."""
        parts = [self._buffer[self._position :]]
        have = len(parts[0])
        with translated(self._path):
            # Piece by piece: what a file says about its lengths allocates nothing before the bytes are there.
            while have < needed and (part := self._stream.read(self._chunk)):
                parts.append(part)
                have += len(part)
        self._buffer_offset += self._position
        self._position = 0
        self._buffer = b"".join(parts)
        if have >= needed:
            return True
        if have:
            raise self._damage("the record is cut off", 0)
        return False

    def _damage(self, what: str, position: int) -> DataLossError:
        return DataLossError(None, None, f"{self._path}: {what} at offset {self._buffer_offset + position}")

    def close(self) -> None:
        """Closes the file. Closing again does nothing."""
        self._stream.close()

    def __enter__(self) -> TFRecordReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        while block := self.read_block(_ITERATED_BLOCK):
            yield from block


def tf_record_iterator(path: Path, options: Any = None) -> Iterator[bytes]:
    """The records of a file; `TFRecordReader` says what it raises."""
    with TFRecordReader(path, options) as reader:
        yield from reader
