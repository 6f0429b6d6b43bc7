"""Elements grouped by a key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from headwater.data.functions import ListNode
from headwater.data.node import Context, Element, Failure, closing, mapped
from headwater.data.spec import TensorSpec
from headwater.data.transforms import ByElement
from headwater.dtypes import variant
from headwater.errors import InvalidArgumentError


@dataclass(eq=False, kw_only=True)
class Grouped(ByElement):
    """Windows of elements with the same key: the key, and for each component a dataset of its values.

    The first two components of each element of ``input`` are integers: its key, and the size of a window that begins
    with it. A window is yielded when it is full; at the end, incomplete windows are yielded in the order of their keys.
    """

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        key, _, *rest = self.input.specs
        return (key, *[TensorSpec((), variant)] * len(rest))

    def elements(self, context: Context) -> Iterator[Element]:
        held: dict[int, tuple[int, list[Element]]] = {}
        with closing(self.input.elements(context)) as source:
            for item in source:
                if isinstance(item, Failure):
                    yield item
                    continue
                key, size, *element = item
                number = int(key)
                if number not in held:
                    if int(size) < 1:
                        raise InvalidArgumentError(f"Window size must be greater than zero, but got {int(size)}.")
                    held[number] = int(size), []
                full, window = held[number]
                window.append(tuple(element))
                if len(window) >= full:
                    del held[number]
                    yield self._window(number, window)
        for number in sorted(held):
            yield self._window(number, held[number][1])

    def _window(self, key: int, window: list[Element]) -> Element:
        first, _, *rest = self.input.specs
        datasets = (
            ListNode(items=[(element[index],) for element in window], of=(spec,)) for index, spec in enumerate(rest)
        )
        return (np.asarray(key, first.dtype.numpy_dtype), *datasets)


@dataclass(eq=False, kw_only=True)
class Described(ByElement):
    """Converts components to the specs ``of``: arrays for which the spec is ragged become ragged components.

    A function returns an array for a ragged result without ragged dimensions, and a batch would not join arrays of
    different lengths.
    """

    of: tuple[TensorSpec, ...]

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return self.of

    keeps_count: ClassVar[bool] = True

    def elements(self, context: Context) -> Iterator[Element]:
        return mapped(
            self.input.elements(context),
            lambda element: tuple(
                value if spec.code == "dense" else spec.converted(value)
                for value, spec in zip(element, self.of, strict=True)
            ),
        )
