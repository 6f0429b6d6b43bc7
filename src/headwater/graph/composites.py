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
        """The tensors of which the value consists."""

    @abc.abstractmethod
    def with_components(self, components: Sequence[Tensor]) -> Self:
        """Returns a value of the same kind with other tensors."""

    @abc.abstractmethod
    def component_shapes(self, shape: TensorShape) -> list[TensorShape]:
        """Returns the components' shapes for a loop value with the declared ``shape``."""


def components_of(leaf: object) -> list[Any]:
    """Returns the tensors of a leaf of a structure: its components, or the leaf itself if it is a tensor."""
    return leaf.components if isinstance(leaf, CompositeTensor) else [leaf]
