"""Shapes of TensorFlow 2's tensors: JAX's tuples with the methods of ``tf.TensorShape``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jax import tree_util

from headwater.graph.runtime.jax_internals import ArrayImpl, core
from headwater.shapes import Dimension, TensorShape

if TYPE_CHECKING:
    import jax


_ArrayImpl: Any = ArrayImpl
_core: Any = core
_tree_util: Any = tree_util


class Sizes(tuple[int, ...]):
    """The shape of a tensor with a value, or of a traced tensor: all sizes are known.

    It is a tuple for JAX, and has the interface of ``tf.TensorShape`` for programs of TensorFlow 2.
    """

    __slots__ = ()

    def as_list(self) -> list[int]:
        """The sizes."""
        return list(self)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self)

    ndims = rank

    @property
    def dims(self) -> list[Dimension]:
        """The sizes as objects of TensorFlow 1's `Dimension`."""
        return [Dimension(size) for size in self]

    def num_elements(self) -> int:
        """Returns the product of the sizes."""
        return TensorShape(tuple(self)).num_elements() or 0

    def is_fully_defined(self) -> bool:
        """Returns True: all sizes are known."""
        return True

    def is_compatible_with(self, other: Any) -> bool:
        """Returns whether a tensor may have both shapes."""
        return TensorShape(tuple(self)).is_compatible_with(other)

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError if no tensor can have both shapes."""
        TensorShape(tuple(self)).assert_is_compatible_with(other)

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError if the number of dimensions differs."""
        TensorShape(tuple(self)).assert_has_rank(rank)

    def with_rank(self, rank: int) -> Sizes:
        """Returns this shape; raises ValueError if it has the wrong number of dimensions."""
        self.assert_has_rank(rank)
        return self

    def merge_with(self, other: Any) -> TensorShape:
        """Returns the combined information of both shapes; raises ValueError if they contradict each other."""
        return TensorShape(tuple(self)).merge_with(other)

    def concatenate(self, other: object) -> Any:
        """Returns the sizes of this shape, followed by the sizes of ``other``."""
        return self + other

    def __add__(self, other: object) -> Any:
        if isinstance(other, TensorShape):
            return TensorShape(tuple(self)).concatenate(other)
        return Sizes((*self, *other)) if isinstance(other, (list, tuple)) else NotImplemented

    def __radd__(self, other: object) -> object:
        if isinstance(other, list):  # JAX also extends shapes by ``+=`` with a tuple
            return [*other, *self]
        return Sizes((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __getitem__(self, key: Any) -> Any:
        found: Any = super().__getitem__(key)
        return Sizes(found) if isinstance(key, slice) else found

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TensorShape):
            return other.as_dims is not None and tuple(self) == tuple(other.as_dims)
        return tuple.__eq__(self, tuple(other)) if isinstance(other, (list, tuple)) else False  # pyright: ignore

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"

    def __str__(self) -> str:
        return tuple.__repr__(self)

    def __reduce__(self) -> Any:
        return Sizes, (tuple(self),)


# By default, JAX treats a subclass of tuple as a leaf, and JAX functions that use a shape as a structure of sizes would
# fail.
_tree_util.register_pytree_node(Sizes, lambda sizes: (tuple(sizes), None), lambda _, sizes: tuple(sizes))


def shape_of(array: jax.Array) -> Sizes:
    """Returns the shape of a JAX array."""
    return Sizes(array.aval.shape)


def attach() -> None:
    """Installs these shapes on JAX's arrays."""
    for kind in (_ArrayImpl, _core.Tracer):
        kind.shape = property(shape_of)
