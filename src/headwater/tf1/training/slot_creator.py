"""Slots: variables that an optimizer keeps for a variable, of its shape or another, on its device.

A slot is named after its variable: ``weight/Adagrad`` is the accumulator that Adagrad keeps for ``weight``.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from headwater.dtypes import as_dtype
from headwater.graph.context import get_default_graph
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.variables.initializers import Zeros
from headwater.tf1.variables.save_slice import SaveSliceInfo
from headwater.tf1.variables.variable_scope import get_variable, variable_scope
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.dtypes import DType, DTypeLike
    from headwater.graph.types import GraphTensor
    from headwater.tf1.variables.types import AnyVariable, InitializerLike


def create_slot(primary: GraphTensor, val: object, name: str, colocate_with_primary: bool = True) -> AnyVariable:
    """Creates a slot with the initial value ``val``, a tensor.

    Args:
      primary: the variable, or a tensor.
      val: the initial value; of any shape.
      name: the slot's name beneath the variable's.
      colocate_with_primary: keep it on the variable's device.
    """
    shape = val.shape if isinstance(val, Tensor) else None
    validate_shape = shape is not None and shape.is_fully_defined()
    return _create(primary, name, val, None, None, validate_shape, colocate_with_primary)


def create_slot_with_initializer(
    primary: GraphTensor,
    initializer: InitializerLike,
    shape: Any,
    dtype: DTypeLike,
    name: str,
    colocate_with_primary: bool = True,
) -> AnyVariable:
    """Creates a slot of ``shape`` and ``dtype`` with an initializer; see `create_slot`."""
    validate_shape = as_shape(shape).is_fully_defined()
    return _create(primary, name, initializer, shape, dtype, validate_shape, colocate_with_primary)


def create_zeros_slot(
    primary: Variable | Tensor, name: str, dtype: DType | None = None, colocate_with_primary: bool = True
) -> AnyVariable:
    """A slot of the variable's shape that starts at zero; see `create_slot`."""
    kind = as_dtype(primary.dtype if dtype is None else dtype).base_dtype
    if primary.shape.is_fully_defined():
        return create_slot_with_initializer(
            primary, Zeros(), primary.shape, kind, name, colocate_with_primary=colocate_with_primary
        )
    value = primary.initialized_value() if isinstance(primary, Variable) else primary
    graph = get_default_graph()
    zeros = graph.create_op("ZerosLike", [value]).outputs[0]
    if zeros.dtype != kind:
        zeros = graph.create_op("Cast", [zeros], {"DstT": kind}).outputs[0]
    return create_slot(primary, zeros, name, colocate_with_primary=colocate_with_primary)


def _create(
    primary: Any,
    name: str,
    initial: Any,
    shape: TensorShape | None,
    dtype: DTypeLike | None,
    validate_shape: bool,
    colocate: bool,
) -> Any:
    full_name = f"{primary.op.name}/{name}"
    with variable_scope(None, full_name) as scope:
        # Disable the scope's partitioner: a slot belongs to one variable, which is a part already.
        scope.set_partitioner(None)
        scope.set_regularizer(None)
        scope.forbid_reuse()
        with get_default_graph().colocate_with(primary.op) if colocate else nullcontext():
            slot = get_variable(
                "", initializer=initial, trainable=False, shape=shape, dtype=dtype, validate_shape=validate_shape
            )
    _set_slice(primary, slot)
    return slot


def _set_slice(primary: Any, slot: Any) -> None:
    """Makes the slot of a part the same part of the whole's slot."""
    info = primary.save_slice_info if isinstance(primary, Variable) else None
    if info is None:
        return
    if slot.shape != primary.shape:
        raise ValueError(f"slot {slot.name!r} of a part of {info.full_name!r} must have the part's shape")
    suffix = slot.op.name[len(primary.op.name) + 1 :]
    slot.set_save_slice_info(
        SaveSliceInfo(f"{info.full_name}/{suffix}", info.full_shape, info.var_offset, info.var_shape)
    )
