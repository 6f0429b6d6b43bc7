"""Formats tensors as text, for messages of checks and prints."""

from __future__ import annotations

import numpy as np

from headwater.graph.registry import HostArray


def element(value: HostArray | np.generic | bytes, dtype: np.dtype[np.generic]) -> str:
    """Formats one element: a number as the shortest decimal that is read back as the same number, a boolean as 1 or 0;
    text is unchanged."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if dtype.kind == "b":
        return str(int(value))
    if dtype.kind == "f":
        digits, more = (15, 17) if dtype == np.float64 else (6, 9)
        short = f"{float(value):.{digits}g}"
        return short if not np.isfinite(value) or dtype.type(short) == value else f"{float(value):.{more}g}"
    if dtype.kind == "c":
        return f"({element(value.real, value.real.dtype)},{element(value.imag, value.imag.dtype)})"
    return str(value)


def first_elements(array: HostArray, limit: int) -> str:
    """Formats the first ``limit`` elements (all if negative) in nested brackets, without the outermost brackets:
    ``[1 2 3]...``."""
    limit = array.size if limit < 0 else limit
    if array.ndim == 0:
        return element(array[()], array.dtype)
    return _nested(array, [limit]) + ("..." if array.size > limit else "")


def _nested(array: HostArray, left: list[int]) -> str:
    if array.ndim == 1:
        shown = array[: left[0]]
        left[0] -= shown.size
        return " ".join(element(item, array.dtype) for item in shown)
    parts: list[str] = []
    for part in array:
        if left[0] <= 0:
            break
        inner = _nested(part, left)
        cut = "..." if part.ndim == 1 and left[0] <= 0 and inner.count(" ") + 1 < part.size else ""
        parts.append(f"[{inner}{cut}]")
    return "".join(parts)


def both_ends(array: HostArray, count: int) -> str:
    """Formats an array in NumPy's layout, with the first and last ``count`` elements of each dimension (all if
    negative)."""
    return _quoted(array[()], array.dtype) if array.ndim == 0 else _laid_out(array, count, 1)


def _quoted(value: HostArray | np.generic | bytes, dtype: np.dtype[np.generic]) -> str:
    text = element(value, dtype)
    return f'"{text}"' if isinstance(value, bytes) else text


def _laid_out(array: HostArray, count: int, depth: int) -> str:
    cut = count >= 0 and array.shape[0] > 2 * count
    shown = [*array[:count], None, *array[array.shape[0] - count :]] if cut else list(array)
    if array.ndim == 1:
        return "[" + " ".join("..." if item is None else _quoted(item, array.dtype) for item in shown) + "]"
    gap = "\n" * (array.ndim - 1) + " " * depth
    return "[" + gap.join("..." if item is None else _laid_out(item, count, depth + 1) for item in shown) + "]"
