"""The status of a task's graphs, for `headwater status` and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.cluster.telemetry.snapshot import MAX_VARIABLES, GroupProgress, Snapshot, VariableSize, Wait
from headwater.graph.resources.containers import Cell
from headwater.graph.resources.example_ledger import ExampleLedger
from headwater.graph.resources.gate import Gate
from headwater.graph.runtime.task import TaskRuntime

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

_GLOBAL_STEP = "global_step"
_RECORD = "/updates"
"""End of the names of variables in which optimizers count updates and staleness; see `CountUpdate`."""
_RECORD_SIZE = 4


def add_state(snapshot: Snapshot, runtime: TaskRuntime) -> Snapshot:
    """Returns ``snapshot`` with the variables, steps and waits of a task for graphs added."""
    cells = runtime.resources.cells()
    sizes = sorted((_size(key, cell) for key, cell in cells.items()), key=lambda size: (-size.nbytes, size.name))
    now = snapshot.at
    step = _global_step(runtime, cells)
    return replace(
        snapshot,
        steps=snapshot.steps + runtime.steps,
        sessions=snapshot.sessions + runtime.session_count(),
        global_step=snapshot.global_step if step is None else step,
        variables=(*snapshot.variables, *sizes)[:MAX_VARIABLES],
        variables_count=snapshot.variables_count + len(sizes),
        variables_bytes=snapshot.variables_bytes + sum(size.nbytes for size in sizes),
        waits=(*snapshot.waits, *(Wait(what=what, seconds=round(now - since, 3)) for what, since in runtime.waits())),
        groups=(*snapshot.groups, *_groups(runtime, cells)),
    )


def _size(key: tuple[str, str], cell: Cell) -> VariableSize:
    container, name = key
    full = f"{container}/{name}" if container else name
    value = cell.value
    if value is None:
        return VariableSize(name=full, nbytes=0, updates=cell.updates)
    return VariableSize(
        name=full, nbytes=int(value.nbytes), dtype=str(value.dtype), shape=tuple(value.shape), updates=cell.updates
    )


def _value(runtime: TaskRuntime, cell: Cell) -> Any:
    """Copies a variable's value, under the lock: an update may reuse the buffer."""
    with runtime.resources.lock:
        return None if cell.value is None else np.array(cell.value)


def _global_step(runtime: TaskRuntime, cells: Mapping[tuple[str, str], Cell]) -> int | None:
    for (_, name), cell in cells.items():
        if name.rpartition("/")[2] == _GLOBAL_STEP:
            value = _value(runtime, cell)
            if value is not None and value.ndim == 0 and value.dtype.kind in "iu":
                return int(value)
    return None


def _groups(runtime: TaskRuntime, cells: Mapping[tuple[str, str], Cell]) -> Sequence[GroupProgress]:
    gates = runtime.resources.of_kind(Gate)
    found: dict[str, GroupProgress] = {}
    for (_, name), cell in cells.items():
        if not name.endswith(_RECORD):
            continue
        record = _value(runtime, cell)
        if record is not None and record.dtype == np.int64 and record.shape == (_RECORD_SIZE,):
            group = name.removesuffix(_RECORD)
            updates, _, greatest, total = (int(number) for number in record)
            found[group] = GroupProgress(
                name=group,
                updates=updates,
                staleness=total / max(1, updates),
                staleness_max=greatest,
                **_gate_fields(gates.pop(group, None)),
            )
    for name, gate in gates.items():
        found[name] = GroupProgress(name=name, updates=gate.current_state.version, **_gate_fields(gate))
    for name, ledger in runtime.resources.of_kind(ExampleLedger).items():
        found[name] = GroupProgress(name=name, updates=ledger.updates, examples=str(ledger))
    return [found[name] for name in sorted(found)]


def _gate_fields(gate: Gate | None) -> JsonObject:
    if gate is None:
        return {}
    state = gate.current_state
    return {"dropped": state.dropped, "workers": tuple(sorted(state.members)), "waiting": gate.waiting_text()}
