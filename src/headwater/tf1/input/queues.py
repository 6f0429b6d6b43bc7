"""Queues of TensorFlow 1.15: ``tf.FIFOQueue``, ``tf.RandomShuffleQueue`` and others.

A queue is stored on its task. With a ``shared_name`` all sessions share it; otherwise each session has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headwater.dtypes import DType, as_dtype, int32, int64
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.graph import seeds
from headwater.graph.operation import Operation, Tensor
from headwater.shapes import ShapeLike, TensorShape, as_shape, unknown_shape
from headwater.tf1.functional.apply import one

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike


class QueueBase:
    """Base of all queues.

    Attributes:
      queue_ref: the tensor that represents the queue.
      dtypes: element types of an element's components.
      shapes: their static shapes.
      names: their names, or None; with names, elements are dictionaries.
    """

    def __init__(
        self,
        dtypes: Sequence[DType],
        shapes: Sequence[TensorShape] | None,
        names: Sequence[str] | None,
        queue_ref: Tensor,
    ) -> None:
        self.dtypes: list[DType] = list(dtypes)
        if shapes is not None and len(shapes) != len(self.dtypes):
            raise ValueError("Queue shapes must have the same length as dtypes")
        self.shapes: list[TensorShape] = list(shapes) if shapes is not None else [unknown_shape() for _ in self.dtypes]
        self._fixed = shapes is not None
        if names is not None and len(names) != len(self.dtypes):
            raise ValueError("List of queue names must have the same length as the list of dtypes")
        self.names: list[str] | None = list(names) if names else None
        self.queue_ref: Tensor = queue_ref

    @staticmethod
    def from_list(index: Any, queues: Sequence[QueueBase]) -> QueueBase:
        """Returns the queue number ``index`` of ``queues``; if ``index`` is a tensor, each step selects one.

        Raises:
          TypeError: there are no queues, or their element types or names differ.
        """
        if not queues:
            raise TypeError("A list of queues expected")
        first, *others = queues
        if any(queue.dtypes != first.dtypes for queue in others):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(queue.names != first.names for queue in others):
            raise TypeError("Queues do not have matching component names.")
        if not isinstance(index, Tensor):
            return queues[int(index)]
        shapes = [
            mine if all(mine.as_dims == its.as_dims for its in theirs) else unknown_shape()
            for mine, *theirs in zip(*(queue.shapes for queue in queues), strict=True)
        ]
        handles = [queue.queue_ref for queue in queues]
        with get_default_graph().colocate_with(handles[0]):
            chosen = one("SelectResource", index, handles, name="select")
        return QueueBase(first.dtypes, shapes, first.names, chosen)

    @property
    def name(self) -> str:
        return self.queue_ref.op.name

    @property
    def _short_name(self) -> str:
        """The name without its scopes: prefix of the names of operations, which are in the scope where they are
        created."""
        return self.name.rpartition("/")[2]

    def enqueue(self, vals: Structure, name: str | None = None) -> Operation:
        """An operation that adds one element, and waits while the queue is full.

        Args:
          vals: a tensor, a list or tuple of tensors, or with names a dictionary.
        """
        with name_scope(name, f"{self._short_name}_enqueue", _flat(vals)) as scope:
            tensors = self._element(vals)
            for tensor, shape in zip(tensors, self.shapes, strict=True):
                tensor.shape.assert_is_compatible_with(shape)
            return self._op("QueueEnqueueV2", tensors, name=scope)

    def enqueue_many(self, vals: Structure, name: str | None = None) -> Operation:
        """An operation that adds an element for every row of ``vals``."""
        with name_scope(name, f"{self._short_name}_EnqueueMany", _flat(vals)) as scope:
            tensors = self._element(vals)
            for tensor, shape in zip(tensors, self.shapes, strict=True):
                tensor.shape.with_rank_at_least(1)[1:].assert_is_compatible_with(shape)
                tensor.shape[:1].assert_is_compatible_with(tensors[0].shape[:1])
            return self._op("QueueEnqueueManyV2", tensors, name=scope)

    def dequeue(self, name: str | None = None) -> Structure:
        """Waits for the next element and returns it: a tensor, or several in a list, or with names a dictionary."""
        return self._dequeue("QueueDequeueV2", [], name or f"{self._short_name}_Dequeue")

    def dequeue_many(self, n: TensorLike, name: str | None = None) -> Structure:
        """The next ``n`` elements as one batch; OutOfRangeError when the queue closes with fewer."""
        return self._dequeue_batch("QueueDequeueManyV2", n, name or f"{self._short_name}_DequeueMany")

    def dequeue_up_to(self, n: TensorLike, name: str | None = None) -> Structure:
        """Takes ``n`` elements as `dequeue_many`; from a closed queue it takes the remaining ones, at least one."""
        return self._dequeue_batch("QueueDequeueUpToV2", n, name or f"{self._short_name}_DequeueUpTo")

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Returns an operation that closes the queue for new elements, and cancels waiting enqueues on request."""
        attrs = {"cancel_pending_enqueues": cancel_pending_enqueues}
        return self._op("QueueCloseV2", [], attrs, name or f"{self._short_name}_Close")

    def is_closed(self, name: str | None = None) -> Tensor:
        """Returns whether the queue was closed."""
        return self._op("QueueIsClosedV2", [], name=name or f"{self._short_name}_is_closed").outputs[0]

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of elements in the queue."""
        return self._op("QueueSizeV2", [], name=name or f"{self._short_name}_Size").outputs[0]

    def peek(self, index: TensorLike, name: str | None = None) -> Structure:
        """Waits for the element number ``index`` and returns it as `dequeue`, without removing it."""
        return self._dequeue("QueuePeek", [convert_to_tensor(index, int32)], name or f"{self._short_name}_Peek")

    def clear(self, name: str | None = None) -> Operation:
        """Returns an operation that removes all elements."""
        return self._op("QueueClear", [], name=name or f"{self._short_name}_Clear")

    def _op(
        self, op_type: str, inputs: Sequence[Tensor], attrs: dict[str, Any] | None = None, name: str | None = None
    ) -> Operation:
        graph = self.queue_ref.graph
        with graph.colocate_with(self.queue_ref.op):
            return graph.create_op(op_type, [self.queue_ref, *inputs], attrs, name)

    def _dequeue_batch(self, op_type: str, n: TensorLike, name: str) -> Structure:
        graph = self.queue_ref.graph
        with graph.as_default(), graph.name_scope(name) as scope:
            return self._dequeue(op_type, [convert_to_tensor(n, int32, name="n")], scope)

    def _dequeue(self, op_type: str, inputs: Sequence[Tensor], name: str) -> Structure:
        attrs: dict[str, object] = {"component_types": tuple(self.dtypes)}
        if self._fixed:
            attrs["_shapes"] = tuple(self.shapes)
        outputs = self._op(op_type, inputs, attrs, name).outputs
        if self.names:
            return dict(zip(self.names, outputs, strict=True))
        return outputs[0] if len(outputs) == 1 else list(outputs)

    def _element(self, vals: Structure) -> list[Tensor]:
        """``vals`` as the tensors of one element, in order."""
        if isinstance(vals, Mapping):
            if not self.names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self.names) != sorted(vals.keys()):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
                raise ValueError(
                    f"Keys in dictionary to enqueue do not match names of Queue. Queue names: {self.names}"
                )
            items: list[Any] = [vals[key] for key in self.names]
        else:
            if self.names:
                raise ValueError("You must enqueue a dictionary in a Queue with names")
            items = _flat(vals)
        if len(items) != len(self.dtypes):
            raise ValueError(f"Queue {self.name!r} takes {len(self.dtypes)} components, {len(items)} given")
        return [convert_to_tensor(item, dtype) for item, dtype in zip(items, self.dtypes, strict=True)]


def _flat(vals: Structure) -> list[Any]:
    if isinstance(vals, Mapping):
        return list(vals.values())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
    return list(vals) if isinstance(vals, list | tuple) else [vals]  # pyright: ignore[reportUnknownArgumentType]


def _make(
    op_type: str,
    capacity: int,
    dtypes: Structure,
    shapes: Structure,
    names: Any,
    shared_name: str | None,
    name: str,
    **more: object,
) -> tuple[list[DType], list[TensorShape] | None, list[str] | None, Tensor]:
    listed: list[Any] = list(dtypes) if isinstance(dtypes, list | tuple) else [dtypes]  # pyright: ignore[reportUnknownArgumentType]
    types = [as_dtype(dtype) for dtype in listed]
    if not types:
        raise ValueError("a queue needs at least one element type")
    if not isinstance(capacity, int | np.integer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"Expected int for argument 'capacity' not {capacity!r}.")
    fixed = _shapes(shapes, len(types))
    if fixed and op_type != "PaddingFIFOQueueV2" and not all(shape.is_fully_defined() for shape in fixed):
        raise ValueError(f"All shapes must be fully defined: {fixed}")
    attrs = {
        "component_types": tuple(types),
        "shapes": tuple(fixed or ()),
        "capacity": capacity,
        "shared_name": shared_name or "",
        **more,
    }
    listed = [names] if isinstance(names, str) else names
    return types, fixed, listed, get_default_graph().create_op(op_type, [], attrs, name).outputs[0]


def _shapes(shapes: Structure, count: int) -> list[TensorShape] | None:
    if shapes is None:
        return None
    listed: list[Any] = list(shapes) if isinstance(shapes, list | tuple) else [None]  # pyright: ignore[reportUnknownArgumentType]
    one_shape = len(listed) != 1 or listed[0] is None or isinstance(listed[0], int)
    if count == 1 and one_shape:
        return [as_shape(cast("ShapeLike", shapes))]
    return [as_shape(shape) for shape in listed]


class FIFOQueue(QueueBase):
    """A first-in, first-out queue.

    Args:
      capacity: maximum number of elements.
      dtypes: element type of each component.
      shapes: static shape of each component; needed for `dequeue_many`.
      names: the names of the components; elements are then dictionaries.
      shared_name: share the queue between sessions under this name.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Structure,
        shapes: Structure = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        super().__init__(*_make("FIFOQueueV2", capacity, dtypes, shapes, names, shared_name, name))


class RandomShuffleQueue(QueueBase):
    """A queue that returns elements in random order.

    Args:
      capacity: maximum number of elements.
      min_after_dequeue: minimum number of elements that stay in it while it is open; more make the order more random.
      seed: the seed of the order.
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Structure,
        shapes: Structure = None,
        names: Sequence[str] | None = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        first, second = seeds(get_default_graph(), seed)
        more = {"min_after_dequeue": min_after_dequeue, "seed": first or 0, "seed2": second or 0}
        super().__init__(*_make("RandomShuffleQueueV2", capacity, dtypes, shapes, names, shared_name, name, **more))


class PaddingFIFOQueue(QueueBase):
    """A `FIFOQueue` that pads dimensions of unknown size with zeros in batches.

    Raises:
      ValueError: a component's rank is not known.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Structure,
        shapes: Structure,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        made = _make("PaddingFIFOQueueV2", capacity, dtypes, shapes, names, shared_name, name)
        if made[1] is None or any(shape.ndims is None for shape in made[1]):
            raise ValueError(f"All shapes must have a defined rank: {made[1]}")
        super().__init__(*made)


class PriorityQueue(QueueBase):
    """A queue that returns the element with the lowest priority value first: an int64, the first component."""

    def __init__(
        self,
        capacity: int,
        types: Structure,
        shapes: Structure = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        dtypes, fixed, listed, ref = _make("PriorityQueueV2", capacity, types, shapes, names, shared_name, name)
        super().__init__([int64, *dtypes], None if fixed is None else [as_shape([]), *fixed], listed, ref)
