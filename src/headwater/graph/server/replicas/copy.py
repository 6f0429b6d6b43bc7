"""One replica of a graph ``ps`` task: its variables, plans, and steps in progress.

Masters do not know which process has the primary. They open a channel to either replica with ``OPEN_COPY``, and the
primary answers with the generation of the *task*, which both replicas share. After a failover, a master therefore finds
the same generation of the task, and resumes its step as after any lost connection. The new primary has the recorded
outcomes of the changes that the step made on the previous primary (`headwater.graph.server.replicas.changes`), so it
makes only the remaining changes.

The frames of masters::

    OPEN_COPY    (task,)                                   answered by DONE (whether it is the primary, the task's
                                                           generation, steps run, devices); on a backup by DONE (False,
                                                           0, 0, processes), see
                                                           `headwater.graph.server.replicas.processes`; steps follow,
                                                           see `headwater.graph.master.protocol`, and
    COPY_PLAN    (session, plan, owner's claim)            the plan, as bytes; answered by DONE ()
    COPY_RELEASE (session)                                 answered by DONE ()
    COPY_RESET   (containers)                              answered by DONE ()
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.task.waiting import CHECK_INTERVAL_S
from headwater.cluster.telemetry.snapshot import GroupProgress
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import new_generation
from headwater.cluster.variables import REPLICAS
from headwater.errors import FailedPreconditionError, OpError, UnavailableError
from headwater.graph.passes.plan import decode_plan
from headwater.graph.resources.training_note import Note, training_note_of
from headwater.graph.runtime.task import TaskRuntime
from headwater.graph.server.replicas.changes import Changes
from headwater.graph.server.replicas.resources import CopiedResources
from headwater.graph.server.served_step import Push
from headwater.graph.server.steps import StepService, require_connected
from headwater.state.aims import Placement
from headwater.state.copy import Replica
from headwater.state.feed import Feed, FeedChannel
from headwater.state.sites import Site
from headwater.state.views import Copy, View

_log = logging.getLogger("headwater")

#: Name under which the witness knows the variables of graphs; no set of parameters can have this name.
SET = "+graph"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ProcessAccess:
    """A replica's access to its process.

    Attributes:
      push: sends a transfer to another task; see `headwater.graph.master.peers.ClusterPeers.push`.
      watchdog: is notified of training steps.
      address: returns a task's address in the cluster; empty if it has none.
      connected: returns whether a generation of a task is connected.
      processes: returns the processes of job ``ps``, for masters; see `GraphProcesses.words`.
    """

    push: Push
    watchdog: ProgressWatchdog
    address: Callable[[str], str]
    connected: Callable[[str, int], bool]
    processes: Callable[[], Sequence[object]] = tuple


class _Contents:
    """A replica's contents; replaced when a new snapshot is installed."""

    def __init__(self, copy: GraphCopy, generation: int, around: ProcessAccess) -> None:
        task = copy.served.device_prefix
        self._copy = copy
        self.generation: int = generation
        resources = CopiedResources(str(copy.served))
        self.runtime: TaskRuntime = TaskRuntime(task, resources=resources)
        self.changes: Changes = Changes(self.runtime, resources, lambda: copy.feed_of(self))
        self.plans: dict[tuple[str, int], tuple[bytes, Claim]] = {}
        self.channels: dict[Channel, None] = {}  # ordered, so that simulated histories are reproducible
        self.met: set[int] = set()  # generations of masters served here
        self.note: Note = self._create_note()
        self.steps: StepService = StepService(
            self.runtime,
            around.push,
            around.watchdog,
            changes=self.changes,
            secured=lambda waits: copy.secure(self, waits),
        )
        self.runtime.on_release.append(self._handle_release)

    # Other changes ----------------------------------------------------------------------------------------------------

    def _send_change(self, kind: int, header: Sequence[object], tensors: Sequence[Any] = ()) -> None:
        """Sends a change to the backup. The caller holds the lock of the resources."""
        feed = self.changes.feed
        if feed is not None:
            feed.send(kind, header, tensors)

    def _create_note(self) -> Note:
        note = training_note_of(self.runtime.resources)
        note.on_change = self._handle_seal_change
        return note

    def _handle_seal_change(self) -> None:
        with self.runtime.resources.lock:
            self._send_change(*self._seal())

    def _seal(self) -> tuple[int, tuple[bytes, str, bool], tuple[()]]:
        """Returns a frame that sends the note to the backup."""
        return kinds.SEAL, (self.note.text, self.note.together, self.note.prepares), ()

    def _handle_release(self, session: str) -> None:
        with self.runtime.resources.lock:
            for key in [key for key in self.plans if key[0] == session]:
                del self.plans[key]
            self.changes.forget(session)
            self._send_change(kinds.COPY_RELEASE, (session,))

    def add_plan(self, session: str, number: int, data: bytes, owner: Claim, around: ProcessAccess | None) -> None:
        """Adds a plan. ``around`` is None on a backup: the primary has checked the owner's claim."""
        plan = decode_plan(data)
        if plan.isolated:
            raise FailedPreconditionError(
                f"isolate_session_state cannot be combined with {REPLICAS}=2, which replicates the variables of "
                f"{self._copy.served}: remove one of the two"
            )
        if around is None:
            self.runtime.add_plan(session, number, plan, owner, prevails=True)
        else:
            name = str(TaskName.parse(owner.task)) if owner.task else ""
            self.runtime.add_plan(
                session,
                number,
                plan,
                owner,
                address=around.address(name),
                connected=lambda generation: around.connected(name, generation),
            )
        with self.runtime.resources.lock:
            self.plans[session, number] = data, owner
            self._send_change(*_plan(session, number, data, owner))

    def reset(self, containers: Sequence[str]) -> None:
        """Discards the contents of ``containers`` (all if empty), and all sessions."""
        # Under the lock, so that the backup gets the reset at the same place in the order of changes.
        with self.runtime.resources.lock:
            self.runtime.reset(list(containers))
            self.note = self._create_note()
            self._send_change(kinds.COPY_RESET, (list(containers),))

    def snapshot_frames(self) -> list[tuple[int, Sequence[object], Sequence[Any]]]:
        """Returns a snapshot of all contents, as frames. The caller holds the lock of the resources."""
        plans = [_plan(session, number, *entry) for (session, number), entry in self.plans.items()]
        return [(kinds.STATE, (self.generation,), ()), *plans, *self.changes.snapshot_frames(), self._seal()]

    def end(self) -> None:
        """Closes the channels of masters, which then look for the new primary, and cancels all steps, which would
        otherwise wait until the time for their masters to reconnect has passed. Does not wait."""
        for channel in list(self.channels):
            channel.break_off(f"another copy of {self._copy.served} serves")
        # In a thread of its own: `cancel` needs a lock that a step may hold for long.
        threading.Thread(target=self.cancel, name="end-of-copy", daemon=True).start()

    def cancel(self) -> None:
        """Cancels all steps. Takes the lock of the resources: the conditions on which steps wait use this lock."""
        self.steps.stop()
        self.runtime.cancel_all(f"another copy of {self._copy.served} serves")


class GraphCopy(Replica):
    """One of the two replicas of a ``ps`` task.

    Args:
      served: the task.
      site: the location of the replica.
      around: the replica's access to its process.
      aims: returns the processes that should have the replicas; see `Replica.request_placement`.

    Attributes:
      served: the task.
    """

    def __init__(
        self, served: TaskName, *, site: Site, around: ProcessAccess, aims: Callable[[], Placement | None] | None = None
    ) -> None:
        self.served: TaskName = served
        self._around = around
        self._aims = aims
        # The contents before the last snapshot. The new contents often have equal plans, which can reuse the
        # executables of the old plans as long as these exist. So the old contents are kept until this replica is
        # promoted or gets another snapshot.
        self._before: _Contents | None = None
        super().__init__(SET, served.index, site=site, description=f"the state of {served}")

    def _reset(self) -> None:
        self._contents = _Contents(self, new_generation(), self._around)

    def _end(self) -> None:
        self._contents.end()

    # Service interface ------------------------------------------------------------------------------------------------

    @property
    def runtime(self) -> TaskRuntime:
        """The replica's state and plans."""
        return self._contents.runtime

    @property
    def serves(self) -> bool:
        """Whether this replica is the primary, as far as is known."""
        return self._serving

    def has_served_master(self, generation: int) -> bool:
        """Returns whether this replica has served the master with this generation as the primary. False for a master
        that has only asked which replica is the primary."""
        return generation in self._contents.met

    @property
    def steps(self) -> int:
        """Number of steps run."""
        return self._contents.steps.steps

    def group(self) -> GroupProgress:
        """Returns the status of the replicas."""
        updates = max((cell.updates for cell in self.runtime.resources.cells().values()), default=0)
        return self.add_status(GroupProgress(name=f"state of {self.served}", updates=updates))

    def close(self) -> None:
        super().close()
        self._contents.end()
        self._contents.cancel()

    # Masters ----------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, on_lost: Callable[[], None]) -> None:
        """Serves a master until the channel ends, if this replica is the primary; else answers that it is not.

        Raises:
          UnavailableError, CancelledError: the channel has ended.
          InvalidArgumentError: a frame cannot be understood.
        """
        with self._changed:
            # After a failover, masters often ask just before the promotion. A short wait here saves the master another
            # round of attempts over all replicas.
            self._changed.wait_for(lambda: self._serving or self._redirects_workers(), CHECK_INTERVAL_S)
            contents = self._contents
            serving = self._serving and not self._closed
            if serving:
                contents.channels[channel] = None
                contents.met.add(channel.peer_generation)
        if not serving:
            channel.send(Frame(kinds.DONE, (False, 0, 0, self._around.processes())))
            return
        try:
            devices = [device.name() for device in contents.runtime.devices()]
            channel.send(Frame(kinds.DONE, (True, contents.generation, contents.steps.steps, devices)))
            # Plans are sent before steps, on the same channels.
            first = channel.recv()
            while self._answer_other(contents, channel, first):
                first = channel.recv()
            contents.steps.serve(channel, first, lambda frame: self._answer_other(contents, channel, frame), on_lost)
        finally:
            contents.channels.pop(channel, None)

    def _answer_other(self, contents: _Contents, channel: Channel, frame: Frame) -> bool:
        """Answers a frame that belongs to no step; returns False for other frames."""
        try:
            match frame.kind, frame.header:
                case kinds.COPY_PLAN, (str(session), int(number), owner):
                    data = frame.tensors[0].tobytes()
                    contents.add_plan(session, number, data, _claim(owner, frame, channel.peer), self._around)
                case kinds.COPY_RELEASE, (str(session),):
                    contents.runtime.release(session)
                case kinds.COPY_RESET, ([*containers],):
                    contents.reset([str(container) for container in containers])
                case _:
                    return False
            self.secure(contents, lambda _: require_connected(channel))
        except UnavailableError:
            raise
        except OpError as error:
            # If this replica is no longer the primary, it may have failed only because it lacks newer state. So an
            # error, like an answer, is sent only after the backup has confirmed that this replica is still the primary.
            contents.changes.send_empty_change()
            self.secure(contents, lambda _: require_connected(channel))
            channel.send(error_frame(0, error, contents.runtime.task))
        else:
            channel.send(Frame(kinds.DONE, ()))
        return True

    def secure(self, contents: _Contents, waits: Callable[[str], None]) -> None:
        """Waits until the backup has all changes made so far; see `headwater.graph.server.served_step.Secured`."""
        feed = self._feed
        number = feed.last_number if feed is not None else 0
        self._await_backup(feed, number, lambda: self._contents is contents, waits)

    def feed_of(self, contents: _Contents) -> Feed | None:
        """Returns the feed for changes of ``contents``; None if this replica does not serve them."""
        return self._feed if self._serving and self._contents is contents else None

    # Backup and primary -----------------------------------------------------------------------------------------------

    def _apply(self, frame: Frame, channel: Channel) -> None:
        self._apply_frame(frame, channel.peer)

    def _apply_frame(self, frame: Frame, peer: str) -> None:
        contents = self._contents
        match frame.kind, frame.header:
            case kinds.STATE, (int(), int(generation)):
                contents.runtime.resources.clear()
                self._before = contents
                with self._changed:
                    self._contents = _Contents(self, generation, self._around)
            case kinds.COPY_PLAN, (int(), str(session), int(number), owner):
                contents.add_plan(session, number, frame.tensors[0].tobytes(), _claim(owner, frame, peer), None)
            case kinds.COPY_RELEASE, (int(), str(session)):
                contents.runtime.release(session)
            case kinds.COPY_RESET, (int(), [*containers]):
                contents.reset([str(container) for container in containers])
            case kinds.REPEAT, (int(), [*over], [*instruction]):
                contents.changes.repeat(over, instruction, frame.tensors)
            case kinds.REPLACE, (int(), [*over], instruction, [*variables], [*resources]):
                contents.changes.replace(over, instruction, variables, resources, frame.tensors)
            case kinds.PASSED, (int(), str(session), int(step), int(transfer)):
                contents.changes.accept_transfer(session, step, transfer, frame.tensors)
            case kinds.SEAL, (int(), bytes(text), str(together), bool(prepares)):
                contents.note.change(text, together, prepares=prepares)
            case _:
                raise bad_header(frame, peer)

    def _install_fed_state(self) -> None:
        self._before = None
        view = self._standing.view
        if view is not None and view.term > 1:
            _log.warning("%s serves %s now: %s", self._task, self._description, view)

    def _promote(self) -> None:
        super()._promote()
        contents = self._contents
        if self._serving:
            # These steps update several tasks, and the other tasks may have made their parts. Complete them here, even
            # if their master has ended: otherwise an update would be applied on some tasks only.
            for (session, step), plan in contents.changes.committed_steps():
                contents.steps.resume_step(session, step, plan)

    def _desired_placement(self, view: View) -> Placement:
        if self._aims is not None:
            self.requested_placement = self._aims()
        return super()._desired_placement(view)

    def _start_feed(self, channel: FeedChannel, other: Copy) -> Feed:
        contents = self._contents
        with contents.runtime.resources.lock:
            # The lock is held from the snapshot until the feed has started. So each change is either in the snapshot or
            # sent after it, never both or neither.
            feed = Feed(channel, other, contents.snapshot_frames())
            self._attach_feed(feed)
        return feed

    def _between_changes(self) -> AbstractContextManager[object]:
        return self._contents.runtime.resources.lock

    def _step_down(self) -> None:
        contents = self._contents
        with contents.runtime.resources.lock:
            frames = contents.snapshot_frames()
            self._stop_serving()
        contents.end()
        # This replica continues as a backup. Install its own snapshot as new contents: steps that still run on the old
        # contents then cannot change the new ones.
        for kind, header, tensors in frames:
            self._apply_frame(Frame(kind, (0, *header), tensors), self._task)


def _plan(session: str, number: int, data: bytes, owner: Claim) -> tuple[int, Sequence[object], Sequence[Any]]:
    return kinds.COPY_PLAN, (session, number, claim_words(owner)), [np.frombuffer(data, np.uint8)]


def claim_words(claim: Claim) -> tuple[object, ...]:
    """Encodes a claim for a frame's header."""
    return dataclasses.astuple(claim)


def _claim(words: object, frame: Frame, peer: str) -> Claim:
    match words:
        case (str(task), int(generation), float() | int() as started, str(address)):
            return Claim(task=task, generation=generation, started=started, address=address)
        case _:
            raise bad_header(frame, peer)
