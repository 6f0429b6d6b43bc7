"""Runs blocks of elements through a plan that adds one element to a queue.

Running the plan once per element would cost a Python call per operation and element
(docs/decisions/blocks-of-records.md).
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from headwater.errors import InvalidArgumentError, OpError
from headwater.graph.ops.rows import RowForm, row_form
from headwater.graph.passes.block_plan import BlockPlan
from headwater.graph.passes.plan import Compute, Node, encode_compute
from headwater.graph.registry import Kind
from headwater.graph.resources.containers import Resources
from headwater.graph.resources.readers import columns
from headwater.graph.runtime.devices import is_default, local_device
from headwater.graph.runtime.programs import trace
from headwater.graph.runtime.step import Step, TaskContext
from headwater.lazy_jax import jax

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray


_jax: Any = jax
Values = dict[str, Any]


class BlockRunner:
    """Takes the available elements, runs them as a block, and adds the results to a queue.

    If an element fails, the elements before it are added to the queue before the error is raised, as if elements were
    run one by one. If elements cannot be combined because their shapes differ, all further elements are run one by one.

    Args:
      block: the plan.
      task: full name of the task.
      resources: the task's state.
      setup: returns the values of ``needed``, which are the same for all elements.
      needed: names of tensors that do not vary between elements.
      count: maximum number of elements in a block; never more than half of the queue's capacity.
    """

    def __init__(
        self,
        block: BlockPlan,
        task: str,
        resources: Resources,
        setup: Callable[[Step], Sequence[object]],
        needed: Sequence[str],
        count: int,
    ) -> None:
        self._block = block
        self._task = task
        self._resources = resources
        self._setup = setup
        self._needed = needed
        self._count = count
        self._body = [_Rows(item, block) if isinstance(item, Compute) else self._host(item.node) for item in block.body]

    def run(self, step: Step) -> None:
        """Runs one block of at least one element.

        Raises:
          OpError: an element could not be taken, processed or added.
        """
        shared: Values = dict(zip(self._needed, self._setup(step), strict=True))
        queue = shared[self._block.sink.inputs[0]].item()
        # Take at most half of the queue, so that the program does not read much further ahead than without blocks.
        taken = self._read_elements(shared, step, int(min(self._count, max(1, queue.capacity // 2))))
        rows = len(taken[0])
        try:
            batch = self._handled(shared, taken, step)
        except OpError:
            if rows == 1:
                raise
            # One element has failed, or shapes differ. Repeat the elements one by one: those before the first failure
            # are then added, as without blocks.
            for row in range(rows):
                queue.enqueue_many(step, self._handled(shared, [column[row : row + 1] for column in taken], step))
            # Reached only if each element alone has succeeded. So the shapes of the elements differ, and shapes in
            # later blocks probably differ, too.
            self._count = 1
        else:
            queue.enqueue_many(step, batch)

    def _read_elements(self, shared: Values, step: Step, count: int) -> Sequence[AnyArray]:
        source = self._block.source
        first = shared[source.inputs[0]].item()
        if source.type == "ReaderReadV2":
            return columns(first.read_up_to(step, shared[source.inputs[1]].item(), count))
        return first.dequeue_some(step, count)

    def _handled(self, shared: Values, taken: Sequence[AnyArray], step: Step) -> tuple[AnyArray, ...]:
        values = {**shared, **_named(self._block.source, taken)}
        for part in self._body:
            part(values, step)
        rows = len(taken[0])
        return tuple(
            values[name] if self._block.varies(name) else np.broadcast_to(values[name], (rows, *values[name].shape))
            for name in self._block.sink.inputs[1:]
        )

    def _host(self, node: Node) -> Callable[[Values, Step], None]:
        varying = tuple(map(self._block.varies, node.inputs))
        form: RowForm | None = row_form(node.type, node.attrs, varying)
        assert form is not None, node

        def run(values: Values, step: Step) -> None:
            context = TaskContext(node.name, self._task, step, self._resources, {}, node.inputs)
            try:
                found = form(context, [values[name] for name in node.inputs])
            except OpError:
                raise
            except (TypeError, ValueError, IndexError, KeyError) as error:
                raise InvalidArgumentError(f"{error} [in {node.type} operation {node.name!r}]") from error
            values.update(_named(node, found))

        return run


def _named(node: Node, outputs: Sequence[AnyArray]) -> Mapping[str, AnyArray]:
    return {f"{node.name}:{index}": value for index, value in enumerate(outputs)}


class _Rows:
    """Compiled operations, mapped over the elements of a block."""

    def __init__(self, compute: Compute, block: BlockPlan) -> None:
        self._compute = compute
        self._varying = [block.varies(name) for name in compute.inputs]
        self._seed = secrets.randbits(31)
        axes = [0 if varies else None for varies in self._varying]
        self._device = None if is_default(compute.device) else local_device(compute.device)
        self._run = _shared_mapping(compute, axes, self._seed)

    def __call__(self, values: Values, step: Step) -> None:
        inputs = [values[name] for name in self._compute.inputs]
        rows = next(len(value) for value, varies in zip(inputs, self._varying, strict=True) if varies)
        # Round the number of rows up to a power of two, so that few programs are compiled.
        size = 1 << (rows - 1).bit_length()
        padded = [
            _padded(value, size) if varies else value for value, varies in zip(inputs, self._varying, strict=True)
        ]
        # A counter for each element, from which its random numbers are derived. With one counter per block, all
        # elements of a block would get equal draws.
        counters = np.arange(size, dtype=np.uint32) + np.uint32(step.number * size & 0xFFFFFFFF)
        for name, value in zip(self._compute.outputs, self._computed(padded, counters), strict=True):
            values[name] = np.asarray(value)[:rows]

    def _computed(self, inputs: Sequence[Any], counters: object) -> Sequence[object]:
        if self._device is None:
            return self._run(inputs, counters)
        with _jax.default_device(self._device):
            return self._run([np.asarray(value) for value in inputs], counters)


class _Mapping:
    """A compute mapped over rows. If several threads need it at the same time, it is compiled only once.

    Args:
      compute: the operations.
      axes: for each input, 0 if it has a row for each element, None if it is the same for all elements.
      seed: seed of random numbers.
    """

    def __init__(self, compute: Compute, axes: Sequence[int | None], seed: int) -> None:
        def one(inputs: Sequence[AnyArray], counter: AnyArray) -> list[AnyArray]:
            values: Values = dict(zip(compute.inputs, inputs, strict=True))
            for node in compute.nodes:
                trace(node, values, {}, seed, counter)
            return [values[name] for name in compute.outputs]

        self._run: Any = _jax.jit(_jax.vmap(one, in_axes=(list(axes), 0)))
        self._compiling = threading.Lock()
        self._compiled: set[Any] = set()

    def __call__(self, inputs: Sequence[Any], counters: Any) -> Sequence[object]:
        key = tuple([(value.shape, value.dtype) for value in inputs]), len(counters)
        if key in self._compiled:
            return self._run(inputs, counters)
        # Queue runners have several threads. Without the lock, `jax.jit` would compile the same shapes in each thread
        # that calls it before the first compilation has ended.
        with self._compiling:
            found = self._run(inputs, counters)
            self._compiled.add(key)
        return found


_mappings: WeakValueDictionary[bytes, _Mapping] = WeakValueDictionary()
_lock = threading.Lock()


def _shared_mapping(compute: Compute, axes: Sequence[int | None], seed: int) -> _Mapping:
    """Returns the mapping of a compute; without random numbers it is shared with plans of equal content."""
    if any(node.definition.kind is Kind.RANDOM for node in compute.nodes):
        return _Mapping(compute, axes, seed)
    key = hashlib.blake2b((compute.digest or encode_compute(compute)) + repr(axes).encode()).digest()
    with _lock:
        found = _mappings.get(key)
        if found is None:
            found = _mappings[key] = _Mapping(compute, axes, seed)
    return found


def _padded(value: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    # Pad with a repeated element of the data instead of zeros, because the operations may fail for zeros.
    missing = size - len(value)
    return np.concatenate([value, np.repeat(value[-1:], missing, axis=0)]) if missing else value
