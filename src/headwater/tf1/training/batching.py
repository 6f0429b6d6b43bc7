"""Functions that collect single examples into batches by a queue (TensorFlow 1.15's ``tf.train.batch`` and others).

Each function adds a queue, a queue runner that fills it, and a summary of how full it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from headwater.dtypes import bool_, float32
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Operation, Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.functional import math, summary
from headwater.tf1.functional.apply import apply
from headwater.tf1.functional.sparse import SparseTensor
from headwater.tf1.input.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from headwater.tf1.training.queue_runner import QueueRunner, add_queue_runner

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure, TensorLike


@dataclass(frozen=True, slots=True)
class _Sparse:
    """Storage of a component's sparse tensors while their handles are in the queue."""

    store: Operation
    dtype: DTypeLike
    rank: int

    def restored(self, handles: Tensor) -> SparseTensor:
        attrs: dict[str, Any] = {"dtype": self.dtype, "rank": self.rank, "shared_name": self.store.name}
        with get_default_graph().colocate_with(self.store):
            return SparseTensor(*apply("TakeManySparseFromTensorsMap", handles, **attrs).outputs)


def _listed(tensors: Structure) -> list[Any]:
    """Returns the components of an element; of a dictionary, in the order of its keys."""
    if isinstance(tensors, Mapping):
        named = cast("Mapping[Any, Any]", tensors)
        return [named[key] for key in sorted(named)]
    return list(tensors)


def _as_given(tensors: Structure, dequeued: list[Any]) -> Any:
    if isinstance(tensors, Mapping):
        return dict(zip(sorted(cast("Mapping[Any, Any]", tensors)), dequeued, strict=True))
    return dequeued[0] if len(dequeued) == 1 else dequeued


class _Batcher:
    """Builds a queue of batches.

    Args:
      elements: one list of components for each thread.
      keep_input: whether to enqueue the element.
      enqueue_many: every component has a row for each of several elements.
      shapes: static shapes of the components, if not known.
    """

    def __init__(
        self, elements: Sequence[Sequence[TensorLike]], keep_input: object, enqueue_many: bool, shapes: Structure
    ) -> None:
        if not elements or not elements[0]:
            raise ValueError("Expected at least one tensor in the elements of a batch.")
        self._many = enqueue_many
        self._keep = self._checked(keep_input)
        self._sparse: list[_Sparse | None] = []
        self._elements = self._without_sparse(elements)
        self.types = [tensor.dtype.base_dtype for tensor in self._elements[0]]
        for element in self._elements[1:]:
            found = [tensor.dtype.base_dtype for tensor in element]
            if found != self.types:
                raise TypeError(
                    f"Expected types to be consistent: {', '.join(t.name for t in self.types)} vs. "
                    f"{', '.join(t.name for t in found)}."
                )
        self.shapes = self._merged_shapes() if shapes is None else [as_shape(shape) for shape in shapes]

    def _checked(self, keep_input: Any) -> Tensor:
        keep = convert_to_tensor(keep_input, bool_, name="Const")
        ranks = (0, 1) if self._many else (0,)
        if keep.shape.ndims is None:
            raise ValueError("`keep_input` dimensions must be known at graph construction.")
        if keep.shape.ndims not in ranks:
            raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
        return keep

    def _without_sparse(self, elements: Sequence[Sequence[Any]]) -> list[list[Tensor]]:
        names: list[Operation | None] = [None] * len(elements[0])
        result: list[list[Tensor]] = []
        self._sparse = [None] * len(elements[0])
        for element in elements:
            row: list[Tensor] = []
            for place, item in enumerate(element):
                if not isinstance(item, SparseTensor):
                    row.append(convert_to_tensor(item))
                    continue
                store = names[place]
                add = apply(
                    "AddManySparseToTensorsMap" if self._many else "AddSparseToTensorsMap",
                    item.indices,
                    item.values,
                    item.dense_shape,
                    shared_name=store.name if store else "",
                )
                if store is None:
                    names[place] = add
                    rank = item.dense_shape.shape.as_list()[0]
                    rank = -1 if rank is None else rank - 1 if self._many else rank
                    self._sparse[place] = _Sparse(add, item.dtype, rank)
                row.append(add.outputs[0])
            result.append(row)
        return result

    def _merged_shapes(self) -> list[TensorShape]:
        merged: list[TensorShape] = []
        for column in zip(*self._elements, strict=True):
            found = [t.shape.with_rank_at_least(1)[1:] if self._many else t.shape for t in column]
            shape = found[0]
            for other in found[1:]:
                shape = shape.merge_with(other)
            merged.append(shape)
        return merged

    def fill(self, queue: QueueBase, threads: int = 1) -> None:
        """Adds the queue runner: ``threads`` threads for each list of components."""
        enqueue_ops = [self._enqueue(queue, element) for element in self._elements for _ in range(threads)]
        add_queue_runner(QueueRunner(queue, enqueue_ops))

    def _enqueue(self, queue: QueueBase, element: list[Tensor]) -> Operation:
        known = constant_value(self._keep)
        if known is not None and known.all() and not known.ndim:
            return queue.enqueue_many(element) if self._many else queue.enqueue(element)
        graph = queue.queue_ref.graph
        op_type = "QueueEnqueueManyIf" if self._many else "QueueEnqueueIf"
        name = f"{queue.name.rpartition('/')[2]}_enqueue"
        with graph.colocate_with(queue.queue_ref.op):
            return graph.create_op(op_type, [queue.queue_ref, self._keep, *element], {}, name)

    def dequeue_batch(self, queue: QueueBase, batch_size: TensorLike, smaller: bool, like: object, name: str) -> Any:
        """Returns the next batch, in the structure of ``like``."""
        taken = queue.dequeue_up_to(batch_size, name=name) if smaller else queue.dequeue_many(batch_size, name=name)
        dequeued: list[Any] = list(taken) if isinstance(taken, list) else [taken]  # pyright: ignore[reportUnknownArgumentType]
        restored = [
            tensor if sparse is None else sparse.restored(tensor)
            for tensor, sparse in zip(dequeued, self._sparse, strict=True)
        ]
        return _as_given(like, restored)


def _ordered_queue(
    batcher: _Batcher, threads: int, capacity: int, dynamic_pad: bool, shared_name: str | None
) -> QueueBase:
    queue = (PaddingFIFOQueue if dynamic_pad else FIFOQueue)(
        capacity, batcher.types, batcher.shapes, shared_name=shared_name
    )
    batcher.fill(queue, threads)
    summary.scalar(f"fraction_of_{capacity}_full", math.cast(queue.size(), float32) * (1.0 / capacity))
    return queue


def _shuffling_queue(
    batcher: _Batcher, threads: int, capacity: int, min_after_dequeue: int, seed: int | None, shared_name: str | None
) -> QueueBase:
    if capacity <= min_after_dequeue:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}.")
    queue = RandomShuffleQueue(
        capacity, min_after_dequeue, batcher.types, batcher.shapes, seed=seed, shared_name=shared_name
    )
    batcher.fill(queue, threads)
    room = capacity - min_after_dequeue
    over = math.cast(math.maximum(0, math.subtract(queue.size(), min_after_dequeue)), float32)
    summary.scalar(f"fraction_over_{min_after_dequeue}_of_{room}_full", math.multiply(over, 1.0 / room))
    return queue


def batch(
    tensors: Structure,
    batch_size: TensorLike,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Structure = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Returns batches of the successive values of ``tensors``, in order.

    Args:
      tensors: a list or dictionary of tensors and sparse tensors, the components of an element.
      batch_size: elements in a batch.
      num_threads: number of threads that fill the queue; with more than one, the order of elements is not defined.
      capacity: the capacity of the queue, in elements.
      enqueue_many: the tensors have a row for each of several elements.
      shapes: static shapes of the components, if not known.
      dynamic_pad: components may have different sizes; a batch is filled up with zeros.
      allow_smaller_final_batch: the last batch may be smaller.
      shared_name: the name of the queue, for several sessions.

    Returns:
      Batches in the structure of ``tensors``; one tensor for a list of one. Steps raise OutOfRangeError at the end.

    Raises:
      ValueError: no tensors, or shapes that are not known and not ``dynamic_pad``.
    """
    settings = (enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name)
    return maybe_batch(tensors, True, batch_size, num_threads, capacity, *settings)


def maybe_batch(
    tensors: Structure,
    keep_input: object,
    batch_size: TensorLike,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Structure = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `batch`, for elements with ``keep_input`` true; with ``enqueue_many`` it may have a value per element."""
    elements = _listed(tensors)
    with name_scope(name, "batch", [*elements, keep_input]) as scope:
        batcher = _Batcher([elements], keep_input, enqueue_many, shapes)
        queue = _ordered_queue(batcher, num_threads, capacity, dynamic_pad, shared_name)
        return batcher.dequeue_batch(queue, batch_size, allow_smaller_final_batch, tensors, scope)


def batch_join(
    tensors_list: Sequence[TensorLike],
    batch_size: TensorLike,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Structure = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Returns batches as `batch`, from several lists or dictionaries of tensors, each enqueued by its own thread."""
    settings = (enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name)
    return maybe_batch_join(tensors_list, True, batch_size, capacity, *settings)


def maybe_batch_join(
    tensors_list: Sequence[TensorLike],
    keep_input: object,
    batch_size: TensorLike,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Structure = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `batch_join`, for elements with ``keep_input`` true."""
    elements = [_listed(tensors) for tensors in tensors_list]
    with name_scope(name, "batch_join", [t for element in elements for t in element]) as scope:
        batcher = _Batcher(elements, keep_input, enqueue_many, shapes)
        queue = _ordered_queue(batcher, 1, capacity, dynamic_pad, shared_name)
        return batcher.dequeue_batch(queue, batch_size, allow_smaller_final_batch, tensors_list[0], scope)


def shuffle_batch(
    tensors: Structure,
    batch_size: TensorLike,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Structure = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Returns batches of the successive values of ``tensors``, in random order; see `batch`.

    Args:
      min_after_dequeue: minimum number of elements that stay in the queue, to choose from.
      seed: the seed of the order.

    Raises:
      ValueError: ``capacity`` is not above ``min_after_dequeue``.
    """
    settings = (num_threads, seed, enqueue_many, shapes, allow_smaller_final_batch, shared_name, name)
    return maybe_shuffle_batch(tensors, batch_size, capacity, min_after_dequeue, True, *settings)


def maybe_shuffle_batch(
    tensors: Structure,
    batch_size: TensorLike,
    capacity: int,
    min_after_dequeue: int,
    keep_input: object,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Structure = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `shuffle_batch`, for elements with ``keep_input`` true."""
    elements = _listed(tensors)
    with name_scope(name, "shuffle_batch", [*elements, keep_input]) as scope:
        batcher = _Batcher([elements], keep_input, enqueue_many, shapes)
        queue = _shuffling_queue(batcher, num_threads, capacity, min_after_dequeue, seed, shared_name)
        return batcher.dequeue_batch(queue, batch_size, allow_smaller_final_batch, tensors, scope)


def shuffle_batch_join(
    tensors_list: Sequence[TensorLike],
    batch_size: TensorLike,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Structure = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Returns batches as `shuffle_batch`, from several lists or dictionaries, each enqueued by its own thread."""
    settings = (seed, enqueue_many, shapes, allow_smaller_final_batch, shared_name, name)
    return maybe_shuffle_batch_join(tensors_list, batch_size, capacity, min_after_dequeue, True, *settings)


def maybe_shuffle_batch_join(
    tensors_list: Sequence[TensorLike],
    batch_size: TensorLike,
    capacity: int,
    min_after_dequeue: int,
    keep_input: object,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Structure = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `shuffle_batch_join`, for elements with ``keep_input`` true."""
    elements = [_listed(tensors) for tensors in tensors_list]
    with name_scope(name, "shuffle_batch_join", [t for element in elements for t in element]) as scope:
        batcher = _Batcher(elements, keep_input, enqueue_many, shapes)
        queue = _shuffling_queue(batcher, 1, capacity, min_after_dequeue, seed, shared_name)
        return batcher.dequeue_batch(queue, batch_size, allow_smaller_final_batch, tensors_list[0], scope)
