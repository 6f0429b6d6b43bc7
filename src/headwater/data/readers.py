"""Datasets that read files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.data.dataset import DEFAULT_CYCLE, Dataset
from headwater.data.node import Node
from headwater.data.prefetch import AUTOTUNE
from headwater.data.sources import FixedLengthRecords, Lines, Records
from headwater.data.spec import as_array
from headwater.dtypes import int64, string

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


class TFRecordDataset(Dataset):
    """The records of TFRecord files, one file after the other.

    Args:
      filenames: a name, several names, or a dataset of names.
      compression_type: ``GZIP``, ``ZLIB``, or empty.
      buffer_size: None or at least 0, as in TensorFlow; otherwise without effect.
      num_parallel_reads: number of files to read in turn; None for one after the other.
    """

    def __init__(
        self,
        filenames: object,
        compression_type: str | None = None,
        buffer_size: TensorLike | None = None,
        num_parallel_reads: TensorLike | None = None,
        name: str | None = None,
    ) -> None:
        del name
        _read_files(self, Records, filenames, num_parallel_reads, compression_type, {"buffer_size": buffer_size})


class TextLineDataset(Dataset):
    """The lines of text files, one file after the other. Arguments as for `TFRecordDataset`."""

    def __init__(
        self,
        filenames: object,
        compression_type: str | None = None,
        buffer_size: TensorLike | None = None,
        num_parallel_reads: TensorLike | None = None,
        name: str | None = None,
    ) -> None:
        del name
        _read_files(self, Lines, filenames, num_parallel_reads, compression_type, {"buffer_size": buffer_size})


class FixedLengthRecordDataset(Dataset):
    """Records of equal length, one file after the other.

    Args:
      record_bytes: length of a record.
      header_bytes: number of bytes to skip at a file's start; None for 0.
      footer_bytes: number of bytes to skip at its end; None for 0.
    """

    def __init__(
        self,
        filenames: object,
        record_bytes: TensorLike,
        header_bytes: TensorLike | None = None,
        footer_bytes: TensorLike | None = None,
        buffer_size: TensorLike | None = None,
        compression_type: str | None = None,
        num_parallel_reads: TensorLike | None = None,
        name: str | None = None,
    ) -> None:
        del name
        sizes = {"header_bytes": header_bytes, "record_bytes": record_bytes, "footer_bytes": footer_bytes}
        sizes["buffer_size"] = buffer_size
        _read_files(self, FixedLengthRecords, filenames, num_parallel_reads, compression_type, sizes)


def _names(cls: type[Dataset], filenames: Any) -> Dataset:
    """Returns a dataset of file names; they may be a tensor, whose value is known when the dataset is iterated."""
    if not hasattr(filenames, "dims"):
        return cls.from_tensor_slices(np.ravel(as_array(filenames)))
    return cls.from_tensor_slices(filenames) if filenames.dims else cls.from_tensors(filenames)


def _read_files(
    dataset: Dataset,
    kind: Callable[..., Node],
    filenames: object,
    in_turn: object,
    compression_type: str | None,
    sizes: Mapping[str, object],
) -> None:
    """Initializes ``dataset`` with nodes of class ``kind``; ``sizes`` are their fields for numbers, None for 0."""
    cls = type(dataset)

    def read(names: object) -> Node:
        numbers = {name: cls.as_value(0 if size is None else size, int64) for name, size in sizes.items()}
        return kind(filenames=names, compression_type=cls.as_value(compression_type or "", string), **numbers)

    if isinstance(filenames, Dataset) or (in_turn is not None and in_turn != 1):
        names = filenames if isinstance(filenames, Dataset) else _names(cls, filenames)
        cycle = 1 if in_turn is None else DEFAULT_CYCLE if in_turn == AUTOTUNE else in_turn

        def read_one(name: str) -> Dataset:
            return cls.of_node(read(name), None)

        records = names.interleaved(read_one, cycle, 1, "interleave")
        Dataset.__init__(dataset, records.node, None)
    else:
        Dataset.__init__(dataset, read(cls.as_value(filenames, string)), None)
