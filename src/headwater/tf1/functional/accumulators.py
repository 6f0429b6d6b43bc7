"""Accumulators of TensorFlow 1.15: ``tf.ConditionalAccumulator`` and ``tf.SparseConditionalAccumulator``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import DType, DTypeLike, as_dtype, bool_, int64, string
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, make_const
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor
from headwater.shapes import ShapeLike, TensorShape, as_shape

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike
    from headwater.tf1.variables.variables import Variable


class ConditionalAccumulatorBase:
    """Base of dense and sparse accumulators.

    Attributes:
      accumulator_ref: the tensor that represents the accumulator.
      dtype: element type of the gradients.
    """

    def __init__(self, dtype: DTypeLike, shape: ShapeLike, accumulator_ref: Tensor) -> None:
        self.dtype: DType = as_dtype(dtype)
        self._shape: TensorShape = as_shape(shape)
        self.accumulator_ref: Tensor = accumulator_ref

    @property
    def name(self) -> str:
        return self.accumulator_ref.op.name

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """Returns the number of gradients in the accumulator."""
        return self._op("ResourceAccumulatorNumAccumulated", [], name=name or f"{self.name}_NumAccumulated").outputs[0]

    def set_global_step(self, new_global_step: Variable, name: str | None = None) -> Operation:
        """An operation that sets the accumulator's time step: gradients of earlier steps are stale from then on."""
        step = as_int64(new_global_step)
        return self._op("ResourceAccumulatorSetGlobalStep", [step], name=name)

    def _op(
        self, op_type: str, inputs: list[Tensor], attrs: dict[str, Any] | None = None, name: str | None = None
    ) -> Operation:
        graph = self.accumulator_ref.graph
        with graph.colocate_with(self.accumulator_ref.op):
            return graph.create_op(op_type, [self.accumulator_ref, *inputs], attrs, name)


def _make(
    op_type: str, dtype: DTypeLike, shape: ShapeLike, shared_name: str | None, name: str, reduction_type: str
) -> Tensor:
    if reduction_type not in ("MEAN", "SUM"):
        raise ValueError(f"reduction_type must be 'MEAN' or 'SUM', not {reduction_type!r}")
    if as_dtype(dtype).base_dtype in (string, bool_):
        raise TypeError(
            f"Value passed to parameter 'dtype' has DataType {as_dtype(dtype).name}, which cannot be added up"
        )
    attrs = {
        "dtype": as_dtype(dtype),
        "shape": as_shape(shape),
        "shared_name": shared_name or "",
        "reduction_type": reduction_type,
    }
    return get_default_graph().create_op(op_type, [], attrs, name).outputs[0]


def as_int64(value: Any) -> Tensor:
    """Converts ``value`` to int64, the type of steps and indices."""
    tensor = convert_to_tensor(value)
    if tensor.dtype.base_dtype == int64:
        return tensor
    return tensor.graph.create_op("Cast", [tensor], {"DstT": int64}).outputs[0]


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Accumulates gradients of one variable until enough have arrived.

    Args:
      dtype: the dtype of the gradients.
      shape: the shape of the gradients, as far as known.
      shared_name: share it between sessions under this name.
      reduction_type: the result of `take_grad`: ``"MEAN"`` or ``"SUM"``.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        shape: ShapeLike | None = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = _make("ResourceConditionalAccumulator", dtype, shape, shared_name, name, reduction_type)
        super().__init__(dtype, shape, ref)

    def apply_grad(self, grad: Tensor, local_step: object = 0, name: str | None = None) -> Operation:
        """An operation that adds ``grad``, unless ``local_step`` is less than the accumulator's time step.

        Raises:
          ValueError: ``grad`` does not have the accumulator's shape.
        """
        tensor = convert_to_tensor(grad, self.dtype)
        tensor.shape.assert_is_compatible_with(self._shape)
        attrs = {"dtype": self.dtype}
        return self._op("ResourceAccumulatorApplyGradient", [as_int64(local_step), tensor], attrs, name)

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """Returns the reduced gradient, after ``num_required`` have arrived. Empties the accumulator; increments its
        step."""
        attrs = {"dtype": self.dtype, "_shape": self._shape}
        required = [convert_to_tensor(num_required)]
        return self._op("ResourceAccumulatorTakeGradient", required, attrs, name).outputs[0]


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """A `ConditionalAccumulator` for `IndexedSlices`. The mean of a row is over the gradients that contain it."""

    def __init__(
        self,
        dtype: DTypeLike,
        shape: ShapeLike | None = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = _make("SparseConditionalAccumulator", dtype, shape, shared_name, name, reduction_type)
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: object = 0, name: str | None = None
    ) -> Operation:
        """Like `apply_grad`, with the parts of ``grad``."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: TensorLike,
        grad_values: TensorLike,
        grad_shape: TensorLike | None = None,
        local_step: object = 0,
        name: str | None = None,
    ) -> Operation:
        """An operation that adds rows, unless ``local_step`` is less than the accumulator's time step."""
        known = grad_shape is not None
        inputs = [
            as_int64(local_step),
            as_int64(grad_indices),
            convert_to_tensor(grad_values, self.dtype),
            as_int64(grad_shape) if known else make_const(np.zeros(0, np.int64)),
        ]
        attrs = {"dtype": self.dtype, "has_known_shape": known}
        return self._op("SparseAccumulatorApplyGradient", inputs, attrs, name)

    def take_grad(self, num_required: Any, name: str | None = None) -> list[Tensor]:
        """Indices, values and shape of the reduced gradient; see `ConditionalAccumulator.take_grad`."""
        attrs = {"dtype": self.dtype, "_shape": self._shape}
        required = [convert_to_tensor(num_required)]
        return self._op("SparseAccumulatorTakeGradient", required, attrs, name).outputs

    def take_indexed_slices_grad(self, num_required: object, name: str | None = None) -> IndexedSlices:
        """Same as `take_grad`."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
