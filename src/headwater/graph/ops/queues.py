"""Operations on queues. They run on the host of the task that the queue is placed on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import bool_, int32, resource
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.containers import Signature
from headwater.graph.resources.host_context import HostContext
from headwater.graph.resources.queues import FifoQueue, PaddingQueue, PriorityQueue, Queue, ShuffleQueue
from headwater.shapes import Dims, TensorShape, as_shape

if TYPE_CHECKING:
    from headwater.dtypes import DType

_handle = fixed(resource, ())


def as_handle(queue: object) -> HostArray:
    """Wraps a queue or another resource as the value of its handle tensor."""
    handle = np.empty((), object)
    handle[()] = queue
    return handle


def _dims(shapes: Sequence[TensorShape]) -> list[Dims]:
    return [as_shape(shape).as_dims for shape in shapes]


def _signature(kind: str, capacity: int, component_types: Sequence[DType], shapes: Sequence[TensorShape]) -> Signature:
    return {"type": kind, "capacity": capacity, "component types": component_types, "component shapes": shapes}


def _queue(
    context: HostContext, container: str, shared_name: str, make: Callable[[], Queue], signature: Signature
) -> HostArray:
    return as_handle(context.resource(container, shared_name, Queue, make, signature))


def _define_queue(kind: str, make: Callable[[str, int, list[Dims]], Queue]) -> None:
    @host(f"{kind}V2", infer=_handle, keeps=True)
    def queue(  # pyright: ignore[reportUnusedFunction]
        context: HostContext,
        *,
        component_types: Sequence[DType],
        shapes: Sequence[TensorShape] = (),
        capacity: int = -1,
        container: str = "",
        shared_name: str = "",
    ) -> HostArray:
        signature = _signature(kind, capacity, component_types, shapes)
        made = lambda: make(context.op_name, capacity, _dims(shapes))  # noqa: E731 - a short factory
        return _queue(context, container, shared_name, made, signature)


_define_queue("FIFOQueue", FifoQueue)
_define_queue("PaddingFIFOQueue", PaddingQueue)


@host("RandomShuffleQueueV2", infer=_handle, keeps=True)
def random_shuffle_queue(
    context: HostContext,
    *,
    component_types: Sequence[DType],
    shapes: Sequence[TensorShape] = (),
    capacity: int = -1,
    min_after_dequeue: int = 0,
    seed: int = 0,
    seed2: int = 0,
    container: str = "",
    shared_name: str = "",
) -> HostArray:
    order = None if seed == 0 and seed2 == 0 else (seed & 0xFFFFFFFF) << 32 | (seed2 & 0xFFFFFFFF)
    signature = {
        **_signature("RandomShuffleQueue", capacity, component_types, shapes),
        "min_after_dequeue": min_after_dequeue,
        "seeds": (seed, seed2),
    }
    make = lambda: ShuffleQueue(context.op_name, capacity, _dims(shapes), min_after_dequeue, order)  # noqa: E731 - a short factory
    return _queue(context, container, shared_name, make, signature)


@host("PriorityQueueV2", infer=_handle, keeps=True)
def priority_queue(
    context: HostContext,
    *,
    component_types: Sequence[DType] = (),
    shapes: Sequence[TensorShape] = (),
    capacity: int = -1,
    container: str = "",
    shared_name: str = "",
) -> HostArray:
    dims: list[Dims] = [(), *_dims(shapes)] if shapes else []
    signature = _signature("PriorityQueue", capacity, component_types, shapes)
    make = lambda: PriorityQueue(context.op_name, capacity, dims)  # noqa: E731 - a short factory
    return _queue(context, container, shared_name, make, signature)


@host("SelectResource", infer=_handle, inputs="index:T|index=int32, handles:resource*", keeps=True)
def select_resource(index: HostArray, *handles: HostArray) -> HostArray:
    """Returns the resource with the given index."""
    place = int(index)
    if not 0 <= place < len(handles):
        raise ValueError(f"index {place} is not in [0, {len(handles)})")
    return handles[place]


@host("QueueEnqueueV2", infer=no_outputs, blocking=True, keeps=True)
def enqueue(
    context: HostContext, handle: HostArray, *components: object, timeout_ms: int = -1, exceeds: bool = False
) -> None:
    del timeout_ms
    handle.item().enqueue(context.step, components, exceeds=exceeds)


@host("QueueEnqueueManyV2", infer=no_outputs, blocking=True, keeps=True)
def enqueue_many(
    context: HostContext, handle: HostArray, *components: object, timeout_ms: int = -1, exceeds: bool = False
) -> None:
    del timeout_ms
    handle.item().enqueue_many(context.step, components, exceeds=exceeds)


def _components(batch: Callable[[Inference], tuple[int | None, ...]]) -> Callable[[Inference], Sequence[Spec]]:
    def infer(inference: Inference) -> Sequence[Spec]:
        types = inference.attrs["component_types"]
        shapes: Sequence[Any] = inference.attrs.get("_shapes") or [None] * len(types)
        specs: list[Spec] = []
        for dtype, shape in zip(types, shapes, strict=True):
            dims = as_shape(shape).as_dims
            specs.append(Spec(dtype, None if dims is None else batch(inference) + dims))
        return specs

    return infer


def _count(inference: Inference) -> tuple[int | None, ...]:
    value = inference.constant(1)
    return (None if value is None else int(value),)


_one = _components(lambda inference: ())


@host("QueueDequeueV2", infer=_one, blocking=True, keeps=True)
def dequeue(
    context: HostContext, handle: HostArray, *, component_types: Sequence[DType], timeout_ms: int = -1
) -> Sequence[HostArray]:
    del component_types, timeout_ms
    return tuple(handle.item().dequeue(context.step))


@host("QueuePeek", infer=_one, blocking=True, keeps=True)
def peek(
    context: HostContext, handle: HostArray, index: HostArray, *, component_types: Sequence[DType]
) -> Sequence[HostArray]:
    """Returns an element without removing it, for `StagingArea.peek`."""
    del component_types
    return tuple(handle.item().peek(context.step, int(index)))


@host("QueueClear", infer=no_outputs, keeps=True)
def clear(handle: HostArray) -> None:
    """Removes all elements, for `StagingArea.clear`."""
    handle.item().clear()


@host("QueueDequeueManyV2", infer=_components(_count), blocking=True, keeps=True)
def dequeue_many(
    context: HostContext, handle: HostArray, n: HostArray, *, component_types: Sequence[DType], timeout_ms: int = -1
) -> Sequence[HostArray]:
    del timeout_ms
    return _typed(handle.item().dequeue_many(context.step, int(n)), component_types)


@host("QueueDequeueUpToV2", infer=_components(lambda inference: (None,)), blocking=True, keeps=True)
def dequeue_up_to(
    context: HostContext, handle: HostArray, n: HostArray, *, component_types: Sequence[DType], timeout_ms: int = -1
) -> Sequence[HostArray]:
    del timeout_ms
    return _typed(handle.item().dequeue_many(context.step, int(n), at_most=True), component_types)


def _typed(batch: Sequence[Any], types: Sequence[Any]) -> tuple[HostArray, ...]:
    return tuple(column.astype(dtype.numpy_dtype, copy=False) for column, dtype in zip(batch, types, strict=True))


@host("QueueCloseV2", infer=no_outputs, keeps=True)
def close(handle: HostArray, *, cancel_pending_enqueues: bool = False) -> None:
    handle.item().close(cancel_pending_enqueues)


@host("QueueSizeV2", infer=fixed(int32, ()), keeps=True)
def size(handle: HostArray) -> np.integer:
    return np.int32(handle.item().size())


@host("QueueIsClosedV2", infer=fixed(bool_, ()), keeps=True)
def is_closed(handle: HostArray) -> Any:
    return np.bool_(handle.item().closed)
