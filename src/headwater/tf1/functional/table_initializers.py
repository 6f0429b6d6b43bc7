"""Initial contents of lookup tables: keys and values from tensors, or from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from headwater import dtypes
from headwater.data.io.files import as_path
from headwater.dtypes import DType, as_dtype
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike


class TextFileIndex:
    """Pseudo-columns of a text file: the whole line, and its number from 0."""

    WHOLE_LINE: ClassVar[int] = -2
    LINE_NUMBER: ClassVar[int] = -1


class KeyValueTensorInitializer:
    """Entries from two tensors of equal shape.

    Args:
      key_dtype, value_dtype: their element types, if they are Python values.

    Raises:
      ValueError: the shapes differ.
    """

    def __init__(
        self,
        keys: Any,
        values: TensorLike,
        key_dtype: DTypeLike | None = None,
        value_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "key_value_init", [keys, values]) as scope:
            self._keys = convert_to_tensor(keys, key_dtype, name="keys")
            self._values = convert_to_tensor(values, value_dtype, name="values")
            self._keys.shape.assert_is_compatible_with(self._values.shape)
            self._name = scope

    @property
    def key_dtype(self) -> DType:
        return self._keys.dtype.base_dtype

    @property
    def value_dtype(self) -> DType:
        return self._values.dtype.base_dtype

    def initialize(self, table: Any) -> Operation:
        """The operation that fills ``table``."""
        graph = get_default_graph()
        with name_scope(self._name, None, [self._keys]) as scope, graph.colocate_with(table.resource_handle.op):
            return graph.create_op("InitializeTableV2", [table.resource_handle, self._keys, self._values], {}, scope)


class Typed:
    """Base of objects with keys and values: tables, and files that fill them."""

    def __init__(self, key_dtype: DType, value_dtype: DType) -> None:
        self.key_dtype, self.value_dtype = key_dtype, value_dtype


class TextFileInitializer(Typed):
    """Entries from the lines of a text file.

    Args:
      filename: its path.
      key_index, value_index: columns, or one of `TextFileIndex`.
      vocab_size: number of lines to take.
      delimiter: between columns.

    Raises:
      ValueError: no file, a bad column, or a type that a column cannot have.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: DTypeLike,
        key_index: int,
        value_dtype: DTypeLike,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        if not isinstance(filename, Tensor) and not filename:
            raise ValueError("Filename required")
        for index, kind, what in (
            (key_index, as_dtype(key_dtype), "Key"),
            (value_index, as_dtype(value_dtype), "Value"),
        ):
            if index < TextFileIndex.WHOLE_LINE:
                raise ValueError(f"Invalid index {index}.")
            if index == TextFileIndex.LINE_NUMBER and kind != dtypes.int64:
                raise ValueError(f"Signature mismatch. {what}s must be dtype int64, got {kind.name}.")
            if index == TextFileIndex.WHOLE_LINE and not (kind.is_integer or kind == dtypes.string):
                raise ValueError(f"Signature mismatch. {what}s must be integer or string, got {kind.name}.")
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"Invalid vocab_size {vocab_size}.")
        self._filename = filename
        super().__init__(as_dtype(key_dtype), as_dtype(value_dtype))
        self._attrs = {
            "key_index": key_index,
            "value_index": value_index,
            "vocab_size": vocab_size or -1,
            "delimiter": delimiter,
            "key_dtype": self.key_dtype,
            "value_dtype": self.value_dtype,
        }
        self._name = name

    def initialize(self, table: Any) -> Operation:
        """The operation that fills ``table``."""
        graph = get_default_graph()
        with name_scope(self._name, "text_file_init", [table.resource_handle]) as scope:
            path: Any = self._filename if isinstance(self._filename, Tensor) else as_path(self._filename)
            filename = convert_to_tensor(path, dtypes.string, name="asset_filepath")
            graph.add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)
            with graph.colocate_with(table.resource_handle.op):
                return graph.create_op(
                    "InitializeTableFromTextFileV2", [table.resource_handle, filename], self._attrs, scope
                )


class TextFileStringTableInitializer(TextFileInitializer):
    """Maps numbers to the lines of a file."""

    def __init__(
        self,
        filename: object,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = "text_file_string_table_init",
    ) -> None:
        super().__init__(
            filename, dtypes.int64, key_column_index, dtypes.string, value_column_index, vocab_size, delimiter, name
        )


class TextFileIdTableInitializer(TextFileInitializer):
    """Maps the lines of a file to their numbers."""

    def __init__(
        self,
        filename: object,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = "text_file_id_table_init",
        key_dtype: DType = dtypes.string,
    ) -> None:
        super().__init__(
            filename, key_dtype, key_column_index, dtypes.int64, value_column_index, vocab_size, delimiter, name
        )
