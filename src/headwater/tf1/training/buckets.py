"""Batches of similar elements, with a queue for each bucket (``tf.contrib.training.bucket``).

A queue runner puts each element into the queue of its bucket; others move whole batches from these queues into one,
from which they are taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headwater import errors
from headwater.dtypes import bool_, float32, int32
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.functional import arrays, control_flow, math, reductions, summary
from headwater.tf1.functional.checks import assert_less, assert_non_negative
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.input.queues import FIFOQueue, PaddingFIFOQueue, QueueBase
from headwater.tf1.training.queue_runner import QueueRunner, add_queue_runner

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike

_CLOSED = (errors.OutOfRangeError, errors.CancelledError)


def bucket(
    tensors: Structure,
    which_bucket: TensorLike,
    batch_size: TensorLike,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: TensorLike = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Returns batches of elements of the same bucket.

    Args:
      tensors: an element: a list or a dictionary of tensors.
      which_bucket: the element's bucket, an int32 scalar, at least 0 and below ``num_buckets``.
      batch_size: number of elements of a batch, or one for each bucket.
      num_buckets: number of buckets, at least 2.
      num_threads: threads that fill the buckets.
      capacity: number of batches that wait to be taken.
      bucket_capacities: number of elements that wait in each bucket; ``capacity`` for each if None.
      shapes: static shapes of the tensors, if not known.
      dynamic_pad: pads the elements of a batch with zeros to one shape.
      allow_smaller_final_batch: whether to return the elements left in a bucket when the input ends.
      keep_input: False drops the element.
      shared_name: the name of the queues.

    Returns:
      The bucket of a batch, and the batch in the structure of ``tensors``.

    Raises:
      ValueError: no elements, less than two buckets, or lists of another length than there are buckets.
    """
    sizes = list(batch_size) if isinstance(batch_size, (list, tuple)) else [batch_size] * num_buckets  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if len(sizes) != num_buckets:  # pyright: ignore[reportUnknownArgumentType]
        raise ValueError(f"If batch_size is a list it must have num_buckets elements, not {len(sizes)}")  # pyright: ignore[reportUnknownArgumentType]
    capacities = [capacity] * num_buckets if bucket_capacities is None else list(bucket_capacities)
    if len(capacities) != num_buckets:
        raise ValueError(
            f"The list of bucket_capacities ({bucket_capacities}) must have the same number of elements as num_buckets "
            f"({num_buckets})."
        )
    if num_buckets < 2:
        raise ValueError("num_buckets must be > 1")
    given: Any = cast("object", tensors)
    named = sorted(cast("Mapping[str, Any]", tensors)) if isinstance(tensors, Mapping) else None
    with name_scope(name, "bucket", [which_bucket]) as scope:
        element = [convert_to_tensor(given[key]) for key in named] if named else [convert_to_tensor(t) for t in given]
        if not element:
            raise ValueError("Expected at least one tensor in tensors")
        kinds = [tensor.dtype.base_dtype for tensor in element]
        dims = [as_shape(each) for each in shapes] if shapes is not None else [tensor.shape for tensor in element]
        make: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        which = convert_to_tensor(which_bucket, int32)
        keep = convert_to_tensor(keep_input, bool_)
        with control_dependencies([_checked(which, num_buckets)]):
            which = arrays.identity(which)
        waiting = [
            make(
                capacities[each],
                kinds,
                dims,
                shared_name=shared_name and f"{shared_name}_{each}",
                name=f"bucket_queue_{each}",
            )
            for each in range(num_buckets)
        ]
        filled = control_flow.group(
            *(
                _enqueue_if(queue, math.logical_and(keep, math.equal(which, each)), element)
                for each, queue in enumerate(waiting)
            )
        )
        static = [constant_value(convert_to_tensor(size)) for size in sizes]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        same = len({None if size is None or allow_smaller_final_batch else int(size) for size in static}) == 1
        first = int(static[0]) if same and static[0] is not None and not allow_smaller_final_batch else None
        whole = [TensorShape([first]).concatenate(shape) for shape in dims]
        ready = (PaddingFIFOQueue if dynamic_pad or first is None else FIFOQueue)(
            capacity, [int32, *kinds], [TensorShape([]), *whole], shared_name=shared_name, name="top_queue"
        )
        moved = [
            ready.enqueue([convert_to_tensor(each, int32), *_taken(queue, size, allow_smaller_final_batch)])
            for each, (queue, size) in enumerate(zip(waiting, sizes, strict=True))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        ]
        closed = control_flow.group(*(queue.close() for queue in waiting))
        cancelled = control_flow.group(*(queue.close(cancel_pending_enqueues=True) for queue in waiting))
        add_queue_runner(QueueRunner(waiting[0], [filled] * num_threads, closed, cancelled, _CLOSED))
        add_queue_runner(QueueRunner(ready, moved, ready.close(), ready.close(cancel_pending_enqueues=True), _CLOSED))
        full = math.cast(ready.size(), float32) * (1.0 / capacity)
        summary.scalar(f"bucket/{ready.name.rpartition('/')[2]}/fraction_of_{capacity}_full", full)
        found: list[Any] = ready.dequeue(name=scope)
        batch = dict(zip(named, found[1:], strict=True)) if named else found[1:]
        return found[0], batch


def bucket_by_sequence_length(
    input_length: TensorLike,
    tensors: Structure,
    batch_size: TensorLike,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Sequence[int] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: TensorLike = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Returns batches of elements of similar length. See `bucket` for the other arguments.

    Args:
      input_length: the element's length, a scalar of int32.
      bucket_boundaries: the lengths that separate the buckets, increasing; a boundary belongs to the bucket above.

    Returns:
      The lengths of a batch's elements, and the batch.

    Raises:
      TypeError: the boundaries are not a list of integers.
      ValueError: no boundaries, or ones that do not increase.
    """
    if not isinstance(bucket_boundaries, (list, tuple)):
        raise TypeError(f"bucket_boundaries must be a list or tuple, but received: {bucket_boundaries}")
    if not bucket_boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    for low, high in itertools.pairwise(bucket_boundaries):
        if not isinstance(low, int) or not isinstance(high, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"bucket boundaries must be integers, but saw: {low} and {high}")
        if low >= high:
            raise ValueError(f"Buckets must contain sequential increasing lengths, but saw: {low} before {high}")
    with name_scope(name, "bucket_by_sequence_length", [input_length]) as scope:
        length = convert_to_tensor(input_length, int32)
        above = math.greater_equal(length, convert_to_tensor(list(bucket_boundaries), int32))
        which = reductions.reduce_sum(math.cast(above, int32))
        # Append the length as one more component, so that the caller gets the lengths of the batch.
        if isinstance(tensors, Mapping):
            named = cast("Mapping[str, Any]", tensors)
            keys = sorted(named)
            element: list[Any] = [length, *(named[key] for key in keys)]
        else:
            keys = None
            element = [length, *cast("Sequence[Any]", tensors)]
        _, found = bucket(
            element,
            which,
            batch_size,
            len(bucket_boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [TensorShape([]), *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
            scope,
        )
        rest = found[1:] if keys is None else dict(zip(keys, found[1:], strict=True))
        return found[0], rest


def _checked(which: Tensor, num_buckets: int) -> object:
    from_zero = control_flow.group(
        assert_less(which, num_buckets, message="which_bucket must be below num_buckets"),
        assert_non_negative(which, message="which_bucket must not be negative"),
    )
    return from_zero


def _enqueue_if(queue: QueueBase, keep: Tensor, element: Sequence[Tensor]) -> object:
    graph = queue.queue_ref.graph
    with graph.colocate_with(queue.queue_ref.op):
        return graph.create_op("QueueEnqueueIf", [queue.queue_ref, keep, *element], {}, "enqueue_if")


def _taken(queue: QueueBase, size: TensorLike, smaller: bool) -> list[Any]:
    taken = queue.dequeue_up_to(size) if smaller else queue.dequeue_many(size)
    return list(taken) if isinstance(taken, list) else [taken]  # pyright: ignore[reportUnknownArgumentType]
