"""Immutable lists of tensors. TensorFlow's version 2 loops store the tensors of their iterations in such lists.

An operation on a list returns a new list. A list is passed as a scalar array that contains a `TensorList`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from headwater.dtypes import DType, from_numpy, int32, string, variant
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec

_LIST: Final = Spec(variant, ())


@dataclass(frozen=True, slots=True, eq=False)
class TensorList:
    """A list of tensors of one type.

    Attributes:
      dtype: the tensors' type.
      dims: the tensors' static shape: sizes, -1 for any; None if the rank is unknown.
      items: the tensors; None for an element that was not set yet.
      limit: maximum number of elements; negative for no limit.
    """

    dtype: DType
    dims: tuple[int, ...] | None
    items: tuple[Any, ...] = ()
    limit: int = -1

    def at(self, index: int, dims: tuple[int, ...] | None) -> HostArray:
        """Returns an element; zeros if it was not set and its shape is known.

        Raises:
          InvalidArgumentError: ``index`` is out of range, or the element was not set and its shape is unknown.
        """
        if not 0 <= index < len(self.items):
            raise InvalidArgumentError(f"Trying to access element {index} in a list with {len(self.items)} elements.")
        value = self.items[index]
        return self._zeros(dims) if value is None else value

    def _zeros(self, dims: tuple[int, ...] | None) -> HostArray:
        known = _merged(self.dims, dims)
        if known is None or -1 in known:
            other = next((item.shape for item in self.items if item is not None), None)
            if other is None:
                raise InvalidArgumentError(
                    "Trying to read an uninitialized tensor but element_shape is not fully defined"
                )
            known = other
        return np.zeros(known, self.dtype.numpy_dtype)

    def stacked(self, indices: Sequence[int], dims: tuple[int, ...] | None) -> HostArray:
        """Stacks elements along a new first dimension."""
        if indices:
            return np.stack([self.at(index, dims) for index in indices])
        known = _merged(self.dims, dims)
        if known is None or -1 in known:
            raise InvalidArgumentError("Tried to stack elements of an empty list with non-fully-defined element_shape")
        return np.zeros((0, *known), self.dtype.numpy_dtype)


def _dims(shape: HostArray) -> tuple[int, ...] | None:
    """Converts the shape that an operation was given: a vector, or -1 for any shape (None)."""
    return None if shape.ndim == 0 else tuple(int(dim) for dim in shape)


def _merged(first: tuple[int, ...] | None, second: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if first is None or second is None:
        return second if first is None else first
    if len(first) != len(second) or any(a != b and -1 not in (a, b) for a, b in zip(first, second, strict=True)):
        raise InvalidArgumentError(f"Incompatible shapes of list elements: {list(first)}, {list(second)}")
    return tuple(max(a, b) for a, b in zip(first, second, strict=True))


def _held(value: TensorList) -> HostArray:
    made = np.empty((), object)
    made[()] = value
    return made


def _lists(inference: Inference) -> Sequence[Spec]:
    del inference
    return [_LIST]


def _elements(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["element_dtype"], None)]


@host("EmptyTensorList", infer=_lists, types={})
def empty(element_shape: HostArray, max_num_elements: HostArray, *, element_dtype: DType) -> HostArray:
    return _held(TensorList(element_dtype, _dims(element_shape), limit=int(max_num_elements)))


@host("TensorListReserve", infer=_lists, types={})
def reserve(element_shape: HostArray, num_elements: HostArray, *, element_dtype: DType) -> HostArray:
    return _held(TensorList(element_dtype, _dims(element_shape), (None,) * int(num_elements)))


@host("TensorListFromTensor", infer=_lists, types={"element_dtype": 0})
def from_tensor(tensor: HostArray, element_shape: HostArray) -> HostArray:
    made = TensorList(
        _dtype_of(tensor), _merged(_dims(element_shape), tensor.shape[1:]), tuple(map(np.asarray, tensor))
    )
    return _held(made)


def _dtype_of(array: HostArray) -> DType:
    return string if array.dtype == object else from_numpy(array.dtype)


@host("TensorListStack", infer=_elements, types={})
def stack(
    input_handle: HostArray, element_shape: HostArray, *, element_dtype: DType, num_elements: int = -1
) -> HostArray:
    del element_dtype
    held: TensorList = input_handle.item()
    if num_elements not in (-1, len(held.items)):
        raise InvalidArgumentError(
            f"Operation expected a list with {num_elements} elements but got a list with {len(held.items)} elements."
        )
    return held.stacked(range(len(held.items)), _dims(element_shape))


@host("TensorListGather", infer=_elements, types={})
def gather(input_handle: HostArray, indices: HostArray, element_shape: HostArray, *, element_dtype: DType) -> HostArray:
    del element_dtype
    return input_handle.item().stacked(indices.tolist(), _dims(element_shape))


@host("TensorListGetItem", infer=_elements, types={})
def get(input_handle: HostArray, index: HostArray, element_shape: HostArray, *, element_dtype: DType) -> HostArray:
    del element_dtype
    return input_handle.item().at(int(index), _dims(element_shape))


@host("TensorListSetItem", infer=_lists, types={"element_dtype": 2})
def set_item(
    input_handle: HostArray, index: HostArray, item: HostArray, *, resize_if_index_out_of_bounds: bool = False
) -> HostArray:
    held: TensorList = input_handle.item()
    place, items = int(index), list(held.items)
    if resize_if_index_out_of_bounds and place >= len(items):
        items += [None] * (place + 1 - len(items))
    if not 0 <= place < len(items):
        raise InvalidArgumentError(f"Trying to modify element {place} in a list with {len(items)} elements.")
    _merged(held.dims, item.shape)
    items[place] = item
    return _held(replace(held, items=tuple(items)))


@host("TensorListPushBack", infer=_lists, types={"element_dtype": 1})
def push(input_handle: HostArray, tensor: HostArray) -> HostArray:
    held: TensorList = input_handle.item()
    if 0 <= held.limit <= len(held.items):
        raise InvalidArgumentError(
            f"Tried to push item into a full list list size: {len(held.items)} max_num_elements: {held.limit}"
        )
    _merged(held.dims, tensor.shape)
    return _held(replace(held, items=(*held.items, tensor)))


@host("TensorListPopBack", infer=lambda inference: [_LIST, *_elements(inference)], types={})
def pop(input_handle: HostArray, element_shape: HostArray, *, element_dtype: DType) -> tuple[HostArray, HostArray]:
    """Returns the list without its last element, and the element."""
    del element_dtype
    held: TensorList = input_handle.item()
    if not held.items:
        raise InvalidArgumentError("Trying to pop from an empty list.")
    last = held.at(len(held.items) - 1, _dims(element_shape))
    return _held(replace(held, items=held.items[:-1])), last


@host("TensorListLength", infer=lambda inference: [Spec(int32, ())], types={})
def length(input_handle: HostArray) -> HostArray:
    return np.array(len(input_handle.item().items), np.int32)


@host("TensorListElementShape", infer=lambda inference: [Spec(inference.attrs["shape_type"], None)], types={})
def element_shape(input_handle: HostArray, *, shape_type: DType) -> HostArray:
    dims = input_handle.item().dims
    return np.array(-1 if dims is None else dims, shape_type.numpy_dtype)


@host("TensorListResize", infer=_lists, types={})
def resize(input_handle: HostArray, size: HostArray) -> HostArray:
    held: TensorList = input_handle.item()
    count = int(size)
    items = (*held.items[:count], *[None] * (count - len(held.items)))
    return _held(replace(held, items=items))
