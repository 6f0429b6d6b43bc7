"""Operations on checkpoints. Each runs on the host of its task and uses the file system of that host."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence

from headwater.data.io.bundle_writer import BundleWriter, merge_bundles
from headwater.data.io.old_checkpoint import OldReader, open_checkpoint, write_old_checkpoint
from headwater.data.io.tensor_bundle import BundleReader
from headwater.data.io.tensor_slice import TensorSlice, parse_shape_and_slice
from headwater.dtypes import DType, string
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.registry import HostArray, Inference, Spec


def _text(value: HostArray) -> str:
    return bytes(value.ravel()[0]).decode()


def _texts(value: HostArray) -> list[str]:
    return [bytes(item).decode() for item in value.ravel()]


@host(
    "SaveV2", infer=no_outputs, inputs="prefix:string, tensor_names:string, shape_and_slices:string, tensors:dtypes**"
)
def save(prefix: HostArray, tensor_names: HostArray, shape_and_slices: HostArray, *tensors: HostArray) -> None:
    """Writes one checkpoint.

    Args:
      prefix: its path, a scalar.
      tensor_names: a name for each tensor.
      shape_and_slices: for each tensor, its place within a larger tensor, e.g. ``"7 2 3,2:0,2"``; empty if it is
        complete.
    """
    with BundleWriter(_text(prefix)) as writer:
        for name, part, value in zip(_texts(tensor_names), _texts(shape_and_slices), tensors, strict=True):
            if part:
                shape, where = parse_shape_and_slice(part)
                writer.add_slice(name, shape, where, value)
            else:
                writer.add(name, value)


@host("SaveSlices", infer=no_outputs, inputs="filename:string, tensor_names:string, shapes_and_slices:string, data:T**")
def save_slices(filename: HostArray, tensor_names: HostArray, shapes_and_slices: HostArray, *data: HostArray) -> None:
    """Writes one checkpoint of format V1; see `save`."""
    parts: list[tuple[str, tuple[int, ...], TensorSlice, HostArray]] = []
    for name, part, value in zip(_texts(tensor_names), _texts(shapes_and_slices), data, strict=True):
        shape, where = parse_shape_and_slice(part) if part else (value.shape, TensorSlice.whole(value.ndim))
        parts.append((name, shape, where, value))
    write_old_checkpoint(_text(filename), parts)


def _restored_specs(inference: Inference) -> Sequence[Spec]:
    parts = inference.constant(2)
    specs: list[Spec] = []
    for index, dtype in enumerate(inference.attrs["dtypes"]):
        part = bytes(parts.ravel()[index]).decode() if parts is not None else ""
        dims = None
        if part:
            shape, where = parse_shape_and_slice(part)
            dims = where.shape(shape)
        specs.append(Spec(dtype, dims))
    return specs


@host("RestoreV2", infer=_restored_specs, inputs="prefix:string, tensor_names:string, shape_and_slices:string")
def restore(
    prefix: HostArray, tensor_names: HostArray, shape_and_slices: HostArray, *, dtypes: Sequence[DType]
) -> list[HostArray]:
    """Reads tensors of one checkpoint, whole or in part; see `save`.

    Raises:
      InvalidArgumentError: the element type or shape of a tensor differs from the requested one.
      NotFoundError: the checkpoint, or a tensor in it, does not exist.
      DataLossError: a file is damaged.
    """
    with open_checkpoint(_text(prefix)) as reader:
        found: list[HostArray] = []
        for name, part, dtype in zip(_texts(tensor_names), _texts(shape_and_slices), dtypes, strict=True):
            _check(reader, name, dtype)
            if part:
                shape, where = parse_shape_and_slice(part)
                _check_shape(reader, name, shape)
                found.append(reader.read_slice(name, where))
            else:
                found.append(reader.read(name))
        return found


def _check(reader: BundleReader | OldReader, name: str, dtype: DType) -> None:
    found = reader.dtypes.get(name)
    if found is not None and found != dtype.base_dtype:
        raise TypeError(f"tensor_name = {name}; expected dtype {dtype.name} does not equal original dtype {found.name}")


def _check_shape(reader: BundleReader | OldReader, name: str, shape: Sequence[int]) -> None:
    found = reader.shapes.get(name)
    if found is not None and tuple(found) != tuple(shape):
        raise ValueError(
            f"tensor_name = {name}; shape in shape_and_slice spec {list(shape)} does not match the shape "
            f"stored in checkpoint: {list(found)}"
        )


@host("MergeV2Checkpoints", infer=no_outputs, inputs="checkpoint_prefixes:string, destination_prefix:string")
def merge(checkpoint_prefixes: HostArray, destination_prefix: HostArray, *, delete_old_dirs: bool = True) -> None:
    """Merges several checkpoints into one and deletes them."""
    merge_bundles(_texts(checkpoint_prefixes), _text(destination_prefix), delete_old_dirs)


@host("ShardedFilename", infer=fixed(string, ()), inputs="basename:string, shard:int32, num_shards:int32")
def sharded_filename(basename: HostArray, shard: HostArray, num_shards: HostArray) -> str:
    """``basename-00000-of-00002``: the path of one task's part of a checkpoint."""
    return f"{_text(basename)}-{int(shard):05d}-of-{int(num_shards):05d}"


@host("ShardedFilespec", infer=fixed(string, ()), inputs="basename:string, num_shards:int32")
def sharded_filespec(basename: HostArray, num_shards: HostArray) -> str:
    """``basename-?????-of-00002``: the paths of all tasks' parts of a checkpoint."""
    return f"{_text(basename)}-?????-of-{int(num_shards):05d}"


@host("TemporaryPrefix", infer=fixed(string, ()), inputs="prefix:string")
def temporary_prefix(prefix: HostArray) -> str:
    """Returns a path next to ``prefix`` for the parts of one checkpoint, in graphs that version 0.2.0 has saved."""
    return os.path.join(f"{_text(prefix)}_temp_{uuid.uuid4().hex}", "part")
