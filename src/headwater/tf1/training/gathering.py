"""Gradient accumulators and update threads of optimizers that apply the mean gradient of several replicas."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headwater.dtypes import int32, int64
from headwater.errors import AbortedError, CancelledError, OpError
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional.accumulators import as_int64
from headwater.tf1.functional.control_flow import group, no_op
from headwater.tf1.input.queues import FIFOQueue
from headwater.tf1.training.accounted import Gathered, gathered_examples
from headwater.tf1.training.coordinator import Coordinator
from headwater.tf1.training.optimizer import GradsAndVars
from headwater.tf1.training.queue_runner import QueueRunner, repeated
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.session.session import BaseSession
    from headwater.graph.types import SessionLike


_logger: Final = logging.getLogger(__name__)


def local_step_variable(name: str, *, with_start: bool = False) -> Variable:
    """Creates a variable on this task, not on a parameter server: the step of its next gradient, int64 of shape ();
    with ``with_start`` also the start of the training, of shape (2,)."""
    graph = get_default_graph()
    here = no_op()
    with graph.colocate_with(here):
        first = [0, 0] if with_start else 0
        return Variable(first, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], dtype=int64, name=name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Gathering:
    """Operations that gather the gradients of several replicas.

    Attributes:
      given: operations that add this replica's gradients to the accumulators.
      takes: operations that take the mean gradients, one on each task.
      means: the mean gradients with their variables.
      step: the step that begins when the means are taken.
      joins: operations that a replica runs before its first gradient in a session.
      starts: operations that start the training: they discard earlier gradients and set the step of the next ones.
      begins: the first step after ``starts``.
      elsewhere: the greatest number of starts of the training known to any task.
      name: a random number that identifies the start made by ``starts``.
      examples: the record of the gradients' examples, if they are accounted for.
    """

    given: list[Operation]
    takes: list[Operation]
    means: GradsAndVars
    step: Tensor
    joins: list[Operation]
    starts: list[Operation]
    begins: Tensor
    elsewhere: Tensor
    name: Tensor
    examples: Gathered | None

    def all_taken(self) -> AbstractContextManager[None]:
        """Returns a context in which updates wait until all tasks have taken their gradients.

        So the update is applied on all tasks or on none, even if a task has lost gradients, or the updating task is
        lost while it waits for the last of them.
        """
        several = len(self.takes) > 1
        return self.takes[0].graph.control_dependencies([group(*self.takes)] if several else [])


def gather(
    pairs: GradsAndVars,
    local_step: Any,
    required: Any,
    now: Callable[[], Tensor],
    *,
    renews: bool,
    runs: Sequence[Tensor] = (),
    start: Tensor | None = None,
) -> Gathering:
    """Adds an accumulator to every task that holds variables, for the gradients of all of them.

    Args:
      pairs: this replica's gradients with their variables.
      local_step: the step of the gradients, or this step and the start of the training; see
        `local_step_variable`.
      required: number of gradients per update.
      now: makes a tensor of the current step.
      renews: whether all replicas have to join again when the training restarts.
      start: the start of the training since which gradients are counted; None: any.
      runs: numbers of starts known to other operations than the accumulators.

    Raises:
      ValueError: there are no gradients, or their examples are accounted for and belong to several datasets.
    """
    graph = get_default_graph()
    examples = gathered_examples(grad for grad, _ in pairs)
    by_device: dict[str, list[tuple[Any, Variable]]] = {} if examples is None else {examples.device: []}
    for grad, var in pairs:
        if grad is not None:
            by_device.setdefault(var.device, []).append((grad, var))
    if all(grad is None for grad, _ in pairs):
        raise ValueError("there is no gradient of any variable")
    given: list[Operation] = []
    joins: list[Operation] = []
    starts: list[Operation] = []
    steps: list[Tensor] = []
    runs = list(runs)
    members: list[Tensor] = []
    groups: list[tuple[str, dict[str, Any]]] = []
    means: dict[Any, Any] = {}
    ranges: list[Tensor] = []
    for device, ours in by_device.items():
        rows = [index for index, (grad, _) in enumerate(ours) if isinstance(grad, IndexedSlices)]
        attrs: dict[str, Any] = {
            "shared_name": f"{ours[0][1].name if ours else device}/gradients",
            "shapes": [var.shape for _, var in ours],
            "rows": rows,
        }
        here = examples if examples is not None and device == examples.device else None
        of = {} if here is None else {"examples": here.name}
        with graph.device(device):
            parts = [part for grad, _ in ours for part in _parts(grad)] + ([] if here is None else [here.handed])
            given.append(graph.create_op("GatherGradients", [convert_to_tensor(local_step), *parts], {**attrs, **of}))
            dtypes = [grad.dtype for grad, _ in ours]
            inputs = [convert_to_tensor(required, int32), *([] if start is None else [start])]
            take = {**attrs, **of, "dtypes": dtypes, "several": len(by_device) > 1}
            step, *taken = graph.create_op("GatherTake", inputs, take).outputs
            joins.append(graph.create_op("GatherJoin", [], attrs))
            runs.append(graph.create_op("GatherLife", [], attrs).outputs[0])
            if len(by_device) > 1:
                members.append(graph.create_op("GatherMembers", [], attrs).outputs[0])
        groups.append((device, attrs))
        steps.append(step)
        remaining = iter(taken)
        for index, (_, var) in enumerate(ours):
            first = next(remaining)
            means[var] = _mean_rows(next(remaining), first) if index in rows else first
        ranges += remaining
    takes = [step.op for step in steps]
    if examples is not None:
        examples.taken(takes, ranges[0])
    name = graph.create_op("StartName", []).outputs[0]
    # Read the step once for all tasks: a concurrent update may change it between two reads.
    begins = now()
    # Read the starts known to all tasks before any task starts. A restarted task that has lost gradients counts as one
    # more start, so that its earlier ones are not taken for current.
    if members:
        runs.append(graph.create_op("GatherForgotten", members).outputs[0])
    elsewhere = graph.create_op("AddN", runs).outputs[0]
    for device, attrs in groups:
        with graph.device(device):
            starts.append(graph.create_op("GatherStart", [begins, elsewhere, name], {**attrs, "renews": renews}))
    updates = [(means.get(var), var) for _, var in pairs]
    return Gathering(
        given=given,
        takes=takes,
        means=updates,
        step=steps[0],
        joins=joins,
        starts=starts,
        begins=begins,
        elsewhere=elsewhere,
        name=name,
        examples=examples,
    )


def _mean_rows(values: Tensor, indices: Tensor) -> IndexedSlices:
    with values.graph.device(values.device):
        return IndexedSlices(values, values.graph.create_op("UpdateRows", [indices]).outputs[0])


def _parts(grad: Tensor) -> list[Tensor]:
    if not isinstance(grad, IndexedSlices):
        return [grad]
    return [as_int64(grad.summed.indices), grad.summed.values]


class UpdateRunner(QueueRunner):
    """Applies updates in a loop until the session is closed.

    Once training ends, its threads wait for gradients that no replica will contribute. So they are not joined.

    Args:
      update: applies one update; waits for its gradients.
      start_over: runs if ``update`` raises AbortedError, because another worker's thread left an update incomplete;
        None: this error ends the thread like other errors.
    """

    def __init__(self, update: Operation, start_over: Operation | None = None) -> None:
        super().__init__(FIFOQueue(1, [int32], shapes=[()], name="dummy_queue", shared_name="dummy_queue"), [update])
        self._start_over = start_over

    def create_threads(
        self, sess: SessionLike | None, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        threads = [
            threading.Thread(target=self._run_updates, args=(sess, op, coord), name=f"updates-{op.name}", daemon=True)
            for op in self.enqueue_ops
        ]
        if start:
            for thread in threads:
                thread.start()
        return threads

    def _run_updates(self, sess: BaseSession, op: Operation, coord: Coordinator | None) -> None:
        try:
            update = repeated(sess, op)
            while coord is None or not coord.should_stop():
                try:
                    update()
                except AbortedError as error:
                    if self._start_over is None:
                        raise
                    _logger.warning("Updates start over: %s", error.message)
                    sess.run(self._start_over)
        except (CancelledError, RuntimeError) as error:
            _logger.debug("Updates end: %s", error)  # the session is closed
        except OpError as error:
            if coord is None:
                _logger.error("Exception in QueueRunner: %s", error)
            elif coord.should_stop():
                return
            else:
                coord.request_stop(error)
            # The program may be waiting for a step that no update will ever complete: make its runs fail.
            sess.close_with_error(error)
