"""Partitioned variables, which a device setter spreads over several tasks, and partitioners."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import DType, as_dtype, string
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, make_const, register_tensor_conversion_function
from headwater.graph.operation import Tensor, TensorOperators
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.variables import state

import numpy as np  # isort: skip

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.operation import Operation
    from headwater.graph.types import SparseLike
    from headwater.shapes import ShapeLike


Partitioner = Callable[..., Sequence[int]]


class PartitionInfo:
    """Place of a part in the whole tensor, passed to initializers.

    Attributes:
      full_shape: shape of the whole tensor.
      var_offset: the start of the part in each dimension.
    """

    def __init__(self, full_shape: Sequence[int], var_offset: Sequence[int]) -> None:
        self.full_shape: list[int] = list(full_shape)
        self.var_offset: list[int] = list(var_offset)

    def single_offset(self, shape: Sequence[int]) -> int:
        """The offset in the one dimension that is cut, for a part of ``shape``."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The dimension that is partitioned, for a part of ``shape``; None if there is none."""
        cut = [i for i, (part, whole) in enumerate(zip(shape, self.full_shape, strict=True)) if part != whole]
        if len(cut) > 1:
            raise ValueError(
                f"a part of shape {list(shape)} of {self.full_shape} is cut along several dimensions: {cut}"
            )
        return cut[0] if cut else None


class PartitionedVariable(TensorOperators):
    """A tensor kept as several variables, cut along one dimension.

    It can be used like a tensor, with the value of the joined parts. In checkpoints it is one tensor.

    Args:
      name: its name; the parts are ``name/part_0`` …
      shape: shape of the whole.
      dtype: element type.
      variable_list: the parts, in order.
      partitions: number of parts in each dimension.

    Raises:
      TypeError: ``variable_list`` or ``partitions`` is not a list.
      ValueError: parts that do not belong together.
    """

    __array_priority__ = 100

    def __init__(
        self, name: str, shape: ShapeLike, dtype: DTypeLike, variable_list: Sequence[Any], partitions: Sequence[int]
    ) -> None:
        for value, what in ((variable_list, "variable_list"), (partitions, "partitions")):
            if not isinstance(value, list | tuple):
                raise TypeError(f"{what} is not a list or tuple: {value}")
        if any(count < 1 for count in partitions):
            raise ValueError(f"partition values must be positive: {partitions}")
        if not variable_list:
            raise ValueError("variable_list may not be empty")
        for part in variable_list:
            info = part.save_slice_info
            if info is None or info.full_name != name or info.full_shape != as_shape(shape).as_list():
                raise ValueError(f"{part!r} is not a part of {name!r} of shape {as_shape(shape)}")
        self.name: str = name
        self.shape: TensorShape = as_shape(shape)
        self.dtype: DType = as_dtype(dtype)
        self._parts = list(variable_list)
        self._partitions = list(partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def _axis(self) -> int:
        return next((i for i, count in enumerate(self._partitions) if count > 1), 0)

    def _get_variable_list(self) -> list[Any]:
        return self._parts

    def _get_partitions(self) -> list[int]:
        return self._partitions

    def as_tensor(self) -> Tensor:
        """The parts joined."""
        graph = get_default_graph()
        joined = convert_to_tensor(self._parts[0])
        if len(self._parts) > 1:
            with graph.name_scope(f"{self.name}/ConcatPartitions/"):
                parts = [convert_to_tensor(part) for part in self._parts]
                axis = make_const(np.array(self._axis, np.int32), "concat/axis")
                joined = graph.create_op("ConcatV2", [*parts, axis], name="concat").outputs[0]
        with graph.name_scope(None):
            return graph.create_op("Identity", [joined], name=self.name).outputs[0]

    def assign(self, value: object, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Assigns to every part its slice of ``value``, a whole tensor or a list with a value for each part.

        Returns:
          A list with the result of each part's assignment.
        """
        return self._each(state.assign, value, use_locking, name, read_value)

    def assign_add(
        self, value: SparseLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds; see `assign`."""
        return self._each(state.assign_add, value, use_locking, name, read_value)

    def assign_sub(
        self, value: SparseLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Tensor] | list[Operation]:
        """Subtracts from every part its slice of ``value``; see `assign`."""
        return self._each(state.assign_sub, value, use_locking, name, read_value)

    def _each(
        self, function: Callable[..., Tensor], value: object, use_locking: bool, name: str | None, read_value: bool
    ) -> list[Tensor] | list[Operation]:
        values: list[Any] = (
            list(value) if isinstance(value, list | tuple | PartitionedVariable) else self._split(value)  # pyright: ignore[reportUnknownArgumentType]
        )
        results = [
            function(part, piece, use_locking=use_locking, name=name)
            for part, piece in zip(self._parts, values, strict=True)
        ]
        return results if read_value else [result.op for result in results]

    def _split(self, value: Any) -> list[Tensor]:
        graph = get_default_graph()
        whole = convert_to_tensor(value, self.dtype)
        pieces: list[Tensor] = []
        for part in self._parts:
            info = part.save_slice_info
            bounds = [make_const(np.array(bound, np.int32)) for bound in (info.var_offset, info.var_shape)]
            pieces.append(graph.create_op("Slice", [whole, *bounds]).outputs[0])
        return pieces

    def _operand(self) -> Tensor:
        return self.as_tensor()

    def __repr__(self) -> str:
        return f"<tf.PartitionedVariable '{self.name}' shape={self.shape} parts={len(self._parts)}>"


def _to_tensor(value: PartitionedVariable, dtype: DType | None, name: str | None, as_ref: bool) -> Tensor:
    del dtype, name
    if as_ref:
        raise NotImplementedError("PartitionedVariable doesn't support being used as a reference.")
    return value.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _to_tensor)


def slices(full_shape: Sequence[int], partitions: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yields the offset and the shape of each part; the first parts are one larger if the size cannot be divided
    equally.

    Raises:
      ValueError: more than one dimension is divided, or a dimension is divided into more parts than its size.
    """
    cut = [i for i, count in enumerate(partitions) if count > 1]
    if len(cut) > 1:
        raise ValueError(f"Variable slice on more than one dimensions is not supported: {list(partitions)}")
    axis = cut[0] if cut else 0
    count = partitions[axis]
    size = full_shape[axis]
    if not 0 < count <= size:
        raise ValueError(f"dimension {axis} of size {size} cannot be cut into {count} parts")
    least, excess = divmod(size, count)
    offset = 0
    for index in range(count):
        length = least + (index < excess)
        begin, shape = [0] * len(full_shape), list(full_shape)
        begin[axis], shape[axis] = offset, length
        yield begin, shape
        offset += length


def call_partitioner(partitioner: Partitioner, shape: TensorShape, dtype: DType) -> list[int]:
    """Returns the numbers of parts that ``partitioner`` chooses for a variable, checked.

    Raises:
      ValueError: the shape is not fully known, or the result is not a list with a positive count per dimension.
    """
    if not shape.is_fully_defined():
        raise ValueError(f"Shape of a new partitioned variable must be fully defined, but instead was {shape}.")
    if shape.ndims is not None and shape.ndims < 1:
        raise ValueError(f"A partitioned Variable must have rank at least 1, shape: {shape}")
    counts = partitioner(shape=shape, dtype=dtype)
    if not isinstance(counts, list | tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"Partitioner must return a sequence, but saw: {counts}")
    if len(counts) != shape.ndims:
        raise ValueError(
            f"Partitioner returned a partition list that does not match the Variable's rank: {counts} vs. {shape}"
        )
    if any(count < 1 for count in counts):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {counts}")
    return list(counts)


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Returns a partitioner that cuts dimension ``axis`` into ``num_shards`` parts, at most one per row."""

    def partition(shape: TensorShape, **unused: object) -> list[int]:
        counts = [1] * len(shape)
        counts[axis] = min(num_shards, int(shape[axis]))
        return counts

    return partition


def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """Returns a partitioner that limits the size of the parts.

    Args:
      max_shard_bytes: largest size of a part, in bytes.
      axis: the dimension to cut.
      bytes_per_string_element: assumed size of a string, in bytes.
      max_shards: largest number of parts, or None.

    Raises:
      ValueError: a limit that is not positive.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError(
            "Both max_shard_bytes and bytes_per_string_element must be positive, but are currently "
            f"{max_shard_bytes} and {bytes_per_string_element} respectively"
        )
    if max_shards and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partition(shape: ShapeLike, dtype: DType) -> list[int]:
        shape = as_shape(shape)
        counts = [1] * len(shape)
        count = shape.num_elements()
        if not count:
            return counts
        element = bytes_per_string_element if as_dtype(dtype).base_dtype == string else as_dtype(dtype).size
        # The size of a row, and the number of rows that fit into a part.
        row = count // int(shape[axis]) * element
        rows = max(1, int(max_shard_bytes // row))
        wanted = math.ceil(int(shape[axis]) / rows)
        counts[axis] = min(wanted, max_shards) if max_shards else wanted
        return counts

    return partition


def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16
) -> Partitioner:
    """Returns a partitioner that makes as many parts as possible, each of a minimum size.

    Args:
      max_partitions: largest number of parts.
      axis: the dimension to cut.
      min_slice_size: least size of a part, in bytes.
      bytes_per_string_element: assumed size of a string, in bytes.
    """

    def partition(shape: ShapeLike, dtype: DType) -> list[int]:
        shape = as_shape(shape)
        if axis >= len(shape):
            raise ValueError(f"Cannot partition variable along axis {axis} when shape is only {shape}")
        dtype = as_dtype(dtype)
        element = bytes_per_string_element if dtype.base_dtype == string else dtype.size
        total = (shape.num_elements() or 0) * element
        counts = [1] * len(shape)
        counts[axis] = max(1, min(int(shape[axis]), max_partitions, math.ceil(total / min_slice_size)))
        return counts

    return partition
