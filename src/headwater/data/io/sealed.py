"""Small text files that steer a program, with a checksum in a comment line, so that damage is noticed.

The line ``# crc32c: 0123abcd`` is the last one. It is the CRC-32C of all that stands before it. Readers of protocol
messages in text form, TensorFlow's too, skip it as a comment. A file without the line was written by another program,
or a user deleted the line to change the file by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, Literal

from headwater.data.io import crc32c
from headwater.data.io.files import Path, as_path, open_file
from headwater.errors import DataLossError

Seal = Literal["whole", "broken", "none"]
"""What the checksum of a text says: that it is as it was written, that it is not, or there is no checksum."""

_LINE: Final = re.compile(rb"^# crc32c: ([0-9a-f]{8})\n?", re.MULTILINE)


def seal(text: bytes) -> bytes:
    """``text``, which ends with a newline unless it is empty, with its checksum."""
    return text + b"# crc32c: %08x\n" % crc32c.value(text)


def unseal(content: bytes) -> tuple[bytes, Seal]:
    """The text of a sealed file, and what its checksum says."""
    found = _LINE.search(content)
    if found is None:
        return content, "none"
    text = content[: found.start()] + content[found.end() :]
    return text, "whole" if found[1] == b"%08x" % crc32c.value(text) else "broken"


def pack_json(values: object) -> bytes:
    """``values`` as a sealed line of JSON."""
    return seal(json.dumps(values).encode() + b"\n")


def read_json(path: Path) -> Any:
    """What `pack_json` made, from a file. One without a checksum, of an earlier version, is read, too.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: it is damaged; the message names it.
    """
    return json.loads(read_text(path, json.loads))


def read_text(path: Path, check: Callable[[str], object] = str) -> str:
    """The text of a sealed file, or the one line of a file that an earlier version wrote without a checksum.

    Args:
      path: the file.
      check: raises ValueError for a text that cannot be right.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: it is damaged; the message names it.
    """
    with open_file(path, "rb") as file:
        text, sealed = unseal(file.read())
    problem = "its checksum is wrong" if sealed == "broken" else ""
    # Earlier versions wrote one line that did not end: what has an end has lost its checksum.
    if sealed == "none" and b"\n" in text:
        problem = "its checksum is missing"
    if not problem:
        try:
            decoded = text.decode()
            check(decoded)
        except ValueError as error:
            problem = str(error)
        else:
            return decoded
    raise DataLossError(None, None, f"{as_path(path)} is damaged: {problem}")
