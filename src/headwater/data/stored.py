"""Elements in files: `Dataset.cache` with a file name, and saved datasets."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from headwater.data.composites import element_of, flat_element, flat_specs, spec_of_code
from headwater.data.io import checked_json, files
from headwater.data.io.bundle_writer import BundleWriter
from headwater.data.io.tensor_bundle import BundleReader, index_path
from headwater.data.node import Block, Context, Element, Failure, Node, closing, raise_failures, row, rows_of
from headwater.data.spec import TensorSpec
from headwater.data.transforms import Wrapper
from headwater.dtypes import DType, string
from headwater.errors import DataLossError, NotFoundError

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


_DESCRIPTION = "dataset.json"
_ELEMENTS = "elements"
_BLOCKS = "blocks"
_COUNT = "count"
_COMPONENTS = "components"
_ROWS = 256


@dataclass(eq=False, kw_only=True)
class StoredCache(Wrapper):
    """Caches the elements in the files ``filename.index`` and ``filename.data-…`` during the first complete iteration.

    The files are written under other names and renamed at the end. So an incomplete cache leaves no files, and if
    several processes write the cache at the same time, the files of the last one remain. They have the format of
    TensorFlow's checkpoints, with a checksum of each tensor. If they exist, the input is not used.
    """

    values: ClassVar[dict[str, DType | None]] = {"filename": string}
    filename: TensorLike

    keeps_count: ClassVar[bool] = True

    @property
    def _prefix(self) -> str:
        return np.asarray(self.filename).item().decode()

    def elements(self, context: Context) -> Iterator[Element]:
        if self.columnar:
            return rows_of(self.blocks(context, _ROWS))
        if files.exists(index_path(self._prefix)):
            return self._read_elements()
        return self._written(self.input.elements(context), in_blocks=False)

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        if files.exists(index_path(self._prefix)):
            return self._read_blocks(rows)
        return self._written(self.input.blocks(context, rows), in_blocks=True)

    def _written(self, source: Iterator[Any], *, in_blocks: bool) -> Iterator[Any]:
        writer = BundleWriter(self._prefix)
        count = 0
        try:
            with closing(source):
                for item in source:
                    if isinstance(item, Failure):
                        yield item
                        continue
                    for component, value in enumerate(flat_element(item)):
                        writer.add(f"{count}/{component}", value)
                    count += 1
                    yield item
            writer.add(_COUNT, np.int64(count))
            writer.add(_BLOCKS, np.bool_(in_blocks))
            writer.add(_COMPONENTS, np.int64(len(flat_specs(self.specs))))
            writer.finish()
        finally:
            writer.discard()

    def _read(self) -> Iterator[tuple[bool, tuple[Any, ...]]]:
        """Yields the written items, each with whether it is a block."""
        with BundleReader(self._prefix) as reader:
            if any(name not in reader for name in (_COUNT, _BLOCKS, _COMPONENTS)):
                raise DataLossError(f"{self._prefix} holds no cached elements: give cache() another file name")
            components = int(reader.read(_COMPONENTS))
            expected = len(flat_specs(self.specs))
            if components != expected:
                raise DataLossError(
                    f"{self._prefix} holds elements of {components} components, not {expected}: it is the "
                    "cache of another dataset; delete it, or give cache() another file name"
                )
            in_blocks = bool(reader.read(_BLOCKS))
            for number in range(int(reader.read(_COUNT))):
                yield in_blocks, tuple(reader.read(f"{number}/{component}") for component in range(components))

    def _read_elements(self) -> Iterator[Element]:
        for in_blocks, item in self._read():
            if not in_blocks:
                yield element_of(self.specs, item)
                continue
            for index in range(len(item[0])):
                yield tuple(row(column, index) for column in item)

    def _read_blocks(self, rows: int) -> Iterator[Block]:
        for in_blocks, item in self._read():
            block = item if in_blocks else tuple(np.asarray(part)[None] for part in item)
            for start in range(0, len(block[0]), rows):
                yield tuple(column[start : start + rows] for column in block)


# Saved datasets -------------------------------------------------------------------------------------------------------


@dataclass(eq=False, kw_only=True)
class Saved(Node):
    """The elements that `save` has written to the files of one prefix.

    Attributes:
      filename: the prefix.
      of: the specs of the components.
      count: number of elements.
    """

    values: ClassVar[dict[str, DType | None]] = {"filename": string}
    filename: TensorLike
    of: tuple[TensorSpec, ...]
    count: int

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return self.of

    @property
    def cardinality(self) -> int:
        return self.count

    def elements(self, context: Context) -> Iterator[Element]:
        return StoredCache(input=self, filename=self.filename).elements(context)


def save(node: Node, folder: str, structure: object) -> None:
    """Writes all elements of a dataset and their description to ``folder``; replaces a dataset that is there.

    Args:
      structure: the structure of an element, with None for its leaves.
    """
    files.makedirs(folder)
    prefix = posixpath.join(folder, _ELEMENTS)
    for path in files.glob(f"{prefix}.*"):
        files.remove(path)
    filename = np.asarray(prefix.encode(), object)
    count = sum(1 for _ in raise_failures(StoredCache(input=node, filename=filename).elements(Context())))
    leaves = [[spec.code, spec.dims, spec.dtype.name] for spec in node.specs]
    described = {"count": count, "structure": structure, "components": leaves}
    checked_json.write(posixpath.join(folder, _DESCRIPTION), described)


def load(folder: str) -> tuple[Saved, Any]:
    """Returns the dataset that `save` has written, and the structure of its elements.

    Raises:
      NotFoundError: ``folder`` holds no saved dataset.
    """
    path = posixpath.join(folder, _DESCRIPTION)
    if not files.exists(path):
        raise NotFoundError(f"{folder} holds no saved dataset: {path} is missing")
    described = checked_json.read(path)
    specs = tuple(spec_of_code(code, dims, dtype) for code, dims, dtype in described["components"])
    filename = np.asarray(posixpath.join(folder, _ELEMENTS).encode(), object)
    return Saved(filename=filename, of=specs, count=described["count"]), _with_tuples(described["structure"])


def _with_tuples(structure: object) -> object:
    """Converts lists, as which JSON keeps tuples, to tuples."""
    if isinstance(structure, dict):
        return {key: _with_tuples(part) for key, part in cast("dict[str, object]", structure).items()}
    return tuple(map(_with_tuples, cast("list[object]", structure))) if isinstance(structure, list) else structure
