"""Small text files that control a program, with a checksum in a comment line that reveals damage.

The last line is ``# crc32c: 0123abcd``, the CRC-32C of everything before it. Readers of protocol messages in text form,
including TensorFlow's, skip it as a comment. A file without the line was written by another program, or a user deleted
the line after a change by hand.
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
"""Result of the check of a text: unchanged, changed, or without a checksum."""

_LINE: Final = re.compile(rb"^# crc32c: ([0-9a-f]{8})\n?", re.MULTILINE)


def seal(text: bytes) -> bytes:
    """Appends the checksum of ``text`` to ``text``, which ends with a newline unless it is empty."""
    return text + b"# crc32c: %08x\n" % crc32c.value(text)


def unseal(content: bytes) -> tuple[bytes, Seal]:
    """Returns the text of a sealed file, and the result of its check."""
    found = _LINE.search(content)
    if found is None:
        return content, "none"
    text = content[: found.start()] + content[found.end() :]
    return text, "whole" if found[1] == b"%08x" % crc32c.value(text) else "broken"


def pack_json(values: object) -> bytes:
    """Returns ``values`` as a sealed line of JSON."""
    return seal(json.dumps(values).encode() + b"\n")


def read_json(path: Path) -> Any:
    """Reads values that `pack_json` has packed, from a file. A file of an earlier version, without a checksum, is
    accepted.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: the file is damaged; the message names the file.
    """
    return json.loads(read_text(path, json.loads))


def read_text(path: Path, check: Callable[[str], object] = str) -> str:
    """Returns the text of a sealed file, or the single line of an earlier version's file without a checksum.

    Args:
      check: raises ValueError for an invalid text.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: the file is damaged; the message names the file.
    """
    with open_file(path, "rb") as file:
        text, sealed = unseal(file.read())
    problem = "its checksum is wrong" if sealed == "broken" else ""
    # Earlier versions wrote one line without a newline: a text with a newline has lost its checksum.
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
    raise DataLossError(f"{as_path(path)} is damaged: {problem}")
