"""Shared types of arguments: values convertible to tensors, feeds and fetches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from headwater.cluster.devices import Device, DeviceSpec
    from headwater.graph.graph import Graph
    from headwater.graph.indexed_slices import IndexedSlices
    from headwater.graph.operation import Operation, Tensor
    from headwater.graph.registry import HostArray
    from headwater.graph.scopes import DeviceFunction
    from headwater.graph.sparse_tensor import SparseTensor, SparseTensorValue
    from headwater.shapes import Dimension, TensorShape
    from headwater.tf1.variables.partitioned import PartitionedVariable
    from headwater.tf1.variables.variables import Variable


class SupportsArray(Protocol):
    """A value that NumPy can convert to an array: NumPy's arrays and scalars, JAX's arrays, Keras' variables."""

    def __array__(self) -> HostArray: ...


class SessionLike(Protocol):
    """An object that runs steps of a graph: a session, or a wrapper of a session."""

    @property
    def graph(self) -> Graph: ...
    def run(self, fetches: Structure, feed_dict: FeedDict | None = None) -> Structure: ...


Scalar: TypeAlias = "complex | str | bytes | np.generic"
"""One element: a number (Python counts bool, int and float as complex), text, or a scalar of NumPy."""

GraphTensor: TypeAlias = "Tensor | Variable | PartitionedVariable | IndexedSlices"
"""A value of a graph that is a tensor or becomes one."""

TensorLike: TypeAlias = "GraphTensor | SupportsArray | Scalar | TensorShape | Dimension | Sequence[TensorLike]"
"""Arguments of `convert_to_tensor`: tensors, variables, arrays, numbers, strings, shapes, and nested sequences of
these."""

SparseLike: TypeAlias = "TensorLike | SparseTensor | SparseTensorValue"
"""A dense value or a sparse one."""

Gradient: TypeAlias = "Tensor | IndexedSlices"
"""The gradient of a tensor: of all of it, or of some rows."""

Ints: TypeAlias = "int | Sequence[int] | np.ndarray[tuple[int, ...], np.dtype[np.integer]]"
"""One number, or one for each of several dimensions."""

FeedDict: TypeAlias = "Mapping[Any, object]"
"""Values to feed, by tensor, tuple of tensors, or name. Keys are ``Any``, since a mapping has keys of one type only."""

OpOrTensor: TypeAlias = "Operation | Tensor | Variable | IndexedSlices"
"""Control inputs of an operation."""

DeviceLike: TypeAlias = "str | Device | DeviceSpec | DeviceFunction | None"
"""A device: its name, its parts, or a function that returns a name for each operation; None for no request."""

Structure: TypeAlias = Any
"""Values nested in lists, tuples, named tuples and dictionaries, to any depth and of any type; or one value."""
