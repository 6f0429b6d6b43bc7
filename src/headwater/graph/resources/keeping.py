"""The kinds of resources of which another task, or another life of this one, can have what is in them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from headwater.graph.resources.accumulators import Accumulator
from headwater.graph.resources.containers import Resources
from headwater.graph.resources.example_ledger import ExampleLedger
from headwater.graph.resources.gate import Gate
from headwater.graph.resources.kept import Kept, Key, State
from headwater.graph.resources.lookup_tables import Table
from headwater.graph.resources.queues import FifoQueue, PaddingQueue, PriorityQueue, Queue, ShuffleQueue
from headwater.graph.resources.step_barrier import StepBarrier

_KINDS: Final[dict[str, tuple[type, dict[str, type[Kept]]]]] = {
    "Accumulator": (Accumulator, {"Accumulator": Accumulator}),
    "ExampleLedger": (ExampleLedger, {"ExampleLedger": ExampleLedger}),
    "Gate": (Gate, {"Gate": Gate}),
    "Queue": (Queue, {kind.__name__: kind for kind in (FifoQueue, PaddingQueue, PriorityQueue, ShuffleQueue)}),
    "StepBarrier": (StepBarrier, {"StepBarrier": StepBarrier}),
    "Table": (Table, {"Table": Table}),
}
"""By the name of the class that resources are asked for: that class, and those that there may be, by their names."""


def can_keep(kind: type) -> bool:
    """Whether what resources of a class have can be said in words and arrays."""
    return kind.__name__ in _KINDS


def kept_of(resources: Resources) -> dict[Key, Kept]:
    """All that there is besides variables and notes, and can be kept."""
    return {
        Key(container, kind.__name__, name): found
        for (container, kind, name), found in resources.others().items()
        if can_keep(kind)
    }


def find_kept(resources: Resources, key: Key) -> Kept | None:
    """The resource of that place; None where there is none."""
    kind: type[Any] = _KINDS[key.kind][0]
    found = resources.find(key.container, key.name, kind)
    assert found is None or isinstance(found, Kept)
    return found


def make_kept(resources: Resources, key: Key, called: str, state: State) -> tuple[Kept, bool]:
    """The resource of a place, which is made for what ``state`` says where there is none; and whether it was.

    Args:
      resources: of the task; their lock is held.
      key: the place.
      called: the name of the resource's class.
      state: that it is to take.
    """
    found = find_kept(resources, key)
    if found is not None:
        return found, False
    kind, classes = _KINDS[key.kind]
    made = classes[called].made_of(state, resources)
    resources.add(key.container, kind, key.name, made)
    return made, True


def handle_of(kept: Kept | None) -> np.ndarray[Any, Any]:
    """A value of a tensor that stands for a resource."""
    handle: np.ndarray[Any, Any] = np.empty((), object)
    handle[()] = kept
    return handle
