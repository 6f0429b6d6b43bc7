"""JSON files with a checksum: a first line with the checksum of the rest, written atomically."""

from __future__ import annotations

import json
from typing import Any

from headwater.data.io import crc32c, files
from headwater.errors import DataLossError


def write(path: files.Path, value: object, *, indent: int | None = None) -> None:
    """Writes ``value`` into a file.

    Raises:
      OpError: the file cannot be written.
    """
    packed = json.dumps(value, indent=indent).encode()
    with files.atomic_write(path) as file:
        file.write(json.dumps({"crc32c": crc32c.masked(packed)}).encode() + b"\n" + packed)


def read(path: files.Path) -> Any:
    """Returns the value that `write` has written into a file.

    Raises:
      DataLossError: the file is damaged.
      OpError: the file cannot be read.
    """
    with files.open_file(path, "rb") as file:
        first, _, packed = file.read().partition(b"\n")
    try:
        if json.loads(first)["crc32c"] == crc32c.masked(packed):
            return json.loads(packed)
    except (ValueError, TypeError, KeyError) as error:
        raise DataLossError(f"{path} is damaged: {error}") from error
    raise DataLossError(f"{path} is damaged: the checksum is wrong")
