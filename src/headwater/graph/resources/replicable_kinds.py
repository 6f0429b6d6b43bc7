"""The kinds of resources that can be replicated, or passed on to the task's next incarnation."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from headwater.graph.resources.accumulators import Accumulator
from headwater.graph.resources.containers import Resources
from headwater.graph.resources.example_ledger import ExampleLedger
from headwater.graph.resources.gate import Gate
from headwater.graph.resources.lookup_tables import Table
from headwater.graph.resources.queues import FifoQueue, PaddingQueue, PriorityQueue, Queue, ShuffleQueue
from headwater.graph.resources.replicable import Key, ReplicableResource, ResourceState
from headwater.graph.resources.step_barrier import StepBarrier

_KINDS: Final[dict[str, tuple[type, dict[str, type[ReplicableResource]]]]] = {
    "Accumulator": (Accumulator, {"Accumulator": Accumulator}),
    "ExampleLedger": (ExampleLedger, {"ExampleLedger": ExampleLedger}),
    "Gate": (Gate, {"Gate": Gate}),
    "Queue": (Queue, {kind.__name__: kind for kind in (FifoQueue, PaddingQueue, PriorityQueue, ShuffleQueue)}),
    "StepBarrier": (StepBarrier, {"StepBarrier": StepBarrier}),
    "Table": (Table, {"Table": Table}),
}
"""Maps the name of the class used in lookups to that class, and to its possible concrete classes by name."""


def is_replicable(kind: type) -> bool:
    """Returns whether the state of resources of a class can be encoded."""
    return kind.__name__ in _KINDS


def replicable_resources(resources: Resources) -> dict[Key, ReplicableResource]:
    """Returns all resources with encodable state, other than variables and notes."""
    return {
        Key(container, kind.__name__, name): resource
        for (container, kind, name), resource in resources.others().items()
        if is_replicable(kind)
    }


def find_replicable(resources: Resources, key: Key) -> ReplicableResource | None:
    """Returns the resource at ``key``; None if there is none."""
    kind: type[Any] = _KINDS[key.kind][0]
    resource = resources.find(key.container, key.name, kind)
    assert resource is None or isinstance(resource, ReplicableResource)
    return resource


def ensure_replicable(
    resources: Resources, key: Key, called: str, state: ResourceState
) -> tuple[ReplicableResource, bool]:
    """Returns the resource at ``key``, created for ``state`` if missing; and whether it was created.

    Args:
      resources: the task's resources; the caller holds their lock.
      key: the resource's key.
      called: the name of the resource's class.
      state: the state to be installed next.
    """
    resource = find_replicable(resources, key)
    if resource is not None:
        return resource, False
    kind, classes = _KINDS[key.kind]
    new = classes[called].made_of(state, resources)
    resources.add(key.container, kind, key.name, new)
    return new, True


def handle_of(resource: ReplicableResource | None) -> np.ndarray[Any, Any]:
    """Returns a handle of a resource, as the value of a tensor: an array of shape [] with the object itself."""
    handle = np.empty((), object)
    handle[()] = resource
    return handle
