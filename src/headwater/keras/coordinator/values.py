"""Encoding of arguments and results of remote function calls: plain values and arrays only, no code.

A structure of None, bool, int, float, str, bytes, lists, tuples, dicts and arrays becomes a value for a frame's header
and a list of arrays::

    array n                 {"array": n}
    tuple                   {"tuple": [...]}
    dict                    {"dict": [[key, value], ...]}
    a per-worker value      {"worker's": [dataset, iterator]}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from headwater.errors import InvalidArgumentError

_PLAIN = (bool, int, float, str, bytes, type(None))


class PerWorker:
    """A reference to an object that each worker creates locally.

    Attributes:
      dataset: number of the dataset, in the order of creation.
      iterator: number of an iterator over it; -1 for the dataset.
    """

    def __init__(self, dataset: int, iterator: int = -1) -> None:
        self.dataset = dataset
        self.iterator = iterator


def encode(value: object, arrays: list[object]) -> Any:
    """Converts a value for a frame's header; appends its arrays to ``arrays``.

    Raises:
      InvalidArgumentError: the value has a part of a type that cannot be sent.
    """
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, PerWorker):
        return {"worker's": [value.dataset, value.iterator]}
    if isinstance(value, list):
        return [encode(item, arrays) for item in cast("list[object]", value)]
    if isinstance(value, tuple):
        return {"tuple": [encode(item, arrays) for item in cast("tuple[object, ...]", value)]}
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {"dict": [[encode(key, arrays), encode(item, arrays)] for key, item in items]}
    if hasattr(value, "__array__") or isinstance(value, np.generic):
        arrays.append(np.asarray(cast("Any", value)))
        return {"array": len(arrays) - 1}
    raise InvalidArgumentError(
        f"a {type(value).__name__} cannot be sent to other tasks; numbers, text, arrays and structures of these can be"
    )


def decode(value: object, arrays: Sequence[Any], local: Callable[[PerWorker], Any]) -> Any:
    """Reverses `encode`.

    Args:
      value: the value from a frame's header.
      arrays: arrays of the same frame.
      local: returns this worker's value for a reference.

    Raises:
      InvalidArgumentError: ``value`` is not a result of `encode`.
    """

    def inner(item: object) -> object:
        return decode(item, arrays, local)

    match value:
        case tuple() | list():
            return [inner(item) for item in cast("Sequence[object]", value)]
        case {"array": int(number)} if 0 <= number < len(arrays):
            return arrays[number]
        case {"tuple": items}:
            return tuple(inner(item) for item in items)
        case {"dict": items}:
            return {inner(key): inner(item) for key, item in items}
        case {"worker's": (int(dataset), int(iterator))}:
            return local(PerWorker(dataset, iterator))
        case None | bool() | int() | float() | str() | bytes():
            return value
        case _:
            raise InvalidArgumentError(f"malformed value in a call: {str(value)[:80]}")
