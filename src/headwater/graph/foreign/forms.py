"""Conversion of operations on resource variables, and of operations written by older versions of TensorFlow.

A resource variable is a handle (``VarHandleOp``) that other operations read and change. It is converted to the
reference returned by `VariableV2`. In old versions, handles of queues, readers and tables are references to strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from headwater.dtypes import to_string_array
from headwater.shapes import TensorShape, as_shape

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.registry import HostArray
    from headwater.tensorboard_protos import NodeDef

_LAST_WITHOUT_SCALARS: Final = 21
"""The last version of the format in which the shape ``{}`` of a placeholder means an unknown shape."""

_NAMES: Final = {
    "AssignAddVariableOp": "AssignAdd",
    "AssignSubVariableOp": "AssignSub",
    "AssignVariableOp": "Assign",
    "ControlTrigger": "NoOp",
    "PlaceholderV2": "Placeholder",
    "ReadVariableOp": "Identity",
    "ResourceCountUpTo": "CountUpTo",
    "ResourceGather": "Gather",
    "ResourceGatherNd": "GatherNd",
    "ResourceStridedSliceAssign": "StridedSliceAssign",
    "Restore": "RestoreV2",
    "RestoreSlice": "RestoreV2",
    "Save": "SaveV2",
    "SaveSlices": "SaveV2",
    "VarHandleOp": "VariableV2",
    "VarIsInitializedOp": "IsVariableInitialized",
    "Variable": "VariableV2",
    "VariableShape": "Shape",
}
_OLD_HANDLES: Final = frozenset(
    {
        "FIFOQueue",
        "FixedLengthRecordReader",
        "HashTable",
        "IdentityReader",
        "InitializeTable",
        "InitializeTableFromTextFile",
        "LookupTableExport",
        "LookupTableFind",
        "LookupTableImport",
        "LookupTableInsert",
        "LookupTableSize",
        "MutableHashTable",
        "MutableHashTableOfTensors",
        "PaddingFIFOQueue",
        "PriorityQueue",
        "QueueClose",
        "QueueDequeue",
        "QueueDequeueMany",
        "QueueDequeueUpTo",
        "QueueEnqueue",
        "QueueEnqueueMany",
        "QueueSize",
        "RandomShuffleQueue",
        "ReaderNumRecordsProduced",
        "ReaderNumWorkUnitsCompleted",
        "ReaderRead",
        "ReaderReadUpTo",
        "ReaderReset",
        "ReaderRestoreState",
        "ReaderSerializeState",
        "TFRecordReader",
        "TextLineReader",
        "WholeFileReader",
    }
)
_PREFIXES: Final = ("Apply", "Scatter", "SparseApply")


def type_here(op_type: str) -> str:
    """Returns Headwater's equivalent of an operation type; a type without a different equivalent is unchanged."""
    if op_type in _NAMES:
        return _NAMES[op_type]
    if op_type in _OLD_HANDLES:
        return f"{op_type}V2"
    rest = op_type.removeprefix("Resource")
    return rest if rest != op_type and rest.startswith(_PREFIXES) else op_type


def converted_arguments(
    node: NodeDef,
    inputs: list[Tensor],
    attrs: Mapping[str, Any],
    producer: int,
    constant: Callable[[HostArray], Tensor],
) -> tuple[list[Tensor], dict[str, Any]]:
    """Converts the inputs and the attributes of an operation.

    Args:
      inputs: the node's inputs.
      attrs: its attributes.
      producer: version of the ``GraphDef``.
      constant: creates a constant for the node.
    """
    found = dict(attrs)
    match node.op:
        case "AssignVariableOp":
            # TensorFlow checks new values only against the handle's static shape.
            found["validate_shape"] = inputs[0].shape.is_fully_defined()
        case "OptionalFromValue" if "Toutput_types" in attrs:
            found["output_types"] = attrs["Toutput_types"]
            found["output_shapes"] = (TensorShape(None),) * len(attrs["Toutput_types"])
        case "Placeholder" if producer <= _LAST_WITHOUT_SCALARS and not as_shape(attrs.get("shape")).ndims:
            found["shape"] = TensorShape(None)
        case "Restore" | "RestoreSlice":
            inputs = [*inputs, *[constant(to_string_array(b""))] * (3 - len(inputs))]
            found = {"dtypes": (attrs["dt"],)}
        case "Save":
            none = constant(to_string_array([b""] * (len(inputs) - 2)))
            inputs = [*inputs[:2], none, *inputs[2:]]
        case "Variable" if not as_shape(attrs["shape"]).ndims:
            found["shape"] = TensorShape(None)
        case _:
            pass
    return inputs, found
