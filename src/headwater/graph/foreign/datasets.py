"""Converts TensorFlow's dataset operations in a ``GraphDef`` to the operations of `headwater.graph.ops.datasets`.

Headwater's operations take the inputs in the order of the fields of the dataset's node, list the number of inputs of
each field in the attribute ``sizes``, and have the function as a body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.dtypes import variant
from headwater.graph import bodies
from headwater.graph.graph import Graph
from headwater.graph.registry import FunctionAttr
from headwater.shapes import TensorShape

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.registry import HostArray
    from headwater.tensorboard_protos import NodeDef

_NO: Final = np.array(False)
_ONE: Final = np.array(1, np.int64)


@dataclass(frozen=True, slots=True)
class _Form:
    """The mapping of one of TensorFlow's dataset operations to Headwater's operation.

    Attributes:
      type: Headwater's operation type.
      parts: for each field, the position of its input, or a constant value; for a list field, the positions of its
        inputs, or an empty list for all inputs.
      captured: position of the first input captured by the function, and the number of inputs after the captured ones.
      settings: attributes, or values, of the numeric fields.
    """

    type: str
    parts: Sequence[int | HostArray | list[int]]
    captured: tuple[int, int] | None = None
    settings: Sequence[str | int] = ()


_FORMS: Final[Mapping[str, _Form]] = {
    "BatchDataset": _Form("BatchDatasetV2", (0, 1, _NO)),
    "BatchDatasetV2": _Form("BatchDatasetV2", (0, 1, 2)),
    "ConcatenateDataset": _Form("ConcatenateDataset", (0, 1)),
    "FilterDataset": _Form("FilterDataset", (0,), (1, 0)),
    "FixedLengthRecordDatasetV2": _Form("FixedLengthRecordDatasetV2", (0, 1, 2, 3, 4, 5)),
    "FlatMapDataset": _Form("InterleaveDataset", (0, _ONE, _ONE, _ONE), (1, 0), (0, 0, 0, 0)),
    "InterleaveDataset": _Form("InterleaveDataset", (0, -2, -1, _ONE), (1, 2), (0, 0, 0, 0)),
    "MapDataset": _Form("MapDataset", (0, _ONE), (1, 0), ("preserve_cardinality",)),
    "ParallelInterleaveDatasetV2": _Form("InterleaveDataset", (0, -3, -2, -1), (1, 3), (0, "sloppy", 0, 0)),
    "ParallelMapDataset": _Form("MapDataset", (0, -1), (1, 1), ("preserve_cardinality",)),
    "PrefetchDataset": _Form("PrefetchDataset", (0, 1)),
    "RangeDataset": _Form("RangeDataset", (0, 1, 2)),
    "RepeatDataset": _Form("RepeatDataset", (0, 1)),
    "ShardDataset": _Form("ShardDataset", (0, 1, 2)),
    "ShuffleDataset": _Form("ShuffleDataset", (0, 1, 2, 3), settings=("reshuffle_each_iteration",)),
    "SkipDataset": _Form("SkipDataset", (0, 1)),
    "TFRecordDataset": _Form("TFRecordDataset", (0, 1, 2)),
    "TakeDataset": _Form("TakeDataset", (0, 1)),
    "TensorDataset": _Form("TensorDataset", ([],)),
    "TensorSliceDataset": _Form("TensorSliceDataset", ([],)),
    "TextLineDataset": _Form("TextLineDataset", (0, 1, 2)),
    "ZipDataset": _Form("ZipDataset", ([],), settings=(0,)),
}
_SAME_ELEMENTS: Final = frozenset({"AssertNextDataset", "ModelDataset", "OptimizeDataset", "OptionsDataset"})

_PADDED: Final = frozenset({"PaddedBatchDataset", "PaddedBatchDatasetV2"})

Rewritten = tuple[str, list["Tensor"], dict[str, Any]]


def is_dataset(node: NodeDef) -> bool:
    """Returns whether a node is one of TensorFlow's dataset operations."""
    return node.op in _SAME_ELEMENTS or ((node.op in _FORMS or node.op in _PADDED) and "sizes" not in node.attr)


def _padded(op_type: str, count: int) -> _Form:
    """Returns the mapping for padded batches of elements with ``count`` components."""
    shapes, padding = list(range(2, 2 + count)), list(range(2 + count, 2 + 2 * count))
    return _Form("PaddedBatchDatasetV2", (0, 1, shapes, padding, -1 if op_type.endswith("V2") else _NO))


def rewritten(
    node: NodeDef,
    inputs: Sequence[Tensor],
    attrs: Mapping[str, Any],
    constant: Callable[[HostArray], Tensor],
    body_of: Callable[[str], FunctionAttr],
) -> Rewritten:
    """Returns the operation type, the inputs and the attributes for a dataset's node.

    Args:
      inputs: the node's inputs.
      attrs: the node's attributes.
      constant: creates a constant for the node.
      body_of: returns the body of a function of the library.
    """
    if node.op in _SAME_ELEMENTS:
        return "Identity", [inputs[0]], {}
    form = _FORMS.get(node.op) or _padded(node.op, len(attrs["Toutput_types"]))
    found: list[Tensor] = []
    sizes: list[int] = []
    for part in form.parts:
        if isinstance(part, list):
            places = part or range(len(inputs))
            found += [inputs[place] for place in places]
            sizes.append(-len(places))
        else:
            found.append(inputs[part] if isinstance(part, int) else constant(part))
            sizes.append(1)
    made: dict[str, Any] = {key: attrs[key] for key in ("output_types", "output_shapes") if key in attrs}
    if "Toutput_types" in attrs:
        made["output_types"] = attrs["Toutput_types"]
    made["sizes"] = tuple(sizes)
    made["settings"] = tuple(int(attrs.get(each, 1)) if isinstance(each, str) else each for each in form.settings)
    if form.captured is not None:
        first, behind = form.captured
        found += inputs[first : len(inputs) - behind]
        made["f"] = body_of(attrs["predicate" if node.op == "FilterDataset" else "f"].name)
    return form.type, found, made


def body_attr(name: str, members: Graph, args: Sequence[Tensor], outputs: Sequence[Tensor]) -> FunctionAttr:
    """Encodes the function ``name``, imported into the graph ``members``, as a body."""
    given = set(args)
    ops = [op for op in members.get_operations() if not op.outputs or op.outputs[0] not in given]
    recorded = bodies.record_members(ops, outputs, args, [op for op in ops if not op.outputs])
    key = bodies.random_key([recorded])
    attr = bodies.function_of(name, recorded, [*args, *([] if key is None else [key])], key)
    if any(tensor.dtype == variant for tensor in outputs):
        return attr
    return FunctionAttr(
        attr.name,
        (
            *attr.attrs,
            ("shapes", tuple(TensorShape(tensor.dims) for tensor in outputs)),
            ("types", tuple(tensor.dtype.base_dtype for tensor in outputs)),
        ),
    )
