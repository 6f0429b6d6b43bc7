"""Some rows of a tensor: gradients of gathers, and inputs of sparse updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater.dtypes import DType, int32
from headwater.graph.composites import CompositeTensor
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, make_const, register_tensor_conversion_function
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import CHECKED
from headwater.shapes import TensorShape

import numpy as np  # isort: skip

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


class IndexedSlices(CompositeTensor):
    """Some rows of a tensor of shape ``dense_shape``: row ``indices[i]`` is ``values[i]``, and all other rows are zero.

    If several rows have the same index, their sum counts.

    Args:
      summed: slices that represent the same tensor with fewer rows, because rows with equal indices were added up; used
          if only the sum is needed.
      distinct: whether all indices within the tensor are different.

    Attributes:
      distinct: whether all indices within the tensor are different.
    """

    def __init__(
        self,
        values: Tensor,
        indices: Tensor,
        dense_shape: Tensor | None = None,
        *,
        summed: IndexedSlices | None = None,
        distinct: bool = False,
    ) -> None:
        self.values: Tensor = values
        self.indices: Tensor = indices
        self.dense_shape: Tensor | None = dense_shape
        self._summed = summed
        self.distinct: bool = distinct

    @property
    def summed(self) -> IndexedSlices:
        """Equal slices with as few rows as possible."""
        return self if self._summed is None else self._summed

    def scaled(self, values: Callable[[Tensor], Tensor]) -> IndexedSlices:
        """Returns the slices with other values.

        Args:
          values: computes the values; must be linear, such as a product with a number.
        """
        changed = values(self.values)
        summed = None if self._summed is None else self._summed.scaled(values)
        return IndexedSlices(changed, self.indices, self.dense_shape, summed=summed, distinct=self.distinct)

    @property
    def components(self) -> list[Tensor]:
        return [self.values, self.indices, *([] if self.dense_shape is None else [self.dense_shape])]

    def with_components(self, components: Sequence[Tensor]) -> IndexedSlices:
        return IndexedSlices(*components)

    def component_shapes(self, shape: TensorShape) -> list[TensorShape]:
        """Returns the components' shapes, if the values have this ``shape``."""
        return [shape, shape[:1], TensorShape([shape.ndims])][: len(self.components)]

    @property
    def name(self) -> str:
        return self.values.name

    @property
    def op(self) -> Operation:
        return self.values.op

    @property
    def graph(self) -> Graph:
        return self.values.graph

    @property
    def device(self) -> str:
        return self.values.device

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    def __neg__(self) -> IndexedSlices:
        return self.scaled(lambda values: values.graph.create_op("Neg", [values]).outputs[0])

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices}, values={self.values}, dense_shape={self.dense_shape})"


def concat_slices(parts: list[IndexedSlices]) -> IndexedSlices:
    """Concatenates the rows of ``parts``, which represents their sum."""
    if len(parts) == 1:
        return parts[0]
    summed = None if all(part.summed is part for part in parts) else concat_slices([part.summed for part in parts])
    graph = parts[0].graph
    axis = make_const(np.array(0, np.int32), "axis")
    indices = [_as_type(part.indices, parts[0].indices.dtype) for part in parts]
    return IndexedSlices(
        graph.create_op("ConcatV2", [*(part.values for part in parts), axis], {"N": len(parts)}).outputs[0],
        graph.create_op("ConcatV2", [*indices, axis], {"N": len(parts)}).outputs[0],
        parts[0].dense_shape,
        summed=summed,
    )


def _as_type(tensor: Tensor, dtype: DType) -> Tensor:
    if tensor.dtype == dtype:
        return tensor
    return tensor.graph.create_op("Cast", [tensor], {"DstT": dtype}).outputs[0]


def _densify(value: Any, dtype: DType | None, name: str | None, as_ref: bool) -> Tensor:
    del dtype, as_ref
    if value.dense_shape is None:
        raise ValueError(f"Tensor conversion requested for IndexedSlices without dense_shape: {value!r}")
    graph = get_default_graph()
    value = value.summed
    shape = _as_type(value.dense_shape, int32)
    bounds = [make_const(np.array([v], np.int32)) for v in (0, 1, 1)]
    rows = graph.create_op("StridedSlice", [shape, *bounds], {"shrink_axis_mask": 1}).outputs[0]
    return graph.create_op("UnsortedSegmentSum", [value.values, value.indices, rows], name=name).outputs[0]


register_tensor_conversion_function(IndexedSlices, _densify)


def to_dense(value: Tensor | IndexedSlices) -> Tensor:
    """Converts ``value`` to a dense tensor."""
    return convert_to_tensor(value)


#: Operations with outputs that include, in addition to indices of rows, numbers that mark rows to skip.
_WITHOUT_ROW: Final = frozenset({"RowsOfPart", "SumEqualRows", "UpdateRows"})


def checked(indices: TensorLike) -> dict[str, bool]:
    """Returns the attributes of an operation on the rows at ``indices`` that make an index out of range an error; no
    attributes if an operation in `_WITHOUT_ROW` computes ``indices``.
    """
    seen: set[Tensor] = set()
    stack: list[Tensor] = [indices] if isinstance(indices, Tensor) else []
    while stack:
        tensor = stack.pop()
        if tensor in seen or not tensor.dtype.base_dtype.is_integer:
            continue
        if tensor.op.type in _WITHOUT_ROW:
            return {}
        seen.add(tensor)
        stack.extend(tensor.op.inputs)
    return {CHECKED: True}
