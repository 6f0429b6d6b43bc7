"""Operations on lookup tables. A table is a dictionary on its task; the operations run on the host of that task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from headwater.data.io import files
from headwater.dtypes import DType, int64, resource, string, uint8
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.ops.fingerprints import fingerprint64, fingerprint128, fingerprints64, old_hash, sip_hash
from headwater.graph.ops.queues import as_handle
from headwater.graph.ops.strings import as_string
from headwater.graph.registry import HostArray, Inference, Spec, function_of
from headwater.graph.resources.host_context import HostContext
from headwater.graph.resources.lookup_tables import Table, as_column
from headwater.shapes import as_shape
from headwater.tables import fingerprints

WHOLE_LINE, LINE_NUMBER = -2, -1
"""Special column numbers of a text file: the whole line, and the line's number from 0."""


def _define_table(kind: str, *, fixed_content: bool) -> None:
    @host(f"{kind}V2", infer=fixed(resource, ()), keeps=True)
    def table(  # pyright: ignore[reportUnusedFunction]
        context: HostContext,
        *,
        key_dtype: DType,
        value_dtype: DType,
        container: str = "",
        shared_name: str = "",
        use_node_name_sharing: bool = False,
    ) -> HostArray:
        del use_node_name_sharing

        def make() -> Table:
            return Table(context.op_name, key_dtype, value_dtype, fixed=fixed_content)

        signature = {"type": kind, "key type": key_dtype, "value type": value_dtype}
        return as_handle(context.resource(container, shared_name, Table, make, signature))


_define_table("HashTable", fixed_content=True)  # its initializer fills it
_define_table("MutableHashTable", fixed_content=False)


@host("MutableHashTableOfTensorsV2", infer=fixed(resource, ()), keeps=True)
def mutable_hash_table_of_tensors(
    context: HostContext,
    *,
    key_dtype: DType,
    value_dtype: DType,
    container: str = "",
    shared_name: str = "",
    use_node_name_sharing: bool = False,
    value_shape: Any = (),
) -> HostArray:
    """Returns a mutable table with tensors of one shape as values."""
    del use_node_name_sharing
    shape = [size or 0 for size in as_shape(value_shape).as_list()]

    def make() -> Table:
        return Table(context.op_name, key_dtype, value_dtype, fixed=False, shape=shape)

    signature = {
        "type": "MutableHashTableOfTensors",
        "key type": key_dtype,
        "value type": value_dtype,
        "value shape": tuple(shape),
    }
    return as_handle(context.resource(container, shared_name, Table, make, signature))


@host("HeldTable", infer=fixed(resource, ()))
def held_table(*, token: str) -> HostArray:
    """Returns the handle of the table that the function of this process with the ``token`` returns.

    Raises:
      InvalidArgumentError: this process has not registered the function.
    """
    function = function_of(token)
    if function is None:
        raise InvalidArgumentError("a table of another process: create the table in this process")
    return as_handle(function())


@host("InitializeTableV2", infer=no_outputs, keeps=True, types={"Tkey": 1, "Tval": 2})
def initialize(handle: HostArray, keys: HostArray, values: HostArray) -> None:
    """Fills a table with pairs."""
    handle.item().fill(keys, values)


@host("InitializeTableFromTextFileV2", infer=no_outputs, keeps=True)
def initialize_from_file(
    handle: HostArray,
    filename: HostArray,
    *,
    key_dtype: DType,
    value_dtype: DType,
    key_index: int,
    value_index: int,
    vocab_size: int = -1,
    delimiter: str = "\t",
) -> None:
    """Fills a table with columns of a text file; each line is an entry.

    Args:
      key_index, value_index: columns; `WHOLE_LINE` or `LINE_NUMBER`.
      vocab_size: number of lines to take; -1 for all.

    Raises:
      InvalidArgumentError: the file has fewer lines or columns, an empty line, or a string that is not a number.
    """
    path = filename.item().decode()
    with files.open_file(path, "rb") as file:
        lines = file.read().split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    if b"" in lines:
        number = lines.index(b"") + 1
        raise InvalidArgumentError(f"Invalid content in {path}: empty line found at line {number}")
    if vocab_size >= 0:
        if len(lines) < vocab_size:
            raise InvalidArgumentError(f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}")
        lines = lines[:vocab_size]

    def column(index: int, dtype: DType) -> HostArray:
        return as_column(
            [_cell(path, number, line, index, dtype, delimiter) for number, line in enumerate(lines)], dtype
        )

    handle.item().fill(column(key_index, key_dtype), column(value_index, value_dtype))


def _cell(path: str, number: int, line: bytes, index: int, dtype: DType, delimiter: str) -> int | bytes | float:
    if index == LINE_NUMBER:
        return number
    text = line
    if index != WHOLE_LINE:
        parts = line.split(delimiter.encode())
        if index >= len(parts):
            raise InvalidArgumentError(
                f"Invalid number of columns in {path} line {number} ({line.decode(errors='replace')}): "
                f"expected at least {index + 1} got {len(parts)}"
            )
        text = parts[index]
    if dtype == string:
        return text
    try:
        return float(text) if dtype.is_floating else int(text)
    except ValueError:
        raise InvalidArgumentError(
            f"Field {text.decode(errors='replace')} in {path} line {number} is not a valid {dtype.name}."
        ) from None


def _like_default(inference: Inference) -> Sequence[Spec]:
    keys, default = inference.inputs[1].dims, inference.inputs[2]
    known = keys is not None and default.dims is not None
    return [Spec(default.dtype.base_dtype, (*(keys or ()), *(default.dims or ())) if known else None)]


@host("LookupTableFindV2", infer=_like_default, keeps=True, types={"Tin": 1, "Tout": 2})
def find(handle: HostArray, keys: HostArray, default: HostArray) -> HostArray:
    """Returns the value of each key, or ``default``."""
    return handle.item().find(keys, default)


@host("LookupTableInsertV2", infer=no_outputs, keeps=True, types={"Tin": 1, "Tout": 2})
def insert(handle: HostArray, keys: HostArray, values: HostArray) -> None:
    """Adds or replaces entries."""
    handle.item().insert(keys, values)


@host("LookupTableImportV2", infer=no_outputs, keeps=True, types={"Tin": 1, "Tout": 2})
def replace(handle: HostArray, keys: HostArray, values: HostArray) -> None:
    """Replaces all entries."""
    handle.item().replace(keys, values)


@host("LookupTableRemoveV2", infer=no_outputs, keeps=True, types={"Tin": 1})
def remove(handle: HostArray, keys: HostArray) -> None:
    """Removes entries."""
    handle.item().remove(keys)


@host("LookupTableSizeV2", infer=fixed(int64, ()), keeps=True)
def size(handle: HostArray) -> np.integer:
    """Returns the number of entries."""
    return np.int64(handle.item().size())


def _exported(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["Tkeys"], (None,)), Spec(inference.attrs["Tvalues"], None)]


@host("LookupTableExportV2", infer=_exported, keeps=True)
def export(handle: HostArray, *, Tkeys: DType, Tvalues: DType) -> HostArray:
    """Returns all keys and values."""
    del Tkeys, Tvalues
    return handle.item().export()


def _buckets(inference: Inference) -> Sequence[Spec]:
    return [Spec(int64, inference.inputs[0].dims)]


@host("StringToHashBucketStrong", inputs="input:string", infer=_buckets)
def to_hash_bucket_strong(input: HostArray, *, num_buckets: int, key: Sequence[int]) -> HostArray:
    """Returns a number below ``num_buckets`` for each string, by SipHash with a secret key."""
    flat = [sip_hash(text, *key) % num_buckets for text in input.ravel()]
    return np.array(flat, np.int64).reshape(input.shape)


@host("StringToHashBucket", inputs="string_tensor:string", infer=_buckets)
def to_hash_bucket(string_tensor: HostArray, *, num_buckets: int) -> HostArray:
    """Returns a number below ``num_buckets`` for each string, by the hash function of TensorFlow's first versions."""
    flat = [old_hash(text) % num_buckets for text in string_tensor.ravel()]
    return np.array(flat, np.int64).reshape(string_tensor.shape)


def _fingerprints(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    return [Spec(uint8, (None if dims is None else dims[0], 8))]


@host("Fingerprint", inputs="data:T, method:string", infer=_fingerprints)
def fingerprint(data: HostArray, method: HostArray) -> HostArray:
    """Returns FarmHash's fingerprint of each row's bytes; a row of several strings is represented by their
    fingerprints."""
    if method.item() != b"farmhash64":
        raise InvalidArgumentError(f"Unsupported data fingerprinting method {method.item()!r}")
    rows: list[int] = []
    for row in data.reshape(len(data), -1):
        if data.dtype == object:
            numbers = [fingerprint64(text) for text in row]
            several = data.ndim > 1
            rows.append(fingerprint64(np.array(numbers, "<u8").tobytes()) if several else numbers[0])
        else:
            rows.append(fingerprint64(row.tobytes()))
    return np.array(rows, "<u8").view(np.uint8).reshape(len(data), 8)


def _two_numbers(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    return [Spec(int64, (None if dims is None else dims[0], 2))]


@host("SdcaFprint", inputs="input:string", infer=_two_numbers)
def sdca_fprint(input: HostArray) -> HostArray:
    """Returns FarmHash's 128-bit fingerprint of each string, the low half first."""
    return np.array([fingerprint128(text) for text in input], np.uint64).reshape(-1, 2).view(np.int64)


@host("StringToHashBucketFast", inputs="input:string", infer=_buckets)
def to_hash_bucket_fast(input: HostArray, *, num_buckets: int) -> HostArray:
    """Returns a number below ``num_buckets`` for each string, the same on all machines."""
    found = fingerprints64(input.ravel().tolist()) % np.uint64(num_buckets)
    return found.astype(np.int64).reshape(input.shape)


_NUMBER_NS: Final = 600
"""The time for the conversion of one number to text and its hash without a compiled loop."""


@host("NumberToHashBucketFast", inputs="input:T|numeric_or_bool", infer=_buckets)
def number_to_hash_bucket_fast(input: HostArray, *, num_buckets: int) -> HostArray:
    """Returns `to_hash_bucket_fast` of each number as text; `headwater.graph.passes.merge` combines both operations."""
    is_integer = input.dtype.kind in "iu" and np.can_cast(input.dtype, np.int64)
    if is_integer and fingerprints.buckets_of_numbers.pays(_NUMBER_NS * input.size):
        numbers = np.ascontiguousarray(input.ravel(), np.int64)
        return fingerprints.buckets_of_numbers(numbers, num_buckets).reshape(input.shape)
    return to_hash_bucket_fast(as_string(input), num_buckets=num_buckets)
