"""`TensorArray` of TensorFlow 2: tensors by position, in a list.

Positions must have values: a loop of unknown length that writes to an array runs as Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp
import numpy as np

from headwater.dtypes import DType, as_dtype
from headwater.errors import InvalidArgumentError, OutOfRangeError
from headwater.shapes import TensorShape
from headwater.tf1.functional.tensor_arrays import TensorArray as GraphTensorArray
from headwater.tf2.at_once import adds_operations
from headwater.tf2.tensors import constant, convert_to_tensor, host_tensor, to_numpy
from headwater.tf2.tracing import tracing

if TYPE_CHECKING:
    from headwater.keras.types import Tree


class _Kind(type):
    """While functions add operations to a graph, a new array is an array of this graph."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or isinstance(instance, GraphTensorArray)

    def __call__(cls, *args: Tree, **kwargs: Tree) -> Tree:
        return GraphTensorArray(*args, **kwargs) if adds_operations() else super().__call__(*args, **kwargs)


class TensorArray(metaclass=_Kind):
    """An array of tensors of one type.

    In eager execution `write` changes the array and returns it; in a function that is compiled it returns a new array.

    Args:
      dtype: element type.
      size: number of elements; 0 if None and ``dynamic_size``.
      dynamic_size: writing beyond the end extends the array.
      clear_after_read: an element can be read once only.
      infer_shape: all elements have the same shape.
      element_shape: the static shape of each element.
      tensor_array_name, handle, flow, colocate_with_first_write_call, name: ignored, as in eager execution of
        TensorFlow.

    Raises:
      ValueError: neither a size nor ``dynamic_size`` is given.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: object = None,
        flow: object = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        del tensor_array_name, handle, flow, colocate_with_first_write_call, name
        if size is None and not dynamic_size:
            raise ValueError("Size must be provided if flow is not provided")
        self._dtype = as_dtype(dtype).base_dtype
        self._grows = bool(dynamic_size)
        self._clears = clear_after_read is None or clear_after_read
        self._alike = infer_shape
        self._shape = TensorShape(element_shape)
        self._items: list[Any] = [None] * (0 if size is None else int(size))
        self._read: frozenset[int] = frozenset()

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writing beyond the end extends the array."""
        return self._grows

    @property
    def element_shape(self) -> TensorShape:
        """The static shape of each element."""
        return self._shape

    @property
    def flow(self) -> Tree:
        """A tensor without a meaning, as in eager execution of TensorFlow."""
        return constant(0.0)

    handle = None

    def _changed(self, items: list[Any]) -> Self:
        """Returns the array with these elements: itself, or a new one in a function that is compiled."""
        made = self
        if tracing() is not None:
            made = object.__new__(type(self))
            vars(made).update(vars(self))
        made._items = items
        return made

    def identity(self) -> Self:
        """Returns the array."""
        return self

    def close(self, name: str | None = None) -> None:
        """Drops all elements."""
        del name
        self._items = []

    def size(self, name: str | None = None) -> Tree:
        """Returns the number of elements."""
        del name
        count = np.asarray(len(self._items), np.int32)
        return host_tensor(count) if tracing() is not None else constant(count)

    def read(self, index: Any, name: str | None = None) -> Tree:
        """Returns the element ``index``.

        Raises:
          OutOfRangeError: the array has no such element.
          InvalidArgumentError: the element was not written, or was read already.
        """
        del name
        at = int(index)
        if not 0 <= at < len(self._items):
            raise OutOfRangeError(f"Tried to read from index {at} but array size is: {len(self._items)}")
        if at in self._read:
            raise InvalidArgumentError(
                f"Could not read index {at} twice because it was cleared after a previous read (perhaps try setting "
                "clear_after_read = false?)"
            )
        value = self._element(at)
        if self._clears:
            self._items[at] = None
            self._read |= {at}
        return value

    def _element(self, at: int) -> Tree:
        value = self._items[at]
        if value is not None:
            return value
        if not self._shape.is_fully_defined():
            raise InvalidArgumentError(f"Could not read index {at} of a TensorArray: it was not written")
        return jnp.zeros(self._shape.as_list(), self._dtype.numpy_dtype)

    def write(self, index: Any, value: Tree, name: str | None = None) -> Self:
        """Returns the array with ``value`` as element ``index``.

        Raises:
          OutOfRangeError: the array has no such element, and does not grow.
          InvalidArgumentError: the value has the wrong type.
          ValueError: the value has the wrong shape.
        """
        del name
        at = int(index)
        items = self._items if tracing() is None else list(self._items)
        if at < 0:
            raise OutOfRangeError(f"Writing to negative indices (index {at}) is not allowed.")
        if at >= len(items):
            if not self._grows:
                raise OutOfRangeError(
                    f"Tried to write to index {at} but array is not resizeable and size is: {len(items)}"
                )
            items.extend([None] * (at + 1 - len(items)))
        items[at] = self._checked(value)
        return self._changed(items)

    def _checked(self, value: object) -> Tree:
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        dtype = as_dtype(tensor.dtype)
        if dtype != self._dtype:
            raise InvalidArgumentError(
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype {dtype.name}"
            )
        shape = TensorShape(tensor.shape)
        if not self._shape.is_compatible_with(shape):
            raise ValueError(f"Incompatible shape for value ({shape}), expected ({self._shape})")
        if self._alike:
            self._shape = self._shape.merge_with(shape)
        return tensor

    def stack(self, name: str | None = None) -> Tree:
        """Stacks all elements along a new first dimension."""
        del name
        return self._together(range(len(self._items)))

    def gather(self, indices: object, name: str | None = None) -> Tree:
        """Stacks the elements ``indices`` along a new first dimension."""
        del name
        return self._together([int(at) for at in to_numpy(indices)])

    def _together(self, places: Sequence[int]) -> Tree:
        items = [self._element(at) for at in places]
        if items and self._dtype.numpy_dtype == np.dtype(object):
            return host_tensor(np.stack([np.asarray(item, object) for item in items]))
        if items:
            return jnp.stack(items)
        return jnp.zeros([0, *(size or 0 for size in self._shape.dims or ())], self._dtype.numpy_dtype)

    def concat(self, name: str | None = None) -> Tree:
        """Concatenates all elements along their first dimension."""
        del name
        return jnp.concatenate([self._element(at) for at in range(len(self._items))])

    def unstack(self, value: object, name: str | None = None) -> Self:
        """Returns the array with the slices of ``value`` along its first dimension as elements."""
        del name
        whole = convert_to_tensor(value)
        if len(whole) > len(self._items) and not self._grows and self._items:
            raise ValueError(
                f"Cannot unstack {len(whole)} tensors into a TensorArray of static size {len(self._items)}"
            )
        return self._changed([self._checked(row) for row in whole])

    def scatter(self, indices: object, value: object, name: str | None = None) -> Self:
        """Returns the array with the slices of ``value`` as the elements ``indices``."""
        del name
        array = self
        for at, row in zip(to_numpy(indices), convert_to_tensor(value), strict=True):
            array = array.write(at, row)
        return array

    def split(self, value: object, lengths: object, name: str | None = None) -> Self:
        """Returns the array with parts of ``value`` of these lengths, along its first dimension, as elements."""
        del name
        whole = convert_to_tensor(value)
        ends = np.cumsum(to_numpy(lengths)).tolist()
        return self._changed([self._checked(whole[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)])
