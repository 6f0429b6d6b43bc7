"""The iterator of ``Dataset.as_numpy_iterator``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self


class NumpyIterator:
    """An iterator that also has the method `next`, as in TensorFlow.

    Args:
      elements: the elements.
    """

    def __init__(self, elements: Iterator[Any]) -> None:
        self._elements = elements

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    next = __next__
