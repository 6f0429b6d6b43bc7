"""Source nodes: arrays, ranges, generators, files."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from headwater.data.composites import Composite, is_dense
from headwater.data.io.files import open_file, stat, translated
from headwater.data.io.record_compression import Inflater, TFRecordOptions
from headwater.data.io.tfrecord import TFRecordReader
from headwater.data.node import (
    UNKNOWN,
    Block,
    Context,
    Element,
    Failure,
    Node,
    closing,
    positive,
    row,
    rows_of,
    static_value,
)
from headwater.data.spec import TensorSpec, is_array
from headwater.dtypes import DType, from_numpy, int64, string
from headwater.errors import InvalidArgumentError, OpError

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.graph.types import TensorLike


@dataclass(eq=False, kw_only=True)
class Slices(Node):
    """Yields the slices of arrays along their first dimension.

    Attributes:
      components: arrays with equal first dimensions.
    """

    values: ClassVar[dict[str, DType | None]] = {"components": None}
    components: tuple[Any, ...]

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple(spec_of_value(component).sliced() for component in self.components)

    @property
    def columnar(self) -> bool:
        return is_dense(self.specs)

    @property
    def cardinality(self) -> int:
        first = self.components[0]
        return len(first) if is_array(first) or isinstance(first, Composite) else UNKNOWN  # pyright: ignore[reportUnknownArgumentType]

    def elements(self, context: Context) -> Iterator[Element]:
        for index in range(self._count()):
            yield tuple(row(component, index) for component in self.components)

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        for start in range(0, self._count(), rows):
            yield tuple(component[start : start + rows] for component in self.components)

    def _count(self) -> int:
        counts = [len(component) for component in self.components]
        if len(set(counts)) > 1:
            raise InvalidArgumentError(f"the components have different numbers of slices: {counts}")
        return counts[0]


def spec_of_value(component: Any) -> TensorSpec:
    """Returns the spec of a node's value: an array, a tensor, or a sparse or ragged value."""
    spec = getattr(component, "spec", None)
    if isinstance(spec, TensorSpec):
        return spec
    dtype = component.dtype
    return TensorSpec(component.shape, from_numpy(dtype) if isinstance(dtype, np.dtype) else dtype.base_dtype)  # pyright: ignore[reportUnknownArgumentType]


@dataclass(eq=False, kw_only=True)
class Whole(Node):
    """Yields one element: the arrays unchanged."""

    values: ClassVar[dict[str, DType | None]] = {"components": None}
    components: tuple[Any, ...]

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple(map(spec_of_value, self.components))

    @property
    def cardinality(self) -> int:
        return 1

    def elements(self, context: Context) -> Iterator[Element]:
        yield self.components


@dataclass(eq=False, kw_only=True)
class Range(Node):
    """Yields integers from ``start``, by ``step``, before ``stop``."""

    values: ClassVar[dict[str, DType | None]] = {"start": int64, "stop": int64, "step": int64}
    start: Any
    stop: Any
    step: Any

    def check(self) -> None:
        if static_value(self.step) == 0:
            raise InvalidArgumentError("step must be a non-zero integer.")

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec((), int64),)

    @property
    def columnar(self) -> bool:
        return True

    @property
    def cardinality(self) -> int:
        numbers = [static_value(value) for value in (self.start, self.stop, self.step)]
        return UNKNOWN if None in numbers or numbers[2] == 0 else len(range(*numbers))

    def elements(self, context: Context) -> Iterator[Element]:
        return rows_of(self.blocks(context, 512))

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        numbers = range(int(self.start), int(self.stop), int(self.step))
        for index in range(0, len(numbers), rows):
            part = numbers[index : index + rows]
            yield (np.arange(part.start, part.stop, part.step, dtype=np.int64),)


@dataclass(eq=False, kw_only=True)
class Generated(Node):
    """Yields the elements of a Python generator.

    Attributes:
      make: ``make(*args)`` returns a new iterator over flat elements.
      args: arrays, the arguments of the program's function.
      of: specs of an element.
    """

    values: ClassVar[dict[str, DType | None]] = {"args": None}
    make: Callable[..., Iterator[Element]]
    args: tuple[object, ...] = ()
    of: tuple[TensorSpec, ...]

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return self.of

    def elements(self, context: Context) -> Iterator[Element]:
        try:
            with closing(self.make(*self.args)) as iterator:
                yield from iterator
        except Exception as error:  # noqa: BLE001 - the iterator raises it
            yield Failure.of(error)


@dataclass(eq=False, kw_only=True)
class FilesNode(Node):
    """Base of nodes that yield the contents of files, one file after the other, as text.

    Attributes:
      filenames: bytes, a scalar or vector.
      compression_type: ``GZIP``, ``ZLIB``, or empty.
      buffer_size: at least 0, as in TensorFlow; otherwise without effect: files are read in pieces of a fixed size.
    """

    values: ClassVar[dict[str, DType | None]] = {"filenames": string, "compression_type": string, "buffer_size": int64}
    filenames: Any
    compression_type: str
    buffer_size: TensorLike

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec((), string),)

    @property
    def columnar(self) -> bool:
        return True

    def elements(self, context: Context) -> Iterator[Element]:
        return rows_of(self.blocks(context, 256))

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        size = static_value(self.buffer_size)
        if size < 0:
            raise InvalidArgumentError(f"`buffer_size` must be >= 0, not {size}")
        for name in np.ravel(self.filenames):
            try:
                yield from self._contents(bytes(name), rows)
            except OpError as error:  # ends its file; the next one follows
                yield Failure.of(error)

    @abstractmethod
    def _contents(self, name: bytes, rows: int) -> Iterator[Block]:
        """Yields blocks of at most ``rows`` texts of a file."""


@dataclass(eq=False, kw_only=True)
class Records(FilesNode):
    """The records of TFRecord files."""

    def _contents(self, name: bytes, rows: int) -> Iterator[Block]:
        options = TFRecordOptions.of(decoded_text(self.compression_type))
        with TFRecordReader(name, options) as reader:
            while values := reader.read_block(rows):
                yield (bytes_column(values),)


def decoded_text(value: Any) -> str:
    """Returns the text in a scalar."""
    text = value.item()
    return text.decode() if isinstance(text, bytes) else str(text)


def bytes_column(values: list[bytes]) -> HostArray:
    """Returns strings as an array."""
    column = np.empty(len(values), object)
    column[:] = values
    return column


@dataclass(eq=False, kw_only=True)
class Lines(FilesNode):
    """The lines of text files, without their ends."""

    def _contents(self, name: bytes, rows: int) -> Iterator[Block]:
        with lines_of_file(name, self.compression_type) as lines:
            while chunk := list(itertools.islice(lines, rows)):
                yield (bytes_column([line.rstrip(b"\n").removesuffix(b"\r") for line in chunk]),)


@contextmanager
def lines_of_file(name: bytes, compression_type: str) -> Generator[Iterator[bytes]]:
    """Opens a file; returns an iterator over its lines, with their ends."""
    bits = TFRecordOptions.of(decoded_text(compression_type)).zlib_window_bits
    with translated(name) as path, open_file(path, "rb") as file:
        yield iter(file.readline, b"") if bits is None else _lines_of(Inflater(file, path, bits))


def _lines_of(source: Inflater, size: int = 1 << 16) -> Iterator[bytes]:
    rest = b""
    while part := source.read(size):
        *whole, rest = (rest + part).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


@dataclass(eq=False, kw_only=True)
class FixedLengthRecords(FilesNode):
    """Records of equal length.

    Attributes:
      record_bytes: length of a record.
      header_bytes: number of bytes to skip at a file's start.
      footer_bytes: number of bytes to skip at its end.
    """

    values: ClassVar[dict[str, DType | None]] = {
        "filenames": string,
        "header_bytes": int64,
        "record_bytes": int64,
        "footer_bytes": int64,
        "buffer_size": int64,
        "compression_type": string,
    }
    header_bytes: Any
    record_bytes: Any
    footer_bytes: Any

    def _contents(self, name: bytes, rows: int) -> Iterator[Block]:
        header, length, footer = int(self.header_bytes), int(self.record_bytes), int(self.footer_bytes)
        positive(length, "record_bytes")
        for shown, count in (("header_bytes", header), ("footer_bytes", footer)):
            if count < 0:
                raise InvalidArgumentError(f"{shown} must be >= 0, not {count}")
        bits = TFRecordOptions.of(decoded_text(self.compression_type)).zlib_window_bits
        with translated(name) as path, open_file(path, "rb") as file:
            source = file if bits is None else Inflater(file, path, bits)
            # The length of compressed contents is not known in advance.
            excess = (stat(path).length - header - footer) % length if bits is None else 0
            if excess:
                raise InvalidArgumentError(
                    f"Excess bytes at the end of {path}: the bytes between header_bytes={header} and "
                    f"footer_bytes={footer} is not a multiple of record_bytes={length}"
                )
            _read_exactly(source, header)
            held = b""  # ends with as many bytes as the footer, which may be records unless the file has ended
            while True:
                held += _read_exactly(source, rows * length + footer - len(held))
                count = (len(held) - footer) // length
                if count < 1:
                    break
                yield (bytes_column([held[i * length : (i + 1) * length] for i in range(count)]),)
                held = held[count * length :]


def _read_exactly(source: Any, count: int) -> bytes:
    """Reads ``count`` bytes; fewer if the source ends."""
    parts: list[bytes] = []
    while count > 0 and (part := source.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
