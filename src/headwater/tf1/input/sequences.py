"""Functions that parse sequence examples, and that serialise and deserialise sparse tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.dtypes import DType, as_dtype, int64, string
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor, as_sparse
from headwater.tf1.functional import arrays, indexing
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.input.parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    parse_example,
    parse_single_example,
)

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike


def parse_single_sequence_example(
    serialized: TensorLike,
    context_features: Mapping[str, object] | None = None,
    sequence_features: Mapping[str, object] | None = None,
    example_name: TensorLike | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parses one ``SequenceExample``.

    Args:
      serialized: a string.
      context_features: features of the whole example by name: see `headwater.tf1.input.parsing.parse_single_example`.
      sequence_features: features of each step by name: `FixedLenSequenceFeature`, with the same number of values in
        each step, or `VarLenFeature`.
      example_name: accepted for compatibility.

    Returns:
      The context by name, and the sequences: tensors ``[steps, …]`` and sparse tensors ``[steps, values]``.

    Raises:
      ValueError: there are no features, or a feature is of another kind.
    """
    del example_name
    if not context_features and not sequence_features:
        raise ValueError("Missing features.")
    with name_scope(name, "ParseSingleSequenceExample", [serialized]):
        serialized = convert_to_tensor(serialized, string, name="serialized")
        context = parse_single_example(serialized, context_features) if context_features else {}
        sequences: dict[str, object] = {}
        for key in sorted(sequence_features or {}):
            sequences[key], _ = _steps(serialized, key, (sequence_features or {})[key])
    return context, sequences


def parse_sequence_example(
    serialized: TensorLike,
    context_features: Mapping[str, object] | None = None,
    sequence_features: Mapping[str, object] | None = None,
    example_names: object = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Parses a vector of ``SequenceExample`` messages; see `parse_single_sequence_example`.

    Returns:
      The context by name, with a row for each message; the sequences, tensors ``[messages, steps, …]`` padded with
      zeros or empty strings, and sparse tensors ``[messages, steps, values]``; and the number of steps of each message
      in the dense sequences.
    """
    if not context_features and not sequence_features:
        raise ValueError("Missing features.")
    with name_scope(name, "ParseSequenceExample", [serialized]):
        serialized = convert_to_tensor(serialized, string, name="serialized")
        context = parse_example(serialized, context_features, None, example_names) if context_features else {}
        sequences: dict[str, object] = {}
        lengths: dict[str, Any] = {}
        for key in sorted(sequence_features or {}):
            flat, counts = _steps(serialized, key, (sequence_features or {})[key])
            if isinstance(flat, SparseTensor):
                sequences[key] = _apart(flat, counts)
            else:
                sequences[key], lengths[key] = one("PadSteps", flat, counts), counts
    return context, sequences, lengths


def _steps(serialized: Tensor, key: str, feature: object) -> tuple[Any, Tensor]:
    """Returns the values of all steps of a feature list, message after message, and the numbers of steps."""
    if isinstance(feature, FixedLenSequenceFeature):
        required, each = not feature.allow_missing, FixedLenFeature(feature.shape, feature.dtype)
    elif isinstance(feature, VarLenFeature):
        required, each = False, feature
    else:
        raise ValueError(f"Unsupported: sequence feature {key!r} must be FixedLenSequenceFeature or VarLenFeature")
    steps, counts = apply("FeatureListSteps", serialized, key=key, required=required).outputs
    return parse_example(steps, {key: each})[key], counts


def _apart(flat: SparseTensor, counts: Tensor) -> SparseTensor:
    """Reshapes rows of several messages to ``[message, step, value]``."""
    places = indexing.where(indexing.sequence_mask(counts))
    rows = indexing.gather(places, flat.indices[:, 0])
    sizes = arrays.shape(indexing.sequence_mask(counts), out_type=int64)
    indices = arrays.concat([rows, flat.indices[:, 1:]], 1)
    return SparseTensor(indices, flat.values, arrays.concat([sizes, flat.dense_shape[1:]], 0))


# Sparse tensors as text ---------------------------------------------------------------------------------------------


def serialize_sparse(sp_input: TensorLike, name: str | None = None, out_type: DType = string) -> Tensor:
    """A sparse tensor as three strings, which `deserialize_many_sparse` reads.

    Raises:
      ValueError: ``out_type`` is not string.
    """
    return _serialised("SerializeSparse", sp_input, name, out_type)


def serialize_many_sparse(sp_input: TensorLike, name: str | None = None, out_type: DType = string) -> Tensor:
    """``[rows, 3]``: each slice of a sparse tensor along its first dimension as three strings.

    Raises:
      ValueError: ``out_type`` is not string.
    """
    return _serialised("SerializeManySparse", sp_input, name, out_type)


def _serialised(op_type: str, sp_input: TensorLike, name: str | None, out_type: DType) -> Tensor:
    if as_dtype(out_type) != string:
        raise ValueError(f"out_type must be tf.string, not {as_dtype(out_type).name}")
    sparse = as_sparse(sp_input)
    return one(op_type, sparse.indices, sparse.values, sparse.dense_shape, name=name)


def deserialize_many_sparse(
    serialized_sparse: TensorLike, dtype: DTypeLike, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """Stacks the sparse tensors serialised in rows of three strings along a new first dimension.

    Args:
      serialized_sparse: ``[rows, 3]``.
      dtype: type of the values.
      rank: number of dimensions of the result.
    """
    op = apply("DeserializeSparse", serialized_sparse, dtype=as_dtype(dtype), name=name or "DeserializeManySparse")
    indices, values, shape = op.outputs
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)
