"""Elements cached in files: `Dataset.cache` with a file name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from headwater.data.composites import element_of, flat_element, flat_specs
from headwater.data.io import files
from headwater.data.io.bundle_writer import BundleWriter
from headwater.data.io.tensor_bundle import BundleReader, index_path
from headwater.data.node import Block, Context, Element, closing, row, rows_of
from headwater.data.transforms import Wrapper
from headwater.dtypes import DType, string
from headwater.errors import DataLossError

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


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

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

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
                raise DataLossError(
                    None, None, f"{self._prefix} holds no cached elements: give cache() another file name"
                )
            components = int(reader.read(_COMPONENTS))
            expected = len(flat_specs(self.specs))
            if components != expected:
                raise DataLossError(
                    None,
                    None,
                    f"{self._prefix} holds elements of {components} components, not {expected}: it is the "
                    "cache of another dataset; delete it, or give cache() another file name",
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
