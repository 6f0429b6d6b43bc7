"""Host operations that only ``tf.train.batch`` and its variants use: conditional enqueuing, and a store of sparse
tensors that a queue refers to by number."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType, int64
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext


@host("QueueEnqueueIf", infer=no_outputs, blocking=True)
def enqueue_if(context: HostContext, handle: HostArray, keep: HostArray, *components: object) -> None:
    """Adds one element if ``keep`` is true."""
    if keep:
        handle.item().enqueue(context.step, components)


@host("QueueEnqueueManyIf", infer=no_outputs, blocking=True)
def enqueue_many_if(context: HostContext, handle: HostArray, keep: HostArray, *components: HostArray) -> None:
    """Adds the rows for which ``keep`` is true; ``keep`` is one boolean for all rows, or a boolean for each."""
    if keep.ndim:
        if any(len(component) != len(keep) for component in components):
            raise InvalidArgumentError(f"keep_input has {len(keep)} elements, not one for every row")
        handle.item().enqueue_many(context.step, tuple(component[keep] for component in components))
    elif keep:
        handle.item().enqueue_many(context.step, components)


class SparseStore:
    """Stores sparse tensors by number, while a queue holds the numbers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._kept: dict[int, tuple[object, object, object]] = {}

    def add(self, indices: HostArray, values: HostArray, shape: HostArray) -> int:
        """Stores a sparse tensor; returns its number."""
        with self._lock:
            number = next(self._numbers)
            self._kept[number] = (indices, values, shape)
            return number

    def pop(self, number: int) -> tuple[Any, Any, Any]:
        """Returns a stored sparse tensor and removes it."""
        with self._lock:
            found = self._kept.pop(number, None)
        if found is None:
            raise InvalidArgumentError(f"no sparse tensor is known as {number}")
        return found


def _store(context: HostContext, container: str, shared_name: str) -> SparseStore:
    # Look the store up by its name in every case, even if the name is the operation's own: operations with other names
    # use the same store.
    return context.resources.get_or_make(
        f"{container} sparse {context.step.session}", shared_name or context.op_name, SparseStore, SparseStore
    )


@host(
    "AddSparseToTensorsMap", infer=fixed(int64, ()), inputs="sparse_indices:int64, sparse_values:T, sparse_shape:int64"
)
def add_sparse(
    context: HostContext,
    indices: HostArray,
    values: HostArray,
    shape: HostArray,
    *,
    container: str = "",
    shared_name: str = "",
) -> np.integer:
    return np.int64(_store(context, container, shared_name).add(indices, values, shape))


def _per_row(inference: Inference) -> Sequence[Spec]:
    del inference
    return [Spec(int64, (None,))]


@host("AddManySparseToTensorsMap", infer=_per_row, inputs="sparse_indices:int64, sparse_values:T, sparse_shape:int64")
def add_many_sparse(
    context: HostContext,
    indices: HostArray,
    values: HostArray,
    shape: HostArray,
    *,
    container: str = "",
    shared_name: str = "",
) -> HostArray:
    """A number for every row of a sparse tensor."""
    store = _store(context, container, shared_name)
    rows = [indices[:, 0] == row for row in range(int(shape[0]))]
    return np.array([store.add(indices[row][:, 1:], values[row], shape[1:]) for row in rows], np.int64)


def _taken(inference: Inference) -> Sequence[Spec]:
    rank = inference.attrs.get("rank", -1)
    dims = None if rank < 0 else rank + 1
    return [Spec(int64, (None, dims)), Spec(inference.attrs["dtype"], (None,)), Spec(int64, (dims,))]


@host("TakeManySparseFromTensorsMap", infer=_taken, inputs="sparse_handles:int64")
def take_many_sparse(
    context: HostContext,
    handles: HostArray,
    *,
    dtype: DType,
    rank: int = -1,
    container: str = "",
    shared_name: str = "",
) -> Sequence[HostArray]:
    """Returns one sparse tensor with the numbered sparse tensors as rows; its size is the largest of theirs."""
    del rank
    store = _store(context, container, shared_name)
    found = [store.pop(int(number)) for number in handles]
    if not found:
        raise InvalidArgumentError("a batch needs at least one sparse tensor")
    if len({len(shape) for _, _, shape in found}) > 1:
        raise InvalidArgumentError("sparse tensors of different ranks cannot be one batch")
    indices = [np.insert(index, 0, row, axis=1) for row, (index, _, _) in enumerate(found)]
    largest = np.max([shape for _, _, shape in found], axis=0)
    return (
        np.concatenate(indices).astype(np.int64),
        np.concatenate([values for _, values, _ in found]).astype(dtype.numpy_dtype),
        np.concatenate([[len(found)], largest]).astype(np.int64),
    )
