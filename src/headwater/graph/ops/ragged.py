"""Operations on the row splits of ragged tensors. They run on the host."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

from headwater.dtypes import int64, string
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec

_INVALID: Final = "Arguments to from_row_splits do not form a valid RaggedTensor"


def _refuse(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(message)


def _splits_of(lengths: HostArray, dtype: np.dtype[np.integer]) -> HostArray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)


def _splits_spec(inference: Inference) -> Sequence[Spec]:
    rows, count = inference.constant(0), inference.constant(1)
    number = None
    if count is not None and count >= 0:
        number = int(count) + 1
    elif count is not None and rows is not None:
        number = int(rows.max()) + 2 if rows.size else 1
    return [Spec(inference.inputs[0].dtype, (number,))]


def _rows_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.inputs[0].dtype, (None,))]


def _same_as_first(inference: Inference) -> Sequence[Spec]:
    return [inference.inputs[0]]


@host("RaggedCheckedSplits", inputs="splits:T|index, count:T", infer=_same_as_first)
def checked_splits(splits: HostArray, count: HostArray) -> HostArray:
    """Returns the splits, checked for this number of values."""
    if splits.ndim != 1 or not splits.size or splits[0] != 0:
        raise _refuse(f"{_INVALID}:zero: First value of ragged splits must be 0")
    if (np.diff(splits) < 0).any():
        raise _refuse(f"{_INVALID}:monotonic")
    if splits[-1] != count:
        raise _refuse(f"{_INVALID}: Final value of ragged splits must match the number of values")
    return splits


@host("RaggedRowsToSplits", inputs="rows:T|index, count:T", infer=_splits_spec)
def rows_to_splits(rows: HostArray, count: HostArray, *, ascending: bool = True) -> HostArray:
    """Computes splits from the row of each value and the number of rows (-1: derived from the values)."""
    if ascending and (np.diff(rows) < 0).any():
        raise _refuse("Arguments to from_value_rowids do not form a valid RaggedTensor: rows must ascend")
    if (rows < 0).any():
        raise _refuse("Arguments to from_value_rowids do not form a valid RaggedTensor: rows must be non-negative")
    last = int(rows.max()) if rows.size else -1
    number = int(count) if count >= 0 else last + 1
    if last >= number:
        raise _refuse("Arguments to from_value_rowids do not form a valid RaggedTensor: nrows is too small")
    return _splits_of(np.bincount(rows, minlength=number), rows.dtype)


@host("RaggedSplitsToRows", inputs="splits:T|index", infer=_rows_spec)
def splits_to_rows(splits: HostArray) -> HostArray:
    """Returns the row number of each value."""
    return np.repeat(np.arange(len(splits) - 1, dtype=splits.dtype), np.diff(splits))


def _range_specs(inference: Inference) -> Sequence[Spec]:
    known = [spec.dims for spec in inference.inputs]
    for dims in known:
        if dims is not None and len(dims) > 1:
            raise ValueError(f"Shape must be at most rank 1 but is rank {len(dims)}")
    if len({dims[0] for dims in known if dims and dims[0] is not None}) > 1:
        raise ValueError("starts, limits, and deltas must have the same shape")
    rows = [dims[0] for dims in known if dims] or [1]
    count = next((size + 1 for size in rows if size is not None), None) if None not in known else None
    return [Spec(inference.attrs.get("Tsplits", int64), (count,)), Spec(inference.inputs[0].dtype, (None,))]


def _dense_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.inputs[1].dtype.base_dtype, None)]


@host(
    "RaggedTensorToTensor",
    inputs="shape:Tshape|index, values:T, default_value:T, row_partition_tensors:Tindex*",
    infer=_dense_spec,
)
def ragged_tensor_to_tensor(
    shape: HostArray,
    values: HostArray,
    default_value: HostArray,
    *row_partition_tensors: HostArray,
    row_partition_types: Sequence[str],
) -> HostArray:
    """Returns a dense tensor: rows are cut, or padded with ``default_value``, to ``shape``, or to the longest row.

    Args:
      shape: sizes of the result, -1 for the size of the longest row; a scalar -1 for all.
      row_partition_types: for each partition, from the outermost: ``ROW_SPLITS``, or ``FIRST_DIM_SIZE`` followed by
        ``VALUE_ROWIDS``.
    """
    parts = [
        (kind, part)
        for kind, part in zip(row_partition_types, row_partition_tensors, strict=True)
        if kind != "FIRST_DIM_SIZE"
    ]
    count = int(row_partition_tensors[0]) if row_partition_types[0] == "FIRST_DIM_SIZE" else len(parts[0][1]) - 1
    splits: list[HostArray] = []
    rows = count
    for kind, part in parts:
        lengths = np.diff(part) if kind == "ROW_SPLITS" else np.bincount(part, minlength=rows)
        splits.append(np.concatenate([[0], np.cumsum(lengths)]))
        rows = int(splits[-1][-1])
    sizes = [count, *(int(np.diff(each).max(initial=0)) for each in splits), *values.shape[1:]]
    if shape.ndim:
        sizes = [own if wanted < 0 else int(wanted) for wanted, own in zip(shape.tolist(), sizes, strict=True)]
    result = np.empty(sizes, values.dtype)
    result[...] = default_value
    places = np.arange(count)[:, None]
    for each in splits:
        ids = np.repeat(np.arange(len(each) - 1), np.diff(each))
        inner = np.arange(len(ids)) - each[:-1][ids]
        places = np.concatenate([places[ids], inner[:, None]], axis=1)
    inside = (places < np.array(sizes[: places.shape[1]])).all(axis=1)
    trimmed = values[(slice(None), *(slice(size) for size in sizes[places.shape[1] :]))]
    target = (*places[inside].T, *(slice(size) for size in trimmed.shape[1:]))
    result[target] = trimmed[inside]
    return result


@host("RaggedRange", inputs="starts:T|numeric, limits:T, deltas:T", infer=_range_specs)
def ragged_range(
    starts: HostArray, limits: HostArray, deltas: HostArray, *, Tsplits: object = int64
) -> tuple[HostArray, HostArray]:
    """Returns, for each row, the numbers from a start to a limit."""
    count = max([len(part) for part in (starts, limits, deltas) if part.ndim], default=1)
    sizes = {len(part) for part in (starts, limits, deltas) if part.ndim}
    if len(sizes) > 1:
        raise _refuse("starts, limits, and deltas must have the same shape")
    if (deltas == 0).any():
        raise _refuse("Requires delta != 0")
    columns = (np.broadcast_to(part, (count,)) for part in (starts, limits, deltas))
    rows = [np.arange(start, limit, delta, dtype=starts.dtype) for start, limit, delta in zip(*columns, strict=True)]
    values = np.concatenate(rows) if rows else np.empty(0, starts.dtype)
    kind = getattr(Tsplits, "as_numpy_dtype", np.int64)
    return _splits_of(np.array([len(row) for row in rows], np.int64), np.dtype(kind)), values


def _ngram_specs(inference: Inference) -> Sequence[Spec]:
    return [Spec(string, (None,)), Spec(inference.inputs[1].dtype, inference.inputs[1].dims)]


@host("StringNGrams", inputs="data:string, data_splits:Tsplits|index", infer=_ngram_specs)
def string_ngrams(
    data: HostArray,
    data_splits: HostArray,
    *,
    separator: str = "",
    ngram_widths: Sequence[int] = (),
    left_pad: str = "",
    right_pad: str = "",
    pad_width: int = 0,
    preserve_short_sequences: bool = False,
) -> tuple[HostArray, HostArray]:
    """Returns the n-grams of each row."""
    found: list[bytes] = []
    lengths: list[int] = []
    between, left, right = separator.encode(), left_pad.encode(), right_pad.encode()
    for begin, end in itertools.pairwise(data_splits):
        row = list(data[begin:end])
        count = len(found)
        for width in ngram_widths:
            pads = min(pad_width if pad_width >= 0 else width - 1, width - 1)
            padded = [left] * pads + row + [right] * pads
            found += [between.join(padded[at : at + width]) for at in range(len(padded) - width + 1)]
            # A row that is too short for any n-gram becomes one n-gram.
            if preserve_short_sequences and len(found) == count and row:
                found.append(between.join(padded))
        lengths.append(len(found) - count)
    values = np.empty(len(found), object)
    values[:] = found
    return values, _splits_of(np.array(lengths, np.int64), data_splits.dtype)
