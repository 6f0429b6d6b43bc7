"""Mutable tables with two reserved keys."""

from __future__ import annotations

from typing import Any

from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import math, reductions
from headwater.tf1.functional.checks import Assert
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.tables import MutableHashTable


class DenseHashTable(MutableHashTable):
    """A mutable table. TensorFlow stores it in a growing array; here it is implemented as `MutableHashTable`.

    Args:
      key_dtype, value_dtype: element types.
      default_value: value of missing keys; all values have its shape.
      empty_key: a reserved key, which no entry may have.
      deleted_key: another reserved key.
      initial_num_buckets: a power of 2; the table grows automatically.
      checkpoint: whether savers of all variables save and restore it.

    Raises:
      ValueError: ``initial_num_buckets`` is not a power of 2.
    """

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: TensorLike,
        empty_key: TensorLike,
        deleted_key: TensorLike,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        if initial_num_buckets is not None and (initial_num_buckets < 1 or initial_num_buckets.bit_count() != 1):
            raise ValueError(f"initial_num_buckets must be a power of 2, not {initial_num_buckets}")
        super().__init__(key_dtype, value_dtype, default_value, name, checkpoint)
        kind = as_dtype(key_dtype)
        self._reserved = [convert_to_tensor(key, kind) for key in (empty_key, deleted_key)]

    def _checked(self, keys: TensorLike) -> Tensor:
        """Returns ``keys`` as a tensor; the step fails if one of them is reserved."""
        keys = convert_to_tensor(keys, self.key_dtype, name="keys")
        bad = [math.equal(keys, reserved) for reserved in self._reserved]
        fine = math.logical_not(reductions.reduce_any(math.logical_or(*bad)))
        with control_dependencies(
            [Assert(fine, ["Using the empty_key or the deleted_key as a table key is not allowed"])]
        ):
            return keys.graph.create_op("Identity", [keys]).outputs[0]

    def insert(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        return super().insert(self._checked(keys), values, name)

    def insert_or_assign(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """Same as `insert`."""
        return self.insert(keys, values, name)

    def remove(self, keys: TensorLike, name: str | None = None) -> Operation:
        return super().remove(self._checked(keys), name)

    def erase(self, keys: TensorLike, name: str | None = None) -> Operation:
        """Same as `remove`."""
        return self.remove(keys, name)

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        return super().lookup(self._checked(keys), name)
