"""Sources and filters: CSV records, database rows, distinct elements, random numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing as closing_soon
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from headwater.data.node import Block, Context, Element, Failure, Node, closing, rows_of
from headwater.data.sources import FilesNode, bytes_column, decoded_text, lines_of_file
from headwater.data.spec import TensorSpec
from headwater.data.transforms import ByElement, InfiniteNumbers, generator_of
from headwater.dtypes import DType, string
from headwater.errors import InvalidArgumentError, OpError, UnknownError

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray


@dataclass(eq=False, kw_only=True)
class CsvRecords(FilesNode):
    """The records of CSV files, which end with LF, CR or both; a quoted field may contain these.

    Attributes:
      header: whether to skip the first record of each file.
      quoted: whether quotes are interpreted.
    """

    positive: ClassVar[dict[str, str]] = {"buffer_size": "buffer_size"}
    header: bool
    quoted: bool

    def _contents(self, name: bytes, rows: int) -> Iterator[Block]:
        chunk: list[bytes] = []
        with lines_of_file(name, self.compression_type) as lines:
            records = _records(lines, self.quoted)
            if self.header and next(records, None) is None:
                raise InvalidArgumentError("Can't read header of file")
            try:
                for record in records:
                    chunk.append(record)
                    if len(chunk) == rows:
                        yield (bytes_column(chunk),)
                        chunk = []
            except OpError:
                if chunk:
                    yield (bytes_column(chunk),)
                raise
        if chunk:
            yield (bytes_column(chunk),)


def _records(lines: Iterator[bytes], quoted: bool) -> Iterator[bytes]:
    held = b""
    for line in lines:
        held += line
        if quoted and held.count(b'"') % 2:
            continue  # within a quoted field
        record = held.rstrip(b"\n").removesuffix(b"\r")
        held = b""
        for part in record.split(b"\r"):
            held += part
            if quoted and held.count(b'"') % 2:
                held += b"\r"
                continue
            yield held or (b'""' if quoted else b"")  # an empty record has one field
            held = b""
    if held:
        raise InvalidArgumentError("Quoted field has to end with quote followed by delim, CRLF, or EOF")


@dataclass(eq=False, kw_only=True)
class SqlRows(Node):
    """The rows of a database query's result.

    Attributes:
      driver_name: ``sqlite``.
      data_source_name: path of the database.
      query: in SQL.
      of: specs of the columns.
    """

    values: ClassVar[dict[str, DType | None]] = {"driver_name": string, "data_source_name": string, "query": string}
    driver_name: object
    data_source_name: object
    query: object
    of: tuple[TensorSpec, ...]

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return self.of

    def elements(self, context: Context) -> Iterator[Element]:
        driver = decoded_text(self.driver_name)
        if driver != "sqlite":
            raise InvalidArgumentError(
                f"The database type, {driver}, is not supported by SqlDataset. The set of supported "
                "databases is: {'sqlite'}."
            )
        with closing_soon(sqlite3.connect(decoded_text(self.data_source_name))) as connection:
            connection.text_factory = bytes
            try:
                cursor = connection.execute(decoded_text(self.query))
            except sqlite3.Error as error:
                raise UnknownError(f"Failed to run the query of a SqlDataset: {error}") from None
            for row in cursor:
                if len(row) != len(self.of):
                    raise InvalidArgumentError(
                        f"The number of columns in query ({len(row)}) must match the number of elements in "
                        f"output_types ({len(self.of)})."
                    )
                yield tuple(_cell(value, spec) for value, spec in zip(row, self.of, strict=True))


def _cell(value: object, spec: TensorSpec) -> HostArray:
    if spec.dtype == string:
        text = value if isinstance(value, bytes) else b"" if value is None else str(value).encode()
        return bytes_column([text]).reshape(())
    return np.asarray(value or 0).astype(spec.dtype.numpy_dtype)


@dataclass(eq=False, kw_only=True)
class Unique(ByElement):
    """Yields each element once, at its first occurrence."""

    def elements(self, context: Context) -> Iterator[Element]:
        seen: set[object] = set()
        with closing(self.input.elements(context)) as source:
            for element in source:
                if isinstance(element, Failure):
                    yield element
                    continue
                (part,) = element
                key = part.tobytes() if part.dtype != object else tuple(part.ravel().tolist())
                if key not in seen:
                    seen.add(key)
                    yield element


class RandomNumbers(InfiniteNumbers):
    """Yields random numbers infinitely, int64 from 0 to below 2^32."""

    def elements(self, context: Context) -> Iterator[Element]:
        draw = generator_of(self.seed, self.seed2)
        while True:
            yield from rows_of(iter([(draw.integers(0, 1 << 32, 256),)]))
