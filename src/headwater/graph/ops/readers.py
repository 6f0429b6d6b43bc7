"""Operations on readers and files. They run on the host of the task that the reader is placed on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headwater.data.io.files import as_path, glob, makedirs, open_file, translated
from headwater.dtypes import int64, resource, string
from headwater.errors import UnimplementedError
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.ops.queues import as_handle
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext
from headwater.graph.resources.readers import (
    FixedLengthReader,
    IdentityReader,
    LineReader,
    LMDBReader,
    Reader,
    RecordReader,
    WholeFileReader,
    columns,
    read_file,
)

_handle = fixed(resource, ())


def _reader(
    context: HostContext, container: str, shared_name: str, kind: Callable[..., Reader], *options: object
) -> HostArray:
    make = lambda: kind(context.op_name, *options)  # noqa: E731 - a short factory
    signature = {"type": kind.__name__, "options": options}
    return as_handle(context.resource(container, shared_name, Reader, make, signature))


@host("TFRecordReaderV2", infer=_handle)
def tf_record_reader(
    context: HostContext, *, container: str = "", shared_name: str = "", compression_type: str = ""
) -> HostArray:
    return _reader(context, container, shared_name, RecordReader, compression_type)


@host("TextLineReaderV2", infer=_handle)
def text_line_reader(
    context: HostContext, *, skip_header_lines: int = 0, container: str = "", shared_name: str = ""
) -> HostArray:
    return _reader(context, container, shared_name, LineReader, skip_header_lines)


@host("FixedLengthRecordReaderV2", infer=_handle)
def fixed_length_record_reader(
    context: HostContext,
    *,
    record_bytes: int,
    header_bytes: int = 0,
    footer_bytes: int = 0,
    hop_bytes: int = 0,
    container: str = "",
    shared_name: str = "",
    encoding: str = "",
) -> HostArray:
    return _reader(
        context,
        container,
        shared_name,
        FixedLengthReader,
        record_bytes,
        header_bytes,
        footer_bytes,
        hop_bytes,
        encoding,
    )


@host("WholeFileReaderV2", infer=_handle)
def whole_file_reader(context: HostContext, *, container: str = "", shared_name: str = "") -> HostArray:
    return _reader(context, container, shared_name, WholeFileReader)


@host("LMDBReader", infer=_handle)
def lmdb_reader(context: HostContext, *, container: str = "", shared_name: str = "") -> HostArray:
    return _reader(context, container, shared_name, LMDBReader)


@host("IdentityReaderV2", infer=_handle)
def identity_reader(context: HostContext, *, container: str = "", shared_name: str = "") -> HostArray:
    return _reader(context, container, shared_name, IdentityReader)


def _two(dims: tuple[int | None, ...]) -> Callable[[Inference], Sequence[Spec]]:
    return lambda inference: [Spec(string, dims), Spec(string, dims)]


@host("ReaderReadV2", infer=_two(()), blocking=True)
def reader_read(context: HostContext, reader: HostArray, queue: HostArray) -> Sequence[HostArray]:
    ((key, value),) = reader.item().read_up_to(context.step, queue.item(), 1)
    return key, value


@host(
    "ReaderReadUpToV2",
    infer=_two((None,)),
    blocking=True,
    inputs="reader_handle:resource, queue_handle:resource, num_records:int64",
)
def reader_read_up_to(
    context: HostContext, reader: HostArray, queue: HostArray, num_records: HostArray
) -> Sequence[HostArray]:
    return columns(reader.item().read_up_to(context.step, queue.item(), int(num_records)))


@host("ReaderNumRecordsProducedV2", infer=fixed(int64, ()))
def reader_num_records_produced(reader: HostArray) -> np.integer:
    return np.int64(reader.item().produced)


@host("ReaderNumWorkUnitsCompletedV2", infer=fixed(int64, ()))
def reader_num_work_units_completed(reader: HostArray) -> np.integer:
    return np.int64(reader.item().completed)


@host("ReaderResetV2", infer=no_outputs)
def reader_reset(reader: HostArray) -> None:
    reader.item().reset()


@host("ReaderSerializeStateV2", infer=fixed(string, ()))
def reader_serialize_state(context: HostContext, reader: HostArray) -> HostArray:
    raise _no_state(context, reader)


@host("ReaderRestoreStateV2", infer=no_outputs, inputs="reader_handle:resource, state:string")
def reader_restore_state(context: HostContext, reader: HostArray, state: HostArray) -> None:
    del state
    raise _no_state(context, reader)


def _no_state(context: HostContext, reader: HostArray) -> UnimplementedError:
    kind = type(reader.item()).__name__
    return UnimplementedError(f"a {kind} cannot save or restore its state [operation '{context.op_name}']")


@host("ReadFile", infer=fixed(string, ()), inputs="filename:string")
def read_whole_file(filename: HostArray) -> bytes:
    return read_file(filename.item())


@host("WriteFile", infer=no_outputs, inputs="filename:string, contents:string")
def write_file(filename: HostArray, contents: HostArray) -> None:
    path = as_path(filename.item())
    folder = path.rpartition("/")[0]
    if folder:
        makedirs(folder)
    with translated(path), open_file(path, "wb") as file:
        file.write(contents.item())


@host("MatchingFiles", infer=fixed(string, (None,)), inputs="pattern:string")
def matching_files(pattern: HostArray) -> HostArray:
    found = sorted({name.encode() for one in pattern.ravel() for name in glob(as_path(one))})
    result = np.empty(len(found), object)
    result[:] = found
    return result
