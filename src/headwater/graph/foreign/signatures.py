"""Comparison of a node's inputs with the declaration of its operation type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.dtypes import DType, as_dtype, resource
from headwater.tensorboard_protos import types_pb2

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.registry import OpDef
    from headwater.tensorboard_protos import NodeDef


def check_signature(name: str, node: NodeDef, definition: OpDef, inputs: Sequence[Tensor]) -> None:
    """Compares the number and the element types of inputs with the declaration, if it has no lists of inputs.

    Handles have the element type of their variable or nothing in common with it, so they are not compared.

    Raises:
      ValueError: they differ; the message names the node, with its ``name`` in the graph.
    """
    arguments = definition.arguments
    if not arguments or any(argument.many or argument.mixed for argument in arguments):
        return
    expected: list[DType | None] = []
    for argument in arguments:
        given = node.attr[argument.type_attr].type if argument.type_attr in node.attr else 0
        expected.append(argument.dtype or (as_dtype(given) if given else None))
    if len(arguments) != len(inputs):
        types = ", ".join(
            argument.type_attr if dtype is None else _type_name(dtype)
            for argument, dtype in zip(arguments, expected, strict=True)
        )
        raise ValueError(
            f"NodeDef expected inputs '{types}' do not match {len(inputs)} inputs specified; "
            f"NodeDef: {name} ({node.op})"
        )
    for index, (dtype, tensor) in enumerate(zip(expected, inputs, strict=True)):
        if dtype is None or resource in (dtype, tensor.dtype) or tensor.dtype.base_dtype == dtype.base_dtype:
            continue
        raise ValueError(
            f"Input {index} of node {name} was passed {_type_name(tensor.dtype)} from {tensor.name} incompatible with "
            f"expected {_type_name(dtype)}."
        )


def _type_name(dtype: DType) -> str:
    """Returns TensorFlow's short name of a type: ``float`` for 32 bits, ``double`` for 64."""
    return types_pb2.DataType.Name(dtype.as_datatype_enum).removeprefix("DT_").lower()
