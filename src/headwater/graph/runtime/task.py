"""A task's runtime for its server and its sessions: state, plans, and transfers received from other tasks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.cluster.claims import Claim, ClaimedPlaces
from headwater.cluster.devices import Device, parse_device
from headwater.cluster.machine_memory import keep_freed_memory
from headwater.errors import AbortedError, CancelledError, FailedPreconditionError
from headwater.graph.passes.plan import TaskPlan
from headwater.graph.resources.containers import Resources
from headwater.graph.runtime.devices import describe, offered_devices
from headwater.graph.runtime.executor import CompiledPlan
from headwater.graph.runtime.step import Step, Stopped

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray


_log = logging.getLogger("headwater")

LOCAL_TASK = "/job:localhost/replica:0/task:0"
NO_TASK = Claim()
#: Limit for a committed step to complete when its session is dropped, in seconds.
COMMITTED_S = 5.0


class Rendezvous:
    """Stores transfers from tasks other than the master until a step on this task takes them. A transfer may arrive
    before its step has started here."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._arrived: dict[tuple[str, int, int], Sequence[Any]] = {}

    def put(self, session: str, step: int, transfer: int, tensors: Sequence[AnyArray]) -> None:
        """Stores a transfer."""
        with self._condition:
            self._arrived[session, step, transfer] = tensors
            self._condition.notify_all()

    def pop(self, step: Step, transfer: int, source: str) -> Sequence[AnyArray]:
        """Waits for a transfer and removes it; raises as `Step.wait_until`."""
        key = (step.session, step.number, transfer)
        with self._condition:
            step.wait_until(self._condition, lambda: key in self._arrived, f"tensors from {source}")
            return self._arrived.pop(key)

    def waiting(self) -> dict[tuple[str, int, int], Sequence[AnyArray]]:
        """Returns the transfers that no step has taken, by session, step and transfer."""
        with self._condition:
            return dict(self._arrived)

    def forget(self, session: str, step: int) -> None:
        """Drops the remaining transfers of a failed step."""
        with self._condition:
            for key in [k for k in self._arrived if k[0] == session and k[1] == step]:
                del self._arrived[key]

    def close_session(self, session: str) -> None:
        """Drops all transfers of a session."""
        with self._condition:
            for key in [k for k in self._arrived if k[0] == session]:
                del self._arrived[key]


class TaskRuntime:
    """One task: its name, state and plans.

    Args:
      task: full task name.
      device_counts: by device type, the number of this process's devices that the task offers; see
        `headwater.graph.runtime.devices.offered_devices`.
      resources: the task's state; by default new and empty.

    Attributes:
      on_release: callbacks, called with the handle of each dropped session.
      steps: number of times that a plan was run.
    """

    def __init__(
        self, task: str = LOCAL_TASK, device_counts: Mapping[str, int] | None = None, resources: Resources | None = None
    ) -> None:
        keep_freed_memory()
        self.task = task
        self._device_counts = dict(device_counts or {})
        self.resources: Resources = resources or Resources()
        self.rendezvous: Rendezvous = Rendezvous()
        self._lock = threading.Lock()
        self._isolated: dict[str, Resources] = {}
        self._plans: dict[str, dict[int, CompiledPlan]] = {}
        self._owners: dict[str, Claim] = {}
        self._places = ClaimedPlaces()
        self._steps: dict[Step, None] = {}  # ordered, so that simulated histories are reproducible
        self.on_release: list[Callable[[str], None]] = []
        self.steps: int = 0

    def devices(self) -> list[Device]:
        """Returns the task's devices with full names."""
        task = parse_device(self.task)
        found: list[Device] = []
        for name in offered_devices(self._device_counts):
            kind, _, index = name.partition(":")
            found.append(task._replace(device_type=kind, device_index=int(index)))
        return found

    def device_mapping(self) -> list[str]:
        """Returns a line for each of its GPUs: full name and description."""
        named = {device.name(): f"{device.device_type}:{device.device_index}" for device in self.devices()}
        return [f"{name} -> {text}" for name, short in named.items() if (text := describe(short))]

    def add_plan(
        self,
        session: str,
        number: int,
        plan: TaskPlan,
        owner: Claim = NO_TASK,
        *,
        address: str = "",
        connected: Callable[[int], bool] = lambda generation: True,
        prevails: bool = False,
    ) -> CompiledPlan:
        """Compiles ``plan`` and keeps it as ``number`` of ``session``.

        Args:
          session: handle of the session.
          number: number of the plan in the session.
          owner: the claim of the task that is the master of the session. If this claim prevails over an earlier claim
            to the same place (see `headwater.cluster.claims`), the earlier claimant's sessions are dropped and its
            later plans are refused. So an old incarnation of the master's task, for example on the other side of a
            network partition, cannot change state.
          address: the place's address in the cluster; empty if unknown.
          connected: returns whether a generation of that task is connected.
          prevails: whether to skip the check, because this claim is known to prevail.

        Raises:
          FailedPreconditionError: another claim prevails, or has prevailed.
        """
        # Compile before acquiring the lock, because compiling takes long.
        compiled = CompiledPlan(plan, self._resources_of(session, plan), owner.task, number)
        task = owner.task
        with self._lock:
            if task and prevails:
                self._places.assign(owner)
            refused = (
                task
                and not prevails
                and self._places.claim(owner, connected=lambda holder: connected(holder.generation), address=address)
            )
            if refused:
                _log.warning("%s refuses %s: %s", self.task, owner, refused)
                raise self._refusal_error(owner, refused)
            stale = [
                its
                for its, was in self._owners.items()
                if task and was.task == task and was.generation != owner.generation
            ]
            self._owners[session] = owner
            self._plans.setdefault(session, {})[number] = compiled
        for old in stale:
            self.release(old, f"{task} was restarted")
        return compiled

    def _resources_of(self, session: str, plan: TaskPlan) -> Resources:
        """Returns the state that ``plan`` uses: the task's, or the session's if isolated."""
        if not plan.isolated:
            return self.resources
        with self._lock:
            return self._isolated.setdefault(session, Resources())

    def refusal(self, task: Claim, *, address: str, connected: Callable[[int], bool]) -> str:
        """Returns the reason why a task's claim to its place is refused; empty if it is not refused. See `add_plan` for
        the arguments."""
        with self._lock:
            return self._places.refusal(task, connected=lambda holder: connected(holder.generation), address=address)

    def _refusal_error(self, owner: Claim, reason: str) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self.task} refuses generation {owner.generation:x} of {owner.task}: {reason}. End this process; if it "
            "shall be part of the cluster, start it again with the present cluster spec"
        )

    def plan(self, session: str, number: int) -> CompiledPlan:
        """Returns an added plan; AbortedError if the session is unknown here (or has ended)."""
        try:
            return self._plans[session][number]
        except KeyError:
            raise AbortedError(
                f"{self.task} does not know plan {number} of session {session}: it was restarted or reset"
            ) from None

    def find_plan(self, session: str, number: int) -> CompiledPlan | None:
        """Returns an added plan, or None if it is unknown here (or its session has ended)."""
        plans = self._plans.get(session)
        return None if plans is None else plans.get(number)

    def has_session(self, session: str) -> bool:
        """Returns whether a session has plans here."""
        return session in self._plans

    def owner(self, session: str) -> str:
        """Returns the full name of the task of the master of ``session``."""
        return self._owners.get(session, NO_TASK).task

    def sessions(self) -> dict[str, tuple[Claim, dict[int, TaskPlan]]]:
        """Returns the non-isolated sessions of masters on other tasks, each with its owner and its plans by number."""
        with self._lock:
            return {
                session: (owner, {number: compiled.plan for number, compiled in self._plans[session].items()})
                for session, owner in self._owners.items()
                if owner.task and session not in self._isolated
            }

    def release(self, session: str, reason: str = "the session was closed") -> None:
        """Drops a session's plans and ends its steps.

        A committed step gets `COMMITTED_S` to complete first, because it is part of an update on several tasks, and
        other tasks may have applied their parts. If it does not complete in this time, it waits for a task that has not
        committed. In this case no task has applied its part, so the step can be cancelled.
        """
        with self._lock:
            # Remove the plans first, so that no new step of the session can start: `execute` looks for the session
            # after it has registered a step.
            self._plans.pop(session, None)
            steps = [step for step in list(self._steps) if step.session == session]
        committed = [step for step in steps if not step.withdraw(reason)]
        for step in committed:
            self._wait_for_end(step)
            step.cancel(reason)
        with self._lock:
            self._owners.pop(session, None)
            isolated = self._isolated.pop(session, None)
        # Without the lock of this object, because the callbacks acquire locks of their own.
        for forget in self.on_release:
            forget(session)
        self.rendezvous.close_session(session)
        self.resources.end_session(session, reason)
        if isolated is not None:
            isolated.clear()

    def _wait_for_end(self, step: Step) -> None:
        ended = threading.Event()
        step.at_end(ended.set)
        if step in self._steps:
            ended.wait(COMMITTED_S)

    def has_served(self, generation: int) -> bool:
        """Returns whether the master with this generation has, or had, plans here."""
        with self._lock:
            return self._places.holds_place(generation)

    def lose(self, generation: int, reason: str) -> int:
        """Handles the loss of the last connection to the master with this generation.

        The master may reconnect, so its sessions stay. Resources in which other workers wait for the master are
        notified. Returns the number of the master's sessions.
        """
        with self._lock:
            sessions = [session for session, its in self._owners.items() if its.generation == generation]
        for session in sessions:
            # Notify the resources, but do not end the session: if only the connection was lost, the master reconnects
            # and resumes its steps.
            self._isolated.get(session, self.resources).notify_session_ended(session, reason)
        return len(sessions)

    def reset(self, containers: list[str]) -> None:
        """Discards the state in ``containers`` (all if empty) and ends all sessions."""
        for session in list(self._plans):
            self.release(session, f"{self.task} was reset")
        self.resources.clear(containers)

    def execute(
        self,
        compiled: CompiledPlan,
        feeds: Sequence[AnyArray],
        step: Step,
        *,
        wait: bool = True,
        answer: Callable[[list[Any]], None] | None = None,
        stopped: Stopped | None = None,
    ) -> list[AnyArray]:
        """Runs a plan as a step that `cancel` and `release` can end, or resumes a step that was ``stopped`` in an
        earlier incarnation of the task; see `CompiledPlan.execute` and `CompiledPlan.resume`."""
        self._steps[step] = None
        self.steps += 1
        try:
            # If the session is missing, `release` ran before the step was registered and could not end the step.
            if step.session not in self._plans:
                raise CancelledError("Session has been closed.")
            if stopped is not None:
                return compiled.resume(step, stopped)
            return compiled.execute(feeds, step, wait=wait, answer=answer)
        finally:
            self._steps.pop(step, None)
            if step.ends:
                step.call_end_callbacks()

    def cancel(self, session: str, number: int, reason: str) -> None:
        """Cancels a step, if it is running."""
        for step in list(self._steps):
            if step.session == session and step.number == number:
                step.cancel(reason)

    def cancel_all(self, reason: str) -> None:
        """Cancels all running steps."""
        for step in list(self._steps):
            step.cancel(reason)

    def waits(self) -> list[tuple[str, float]]:
        """Returns descriptions of the waits of steps, and when they started (`time.monotonic`)."""
        found = [step.waits_for for step in list(self._steps)]
        return [wait for wait in found if wait is not None]

    def session_count(self) -> int:
        """Returns the number of sessions that have plans here."""
        return len(self._plans)
