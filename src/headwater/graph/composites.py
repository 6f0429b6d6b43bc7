"""Values made of several tensors, such as sparse ones, inside nested structures."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, Self

from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape


class CompositeTensor(abc.ABC):
    """A value made of several tensors."""

    @property
    @abc.abstractmethod
    def components(self) -> list[Tensor]:
        """The tensors that it is made of."""

    @abc.abstractmethod
    def with_components(self, components: Sequence[Tensor]) -> Self:
        """A value of the same kind made of other tensors."""

    @abc.abstractmethod
    def component_shapes(self, shape: TensorShape) -> list[TensorShape]:
        """What the components' shapes are for all values of a loop of which the program says ``shape``."""


def components_of(leaf: object) -> list[Any]:
    """The tensors that a leaf of a structure is made of: itself, where it is one."""
    return leaf.components if isinstance(leaf, CompositeTensor) else [leaf]
