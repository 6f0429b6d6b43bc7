"""Functions that run single instructions of a plan: operations on the host, and transfers. The values of a run are in
*slots*, see `headwater.graph.runtime.executor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import to_string_array
from headwater.errors import FailedPreconditionError, InternalError, InvalidArgumentError, OpError, UnimplementedError
from headwater.graph.passes.plan import Node, Receive, Send
from headwater.graph.registry import Kind, as_outputs
from headwater.graph.resources.containers import Cell, Resources
from headwater.graph.resources.recording import InstructionPlace, Outcome, ResourceOperation
from headwater.graph.resources.replicable import is_handle
from headwater.graph.runtime.element_work import ElementWork, attributes_of
from headwater.graph.runtime.host_values import cell_value, check_assigned
from headwater.graph.runtime.step import Step, TaskContext

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray

Slots = list[Any]
Action = Callable[..., Any]
"""A function of the slots of a run, and its step."""


@dataclass(frozen=True, kw_only=True)
class HostAction:
    """An operation on the host.

    Attributes:
      node: the operation.
      sources: for each input, its slot; -1 for a variable.
      targets: the slots of the operation's outputs in use.
      cells: the variables among the operation's inputs, by position.
      context: returns the context in which the operation runs in a step.
      resources: the task's state.
      place: position of the instruction in the session's plans.
      task: name of the task.
      work: if the operation gets an element, the work that may have been done on the element in advance.
      results: the slots of the outputs of ``work``.
      in_advance: whether ``targets`` may have been set in this run already, as ``results`` of another action.
    """

    node: Node
    sources: Sequence[int]
    targets: Sequence[int]
    cells: Mapping[int, Cell]
    context: Callable[[Step], TaskContext]
    resources: Resources
    place: InstructionPlace
    task: str
    work: ElementWork | None = None
    results: Sequence[int] = ()
    in_advance: bool = False

    @cached_property
    def kept(self) -> ResourceOperation | None:
        """The operation for the recorder, if its resource is replicated; otherwise None."""
        definition = self.node.definition
        if self.resources.recorder is None or not definition.keeps:
            return None

        def perform(step: Step, inputs: Sequence[Any]) -> Sequence[Any]:
            found: dict[int, Any] = {}
            self._plain(found, step, inputs)
            return [found[index] for index in self.targets]

        return ResourceOperation(self.place, perform, tuple(self.cells.values()), definition.stable)

    @property
    def run(self) -> Action:
        """The function that runs the operation, and records the changes that it makes on a replicated task."""
        recorder, on_host = self.resources.recorder, self.node.definition.kind is Kind.HOST
        if self.node.type == "Assign":
            return self._assign_strings
        if self.kept is not None:
            return self._run_kept
        if recorder is not None and on_host and self.node.inputs and not self.cells:
            return self._run_without_kept
        return self._plain if recorder is None or not self.cells or not on_host else self._run_recorded

    @cached_property
    def _plain(self) -> Action:
        """The function that runs the operation and records nothing."""
        node, cells, sources, targets, context = self.node, self.cells, self.sources, self.targets, self.context
        definition, attrs = node.definition, attributes_of(node)
        on_host, in_advance = definition.kind is Kind.HOST, self.in_advance
        lower: Callable[..., Any] | None = definition.lower if on_host else definition.string_lower
        if self.work is not None:
            lower = self.work.next
        every = *targets, *self.results
        if lower is None:
            raise UnimplementedError(f"{node.type} ({node.name!r}) has no form for strings")

        def run(slots: Any, step: Step, inputs: Sequence[Any] | None = None) -> None:
            if in_advance and slots[targets[0]] is not None:
                return
            if inputs is None:
                inputs = [
                    (cells[i] if on_host else cell_value(cells[i])) if source < 0 else np.asarray(slots[source])
                    for i, source in enumerate(sources)
                ]
            try:
                if on_host:
                    result = lower(context(step), *inputs, **attrs)
                elif definition.kind is Kind.RANDOM:
                    result = lower(_generator(attrs, step), *inputs, **attrs)
                else:
                    result = lower(*inputs, **attrs)
            except OpError:
                raise
            except (TypeError, ValueError, IndexError, KeyError) as error:
                raise InvalidArgumentError(f"{error} [in {node.type} operation {node.name!r}]") from error
            values = as_outputs(result)
            if len(values) < len(targets):
                raise InternalError(f"{node.type} {node.name!r} returned {len(values)} values for its outputs")
            for index, value in zip(every, values, strict=False):
                slots[index] = value if type(value) is np.ndarray else _as_array(value)

        return run

    def _run_kept(self, slots: Slots, step: Step) -> None:
        recorder = self.resources.recorder
        assert recorder is not None
        assert self.kept is not None
        inputs = [self.cells[i] if source < 0 else np.asarray(slots[source]) for i, source in enumerate(self.sources)]
        for index, value in zip(self.targets, recorder.run_operation(self.kept, step, inputs), strict=True):
            slots[index] = value

    def _run_without_kept(self, slots: Slots, step: Step) -> None:
        # A branch or loop with a handle may contain operations on the resource. The backup would miss their changes, so
        # refuse it.
        if any(is_handle(slots[source]) for source in self.sources):
            raise FailedPreconditionError(
                f"{self.node.type} {self.node.name!r} changes a resource of {self.task} in a branch or loop, where "
                "changes cannot be replicated: use it outside of branches and loops, or on a worker"
            )
        self._plain(slots, step)

    def _run_recorded(self, slots: Slots, step: Step) -> None:
        recorder, cells = self.resources.recorder, self.cells
        assert recorder is not None
        known = recorder.find_outcome(step, self.place)
        if known is not None:
            for index, value in zip(self.targets, known.outputs, strict=True):
                slots[index] = value
            return
        with self.resources.lock:
            # An operation may change only some of its variables; send only those to the backup.
            before = {index: cell.updates for index, cell in cells.items()}
            self._plain(slots, step)
            changed = [cell for index, cell in cells.items() if cell.updates != before[index]]
            if changed:
                recorder.record_change(
                    step, self.place, None, changed, Outcome([slots[index] for index in self.targets])
                )

    def _assign_strings(self, slots: Slots, step: Step) -> None:
        """Assigns a NumPy array to a variable of strings."""
        recorder, cell = self.resources.recorder, self.cells[0]
        value = np.array(slots[self.sources[1]])
        value.flags.writeable = False  # a program that fetches the array gets a copy
        if recorder is None or recorder.find_outcome(step, self.place) is None:
            with self.resources.lock:
                check_assigned(cell, value, bool(self.node.attrs.get("validate_shape", True)))
                cell.value = value
                cell.counts[cell.slot] += 1
                if recorder is not None:
                    recorder.record_change(step, self.place, None, [cell], Outcome())
        for index in self.targets:
            slots[index] = value


def send_action(item: Send, sources: Sequence[int], ends: bool = False) -> Action:
    """Returns the action that sends the values in slots ``sources``; with ``ends``, as a part of the plan's answer."""
    destination, transfer = item.destination, item.transfer

    def run(slots: Slots, step: Step) -> None:
        send = step.send_last if ends else step.send
        send(destination, transfer, list(map(np.asarray, map(slots.__getitem__, sources))))

    return run


def receive_action(item: Receive, targets: Sequence[int]) -> Action:
    """Returns the action that receives values into slots ``targets``."""
    source, transfer = item.source, item.transfer

    def run(slots: Slots, step: Step) -> None:
        for index, value in zip(targets, step.recv(source, transfer), strict=True):
            slots[index] = value

    return run


def _generator(attrs: Mapping[str, Any], step: Step) -> np.random.Generator:
    """Returns a generator for one operation in one step, seeded by the operation's seeds, if any, and the step's
    number."""
    seeds = int(attrs.get("seed") or 0) & 0xFFFFFFFF, int(attrs.get("seed2") or 0) & 0xFFFFFFFF
    # If the operation has seeds, a repetition of the same step, for example on a backup, draws the same numbers.
    return np.random.default_rng((*seeds, step.number) if any(seeds) else None)


def _as_array(value: AnyArray) -> np.ndarray[Any, Any]:
    if isinstance(value, str | bytes):
        return to_string_array(value)
    return np.asarray(value)
