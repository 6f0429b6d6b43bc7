"""Prune: finds the operations that a request needs, in an order that respects all dependencies."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise

from headwater.errors import InvalidArgumentError
from headwater.graph.operation import Operation, Tensor


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request of a step.

    Attributes:
      fetches: tensors to return.
      feeds: tensors given with the request, instead of being computed.
      targets: further operations to run.
      block: maximum number of runs that a task may make for one request, if this does not change results.
    """

    fetches: tuple[Tensor, ...]
    feeds: tuple[Tensor, ...] = ()
    targets: tuple[Operation, ...] = ()
    block: int = 1


@dataclass(frozen=True, slots=True)
class Pruned:
    """The operations that a request needs.

    Attributes:
      request: the request.
      ops: the operations in topological order. Operations without a defined order are in the order of creation, except
        that operations that change variables or may wait are as late as possible. So a read that is not ordered after
        an update returns the value before the update (docs/decisions/order-within-a-step.md), and a waiting operation
        does not delay others.
      after: maps an operation to others that have to run before it although it does not depend on them.
      exceeding: operations that may exceed the capacity of their queue, because the step then takes elements of it. In
        TensorFlow, both run at the same time, and each can wait for the other.
    """

    request: RunRequest
    ops: tuple[Operation, ...]
    after: Mapping[Operation, Sequence[Operation]] = field(default_factory=dict[Operation, Sequence[Operation]])
    exceeding: Set[Operation] = frozenset()


def prune(request: RunRequest) -> Pruned:
    """Finds the operations that ``request`` needs.

    Raises:
      InvalidArgumentError: a needed placeholder is not fed.
    """
    fed = set(request.feeds)
    needed: dict[Operation, list[Operation]] = {}
    stack = [t.op for t in request.fetches if t not in fed] + list(request.targets)
    while stack:
        op = stack.pop()
        if op in needed:
            continue
        before = dependencies(op, fed)
        needed[op] = before
        stack.extend(before)
        if op.type == "Placeholder" and op.outputs[0] not in fed:
            raise _not_fed(op)
    sections = _order_critical_sections(needed) if any(op.type == "MutexLock" for op in needed) else {}
    for op, done in sections.items():
        needed[op] = [*needed[op], *done]
    transfers = _order_transfers(needed)
    exceeding = frozenset(op for additions in transfers.values() for op in additions)
    return Pruned(request, _sorted(needed), {**sections, **transfers}, exceeding)


def _order_transfers(needed: dict[Operation, list[Operation]]) -> dict[Operation, Sequence[Operation]]:
    """Orders each operation that takes elements of a queue after the operations that add elements to the same queue,
    unless they depend on it. Adds these dependencies to ``needed``.

    Returns:
      Maps the operations that take elements to the operations that add elements without depending on each other.
    """
    additions: dict[Tensor, list[Operation]] = {}
    takes: list[Operation] = []
    for op in needed:
        if op.type in {"QueueEnqueueV2", "QueueEnqueueManyV2"}:
            additions.setdefault(op.inputs[0], []).append(op)
        elif op.type.startswith(("QueueDequeue", "QueuePeek")):
            takes.append(op)
    after: dict[Operation, Sequence[Operation]] = {}
    # The latest first: if elements circulate in several queues, the first operation of the program takes the first one.
    for take in sorted(takes, key=lambda op: op.number, reverse=True):
        before = _dependencies(take, needed)
        unordered = [
            op for op in additions.get(take.inputs[0], ()) if op not in before and take not in _dependencies(op, needed)
        ]
        if unordered:
            after[take] = unordered
            needed[take] = [*needed[take], *unordered]
    return after


def _order_critical_sections(needed: dict[Operation, list[Operation]]) -> dict[Operation, Sequence[Operation]]:
    """Orders the executions of each critical section in one step, without contradicting other dependencies.

    An execution starts with the lock operation and ends with the unlock operation. Without an order, the step could run
    two lock operations before the first unlock operation, and would deadlock with itself.

    Returns:
      Maps the lock operation of each execution, except the first, to the unlock operation of the previous execution.
    """
    sections: dict[str, list[tuple[Operation, Operation]]] = {}
    locks: dict[str, Operation] = {}
    for op in sorted(needed, key=lambda op: op.number):
        if op.type == "MutexLock":
            locks[op.attrs["shared_name"]] = op
        elif op.type == "ConsumeMutexLock":
            sections.setdefault(op.attrs["shared_name"], []).append((locks[op.attrs["shared_name"]], op))
    return {
        lock: [done] for parts in sections.values() for (_, done), (lock, _) in pairwise(_feasible_order(parts, needed))
    }


def _feasible_order(
    parts: list[tuple[Operation, Operation]], needed: dict[Operation, list[Operation]]
) -> list[tuple[Operation, Operation]]:
    """Returns ``parts`` in the order of creation, except that each part follows the parts on which it depends."""
    order: list[tuple[Operation, Operation]] = []
    waiting = list(parts)
    while waiting:
        locks = {lock for lock, _ in waiting}
        ready = next((part for part in waiting if not (_dependencies(part[1], needed) & locks) - {part[0]}), waiting[0])
        waiting.remove(ready)
        order.append(ready)
    return order


def _dependencies(op: Operation, needed: dict[Operation, list[Operation]]) -> set[Operation]:
    """Returns all direct and indirect dependencies of ``op``."""
    found: set[Operation] = set()
    stack = [op]
    while stack:
        for before in needed[stack.pop()]:
            if before not in found:
                found.add(before)
                stack.append(before)
    return found


def dependencies(op: Operation, fed: set[Tensor]) -> list[Operation]:
    """Returns the operations that must run before ``op``, given the fed tensors."""
    if op.outputs and all(tensor in fed for tensor in op.outputs):
        return []  # fed completely, so it is not computed
    inputs = [tensor.op for tensor in op.inputs if tensor not in fed]
    return list(dict.fromkeys([*inputs, *op.control_inputs]))


def _sorted(needed: dict[Operation, list[Operation]]) -> tuple[Operation, ...]:
    waiting = {op: len(before) for op, before in needed.items()}
    after: dict[Operation, list[Operation]] = {op: [] for op in needed}
    for op, before in needed.items():
        for earlier in before:
            after[earlier].append(op)
    ready = [(_priority(op), op.number, op) for op, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order: list[Operation] = []
    while ready:
        op = heapq.heappop(ready)[-1]
        order.append(op)
        for later in after[op]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heapq.heappush(ready, (_priority(later), later.number, later))
    if len(order) != len(needed):
        stuck = next(op for op, count in waiting.items() if count)
        raise InvalidArgumentError(None, stuck, f"Operation {stuck.name!r} depends on itself through control inputs")
    return tuple(order)


def _priority(op: Operation) -> int:
    return 1 if op.definition.updates or op.definition.blocking else 0


def _not_fed(op: Operation) -> InvalidArgumentError:
    tensor = op.outputs[0]
    return InvalidArgumentError(
        None,
        op,
        f"You must feed a value for placeholder tensor '{op.name}' with dtype {tensor.dtype.name} and shape "
        f"{tensor.shape}" + (f" (made at {op.source})" if op.source else ""),
    )


def verify_pruned(pruned: Pruned) -> None:
    """Checks that every operation is listed once, after its dependencies, and that all fetches and targets are
    included."""
    fed = set(pruned.request.feeds)
    seen: set[Operation] = set()
    for op in pruned.ops:
        assert op not in seen, f"{op.name} twice"
        missing: Sequence[Operation] = [d for d in dependencies(op, fed) if d not in seen]
        assert not missing, f"{op.name} before {missing[0].name}"
        seen.add(op)
    wanted = [t.op for t in pruned.request.fetches if t not in fed] + list(pruned.request.targets)
    assert all(op in seen for op in wanted), "a fetch or target is missing"
