"""Stacks and arrays of tensors that are referred to by handles and exist for one step, as loops in TensorFlow's graphs
use them.

A handle is a scalar array that contains the object itself; the object is freed together with its last handle.
The operations of an array also take and return a *flow*: a number without meaning, whose dependencies determine the
order of the operations. Headwater's own functions use `headwater.graph.ops.tensor_arrays` instead, where an array is a
tensor, so that its operations can be compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from headwater.dtypes import DType, float32, int32, int64, resource
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.shapes import TensorShape, as_shape, merge_dims

_FLOW: Final = Spec(float32, ())


def _handle(held: object) -> HostArray:
    made = np.empty((), object)
    made[()] = held
    return made


# Stacks ---------------------------------------------------------------------------------------------------------


class Stack:
    """A stack of values, one for each iteration of a loop; the loop's gradient pops them in reverse order.

    Args:
      limit: maximum number of values; negative for no limit.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: list[Any] = []

    def push(self, value: object) -> None:
        if 0 <= self._limit <= len(self._values):
            raise InvalidArgumentError(f"Stack overflow: it holds {self._limit} values already")
        self._values.append(value)

    def pop(self) -> Any:
        if not self._values:
            raise InvalidArgumentError("Stack is empty when calling Pop()")
        return self._values.pop()


@host("StackV2", inputs="max_size:int32", infer=lambda inference: [Spec(resource, ())])
def stack(max_size: HostArray, *, elem_type: DType, stack_name: str = "") -> HostArray:
    del elem_type, stack_name
    return _handle(Stack(int(max_size)))


def _pushed(inference: Inference) -> Sequence[Spec]:
    value = inference.inputs[1]
    return [Spec(value.dtype.base_dtype, value.dims)]


@host("StackPushV2", infer=_pushed, types={"T": 1})
def push(handle: HostArray, elem: HostArray, *, swap_memory: bool = False) -> HostArray:
    del swap_memory
    handle.item().push(elem)
    return elem


@host("StackPopV2", infer=lambda inference: [Spec(inference.attrs["elem_type"], None)], types={})
def pop(handle: HostArray, *, elem_type: DType) -> HostArray:
    del elem_type
    return handle.item().pop()


@host("StackCloseV2", infer=lambda inference: [], types={})
def close_stack(handle: HostArray) -> None:
    """Does nothing: a stack ends with its step."""
    del handle


# Arrays ---------------------------------------------------------------------------------------------------------


class Elements:
    """An array of tensors.

    Args:
      dtype: the elements' type.
      size: number of elements.
      shape: static shape of the elements.
      grows: whether writing past the end extends it.
      clears: whether an element is freed when it is read, and so can be read only once.
      same: whether all elements must have the shape of the first one written.
      sums: whether writing to an element again adds to it.
      of: the array whose gradients this array holds, if any.
    """

    def __init__(
        self,
        dtype: DType,
        size: int,
        shape: TensorShape,
        *,
        grows: bool = False,
        clears: bool = False,
        same: bool = False,
        sums: bool = False,
        of: Elements | None = None,
    ) -> None:
        if size < 0:
            raise InvalidArgumentError(f"Size should be >= 0, not {size}")
        self._dtype, self._shape = dtype, shape
        self._grows, self._clears, self._same, self._sums, self._of = grows, clears, same, sums, of
        self._values: list[Any] = [None] * size
        self._cleared: set[int] = set()
        self._gradients: dict[str, Elements] = {}

    def __len__(self) -> int:
        return len(self._values)

    def write(self, index: int, value: HostArray) -> None:
        """Sets an element.

        Raises:
          InvalidArgumentError: ``index`` is outside of the array, the element was already written, or ``value`` has the
            wrong shape or type.
        """
        if index < 0 or (index >= len(self) and not self._grows):
            raise InvalidArgumentError(
                f"Tried to write to index {index} but array is not resizeable and size is: {len(self)}"
            )
        try:
            shape = merge_dims(self._shape.as_dims, value.shape)
        except ValueError:
            raise InvalidArgumentError(
                f"Could not write to TensorArray index {index}: the value has shape {list(value.shape)}, and elements "
                f"have shape {self._shape}"
            ) from None
        self._values.extend([None] * (index + 1 - len(self)))
        before = self._values[index]
        if before is not None and not self._sums:
            raise InvalidArgumentError(
                f"Could not write to TensorArray index {index} because it has already been written to"
            )
        if self._same:
            self._shape = TensorShape(shape)
        self._values[index] = value if before is None else before + value

    def read(self, index: int) -> HostArray:
        """Returns an element; zeros if it was not written, but its shape is known.

        Raises:
          InvalidArgumentError: ``index`` is outside of the array, or the element was cleared or never written.
        """
        if not 0 <= index < len(self):
            raise InvalidArgumentError(f"Tried to read from index {index} but array size is: {len(self)}")
        if index in self._cleared:
            raise InvalidArgumentError(
                f"Could not read index {index} twice because it was cleared after a previous read (perhaps try setting "
                "clear_after_read = false?)"
            )
        value = self._values[index]
        if value is None:
            value = self._zeros(index)
        if self._clears:
            self._values[index] = None
            self._cleared.add(index)
        return value

    def _zeros(self, index: int) -> HostArray:
        dims = self._shape.as_dims
        if self._of is not None:
            written = self._of.shape_at(index)
            dims = dims if written is None else written
        if dims is None or None in dims:
            raise InvalidArgumentError(
                f"Could not read from TensorArray index {index}: nothing was written to it, and element_shape "
                f"{self._shape} does not determine the shape of zeros to return"
            )
        return np.zeros([dim or 0 for dim in dims], self._dtype.numpy_dtype)

    def shape_at(self, index: int) -> tuple[int, ...] | None:
        """The shape of an element; None if nothing was written to it."""
        value = self._values[index] if index < len(self) else None
        return None if value is None else value.shape

    def together(self, indices: Sequence[int], shape: TensorShape) -> HostArray:
        """Returns elements, stacked along a new first dimension."""
        if not len(indices):
            dims = merge_dims(self._shape.as_dims, shape.as_dims)
            if dims is None or None in dims:
                raise InvalidArgumentError(
                    f"TensorArray has size zero, but element shape {self._shape} is not fully defined. Currently only "
                    "static shapes are supported when packing zero-size TensorArrays."
                )
            return np.zeros([0, *(dim or 0 for dim in dims)], self._dtype.numpy_dtype)
        values = [self.read(int(index)) for index in indices]
        different = next((value.shape for value in values if value.shape != values[0].shape), None)
        if different is not None:
            raise InvalidArgumentError(
                f"TensorArray has inconsistent shapes: an element has shape {list(values[0].shape)}, another one "
                f"{list(different)}"
            )
        return np.stack(values)

    def gradients(self, source: str) -> Elements:
        """Returns the array of gradients for the gradient computation named ``source``; calls with equal names return
        the same array."""
        if self._grows and self._values:
            self._grows = False
        if source not in self._gradients:
            self._gradients[source] = Elements(self._dtype, len(self), self._shape, same=self._same, sums=True, of=self)
        return self._gradients[source]


@host("TensorArrayV3", inputs="size:int32", infer=lambda inference: [Spec(resource, ()), _FLOW], types={})
def new(
    size: HostArray,
    *,
    dtype: DType,
    element_shape: TensorShape | None = None,
    dynamic_size: bool = False,
    clear_after_read: bool = True,
    identical_element_shapes: bool = False,
    tensor_array_name: str = "",
) -> tuple[HostArray, HostArray]:
    del tensor_array_name
    made = Elements(
        dtype,
        int(size),
        as_shape(element_shape),
        grows=dynamic_size,
        clears=clear_after_read,
        same=identical_element_shapes,
    )
    return _handle(made), np.zeros((), np.float32)


@host("TensorArrayGradV3", infer=lambda inference: [Spec(resource, ()), _FLOW], types={})
def gradients(handle: HostArray, flow: HostArray, *, source: str) -> tuple[HostArray, HostArray]:
    return _handle(handle.item().gradients(source)), flow


@host("TensorArrayWriteV3", infer=lambda inference: [_FLOW], types={"T": 2})
def write(handle: HostArray, index: HostArray, value: HostArray, flow: HostArray) -> HostArray:
    handle.item().write(int(index), value)
    return flow


def _element(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["dtype"], None)]


def _elements(inference: Inference) -> Sequence[Spec]:
    shape = as_shape(inference.attrs.get("element_shape")).as_dims
    return [Spec(inference.attrs["dtype"], None if shape is None else (None, *shape))]


@host("TensorArrayReadV3", infer=_element, types={})
def read(handle: HostArray, index: HostArray, flow: HostArray, *, dtype: DType) -> HostArray:
    del flow, dtype
    return handle.item().read(int(index))


@host("TensorArrayGatherV3", infer=_elements, types={})
def gather(
    handle: HostArray, indices: HostArray, flow: HostArray, *, dtype: DType, element_shape: TensorShape | None = None
) -> HostArray:
    del flow, dtype
    return handle.item().together(indices.tolist(), as_shape(element_shape))


@host("TensorArrayScatterV3", infer=lambda inference: [_FLOW], types={"T": 2})
def scatter(handle: HostArray, indices: HostArray, value: HostArray, flow: HostArray) -> HostArray:
    for index, element in zip(indices.tolist(), value, strict=True):
        handle.item().write(index, np.asarray(element))
    return flow


@host(
    "TensorArrayConcatV3",
    infer=lambda inference: [Spec(inference.attrs["dtype"], None), Spec(int64, (None,))],
    types={},
)
def concat(
    handle: HostArray, flow: HostArray, *, dtype: DType, element_shape_except0: TensorShape | None = None
) -> tuple[HostArray, HostArray]:
    """Concatenates all elements along their first dimension; also returns the length of each."""
    del flow
    array: Elements = handle.item()
    if not len(array):
        shape = as_shape(element_shape_except0).as_dims
        if shape is None or None in shape:
            raise InvalidArgumentError("TensorArray has size zero, and element_shape_except0 is not fully defined")
        return np.zeros([0, *(dim or 0 for dim in shape)], dtype.numpy_dtype), np.zeros([0], np.int64)
    values = [array.read(index) for index in range(len(array))]
    return np.concatenate(values), np.array([len(value) for value in values], np.int64)


@host("TensorArraySplitV3", infer=lambda inference: [_FLOW], types={"T": 1})
def split(handle: HostArray, value: HostArray, lengths: HostArray, flow: HostArray) -> HostArray:
    """Writes parts of ``value`` along its first dimension as the elements."""
    array: Elements = handle.item()
    if int(lengths.sum()) != len(value):
        raise InvalidArgumentError(
            f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {int(lengths.sum())} and "
            f"value's shape is: {list(value.shape)}"
        )
    first = 0
    for index, length in enumerate(lengths.tolist()):
        array.write(index, value[first : first + length])
        first += length
    return flow


@host("TensorArraySizeV3", infer=lambda inference: [Spec(int32, ())], types={})
def size(handle: HostArray, flow: HostArray) -> HostArray:
    del flow
    return np.array(len(handle.item()), np.int32)


@host("TensorArrayCloseV3", infer=lambda inference: [], types={})
def close(handle: HostArray) -> None:
    """Does nothing: an array ends with its step."""
    del handle
