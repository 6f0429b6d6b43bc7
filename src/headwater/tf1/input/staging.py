"""`StagingArea`: a buffer between two parts of a pipeline (``tf.contrib.staging`` of TensorFlow 1.15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import DType, as_dtype
from headwater.graph.operation import Operation, Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.functional.nest import flatten
from headwater.tf1.input.queues import FIFOQueue

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike


_UNBOUNDED = -1


class StagingArea:
    """A first-in, first-out buffer, filled by one operation and emptied by another.

    Args:
      dtypes: element type of each component.
      shapes: static shape of each component.
      names: the names of the components; elements are then dictionaries.
      shared_name: share it between sessions under this name.
      capacity: maximum number of elements; `put` waits while it is reached. 0: no limit.
      memory_limit: accepted.

    Raises:
      ValueError: the numbers of shapes, names and types differ, or ``capacity`` is negative.
    """

    def __init__(
        self,
        dtypes: Structure,
        shapes: Structure = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        self.dtypes: list[DType] = [as_dtype(dtype) for dtype in dtypes]
        if shapes is not None and len(shapes) != len(self.dtypes):
            raise ValueError("StagingArea shapes must be the same length as dtypes")
        if names is not None and len(names) != len(self.dtypes):
            raise ValueError("StagingArea names must be the same length as dtypes")
        if capacity < 0 or memory_limit < 0:
            raise ValueError("capacity and memory_limit should be >= 0")
        given = [None] * len(self.dtypes) if shapes is None else shapes
        self.shapes: list[TensorShape] = [as_shape(shape) for shape in given]
        self.names: list[str] | None = None if names is None else list(names)
        self.capacity: int = capacity
        self.memory_limit: int = memory_limit
        self._queue = FIFOQueue(capacity or _UNBOUNDED, self.dtypes, shared_name=shared_name, name="StagingArea")

    @property
    def name(self) -> str:
        return self._queue.name

    def put(self, values: Structure, name: str | None = None) -> Operation:
        """An operation that adds an element: a list of tensors, or with names a dictionary.

        Raises:
          ValueError: the components do not match the area's, or have different shapes.
        """
        if isinstance(values, Mapping):
            given: dict[str, Any] = dict(values)  # pyright: ignore[reportUnknownArgumentType]
            if self.names is None or sorted(given) != sorted(self.names):
                raise ValueError(f"Keys of the element do not match names of the StagingArea: {self.names}")
            items: list[Any] = [given[key] for key in self.names]
        elif self.names is not None:
            raise ValueError("values must be a dictionary in a StagingArea with names")
        else:
            items = list(values) if isinstance(values, list | tuple) else [values]  # pyright: ignore[reportUnknownArgumentType]
        if len(items) != len(self.dtypes):
            raise ValueError(f"Unexpected number of inputs {len(items)} vs {len(self.dtypes)}")
        for item, shape in zip(items, self.shapes, strict=True):
            if isinstance(item, Tensor):
                item.shape.assert_is_compatible_with(shape)
        return self._queue.enqueue(items, name or f"{self._short_name}_put")

    @property
    def _short_name(self) -> str:
        return self.name.rpartition("/")[2]

    def get(self, name: str | None = None) -> Any:
        """Waits for the next element and returns it: a list of tensors, or with names a dictionary."""
        return self._element(self._queue.dequeue(name or f"{self._short_name}_get"))

    def peek(self, index: TensorLike, name: str | None = None) -> Any:
        """Waits for the element number ``index`` and returns it as `get`, without removing it."""
        return self._element(self._queue.peek(index, name or f"{self._short_name}_peek"))

    def clear(self, name: str | None = None) -> Operation:
        """Returns an operation that removes all elements."""
        return self._queue.clear(name or f"{self._short_name}_clear")

    def _element(self, found: Structure) -> Any:
        tensors: list[Tensor] = flatten(found)
        for tensor, shape in zip(tensors, self.shapes, strict=True):
            tensor.set_shape(shape)
        return tensors if self.names is None else dict(zip(self.names, tensors, strict=True))

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of elements."""
        return self._queue.size(name or f"{self._short_name}_size")
