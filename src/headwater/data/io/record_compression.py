"""Compression of record files, with the options of TensorFlow 1.15's ``TFRecordOptions``."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO, Final

from headwater.data.io.files import BUFFER_BYTES
from headwater.errors import DataLossError

_GZIP_FRAMING: Final = 16
"""Added to zlib's parameter ``wbits``, this selects gzip's framing instead of zlib's own."""


class TFRecordCompressionType:
    """Compression of a record file."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """Options for writing or reading a record file.

    Args:
      compression_type: ``""``, ``"GZIP"``, ``"ZLIB"``, a number of `TFRecordCompressionType`, or None for no
        compression.
      flush_mode: how zlib flushes (``zlib.Z_SYNC_FLUSH`` ...).
      input_buffer_size: bytes read at once.
      output_buffer_size: bytes collected before they are written.
      window_bits: zlib's window, 8 to 15.
      compression_level: 0 (none) to 9 (most), -1 for zlib's choice.
      compression_method: ``zlib.DEFLATED``.
      mem_level: zlib's memory, 1 to 9.
      compression_strategy: zlib's strategy.

    Raises:
      ValueError: ``compression_type`` is unknown.
    """

    compression_type_map: Final[dict[object, str]] = {
        TFRecordCompressionType.NONE: "",
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
    }

    def __init__(
        self,
        compression_type: object = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.compression_type: object = compression_type
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
    def get_compression_type_string(cls, options: object) -> str:
        """Returns ``""``, ``"GZIP"`` or ``"ZLIB"`` for options, a name, a number or None."""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if not options:
            return ""
        name: Any = cls.compression_type_map.get(options, options)
        if name not in cls.compression_type_map.values():
            raise ValueError(f'Not a valid compression_type: "{options}", must be "", "GZIP" or "ZLIB"')
        return name

    @classmethod
    def of(cls, options: object) -> TFRecordOptions:
        """Returns ``options``, or new ones of that compression type."""
        return options if isinstance(options, TFRecordOptions) else cls(options)

    @property
    def zlib_window_bits(self) -> int | None:
        """Window and framing, the parameter ``wbits`` of `zlib`; None without compression."""
        name = self.get_compression_type_string(self)
        if not name:
            return None
        return (self.window_bits or zlib.MAX_WBITS) + (_GZIP_FRAMING if name == "GZIP" else 0)

    def compressor(self) -> Any:
        """Returns a new compression object of `zlib`, or None without compression."""
        bits = self.zlib_window_bits
        if bits is None:
            return None
        return zlib.compressobj(
            level=-1 if self.compression_level is None else self.compression_level,
            method=self.compression_method or zlib.DEFLATED,
            wbits=bits,
            memLevel=self.mem_level or zlib.DEF_MEM_LEVEL,
            strategy=self.compression_strategy or zlib.Z_DEFAULT_STRATEGY,
        )


class Inflater:
    """The decompressed bytes of a file, which may contain several compressed streams, one after the other.

    Args:
      stream: the file.
      path: the file's name, for errors.
      window_bits: `TFRecordOptions.zlib_window_bits`.
    """

    def __init__(self, stream: BinaryIO, path: str, window_bits: int) -> None:
        self._stream = stream
        self._path = path
        self._window_bits = window_bits
        self._inflater = None
        self._input = b""

    def read(self, count: int) -> bytes:
        """Returns at most ``count`` bytes; empty only at the end of the file."""
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
        return DataLossError(f"{self._path}: {what} at offset {self._stream.tell() - len(self._input)}")

    def close(self) -> None:
        self._stream.close()
