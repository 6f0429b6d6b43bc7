"""Datasets of CSV files, of databases, of examples; and a writer of a dataset's records."""

from __future__ import annotations

import csv
import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headwater import dtypes
from headwater.data import dataset as plain
from headwater.data.experimental import Transformation
from headwater.data.experimental import ignore_errors as without_errors
from headwater.data.io import files
from headwater.data.prefetch import AUTOTUNE
from headwater.data.queries import CsvRecords, RandomNumbers, SqlRows
from headwater.data.spec import TensorSpec, as_array
from headwater.dtypes import as_dtype, int64, string
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.input.composites import value_tensor
from headwater.tf1.input.dataset import Dataset, TFRecordDataset
from headwater.tf1.input.dataset_ops import dataset_tensor
from headwater.tf1.input.parsing import decode_csv, parse_example

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure, TensorLike


_READ_BYTES = 4 << 20
_COLUMN_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


class CsvDataset(Dataset):
    """Rows of CSV files, as tuples of their columns.

    Args:
      filenames: a name, or several.
      record_defaults: for each column its type, if a field must not be empty, or a value for empty fields.
      compression_type: ``GZIP``, ``ZLIB``, or empty.
      buffer_size: at least 1, but otherwise without effect: files are read in blocks of a suitable size.
      header: skip the first line of each file.
      field_delim: separator of fields.
      use_quote_delim: quoted fields may contain separators and line ends.
      na_value: a further text that denotes an empty field.
      select_cols: indices of the columns to read, ascending; all if None.

    Raises:
      TypeError: ``filenames`` is a dataset.
    """

    def __init__(
        self,
        filenames: TensorLike,
        record_defaults: Sequence[TensorLike | DTypeLike],
        compression_type: str | None = None,
        buffer_size: TensorLike | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
    ) -> None:
        if isinstance(filenames, plain.Dataset):
            raise TypeError("filenames must be names: use flat_map for a dataset of these")
        defaults = [_default(each) for each in record_defaults]

        node = CsvRecords(
            filenames=Dataset.as_value(filenames, string),
            compression_type=Dataset.as_value(compression_type or "", string),
            buffer_size=Dataset.as_value(_READ_BYTES if buffer_size is None else buffer_size, int64),
            header=bool(header),
            quoted=use_quote_delim,
        )

        def columns(record: TensorLike) -> Any:
            values = [convert_to_tensor(value, kind) for value, kind in defaults]
            return tuple(
                decode_csv(record, values, field_delim, use_quote_delim, na_value=na_value, select_cols=select_cols)
            )

        made = Dataset.of_node(node, None).map(columns)
        plain.Dataset.__init__(self, made.node, made._structure)


def _known_default(value: Any) -> Any:
    """Returns the value of a tensor; its type if it is empty, so that the field is required."""
    if not isinstance(value, Tensor):
        return value
    return value.dtype if value.dims == (0,) else Dataset.as_value(value)


def _default(value: object) -> tuple[Any, Any]:
    """Returns the value for empty fields, None if the field is required, and its type if known."""
    if isinstance(value, type | dtypes.DType):
        return [], as_dtype(value)
    known = isinstance(value, Tensor)
    array = as_array(constant_value(value) if known else value)
    return (array if array.ndim else array.reshape(1)), value.dtype if known else None


class SqlDataset(Dataset):
    """Rows of a query of an SQLite database, as tuples of their columns.

    Args:
      driver_name: ``sqlite``.
      data_source_name: path of the database.
      query: in SQL.
      output_types: the type of each column, a tuple.
    """

    def __init__(self, driver_name: object, data_source_name: object, query: object, output_types: Structure) -> None:
        kinds = [as_dtype(kind) for kind in output_types]
        node = SqlRows(
            driver_name=self.as_value(driver_name, string),
            data_source_name=self.as_value(data_source_name, string),
            query=self.as_value(query, string),
            of=tuple(TensorSpec((), kind) for kind in kinds),
        )
        plain.Dataset.__init__(self, node, (None,) * len(kinds))


class RandomDataset(Dataset):
    """Infinite dataset of random numbers, int64.

    Args:
      seed: the seed for the same numbers in each run.
    """

    def __init__(self, seed: int | None = None) -> None:
        first, second = self._seeds(seed)
        plain.Dataset.__init__(self, RandomNumbers(seed=first, seed2=second), None)


class TFRecordWriter:
    """Writes a dataset's elements, strings, to a TFRecord file.

    Args:
      compression_type: ``GZIP``, ``ZLIB``, or empty.
    """

    def __init__(self, filename: str, compression_type: str | None = None) -> None:
        self._filename = Dataset.as_value(filename, string)
        self._compression_type = Dataset.as_value(compression_type or "", string)

    def write(self, dataset: Dataset) -> Operation:
        """The operation that writes all elements.

        Raises:
          TypeError: ``dataset`` is not a dataset, or its elements are not strings.
        """
        if not isinstance(dataset, plain.Dataset):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("`dataset` must be a `tf.data.Dataset` object.")
        specs = dataset.node.specs
        if len(specs) != 1 or specs[0].dtype != string or specs[0].shape.ndims != 0:
            raise TypeError(
                "`dataset` must produce scalar `DT_STRING` tensors whereas it produces shape "
                f"{dataset.output_shapes} and types {dataset.output_types}"
            )
        inputs = [dataset_tensor(dataset.node), value_tensor(self._filename), value_tensor(self._compression_type)]
        return get_default_graph().create_op("DatasetToTFRecord", inputs, {}, "DatasetToTFRecord")


def parse_example_dataset(features: Any, num_parallel_calls: TensorLike = 1) -> Transformation:
    """Returns a transformation that parses batches of serialised examples with `tf.parse_example`.

    Args:
      features: as for `tf.parse_example`.
      num_parallel_calls: number of batches to parse at the same time.

    Raises:
      ValueError: there are no features.
    """
    if features is None:
        raise ValueError("Missing: features was None.")

    def parse(batch: Any) -> Any:
        return parse_example(batch, features)

    return lambda dataset: dataset.map(parse, num_parallel_calls)


def _matching(file_pattern: str | Sequence[str]) -> list[str]:
    patterns = [file_pattern] if isinstance(file_pattern, str | bytes) else list(file_pattern)
    found = sorted({name for pattern in patterns for name in files.glob(pattern)})
    if not found:
        raise ValueError(f"No files match {file_pattern}.")
    return found


def _shuffled_batches(
    dataset: Any, batch_size: TensorLike, num_epochs: int | None, shuffle: bool, buffer: Any, seed: object, drops: bool
) -> Any:
    if shuffle:
        dataset = dataset.shuffle(buffer, seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    return dataset.batch(batch_size, drop_remainder=num_epochs is None or drops)


def make_batched_features_dataset(
    file_pattern: str | Sequence[str],
    batch_size: TensorLike,
    features: Any,
    reader: Callable[..., object] = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Sequence[object] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: TensorLike = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: TensorLike | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Any:
    """Returns batches of the examples in files: dictionaries of features, with labels if requested.

    Args:
      file_pattern: names of files, or patterns of names.
      batch_size: examples of a batch.
      features: as for `tf.parse_example`; of a fixed size each.
      reader: makes a dataset of serialised examples of a file.
      label_key: name of the feature that is the label.
      reader_args: further arguments of ``reader``.
      num_epochs: number of passes over the files; None: no limit.
      shuffle: shuffle the files and the examples.
      shuffle_buffer_size: number of examples to draw from.
      shuffle_seed: seed of the order.
      prefetch_buffer_size: number of batches to prefetch; chosen automatically if None.
      reader_num_threads: number of files to interleave.
      parser_num_threads: number of batches to parse at the same time.
      sloppy_ordering: accepted; the order is always deterministic.
      drop_final_batch: drop a smaller last batch.

    Raises:
      TypeError: ``reader`` does not return a dataset.
      ValueError: there is no feature ``label_key``, or no file.
    """
    del sloppy_ordering
    names = Dataset.from_tensor_slices(_matching(file_pattern))
    if shuffle:
        names = names.shuffle(len(_matching(file_pattern)), shuffle_seed)
    if label_key is not None and label_key not in features:
        raise ValueError(f"The `label_key` provided ({label_key!r}) must be one of the `features` keys.")

    def read(name: str) -> Any:
        return reader(name, *(reader_args or ()))

    def labelled(values: Any) -> Any:
        return values, values.pop(label_key)

    examples = names.interleave(read, reader_num_threads or 1)
    batches = _shuffled_batches(
        examples, batch_size, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed, drop_final_batch
    )
    parsed = batches.apply(parse_example_dataset(features, parser_num_threads or 2))
    if label_key is not None:
        parsed = parsed.map(labelled)
    return parsed.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def make_csv_dataset(
    file_pattern: str | Sequence[str],
    batch_size: TensorLike,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[TensorLike | DTypeLike] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[int | str] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: TensorLike = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: TensorLike | None = None,
    num_parallel_reads: TensorLike | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
) -> Any:
    """Returns batches of rows of CSV files: dictionaries of columns, with labels if requested.

    Args:
      file_pattern: names of files, or patterns of names.
      batch_size: rows of a batch.
      column_names: names of all columns; read from the first line if None.
      column_defaults: for each selected column its type, or a value for empty fields; inferred if None.
      label_name: name of the column that is the label.
      select_columns: names or indices of the columns to read; all if None.
      field_delim: separator of fields.
      use_quote_delim: quoted fields may contain separators.
      na_value: a further text that denotes an empty field.
      header: the first line of each file has the names.
      num_epochs: number of passes over the files; None: no limit.
      shuffle: shuffle the files and the rows.
      shuffle_buffer_size: number of rows to draw from.
      shuffle_seed: seed of the order.
      prefetch_buffer_size: number of batches to prefetch; chosen automatically if None.
      num_parallel_reads: number of files to interleave.
      sloppy: accepted; the order is always deterministic.
      num_rows_for_inference: number of rows from which to infer the columns' types; all if None.
      compression_type: ``GZIP``, ``ZLIB``, or empty.
      ignore_errors: skip rows that cannot be parsed.

    Raises:
      ValueError: names, columns or files are missing or do not match.
    """
    del sloppy
    names = _matching(file_pattern)
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        column_names = _names_of_columns(names, field_delim, use_quote_delim)
    if len(column_names) != len(set(column_names)):
        raise ValueError("Cannot have duplicate column names.")
    selected = list(range(len(column_names)))
    if select_columns is not None:
        selected = _selected(select_columns, column_names)
    if column_defaults is not None:
        given = [_known_default(each) for each in column_defaults]
        defaults = [each if isinstance(each, type | dtypes.DType) else as_array(each) for each in given]
    else:
        rows = _rows(names, field_delim, use_quote_delim, header)
        defaults = _inferred(rows, selected, len(column_names), na_value, num_rows_for_inference)
    if select_columns is not None and len(selected) != len(defaults):
        raise ValueError("If specified, column_defaults and select_columns must have same length.")
    chosen = [column_names[index] for index in selected]
    if label_name is not None and label_name not in chosen:
        raise ValueError("`label_name` provided must be one of the columns.")

    def read(name: str) -> Any:
        rows = CsvDataset(
            name,
            defaults,
            compression_type,
            None,
            header,
            field_delim,
            use_quote_delim,
            na_value,
            selected if select_columns is not None else None,
        )
        return rows.apply(without_errors()) if ignore_errors else rows

    def features(*columns: Structure) -> Any:
        found = OrderedDict(zip(chosen, columns, strict=True))
        return found if label_name is None else (found, found.pop(label_name))

    listed = Dataset.from_tensor_slices(names)
    if shuffle:
        listed = listed.shuffle(len(names), shuffle_seed)
    rows = listed.interleave(read, num_parallel_reads or 1)
    batches = _shuffled_batches(rows, batch_size, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed, False)
    return batches.map(features).prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _reader(file: Any, delimiter: str, quoted: bool) -> Any:
    lines = (line.decode(errors="surrogateescape") for line in file)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)


def _names_of_columns(names: list[str], delimiter: str, quoted: bool) -> list[str]:
    """The names in the first line, the same in all files.

    Raises:
      ValueError: names differ between files, or a file is empty.
    """
    found: list[list[str]] = []
    for name in names:
        with files.open_file(name, "rb") as file:
            first = next(_reader(file, delimiter, quoted), None)
        if first is None:
            raise ValueError(f"Received StopIteration when reading the header line of {name}.  Empty file?")
        found.append(first)
    if any(other != found[0] for other in found):
        raise ValueError("Files have different column names in the header row.")
    return found[0]


def _rows(names: list[str], delimiter: str, quoted: bool, header: bool) -> Any:
    for name in names:
        with files.open_file(name, "rb") as file:
            yield from itertools.islice(_reader(file, delimiter, quoted), int(header), None)


def _selected(columns: Sequence[Any], names: Sequence[str]) -> list[int]:
    """The numbers of columns.

    Raises:
      ValueError: a column is missing or repeated, or names and numbers are mixed.
    """
    if all(isinstance(each, int) for each in columns):
        found = sorted(cast("Sequence[int]", columns))
        if any(not 0 <= index < len(names) for index in found):
            raise ValueError(
                f"`select_columns` {found} names a column that is not there: columns are counted from 0 to "
                f"{len(names) - 1}"
            )
    elif all(isinstance(each, str) for each in columns):
        missing = [each for each in columns if each not in names]
        if missing:
            raise ValueError(f"Value of `select_columns` {missing[0]} is not the name of a column.")
        found = sorted(list(names).index(each) for each in columns)
    else:
        raise ValueError("`select_columns` must contain only names or only numbers of columns.")
    if len(found) != len(set(found)):
        raise ValueError("select_columns contains duplicates")
    return found


def _inferred(rows: Any, selected: list[int], count: int, na_value: str, most: int | None) -> list[Any]:
    """Returns a value for empty fields, of the narrowest type that fits, for each column.

    Raises:
      ValueError: a row has the wrong number of fields.
    """
    kinds: list[Any] = [None] * len(selected)
    for row in itertools.islice(rows, most):
        if len(row) != count:
            raise ValueError("Problem inferring types: CSV row has different number of fields than expected.")
        for place, index in enumerate(selected):
            kinds[place] = _wider(row[index], kinds[place], na_value)
    texts = [dtypes.string if kind is None else kind for kind in kinds]
    return [as_array([b""] if kind == string else [0], kind) for kind in texts]


def _wider(field: str, known: object, na_value: str) -> Any:
    if field in ("", na_value):
        return known
    start = 0 if known is None else _COLUMN_TYPES.index(known)
    return next(kind for kind in _COLUMN_TYPES[start:] if _fits(field, kind))


def _fits(field: str, kind: Any) -> bool:
    if kind == string:
        return True
    try:
        if kind in (dtypes.int32, dtypes.int64):
            return np.iinfo(kind.numpy_dtype).min <= int(field) <= np.iinfo(kind.numpy_dtype).max
        number = float(field)
    except ValueError:
        return False
    return kind == dtypes.float64 or number in (float("inf"), -float("inf")) or -3.4e38 <= number <= 3.4e38
