"""`ConsistentOptimizer`: any optimizer with a consistency model; see `headwater.ps.consistency` for the choices.

If each gradient is applied as an update of its own, a step additionally records, on the variables' tasks, the number of
updates and the staleness of each gradient. If gradients are gathered, they are added to accumulators on the variables'
tasks, and a thread of one of the workers applies the updates; if that worker is lost, another worker's thread takes
over.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.cluster.devices import parse_device
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.ps.consistency import Asynchronous, BoundedStaleness, Consistency, KOfN, Synchronous, from_text, to_text
from headwater.tf1.functional import math, summary
from headwater.tf1.functional.arrays import stack
from headwater.tf1.functional.control_flow import group, no_op
from headwater.tf1.training.accounted import Gathered, gathered_examples
from headwater.tf1.training.gathering import UpdateRunner, gather, local_step_variable
from headwater.tf1.training.optimizer import GradsAndVars, Optimizer
from headwater.tf1.training.session_run_hook import SessionRunHook
from headwater.tf1.variables.state import assign
from headwater.tf1.variables.variable_lists import global_variables, report_uninitialized_variables
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.types import Gradient, GraphTensor, OpOrTensor, SessionLike
    from headwater.tf1.training.coordinator import Coordinator


__all__ = ["Asynchronous", "BoundedStaleness", "Choose", "ConsistentOptimizer", "KOfN", "Synchronous"]

Choose = Callable[[Any], Consistency | str]
"""A function from a variable to the consistency of its training: a choice, or a text that `from_text` parses."""

_STRICTEST_FIRST = (Synchronous, KOfN, BoundedStaleness, Asynchronous)


class ConsistentOptimizer(Optimizer):
    """Wraps an optimizer and synchronises its workers as a consistency model requires.

    ::

        opt = ConsistentOptimizer(tf.train.AdamOptimizer(0.01), BoundedStaleness(steps=3))
        train_op = opt.minimize(loss, global_step=step)
        hook = opt.make_session_run_hook(is_chief)
        with tf.train.MonitoredTrainingSession(master, is_chief, hooks=[hook]) as sess: ...

    A worker is a member from its first step to the end of its session or of its process. The staleness of gradients is
    recorded in the summaries ``<name>/<choice>/staleness`` (the mean so far) and ``.../staleness_max``, and in
    `statistics`.

    Args:
      consistency: a choice such as ``KOfN(k=3, workers=5)``, a text such as ``"k=3 of 5"`` that
        `headwater.ps.consistency.from_text` parses, or a function that maps a variable to either, to choose per
        variable. The global step counts the updates of the strictest choice.
      worker: name of this worker; None: the task of its operations.
      name: name of the operations, and of the state shared between the workers.

    Raises:
      ValueError: the text is not a valid choice.
    """

    def __init__(
        self,
        opt: Optimizer,
        consistency: Consistency | str | Choose,
        worker: str | None = None,
        name: str = "consistent",
    ) -> None:
        super().__init__(False, name)
        self._opt = opt
        if isinstance(consistency, Consistency | str):
            choice = from_text(consistency)
            self._choose: Choose = lambda _: choice
        else:
            self._choose = consistency
        self._worker = worker
        self._inner: list[Optimizer] = []
        self._records: dict[str, list[Any]] = {}
        self._local_inits: list[Operation] = []
        self._start_overs: list[Operation] = []
        self._runners: list[UpdateRunner] = []
        self.local_step_init_op: OpOrTensor | None = None
        self.chief_init_op: OpOrTensor | None = None
        self.ready_for_local_init_op: OpOrTensor | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> GradsAndVars:
        """Computes gradients with the wrapped optimizer."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Gradient | None, Variable]],
        global_step: Tensor | Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Returns the operation that contributes this worker's gradients, and ends when its next step may begin.

        Args:
          grads_and_vars: pairs of gradient and variable.
          global_step: counts the updates of the strictest choice; None: they are not counted.

        Raises:
          ValueError: there are no variables.
          TypeError: the consistency of a variable is neither a choice nor a text.
        """
        groups: dict[Consistency, GradsAndVars] = {}
        for grad, var in grads_and_vars:
            choice = self._choose(var)
            if not isinstance(choice, Consistency | str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"the consistency of {var.name} must be a choice or a text, not {choice!r}")
            choice = from_text(choice)
            groups.setdefault(choice, []).append((grad, var))
        if not groups:
            raise ValueError("No variables provided.")
        graph = get_default_graph()
        train_ops: list[Operation] = []
        with graph.name_scope(name or self._name):
            for choice in sorted(groups, key=lambda choice: _STRICTEST_FIRST.index(type(choice))):
                first = not train_ops
                part = _Part(
                    opt=self._opt if first else _another(self._opt),
                    choice=choice,
                    pairs=groups[choice],
                    global_step=global_step if first else None,
                    name=f"{self._name}/{to_text(choice).replace(' ', '_')}",
                    worker=self._worker,
                )
                train_ops.append(
                    part.direct() if isinstance(choice, BoundedStaleness | Asynchronous) else part.gather()
                )
                self._inner.append(part.opt)
                self._records[str(choice)] = part.records
                self._local_inits += part.local_inits
                self._start_overs += part.start_overs
                self._runners += part.runners
            self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
            self.local_step_init_op = group(*self._local_inits, name="local_step_init")
            self.chief_init_op = group(*self._local_inits, *self._start_overs, name="chief_init")
        train_op = group(*train_ops, name=f"{self._name}_train")
        graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
        return train_op

    # Operations that a worker runs beside its steps -------------------------------------------------------------

    def get_queue_runners(self) -> list[UpdateRunner]:
        """Returns the runners that apply updates of gathered gradients.

        One worker has to run them. If all workers do, training continues after the loss of any of them.
        """
        return list(self._runners)

    def make_session_run_hook(self, is_chief: bool) -> SessionRunHook:
        """Returns a hook that runs these operations in a `MonitoredSession`."""
        return _ConsistencyHook(self, is_chief)

    def statistics(self) -> dict[str, Tensor]:
        """Returns, by choice, [updates, latest staleness, greatest staleness, sum of staleness] as int64 [4].

        If the variables of a choice are on several tasks, the record of the first of these tasks is returned.
        """
        return {choice: convert_to_tensor(records[0]) for choice, records in self._records.items()}

    # Slots ------------------------------------------------------------------------------------------------------

    def get_slot(self, var: GraphTensor, name: str) -> Any:
        """Returns a slot of the wrapped optimizer; None without one."""
        found = (opt.get_slot(var, name) for opt in self._inner)
        return next((slot for slot in found if slot is not None), None)

    def get_slot_names(self) -> list[str]:
        """Returns the slot names of the wrapped optimizer."""
        return sorted({name for opt in self._inner for name in opt.get_slot_names()})

    def variables(self) -> list[Any]:
        """Returns the variables of the wrapped optimizer."""
        return sorted((var for opt in self._inner for var in opt.variables()), key=lambda var: var.name)


class _Part:
    """Variables with the same consistency choice.

    Attributes:
      records: for each task that has some of them, a variable [updates, latest, greatest, sum of staleness].
      local_inits: operations that each worker runs first; start_overs: operations that the chief runs first.
      runners: the runners that apply the updates.
    """

    def __init__(
        self,
        *,
        opt: Optimizer,
        choice: Consistency,
        pairs: GradsAndVars,
        global_step: Tensor | Variable | None,
        name: str,
        worker: str | None,
    ) -> None:
        self.opt = opt
        self.records: list[Any] = []
        self.local_inits: list[Operation] = []
        self.start_overs: list[Operation] = []
        self.runners: list[UpdateRunner] = []
        self._pairs = pairs
        self._global_step = global_step
        self._name = name
        self._graph = get_default_graph()
        self._here = no_op()
        self._attrs: dict[str, object] = {"shared_name": name, "consistency": to_text(choice)}
        self._waits = isinstance(choice, BoundedStaleness)
        self._worker = worker or _task_of(self._here.device)
        self._devices = list(dict.fromkeys(var.device for grad, var in pairs if grad is not None)) or [""]

    def direct(self) -> Operation:
        """Builds a step in which each gradient is applied immediately."""
        seen = [self._read_here(self._record(index)) for index in range(len(self._devices))]
        with self._graph.name_scope(None):
            update = self.opt.apply_gradients(self._pairs, self._global_step)
        done = [update]
        for record, before in zip(self.records, seen, strict=True):
            done.append(self._count(record, before))
        self._summarize()
        if not self._waits:
            return group(*done)
        with self._graph.device(self._devices[0]), self._graph.control_dependencies(done):
            return self._end_step(_element(seen[0], 0)).op

    def gather(self) -> Operation:
        """Builds a step that contributes a gradient, and the updates with the mean of several gradients."""
        graph = self._graph
        examples = gathered_examples(grad for grad, _ in self._pairs)
        if examples is not None:  # accounted examples also know the end of the data
            self._devices = [examples.device, *(device for device in self._devices if device != examples.device)]
        record = self._record(0)
        local_step = local_step_variable("local_version", with_start=True)

        def now() -> Tensor:
            with graph.device(self._devices[0]):
                return _element(record.read_value(), 0)

        with graph.device(self._devices[0]):
            required, start = graph.create_op("ConsistencyTake", [], self._attrs).outputs
        gathering = gather(self._pairs, local_step, required, now, renews=False, start=start)
        with graph.device(self._devices[0]):
            with gathering.all_taken(), graph.name_scope(None):
                update = self.opt.apply_gradients(gathering.means, self._global_step)
            with graph.control_dependencies([update]):
                counted = self._count(record, record.read_value())  # only this replica updates these variables
            with graph.control_dependencies([counted]):
                updated = graph.create_op("ConsistencyUpdated", [], self._attrs)
            # Restart the gate after the accumulators: it counts gradients, so none from before the start may remain.
            with graph.control_dependencies(gathering.starts):
                start_over = graph.create_op(
                    "ConsistencyRestart", [gathering.begins, gathering.elsewhere, gathering.name], self._attrs
                )
            with graph.control_dependencies(gathering.joins):
                (arrives,) = graph.create_op("ConsistencyArrive", [], {**self._attrs, "worker": self._worker}).outputs
            self.runners.append(UpdateRunner(updated, start_over))
            with graph.control_dependencies(gathering.given):
                step = self._end_step(local_step.value(), examples)
        with graph.control_dependencies([arrives.op]):
            self.local_inits.append(assign(local_step, stack([now(), arrives])).op)
        self.start_overs.append(start_over)
        self._summarize()
        return assign(local_step, step).op

    def _record(self, index: int) -> Any:
        with self._graph.device(self._devices[index]), self._graph.name_scope(None):
            record = Variable(np.zeros(4, np.int64), trainable=False, name=f"{self._name}/updates")
        self.records.append(record)
        return record

    def _read_here(self, record: Tensor) -> Tensor:
        """Reads the record on this worker, together with the variables, to know the version of their values."""
        with self._graph.colocate_with(self._here):
            return self._graph.create_op("Identity", [convert_to_tensor(record)]).outputs[0]

    def _count(self, record: Tensor, seen: Tensor) -> Operation:
        with self._graph.colocate_with(record.op):
            return self._graph.create_op("CountUpdate", [record.op.outputs[0], seen])

    def _end_step(self, version: Tensor, examples: Gathered | None = None) -> Tensor:
        attrs = {**self._attrs, "worker": self._worker}
        if examples is not None:
            attrs["examples"] = examples.name
        return self._graph.create_op("ConsistencyGive", [version], attrs).outputs[0]

    def _summarize(self) -> None:
        record = self.records[0]
        with self._graph.device(record.device), self._graph.name_scope(None):
            whole = math.to_float(record.read_value())
            mean = _element(whole, 3) / math.maximum(_element(whole, 0), 1.0)
            summary.scalar(f"{self._name}/staleness", mean)
            summary.scalar(f"{self._name}/staleness_max", _element(whole, 2))


def _element(vector: Tensor, index: int) -> Any:
    tensor = vector
    return tensor[index]


def _task_of(device: str) -> str:
    """Returns the task part of a device's name, or a name for a worker without a device."""
    task = parse_device(device)._replace(device_type=None, device_index=None, replica=None)
    return task.name() or "this process"


def _another(opt: Optimizer) -> Optimizer:
    """Returns an optimizer with the same settings and separate slots."""
    made = copy.copy(opt)
    made._slots, made._non_slots = {}, {}  # pyright: ignore[reportPrivateUsage] - of our own kind
    return made


class _ConsistencyHook(SessionRunHook):
    def __init__(self, optimizer: ConsistentOptimizer, is_chief: bool) -> None:
        self._optimizer = optimizer
        self._is_chief = is_chief

    def begin(self) -> None:
        if self._optimizer.local_step_init_op is None:
            raise ValueError("ConsistentOptimizer.apply_gradients should be called before using the hook.")

    def after_create_session(self, session: SessionLike, coord: Coordinator) -> None:
        optimizer = self._optimizer
        missing: Sequence[bytes] = session.run(optimizer.ready_for_local_init_op).tolist()
        if missing:
            names = ", ".join(name.decode() for name in missing)
            raise RuntimeError(f"Init operations did not make model ready for local_init: not initialized: {names}")
        session.run(optimizer.chief_init_op if self._is_chief else optimizer.local_step_init_op)
        for runner in optimizer.get_queue_runners():
            runner.create_threads(session, coord=coord, daemon=True, start=True)
