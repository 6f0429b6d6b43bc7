"""Objects saved in checkpoints: named tensors, and the operations that restore them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, make_const
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional.saveable import SaveableObject, SaveSpec
from headwater.tf1.variables import state
from headwater.tf1.variables.partitioned import PartitionedVariable
from headwater.tf1.variables.variables import Variable

import numpy as np  # isort: skip

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike
    from headwater.tf1.variables.types import AnyVariable

Saveable: TypeAlias = "AnyVariable | SaveableObject"
"""An object that can be saved in a checkpoint."""

SaveableList: TypeAlias = "Sequence[Saveable] | Mapping[str, Saveable | Sequence[Variable]]"
"""The ``var_list`` of a `Saver`: objects saved by their own names, or a mapping from names to objects or lists of
parts of one tensor."""


class VariableSaveable(SaveableObject):
    """A variable, or a part of a partitioned one.

    Args:
      slice_spec: which part of a larger tensor it is; empty for a whole one.
      name: its name in the checkpoint.
    """

    def __init__(self, var: Variable, slice_spec: str, name: str) -> None:
        self._ref = convert_to_tensor(var, as_ref=True)
        super().__init__(var, [SaveSpec(self._ref, slice_spec, name, dtype=var.dtype)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Operation:
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = value.graph.create_op("Reshape", [value, restored_shapes[0]]).outputs[0]
        fixed = restored_shapes is None and self._ref.shape.is_fully_defined()
        return state.assign(self._ref, value, validate_shape=fixed, name="Assign").op


def saveables_of(var_list: SaveableList) -> list[SaveableObject]:
    """Returns the objects to save for the ``var_list`` of a `Saver`, sorted by name.

    Args:
      var_list: a list of variables, partitioned variables and `SaveableObject`; or a dict from names in the checkpoint
        to these, or to a list of parts of one tensor.

    Raises:
      TypeError: ``var_list`` has the wrong type, or contains an object of another type.
      ValueError: a name or variable occurs twice, or parts of different tensors have one name.
    """
    if not isinstance(var_list, dict | list | tuple | set):
        raise TypeError(f"Variables to save should be passed in a dict or a list: {var_list}")
    named = by_name(var_list)
    seen: set[Any] = set()
    result: list[SaveableObject] = []
    for name in sorted(named):
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"names_to_saveables must be a dict mapping string names to checkpointable operations. "
                f"Name is not a string: {name}"
            )
        for saveable in _saveables(name, named[name]):
            if saveable.op in seen:
                raise ValueError(f"The same saveable will be restored with two names: {saveable.name}")
            seen.add(saveable.op)
            result.append(saveable)
    return result


def by_name(var_list: Any) -> dict[str, Any]:
    """Returns the objects to save by their names in a checkpoint, parts of one tensor as a list; see `saveables_of`."""
    if isinstance(var_list, dict):
        return dict(var_list)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    named: dict[str, Any] = {}
    for value in var_list:
        info = value.save_slice_info if isinstance(value, Variable) else None
        if info is not None:
            parts = named.setdefault(info.full_name, [])
            if not isinstance(parts, list):
                raise ValueError(f"Mixing slices and non-slices with the same name: {info.full_name}")
            parts.append(value)  # pyright: ignore[reportUnknownMemberType]
            continue
        if isinstance(value, SaveableObject | PartitionedVariable):
            name = value.name
        elif isinstance(value, Variable):
            name = value.op.name
        else:
            raise TypeError(f"Variable to save is not a Variable: {value}")
        if name in named:
            raise ValueError(f"At least two variables have the same name: {name}")
        named[name] = value
    return named


def _saveables(name: str, value: Tensor) -> list[SaveableObject]:
    if isinstance(value, SaveableObject):
        return [value]
    if isinstance(value, list | tuple | PartitionedVariable):
        return _parts(name, list(value))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, Variable):
        info = value.save_slice_info
        return [VariableSaveable(value, "" if info is None else info.spec, name)]
    raise TypeError(
        f"names_to_saveables must be a dict mapping string names to Tensors/Variables. Not a variable: {value}"
    )


def _parts(name: str, parts: list[TensorLike]) -> list[SaveableObject]:
    whole: str | None = None
    result: list[SaveableObject] = []
    for part in parts:
        if not isinstance(part, Variable):
            raise ValueError(f"Slices must all be Variables: {part}")
        info = part.save_slice_info
        if info is None:
            raise ValueError(f"Slices must all be slices: {part}")
        if whole is not None and whole != info.full_name:
            raise ValueError(f"Slices must all be from the same tensor: {whole} != {info.full_name}")
        whole = info.full_name
        result.append(VariableSaveable(part, info.spec, name))
    return result


def add_save_op(filename: Tensor, saveables: Sequence[SaveableObject], old_format: bool = False) -> Operation:
    """Adds a ``SaveV2``, or a ``SaveSlices`` for the old format, of all tensors of ``saveables``."""
    specs = [spec for saveable in saveables for spec in saveable.specs]
    graph = get_default_graph()
    op_type, name, types = ("SaveSlices", "save", "T") if old_format else ("SaveV2", "SaveV2", "dtypes")
    with graph.name_scope(name) as scope:
        names = _texts([spec.name for spec in specs], "tensor_names")
        parts = _texts([spec.slice_spec for spec in specs], "shapes_and_slices" if old_format else "shape_and_slices")
        tensors = [spec.tensor for spec in specs]
        attrs = {types: tuple(tensor.dtype.base_dtype for tensor in tensors)}
        return graph.create_op(op_type, [filename, names, parts, *tensors], attrs, name=scope)


def add_restore_ops(filename: Tensor, saveables: Sequence[SaveableObject], device: str) -> list[list[Tensor]]:
    """Adds a ``RestoreV2`` of all tensors of ``saveables`` on ``device``; returns the tensors of each saveable."""
    specs = [spec for saveable in saveables for spec in saveable.specs]
    graph = get_default_graph()
    with graph.device(device), graph.name_scope("RestoreV2") as scope:
        names = _texts([spec.name for spec in specs], "tensor_names")
        parts = _texts([spec.slice_spec for spec in specs], "shape_and_slices")
        attrs = {"dtypes": tuple(spec.dtype.base_dtype for spec in specs)}
        outputs = iter(graph.create_op("RestoreV2", [filename, names, parts], attrs, name=scope).outputs)
    return [[next(outputs) for _ in saveable.specs] for saveable in saveables]


def assign_restored(
    saveables: Sequence[SaveableObject], restored: Sequence[Sequence[Tensor]], reshape: bool, sequentially: bool
) -> list[Operation]:
    """Adds the operations that assign restored tensors.

    Args:
      reshape: reshape the tensors to the variables' shapes first.
      sequentially: restore one after the other, to save memory.
    """
    graph = get_default_graph()
    done: list[Operation] = []
    for saveable, tensors in zip(saveables, restored, strict=True):
        shapes = [_shape_of(spec) for spec in saveable.specs] if reshape else None
        with graph.control_dependencies(done[-1:] if sequentially else []):
            done.append(saveable.restore(tensors, shapes))
    return done


def _shape_of(spec: SaveSpec) -> Tensor:
    shape = spec.tensor.shape
    if shape.is_fully_defined():
        return make_const(np.array(shape.as_list(), np.int32), "shape")
    return get_default_graph().create_op("Shape", [spec.tensor]).outputs[0]


def _texts(values: Sequence[str], name: str) -> Tensor:
    array = np.empty(len(values), object)
    array[:] = [value.encode() for value in values]
    return make_const(array, name)
