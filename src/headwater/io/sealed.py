"""Small text files that steer a program, with a checksum in a comment line, so that damage is noticed.

The line ``# crc32c: 0123abcd`` is the last one. It is the CRC-32C of all that stands before it. Readers of protocol
messages in text form, TensorFlow's too, skip it as a comment. A file without the line was written by another program,
or a user deleted the line to change the file by hand.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from headwater.io import crc32c

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
