"""The data plane of a task: runs its part of steps for masters in other processes."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from headwater.cluster.pauses import pause
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.kinds import GIVE_UP, RESUME, RESUMED, RUN, TAKEN, TENSORS, TRANSFER
from headwater.cluster.telemetry.step_stats import StepTrace
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.waiting import Patience
from headwater.errors import CancelledError, DeadlineExceededError, InvalidArgumentError, OpError, UnavailableError
from headwater.graph.master.protocol import WANTS_VALUES
from headwater.graph.passes.plan import Receive, TaskPlan
from headwater.graph.resources.example_ledger import ExampleLedger
from headwater.graph.runtime.executor import CompiledPlan
from headwater.graph.runtime.step import Stopped
from headwater.graph.runtime.task import TaskRuntime
from headwater.graph.server.served_step import DepositedStep, Push, Secured, ServedStep

if TYPE_CHECKING:
    from headwater.graph.server.replicas.changes import Changes

_log = logging.getLogger("headwater")

_POLL_INTERVAL_S = 0.005
# Limit for the threads of suspended steps to stop, in seconds.
_SUSPEND_TIMEOUT_S = 5.0
#: Permitted element types of the headers of RUN and RESUME; see `headwater.graph.master.protocol`.
_REQUESTS = frozenset(
    (str, int, int, seconds, bool, bool, *more) for seconds in (float, int, type(None)) for more in ((), (int,))
)
_REQUEST = 6


def _do_nothing() -> None:
    pass


def _wait_while(condition: Callable[[], bool], seconds: float) -> bool:
    """Waits at most ``seconds`` until ``condition`` is false; returns whether it became false in time."""
    give_up_at = time.monotonic() + seconds
    while condition():
        if time.monotonic() >= give_up_at:
            return False
        pause(_POLL_INTERVAL_S)
    return True


class StepService:
    """Serves channels, each in its own thread, one step after the other.

    A resumable step is registered under its session and number from its start until its master has received the answer.
    The service learns of the receipt when the master sends the next step on the channel. Until then, a master that has
    lost the channel can resume the step.

    Args:
      runtime: the state and plans of the task.
      push: sends a transfer to another task; see `headwater.graph.master.peers.ClusterPeers.push`.
      watchdog: is notified of training steps.
      patience_s: how long a step waits for a master that has lost its channel, in seconds; by default 1.5 times as long
        as a master tries to reconnect.
      changes: replicates the changes that steps make; None if the task is not replicated.
      secured: on a replicated task, waits until the backup has all changes.

    Attributes:
      steps: number of steps run.
      watchdog: is notified of training steps.
      is_inconsistent: whether a suspended step has changed state and cannot resume, so that the state is inconsistent.
    """

    def __init__(
        self,
        runtime: TaskRuntime,
        push: Push,
        watchdog: ProgressWatchdog | None = None,
        patience_s: float | None = None,
        changes: Changes | None = None,
        secured: Secured | None = None,
    ) -> None:
        self._runtime = runtime
        self._changes = changes
        self._secured = secured
        self._push = push
        self.steps: int = 0
        self._unanswered: set[ServedStep] = set()
        self.watchdog: ProgressWatchdog = watchdog or ProgressWatchdog(runtime.has_session)
        # Longer than a master's own deadline for reconnecting, so that the task never abandons a step whose master
        # still tries to reconnect.
        self._patience_s = 1.5 * Patience.from_environment().deadline_s if patience_s is None else patience_s
        self._lock = threading.Lock()
        self._registered: dict[tuple[str, int], ServedStep] = {}
        self._resumed_numbers: dict[str, set[int]] = {}
        #: Registered steps that have lost their channel, in the order of the loss, with the time until which they are
        #: kept.
        self._keep_until: dict[tuple[str, int], float] = {}
        self._is_suspending = self._frozen = False
        self.is_inconsistent: bool = False
        self._stopped = threading.Event()
        runtime.on_release.append(self._forget_session)

    def serve(
        self, channel: Channel, frame: Frame, other: Callable[[Frame], bool], on_lost: Callable[[], None] = _do_nothing
    ) -> None:
        """Answers frames until the peer closes the channel.

        Args:
          channel: the channel; the caller closes it.
          frame: the first frame, already received.
          other: handles frames of other kinds; returns whether it has handled the given frame.
          on_lost: called, perhaps more than once, when the channel is lost and a step waits for its master to
            reconnect.

        Raises:
          UnavailableError, CancelledError: the channel has ended.
          InvalidArgumentError: a frame cannot be understood.
        """
        trained: dict[str, str] = {}
        last: ServedStep | None = None

        def close_training() -> None:
            with contextlib.suppress(KeyError):  # two threads may notice the loss of the channel at once
                while trained:
                    session, worker = trained.popitem()
                    self.watchdog.record_close(worker, session)

        def handle_loss() -> None:
            close_training()
            on_lost()

        try:
            while True:
                kind = frame.kind
                if kind in (RUN, RESUME):
                    if last is not None:  # the master has the answer: otherwise it would not send the next step
                        if self._changes is not None:
                            self._changes.forget_step(last.session, last.number)
                        self._registered.pop((last.session, last.number), None)
                        if self._keep_until:
                            self._keep_until.pop((last.session, last.number), None)
                        last = None  # drop its results, too: unreferenced buffers can be updated in place
                    last = self._run(channel, frame, trained, handle_loss)
                elif kind == TRANSFER:
                    self._handle_transfer(channel, frame)
                # TENSORS and GIVE_UP may arrive late, after their step was aborted: ignore them.
                elif kind not in (TENSORS, GIVE_UP) and not other(frame):
                    raise bad_header(frame, channel.peer)
                del frame  # releases its tensors, which may occupy shared memory that the peer waits for
                frame = channel.recv()
        finally:
            if last is not None and last.channel is channel:
                self._keep_for_resume(last)
            close_training()

    def answer_all(self, seconds: float, return_s: float = 0.0) -> bool:
        """Waits until every running step has been answered, except steps that are waiting for an event.

        Called before the process ends. For example, this task's program may end when a queue gets its last token from a
        worker's step; the worker still needs the answer to that step. If the worker has lost its channel, it reconnects
        to ask for the answer. An answer is sent only when other tasks have acknowledged the step's transfers, see
        `headwater.graph.master.protocol`.

        Args:
          seconds: limit for running steps.
          return_s: limit for tasks to acknowledge transfers and for masters to reconnect, in seconds. Masters that have
            been disconnected for longer than this are not waited for.

        Returns:
          Whether all these steps were answered in time.
        """
        if not _wait_while(lambda: any(step.waits_for is None for step in list(self._unanswered)), seconds):
            return False
        with self._lock:
            long_ago = time.monotonic() + self._patience_s - return_s
            disconnected = {key for key, until in self._keep_until.items() if until < long_ago}
        sending = [step for step in list(self._unanswered) if step.unconfirmed]

        def has_undelivered() -> bool:
            if any(not step.is_delivered() for key, step in list(self._registered.items()) if key not in disconnected):
                return True
            return any(step in self._unanswered and (step.unconfirmed or not step.waits_for) for step in sending)

        return _wait_while(has_undelivered, return_s)

    def _handle_transfer(self, channel: Channel, frame: Frame) -> None:
        match frame.header:
            case (str(session), int(step), int(transfer)):
                if self._changes is not None and self._secured is not None:
                    self._changes.accept_transfer(session, step, transfer, frame.tensors)
                    self._secured(lambda _: require_connected(channel))
                elif self._runtime.owner(session):  # otherwise the session is over, and no step would take the transfer
                    self._runtime.rendezvous.put(session, step, transfer, frame.tensors)
                    # Check after `put`. If the state was deposited before `put`, it lacks this transfer, so the
                    # transfer must not be acknowledged: its sender repeats it to the next incarnation.
                    self.require_not_frozen()
                channel.send(Frame(TAKEN, frame.header, ()))
            case _:
                raise bad_header(frame, channel.peer)

    # Drain: the task's next incarnation resumes its steps -------------------------------------------------------------

    def suspend(self, seconds: float) -> Sequence[ServedStep]:
        """Starts no more steps, waits for running steps to end, and suspends the remaining steps.

        A step that arrives during or after this call gets no answer; when the task stops, its master loses the channel
        and sends the step to the next incarnation.

        Running steps get ``seconds`` to end, less if all of them wait for other tasks. A suspended step that has
        changed nothing is treated as never received; a suspended step that was waiting resumes in the next incarnation;
        any other suspended step fails.

        Args:
          seconds: limit for running steps to end.

        Returns:
          The steps that still run.
        """
        self._is_suspending = True
        _wait_while(lambda: not all(step.is_stalled() for step in self._running()), seconds)
        for step in self._running():
            step.interrupt_waits(f"{self._runtime.task} ends")
        _wait_while(lambda: bool(self._running()), _SUSPEND_TIMEOUT_S)
        return self._running()

    def _running(self) -> list[ServedStep]:
        found = self._unanswered.union(step for step in list(self._registered.values()) if not step.over)
        return sorted(found, key=lambda step: (step.number, step.session))

    def freeze(self) -> Sequence[DepositedStep]:
        """Freezes the state before it is deposited.

        After this call, `require_not_frozen` prevents the acknowledgement of changes, because the deposited state may
        lack them.

        Returns:
          The state of steps with answers that masters may ask for again, and of steps that are to resume.
        """
        self._frozen = True
        return [step.to_deposit() for step in list(self._registered.values()) if step.over]

    def require_not_frozen(self) -> None:
        """Checks that the state has not been deposited. To be called between a change and its acknowledgement.

        Raises:
          UnavailableError: the state was deposited and may lack the change. Before raising this error, the method
            blocks until the task stops, so that the master repeats the request to the next incarnation rather than to
            this one.
        """
        if self._frozen:
            self._wait_for_stop()

    def _wait_for_stop(self) -> NoReturn:
        self._stopped.wait()
        raise UnavailableError(f"{self._runtime.task} has ended")

    def restore(self, left: Sequence[DepositedStep]) -> None:
        """Registers the steps that the previous incarnation has deposited, and resumes the steps that had not ended."""
        until = time.monotonic() + self._patience_s
        for known in left:
            step = ServedStep.of_previous_incarnation(
                known, self._runtime.owner(known.session), self._runtime, self._push
            )
            key = step.session, step.number
            self._registered[key] = step
            if known.resume_point is None:
                self._keep_until[key] = until
            else:
                step.patience_s = self._patience_s
                self._start_without_master(step, known.resume_point.plan, known.resume_point.stopped)

    def stop(self) -> None:
        """Cancels steps that wait for a master to reconnect, as the task stops."""
        self._stopped.set()
        self._patience_s = 0.0
        for step in list(self._registered.values()):
            step.patience_s = 0.0
            step.cancel(f"{self._runtime.task} stops")

    # Resumable steps --------------------------------------------------------------------------------------------------

    def resumable_count(self) -> int:
        """Returns the number of steps that their masters may resume."""
        return len(self._registered)

    def _register(self, step: ServedStep, again: bool) -> ServedStep | None:
        """Registers a step.

        Args:
          again: whether the master resumes the step on another channel.

        Returns:
          None if the step is new; else the step already registered under its number; or ``step`` itself if its frame
          was read late from a lost channel: the master has since resumed the step on another channel, so this frame
          must not start it a second time.
        """
        key = step.session, step.number
        with self._lock:
            # The number is recorded until the session ends, because a frame in the buffer of a lost channel may be read
            # at any later time, even after the end of the step.
            resumed = step.number in self._resumed_numbers.get(step.session, ())
            if resumed and not (again and key in self._registered):
                return step
            if again:
                self._resumed_numbers.setdefault(step.session, set()).add(step.number)
            found = self._registered.setdefault(key, step)
        return None if found is step else found

    def _keep_for_resume(self, step: ServedStep) -> None:
        """Keeps a step after its channel has ended: the master may not have received the answer."""
        now, key = time.monotonic(), (step.session, step.number)
        with self._lock:
            if self._registered.get(key) is not step:
                return  # the session is over, so no master will resume the step
            self._keep_until.pop(key, None)
            self._keep_until[key] = now + self._patience_s
            # Each loss of a channel also removes expired steps, so no timer is needed.
            for old in [old for old, until in self._keep_until.items() if until < now]:
                self._registered.pop(old, None)
                del self._keep_until[old]

    def _forget(self, step: ServedStep) -> None:
        """Treats a step as never received: the master runs the step again, on the next incarnation."""
        with self._lock:
            if self._registered.get((step.session, step.number)) is step:
                del self._registered[step.session, step.number]

    def _forget_session(self, session: str) -> None:
        for step in list(self._registered.values()):
            if step.session == session:
                step.cancel("Session has been closed.")  # it may still wait for a task that has ended
        with self._lock:
            self._resumed_numbers.pop(session, None)
            for known in (self._registered, self._keep_until):
                for key in [key for key in known if key[0] == session]:
                    del known[key]

    def resume_step(self, session: str, number: int, plan: int) -> None:
        """Resumes a step of the previous primary without its master. Does nothing if the master has reconnected
        already, or if the step needs input from the master: then only the master can resume it."""
        runtime = self._runtime
        compiled, master = runtime.find_plan(session, plan), runtime.owner(session)
        # Only the master has the feeds and its transfers, so this step cannot be completed without it.
        if compiled is None or _needs_master(compiled.plan, master):
            return
        step = ServedStep.without_channel(number, session, master, runtime, self._push, self._secured)
        step.patience_s = self._patience_s
        if self._register(step, again=True) is None:
            self._start_without_master(step, plan)

    def _start_without_master(self, step: ServedStep, plan: int, stopped: Stopped | None = None) -> None:
        """Runs a step without its master, from its start or from where it was ``stopped``."""
        name = f"resumed-step-{step.number}"
        threading.Thread(target=self._run_without_master, args=(step, plan, stopped), name=name, daemon=True).start()

    def _run_without_master(self, step: ServedStep, plan: int, stopped: Stopped | None) -> None:
        if self._changes is not None:
            step.at_end(functools.partial(self._changes.end_step, step.session, step.number))
        try:
            self._run_step(step.channel, Frame(RUN), step, plan, None, None, {}, stopped)
        finally:
            step.confirm_rest()
            step.end()
        self._keep_for_resume(step)

    # One step ---------------------------------------------------------------------------------------------------------

    def _run(
        self, channel: Channel, frame: Frame, trained: dict[str, str], on_lost: Callable[[], None]
    ) -> ServedStep | None:
        """Runs a step; returns the step if its master may ask for the answer again.

        Args:
          channel: the channel to the master.
          frame: RUN or RESUME.
          trained: maps sessions that have run training steps on this channel to their workers.
          on_lost: called when the step starts to wait for its master.
        """
        session, plan, number, seconds, traced, resumes, received, ahead = _parse_run_header(channel, frame)
        deadline = None if seconds is None else time.monotonic() + seconds
        runtime = self._runtime
        step = ServedStep(
            number, session, deadline, channel, runtime.owner(session), runtime, self._push, self._secured
        )
        again = received is not None
        compiled = runtime.find_plan(session, plan)
        # Only steps that change something are resumed. After the loss of a channel, the master runs any other step
        # again from the start, so no frame of it has to be kept.
        if resumes and (compiled is None or compiled.changes):
            step.resumes, step.patience_s, step.on_lost = True, self._patience_s, on_lost
            known = self._register(step, again)
            if known is step:
                return None
            if known is not None:
                known.attach(channel, received or 0, on_lost)
                return known
        if again:
            with contextlib.suppress(UnavailableError):  # the step notices the loss by itself
                channel.send(Frame(RESUMED, (number, 0, 0), ()))
        if traced:
            step.trace = StepTrace()
        if self._changes is not None:
            step.at_end(functools.partial(self._changes.end_step, session, number))
        self._unanswered.add(step)
        # Checked after registration in `_unanswered`: a step that was registered before `suspend` is seen there, and a
        # later one is stopped here.
        if self._is_suspending:
            self._forget(step)
            self._unanswered.discard(step)
            self._wait_for_stop()
        try:
            self._run_step(channel, frame, step, plan, compiled, ahead, trained)
        finally:
            self._unanswered.discard(step)
            if step.unconfirmed:
                step.confirm_rest()
            step.end()
        if step.resumes:
            return step
        if self._changes is not None:
            self._changes.forget_step(session, number)
        return None

    def _run_step(
        self,
        channel: Channel,
        frame: Frame,
        step: ServedStep,
        plan: int,
        compiled: CompiledPlan | None,
        ahead: int | None,
        trained: dict[str, str],
        stopped: Stopped | None = None,
    ) -> None:
        session, traced = step.session, step.trace is not None
        try:
            if compiled is None:
                compiled = self._runtime.plan(session, plan)
            feeds, count = frame.tensors, len(compiled.plan.feeds)
            if ahead is not None and compiled.first_reads is not None:
                step.read_ahead(compiled.first_reads, ahead, feeds[count:])
                feeds = feeds[:count]
            if len(feeds) != count and stopped is None:
                raise InvalidArgumentError(f"plan {plan} needs {count} feeds, but {len(feeds)} were received")
            # The answer must wait for the last update in three cases: it contains a trace, which has the times of the
            # update; it contains values for the next run; or a backup has to confirm the update first.
            early = not traced and not step.gives_values and self._secured is None
            answer = step.answer_early if early else None
            if stopped is not None:
                # The step reserved its range of examples in the previous incarnation. Renew the reservation; otherwise
                # the ledger would assign the range to another worker after a minute.
                for ledger in self._runtime.resources.of_kind(ExampleLedger).values():
                    ledger.resume_step(step)
                results = self._runtime.execute(compiled, (), step, stopped=stopped)
            elif compiled.trains:
                worker = trained.get(session) or self._register_training(channel, session, trained)
                results = self._train(compiled, feeds, step, answer, plan, worker)
            else:
                results = self._runtime.execute(compiled, feeds, step, wait=False, answer=answer)
            if step.trace is not None:
                results.append(step.trace.encode())
            step.wait_until_sent()
            if step.unconfirmed:
                step.confirm()
        except Exception as error:  # noqa: BLE001 - any error must be reported to the master
            self._handle_failure(step, error, plan, compiled)
            return
        self.steps += 1
        if not step.answered:
            step.answer(results)

    def _register_training(self, channel: Channel, session: str, trained: dict[str, str]) -> str:
        """Registers a session's first training step on a channel; returns the worker's name."""
        worker = trained[session] = channel.peer.partition(" (")[0]
        self.watchdog.record_open(worker, session)
        return worker

    def _train(
        self, compiled: CompiledPlan, feeds: Sequence[Any], step: ServedStep, answer: Any, plan: int, worker: str
    ) -> list[Any]:
        """Runs a plan as a worker's training step."""
        done = False
        self.watchdog.record_start(worker, step.session, step)
        try:
            results = self._runtime.execute(compiled, feeds, step, wait=False, answer=answer)
            done = True
            return results
        finally:
            self.watchdog.record_end(worker, step.session, plan, step, done=done)

    def _handle_failure(self, step: ServedStep, error: Exception, plan: int, compiled: CompiledPlan | None) -> None:
        runtime = self._runtime
        if isinstance(error, CancelledError) and not step.answered and (step.suspended or self._stopped.is_set()):
            if step.suspended and compiled is not None and step.stopped is not None:
                if compiled.changed_nothing(step.stopped):
                    # The step has changed nothing and the master has no answer, so the next incarnation can run the
                    # step from its start.
                    step.end_suspended()
                    self._forget(step)
                    return
                # If another task lacks a transfer of this step, the step cannot resume: transfers that were sent are
                # not part of the deposited state, so the next incarnation could not send them again.
                if step.resumes and not step.may_lack_transfers and compiled.can_resume(step.stopped):
                    step.resume_plan = plan
                    return
            step.end_suspended()
            self.is_inconsistent = self.is_inconsistent or step.suspended
            error = UnavailableError(f"{runtime.task} has ended during step {step.number}")
        runtime.rendezvous.forget(step.session, step.number)
        if step.answered or not isinstance(error, OpError):
            _log.exception("%s: step %s of session %s failed", runtime.task, step.number, step.session)
        step.wait_until_sent()
        if step.answered:
            # The update failed after the master had received its acknowledgement (`answer_early`). Ending the session
            # is the only way left to report the failure.
            runtime.release(step.session, f"step {step.number} failed after it had been answered: {error}")
        else:
            # A missed deadline does not depend on a replica's state, so the error is valid even if this replica is no
            # longer the primary.
            if self._changes is not None and not isinstance(error, DeadlineExceededError):
                self._changes.send_empty_change()
            step.fail(error)


def _needs_master(plan: TaskPlan, master: str) -> bool:
    """Returns whether a step of the plan needs input from its master."""
    return bool(plan.feeds) or any(isinstance(item, Receive) and item.source == master for item in plan.instructions)


def _parse_run_header(
    channel: Channel, frame: Frame
) -> tuple[str, int, int, float | None, bool, bool, int | None, int | None]:
    """Parses a RUN or RESUME frame: session, plan, step, seconds left, whether to trace it, whether it may resume, how
    many of its transfers the master has received (None for RUN), and the version that the master has read ahead (None
    if it does not read ahead)."""
    header = frame.header
    # This runs for each step, and a match statement would take five times as long as this lookup.
    if tuple(map(type, header)) not in _REQUESTS:
        raise bad_header(frame, channel.peer)
    if len(header) == _REQUEST:
        if frame.kind == RUN:
            return *header, None, None
    else:
        *request, last = header
        if frame.kind == RUN and last >= WANTS_VALUES:
            return *request, None, last
        if frame.kind == RESUME and header[5]:
            return *request, last, None
    raise bad_header(frame, channel.peer)


def require_connected(channel: Channel) -> None:
    """Raises UnavailableError if the peer of ``channel`` is disconnected."""
    if channel.peer_gone():
        raise UnavailableError(f"the connection to {channel.peer} is lost")
