"""Host operations that parse sequence examples, and that serialize and parse sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from google.protobuf.message import DecodeError

from headwater.data.io.example import Example, SequenceExample
from headwater.data.io.tensor_proto import make_ndarray, make_tensor_proto
from headwater.dtypes import DType, int64, string
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.shapes import Dims
from headwater.tensorboard_protos import tensor_pb2

# Sequence examples --------------------------------------------------------------------------------------------------


def _steps_specs(inference: Inference) -> Sequence[Spec]:
    return [Spec(string, (None,)), Spec(int64, inference.inputs[0].dims)]


@host("FeatureListSteps", infer=_steps_specs, inputs="serialized:string")
def feature_list_steps(serialized: HostArray, *, key: str, required: bool) -> tuple[HostArray, HostArray]:
    """Extracts the steps of one feature list of ``SequenceExample`` messages.

    Returns:
      An ``Example`` with the feature ``key`` for each step of each message, and the number of steps of each message.

    Raises:
      InvalidArgumentError: a message cannot be parsed, or lacks a ``required`` list.
    """
    steps: list[bytes] = []
    counts: list[int] = []
    for packed in serialized.ravel():
        try:
            lists = SequenceExample.FromString(packed).feature_lists.feature_list
        except DecodeError as error:
            raise InvalidArgumentError(f"Could not parse example input: {error}") from error
        if required and key not in lists:
            raise InvalidArgumentError(
                f"Feature list '{key}' is required but could not be found; allow_missing=True accepts this"
            )
        features = lists[key].feature if key in lists else ()
        counts.append(len(features))
        for feature in features:
            step = Example()
            step.features.feature[key].CopyFrom(feature)
            steps.append(step.SerializeToString())
    found = np.empty(len(steps), object)
    found[:] = steps
    return found, np.array(counts, np.int64).reshape(serialized.shape)


def _padded_spec(inference: Inference) -> Sequence[Spec]:
    rows, counts = inference.inputs
    dims: Dims = None
    if rows.dims is not None and counts.dims is not None:
        dims = (counts.dims[0], None, *rows.dims[1:])
    return [Spec(rows.dtype.base_dtype, dims)]


@host("PadSteps", infer=_padded_spec, inputs="rows:T, counts:int64")
def pad_steps(rows: HostArray, counts: HostArray) -> HostArray:
    """Returns the rows of each example, ``[examples, steps, …]``; ``counts`` are the numbers of rows, and missing rows
    are filled with zeros or empty strings."""
    longest = int(counts.max()) if counts.size else 0
    padded = np.full((len(counts), longest, *rows.shape[1:]), b"" if rows.dtype == object else 0, rows.dtype)
    padded[np.arange(longest) < counts[:, None]] = rows
    return padded


# Sparse tensors as text ---------------------------------------------------------------------------------------------


def _packed(*arrays: HostArray) -> list[bytes]:
    return [make_tensor_proto(array).SerializeToString() for array in arrays]


def _text(rows: list[list[bytes]]) -> HostArray:
    found = np.empty((len(rows), 3), object)
    for index, row in enumerate(rows):
        found[index] = row
    return found


def _one_spec(inference: Inference) -> Sequence[Spec]:
    del inference
    return [Spec(string, (3,))]


@host("SerializeSparse", infer=_one_spec, inputs="sparse_indices:int64, sparse_values:T, sparse_shape:int64")
def serialize_sparse(sparse_indices: HostArray, sparse_values: HostArray, sparse_shape: HostArray) -> HostArray:
    """Indices, values and shape as three ``TensorProto`` messages."""
    return _text([_packed(sparse_indices, sparse_values, sparse_shape)])[0]


def _many_spec(inference: Inference) -> Sequence[Spec]:
    del inference
    return [Spec(string, (None, 3))]


@host("SerializeManySparse", infer=_many_spec, inputs="sparse_indices:int64, sparse_values:T, sparse_shape:int64")
def serialize_many_sparse(sparse_indices: HostArray, sparse_values: HostArray, sparse_shape: HostArray) -> HostArray:
    """Like `serialize_sparse`, separately for each slice along the first dimension."""
    if len(sparse_shape) < 2:
        raise InvalidArgumentError("Rank of input SparseTensor should be > 1")
    rows: list[list[bytes]] = []
    for number in range(int(sparse_shape[0])):
        mine = sparse_indices[:, 0] == number
        rows.append(_packed(sparse_indices[mine][:, 1:], sparse_values[mine], sparse_shape[1:]))
    return _text(rows)


def _read_specs(inference: Inference) -> Sequence[Spec]:
    return [Spec(int64, (None, None)), Spec(inference.attrs["dtype"], (None,)), Spec(int64, (None,))]


@host("DeserializeSparse", infer=_read_specs, inputs="serialized_sparse:string")
def deserialize_sparse(serialized_sparse: HostArray, *, dtype: DType) -> tuple[HostArray, HostArray, HostArray]:
    """Stacks sparse tensors of equal rank along new first dimensions, the dimensions of ``serialized_sparse[…, 3]``.

    Raises:
      InvalidArgumentError: a tensor cannot be parsed, or differs in type from ``dtype`` or in rank from the first
        tensor.
    """
    places = serialized_sparse.shape[:-1]
    indices: list[HostArray] = []
    values: list[HostArray] = []
    largest: HostArray | None = None
    for place in np.ndindex(*places):
        at, held, shape = (_array(part) for part in serialized_sparse[place])
        if held.dtype != dtype.numpy_dtype:
            raise InvalidArgumentError(
                f"Requested SparseTensor of type {dtype.name} but SparseTensor{list(place)} is {held.dtype}"
            )
        if largest is not None and largest.shape != shape.shape:
            raise InvalidArgumentError(f"SparseTensor{list(place)} has another rank than the first one")
        largest = shape if largest is None else np.maximum(largest, shape)
        prefix = np.broadcast_to(np.array(place, np.int64), (len(at), len(place)))
        indices.append(np.concatenate([prefix, at], axis=1))
        values.append(held)
    if largest is None:
        raise InvalidArgumentError("Serialized sparse input holds no sparse tensor")
    return np.concatenate(indices), np.concatenate(values), np.array([*places, *largest], np.int64)


def _array(packed: object) -> HostArray:
    try:
        return make_ndarray(tensor_pb2.TensorProto.FromString(packed))
    except (DecodeError, ValueError, TypeError, KeyError) as error:
        raise InvalidArgumentError(f"Could not parse a part of a sparse tensor: {error}") from None
