"""`GFile`: a file with the interface of TensorFlow's ``tf.gfile.GFile``."""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Final

from headwater.data.io.files import Path, as_path, open_file, stat, translated
from headwater.errors import InvalidArgumentError, OutOfRangeError, PermissionDeniedError

_MODES: Final = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A file that is opened at the first read or write, and again after `close`.

    Text is encoded as UTF-8; with a ``b`` in the mode, reading returns bytes. Writing accepts both.

    Args:
      name: path of the file.
      mode: ``r``, ``w``, ``a``, ``r+``, ``w+`` or ``a+``, with a ``b`` for bytes.

    Raises:
      InvalidArgumentError: ``mode`` is none of these.
      NotFoundError: the file does not exist; raised at the first read or write, like all other errors of the file
        system.

    Attributes:
      name: the path, as it was given.
      mode: the mode, as it was given.
    """

    def __init__(self, name: Path, mode: str = "r") -> None:
        self._path = as_path(name)
        self.name: Path = name
        self.mode: str = mode
        plain = mode.replace("b", "")
        if plain not in _MODES:
            raise InvalidArgumentError(f"mode is {mode!r}, must be one of {', '.join(_MODES)}, with or without b")
        self._binary = "b" in mode
        self._readable = plain == "r" or "+" in plain
        self._writable = plain != "r"
        self._stream: BinaryIO | None = None

    def _open(self) -> BinaryIO:
        if self._stream is None:
            plain = self.mode.replace("b", "")
            self._stream = open_file(self._path, plain[0] + "b" + plain[1:])
        return self._stream

    def _open_to_read(self) -> BinaryIO:
        if not self._readable:
            raise PermissionDeniedError(f"{self._path}: not open for reading, its mode is {self.mode!r}")
        return self._open()

    def _as_read(self, data: bytes) -> bytes | str:
        return data if self._binary else data.decode()

    def size(self) -> int:
        """Returns the size of the file in bytes, without data that are not flushed yet."""
        return stat(self._path).length

    def write(self, file_content: str | bytes) -> None:
        """Appends text (as UTF-8) or bytes."""
        if not self._writable:
            raise PermissionDeniedError(f"{self._path}: not open for writing, its mode is {self.mode!r}")
        if isinstance(file_content, str):
            file_content = file_content.encode()
        elif not isinstance(file_content, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Expected binary or unicode string, got {file_content!r}")
        with translated(self._path):
            self._open().write(file_content)

    def read(self, n: int = -1) -> Any:
        """Returns the next ``n`` bytes, or all remaining ones."""
        with translated(self._path):
            return self._as_read(self._open_to_read().read(n))

    def readline(self) -> bytes | str:
        """Returns the next line with its end; empty at the end of the file."""
        with translated(self._path):
            return self._as_read(self._open_to_read().readline())

    def readlines(self) -> list[bytes | str]:
        """Returns all remaining lines."""
        return list(self)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Sets the position in the file.

        Args:
          offset: distance in bytes.
          whence: 0 from the start, 1 from here, 2 from the end.
          position: old name of ``offset``.

        Raises:
          InvalidArgumentError: ``whence`` is none of these, or the position is before the start.
          OutOfRangeError: the position is beyond the end.
        """
        offset = position if offset is None else offset
        if offset is None:
            raise TypeError("seek(): offset argument required")
        with translated(self._path):
            stream = self._open_to_read()
            here = stream.tell()
            end = stream.seek(0, os.SEEK_END)
            stream.seek(here)
            if whence not in (0, 1, 2):
                raise InvalidArgumentError(f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2.")
            target = offset + (0, stream.tell(), end)[whence]
            if target < 0:
                raise InvalidArgumentError(f"{self._path}: seeking to a negative position: {target}")
            if target > end:
                raise OutOfRangeError(f"{self._path}: position {target} is beyond the end at {end}")
            stream.seek(target)

    def tell(self) -> int:
        """Returns the position in the file, in bytes from its start."""
        with translated(self._path):
            return self._open().tell()

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        """Passes written data to the operating system."""
        if self._stream is not None and self._writable:
            with translated(self._path):
                self._stream.flush()

    def close(self) -> None:
        """Flushes and closes; a later read or write opens the file again."""
        stream, self._stream = self._stream, None
        if stream is not None:
            with translated(self._path):
                stream.close()

    def __del__(self) -> None:
        stream: BinaryIO | None = getattr(self, "_stream", None)
        if stream is not None:
            stream.close()

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> GFile:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__
