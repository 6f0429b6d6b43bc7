"""Text and bytes: ``tf.compat.as_bytes`` and related functions."""

from __future__ import annotations

import contextlib
import numbers
import os
from collections.abc import Generator
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


integral_types: tuple[type[object], ...] = (numbers.Integral, np.integer)
real_types: tuple[type[object], ...] = (numbers.Real, np.integer, np.floating)
complex_types: tuple[type[object], ...] = (numbers.Complex, np.number)
bytes_or_text_types: tuple[type[bytes], type[str]] = (bytes, str)


def as_bytes(bytes_or_text: object, encoding: str = "utf-8") -> bytes:
    """Encodes text, returns bytes unchanged; TypeError for other objects."""
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: object, encoding: str = "utf-8") -> str:
    """Decodes bytes, returns text unchanged; TypeError for other objects."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: TensorLike) -> str:
    """Like `as_text`, but converts other objects with ``str``."""
    return as_text(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: str | PathLike[str]) -> Any:
    """Converts a path to text; returns other objects unchanged."""
    return os.fspath(path) if isinstance(path, os.PathLike) else path  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Returns whether features that TensorFlow switched on at a date may be used: all may."""
    del year, month, day
    return True


@contextlib.contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Generator[None]:
    """Returns a context with another date for `forward_compatible`, which does not change its result."""
    del year, month, day
    yield
