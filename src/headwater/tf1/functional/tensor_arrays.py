"""`TensorArray`: tensors by position, which loops write and read one at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import NotImplementedType
from typing import TYPE_CHECKING, Any, Final

from headwater.dtypes import as_dtype, int32
from headwater.errors import InvalidArgumentError
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import register_gradient
from headwater.graph.types import TensorLike
from headwater.shapes import ShapeLike, TensorShape, as_shape
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.apply import one

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike

_ELEMENTS: Final = "TensorArrayElements"
"""Gradient type of element reads: a dense tensor, as in TensorFlow, where a gather's gradient would be slices."""


class TensorArray:
    """An array of tensors of one type. Writing returns a new array; loops and conditions take and return arrays.

    Its elements are stacked along the first dimension of one tensor, `flow`. Until the shape of the elements is known,
    that tensor has shape ``[size, 0]``.

    Args:
      dtype: element type.
      size: number of elements; must be known when a step is compiled. By default 0 with ``dynamic_size``.
      dynamic_size: writing beyond the end extends the array, outside of compiled loops.
      clear_after_read: accepted; elements are never cleared.
      tensor_array_name: name of TensorFlow's resource on the task; accepted, because the elements are in ``flow``.
      handle: handle of another array whose elements to use; like ``flow``.
      flow: the elements.
      infer_shape: all elements have one shape. If False, `split` accepts computed lengths that differ.
      element_shape: static shape of each element.
      colocate_with_first_write_call: a hint for speed.

    Raises:
      ValueError: not exactly one of ``size`` and ``handle`` is given.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        size: TensorLike | None = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: ShapeLike | None = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        del clear_after_read, tensor_array_name, colocate_with_first_write_call
        if handle is not None and size is not None:
            raise ValueError("Cannot provide both a handle and size at the same time")
        if handle is not None and element_shape is not None:
            raise ValueError("Cannot provide both a handle and element_shape at the same time")
        if handle is not None and dynamic_size is not None:
            raise ValueError("Cannot provide both a handle and dynamic_size at the same time")
        flow = handle if flow is None else flow
        self._dtype = as_dtype(dtype).base_dtype
        self._grows = bool(dynamic_size)
        self._alike = infer_shape
        self._written: frozenset[int] = frozenset()
        if flow is None:
            if size is None and not dynamic_size:
                raise ValueError("Size must be provided if flow is not provided")
            attrs: dict[str, object] = {"dtype": self._dtype}
            if element_shape is not None and as_shape(element_shape).is_fully_defined():
                attrs["element_shape"] = as_shape(element_shape)
            flow = one("TensorArray", 0 if size is None else _integer(size), name=name or "TensorArray", **attrs)
        self._flow = flow

    def with_flow(self, flow: Tensor) -> TensorArray:
        """An array like this one with the elements ``flow``."""
        return TensorArray(self._dtype, flow=flow, dynamic_size=self._grows, infer_shape=self._alike)

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def flow(self) -> Tensor:
        """The elements, along the first dimension."""
        return self._flow

    @property
    def handle(self) -> Tensor:
        return self._flow

    @property
    def dynamic_size(self) -> bool:
        return self._grows

    @property
    def element_shape(self) -> TensorShape:
        dims = self._flow.dims
        return TensorShape(None if dims is None else dims[1:])

    def identity(self) -> TensorArray:
        """Returns this array with the current control dependencies."""
        return self.with_flow(arrays.identity(self._flow))

    def grad(self, source: str, flow: object = None, name: str | None = None) -> TensorArray:
        """Not supported.

        Raises:
          NotImplementedError: always; `tf.gradients` of read, stacked or gathered elements needs no array of gradients.
        """
        raise NotImplementedError(
            f"TensorArray.grad({source!r}) is not supported: take tf.gradients of the results of read, stack or gather"
        )

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        """The element ``index``.

        Raises:
          InvalidArgumentError: nothing was written, and the shape of an element is not known.
        """
        if self._flow.op.type == "TensorArray" and "element_shape" not in self._flow.op.attrs:
            raise InvalidArgumentError(
                f"Could not read from TensorArray {self._flow.op.name!r}: nothing was written to it"
            )
        with _dense_gradient():
            return indexing.gather(self._flow, _integer(index), name=name or "TensorArrayRead")

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """An array with ``value`` as element ``index``.

        Raises:
          InvalidArgumentError: an earlier write had the same constant ``index``.
        """
        value = convert_to_tensor(value, self._dtype)
        place = _integer(index)
        known = constant_value(place)
        at: set[int] = set() if known is None else {int(known)}
        if at & self._written:
            raise InvalidArgumentError(
                f"TensorArray {self._flow.op.name}: Could not write to TensorArray index {known} because it has "
                "already been written to."
            )
        flow = one("TensorArrayWrite", self._flow, place, value, grows=self._grows, name=name or "TensorArrayWrite")
        array = self.with_flow(flow)
        array._written = self._written | at
        return array

    def stack(self, name: str | None = None) -> Tensor:
        """Stacks all elements along a new first dimension."""
        return arrays.identity(self._flow, name=name or "TensorArrayStack")

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements ``indices``, along a new first dimension."""
        with _dense_gradient():
            return indexing.gather(self._flow, indices, name=name or "TensorArrayGather")

    def concat(self, name: str | None = None) -> Tensor:
        """Concatenates all elements along their first dimension."""
        shape = arrays.shape(self._flow)
        return arrays.reshape(self._flow, arrays.concat([[-1], shape[2:]], 0), name=name or "TensorArrayConcat")

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """Returns an array with the slices of ``value`` along its first dimension as elements."""
        return self.with_flow(arrays.identity(convert_to_tensor(value, self._dtype), name=name or "TensorArrayUnstack"))

    def scatter(self, indices: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """An array with the slices of ``value`` as the elements ``indices``."""
        array: TensorArray = self
        for place, item in enumerate(arrays.unstack(convert_to_tensor(value, self._dtype))):
            array = array.write(convert_to_tensor(indices)[place], item, name=name)
        return array

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        """An array of parts of ``value`` along its first dimension.

        Args:
          lengths: the length of each part.
        """
        value = convert_to_tensor(value, self._dtype)
        lengths = convert_to_tensor(lengths)
        known = constant_value(lengths)
        if not self._alike if known is None else len(set(known.tolist())) > 1:
            return _SplitArray(value, _integer(lengths))
        count = arrays.size(lengths)
        shape = arrays.concat([[count], [-1], arrays.shape(value)[1:]], 0)
        return self.with_flow(arrays.reshape(value, shape, name=name or "TensorArraySplit"))

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of elements."""
        return math.add(arrays.shape(self._flow)[0], 0, name=name or "TensorArraySize")

    def close(self, name: str | None = None) -> Operation:
        """Does nothing: an array ends with its step."""
        return arrays.identity(self._flow, name=name or "TensorArrayClose").op


class _SplitArray(TensorArray):
    """Parts of a tensor along its first dimension, of different lengths. All elements are written.

    Args:
      flow: the parts, one after the other.
      lengths: int32, the length of each.
    """

    def __init__(self, flow: Tensor, lengths: Tensor) -> None:
        super().__init__(flow.dtype, flow=flow, infer_shape=False)
        self._lengths = lengths

    def with_flow(self, flow: Tensor) -> TensorArray:
        return _SplitArray(flow, self._lengths)

    @property
    def element_shape(self) -> TensorShape:
        dims = self._flow.dims
        return TensorShape(None if dims is None else (None, *dims[1:]))

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        index = _integer(index)
        start = reductions.cumsum(self._lengths, exclusive=True)[index]
        return arrays.identity(self._flow[start : start + self._lengths[index]], name=name or "TensorArrayRead")

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        raise InvalidArgumentError(f"TensorArray {self._flow.op.name}: all elements have been written to by split")

    def concat(self, name: str | None = None) -> Tensor:
        return arrays.identity(self._flow, name=name or "TensorArrayConcat")

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements ``indices``, which must have one length, along a new first dimension."""
        return indexing.gather(self.stack(), indices, name=name or "TensorArrayGather")

    def stack(self, name: str | None = None) -> Tensor:
        """Stacks all elements, which must have one length, along a new first dimension."""
        shape = arrays.concat([[arrays.size(self._lengths), -1], arrays.shape(self._flow)[1:]], 0)
        return arrays.reshape(self._flow, shape, name=name or "TensorArrayStack")

    def size(self, name: str | None = None) -> Tensor:
        return arrays.size(self._lengths, name=name or "TensorArraySize")


def _elements_gradient(op: Operation, grad: object) -> NotImplementedType:
    """Selects the gradient derived from the operation's own computation: zeros for elements that were not read."""
    del op, grad
    return NotImplemented


register_gradient(_ELEMENTS, _elements_gradient)


def _dense_gradient() -> AbstractContextManager[None]:
    return get_default_graph().gradient_override_map({"GatherV2": _ELEMENTS})


def _integer(value: TensorLike) -> Tensor:
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype.base_dtype == int32 else math.cast(tensor, int32)
