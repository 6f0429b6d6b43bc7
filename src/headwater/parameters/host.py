"""The end that has the values: what runs on a ``ps``.

Each worker has a channel, served by a thread. A lock lets one thread at a time decide and update; waiting for others
gives it away. Who waits for what is decided by `headwater.consistency`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.cluster.claims import Claim
from headwater.cluster.claims import decide as decide_claims
from headwater.consistency import (
    Apply,
    Asynchronous,
    BoundedStaleness,
    Consistency,
    Decision,
    Drop,
    Event,
    Gave,
    Go,
    Joined,
    KOfN,
    Left,
    Restarted,
    State,
    Synchronous,
    Tick,
    Updated,
    decide,
    waiting_text,
)  # fmt: skip
from headwater.errors import AbortedError, FailedPreconditionError, InvalidArgumentError, OpError, UnavailableError
from headwater.parameters import protocol
from headwater.parameters.layout import Layout
from headwater.parameters.rounds import Round
from headwater.parameters.tickets import Tickets
from headwater.parameters.updater import Array, Updater
from headwater.task import kinds
from headwater.task.answers import bad_header, error_frame
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame
from headwater.transport.handshake import new_generation

_log = logging.getLogger("headwater")

_LOOK_S = 0.5
#: Between two WAIT frames, in seconds.
_SPEAK_S = 4.0


class HostedParameters:
    """One set of parameters on this task.

    Args:
      task: this task's name, for people.
      index: its number among the ``ps``. Number 0 hands out steps.
      layout: what every ``ps`` has.
      updater: this task's blocks.
      choice: how closely workers keep together.
      clock: seconds that only grow.
    """

    def __init__(
        self, task: str, index: int, layout: Layout, updater: Updater, choice: Consistency, *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._task = task
        self._layout = layout
        self._updater = updater
        self._clock = clock
        specs = [layout.variables[block.variable] for block in layout.blocks[index]]
        self._blocks = len(specs)
        self._optimized = sum(spec.optimized for spec in specs)
        self._tables = sum(spec.table for spec in specs)
        self._changed = threading.Condition()
        self._choice = choice
        # Whether a worker is too far ahead is for one task to say: two might have seen it join at different steps, and
        # each hold up another one.
        self._state = State(choice=Asynchronous() if isinstance(choice, BoundedStaleness) and index else choice)
        self._round = Round()
        self._tickets = Tickets(in_rounds=isinstance(choice, Synchronous | KOfN))
        self._filled = 0
        self._trainings = 0
        self._seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._free: set[str] = set()
        self._sessions: dict[str, Channel] = {}
        self._claims: dict[str, Claim] = {}
        self._refused: dict[tuple[str, int], str] = {}
        self.updates = 0

    @property
    def version(self) -> int:
        """How many updates the values have seen."""
        return self._state.version

    # A worker's channel -----------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame) -> None:
        """Answers a worker until its channel ends.

        Raises:
          UnavailableError, CancelledError: the channel has ended.
        """
        match hello.header:
            case (str(), str(worker), str(signature), str(choice), float(started)):
                claim = Claim(task=worker, generation=channel.peer_generation, started=started)
            case _:
                raise bad_header(hello, channel.peer)
        if signature != self._layout.signature() or choice != repr(self._choice):
            what = (
                "other variables, or has them in another order"
                if choice == repr(self._choice)
                else (f"consistency {choice}, and this task {self._choice!r}")
            )
            error = FailedPreconditionError(None, None, f"{worker} has {what}: all tasks must run the same program")
            channel.send(error_frame(0, error, self._task))
            return
        with self._changed:
            refused = self._decide(claim)
        if refused:
            _log.warning("%s refuses %s: %s", self._task, claim, refused)
            error = FailedPreconditionError(
                None, None, f"{self._task} refuses {claim}: {refused}. End this process; if it shall be part of the "
                "cluster, start it again with the present cluster spec",
            )  # fmt: skip
            channel.send(error_frame(0, error, self._task))
            return
        with self._changed:
            before = self._sessions.get(worker)
            self._sessions[worker] = channel
            if before is not None:
                self._leave(worker, "it was started anew")
                before.close()
            welcome = (self._filled, self.version, self._trainings, self._tickets.epoch, self._seed)
        channel.send(Frame(kinds.WELCOME, welcome))
        try:
            while True:
                self._answer(channel, worker, channel.recv())
        finally:
            with self._changed:
                if self._sessions.get(worker) is channel:
                    del self._sessions[worker]
                    self._leave(worker, "its channel has ended")

    def _decide(self, claim: Claim) -> str:
        """Why a worker does not have its place here; empty where it has. The lock is held."""
        place = claim.task, claim.generation
        if place not in self._refused:
            holder, session = self._claims.get(claim.task), self._sessions.get(claim.task)
            live = session is not None and not session.closed and not session.peer_gone()
            verdict = decide_claims(holder, claim, connected=live, address="")
            if not verdict.prevails:
                self._refused[place] = verdict.reason
            else:
                if holder is not None and holder.generation != claim.generation:
                    self._refused[holder.task, holder.generation] = f"it was replaced: {verdict.reason}"
                self._claims[claim.task] = claim
        return self._refused.get(place, "")

    def _answer(self, channel: Channel, worker: str, frame: Frame) -> None:
        try:
            answer = self._handle(channel, worker, frame)
        except OpError as error:
            if channel.closed or channel.peer_gone():
                raise
            answer = error_frame(0, error, self._task)
        channel.send(answer)

    def _handle(self, channel: Channel, worker: str, frame: Frame) -> Frame:
        match frame.kind, frame.header:
            case kinds.PUSH, (int(version), float(weight), extras, wish, knobs):
                return self._push(channel, worker, version, weight, extras, wish, knobs, frame.tensors)
            case kinds.PULL, (bool(everything), extras, wish):
                return self._pull(channel, worker, everything, extras, wish)
            case kinds.ROWS, ():
                return self._rows(channel, frame.tensors)
            case kinds.FILL, (int(version),):
                return self._fill(version, frame.tensors)
            case kinds.READY, ():
                with self._changed:
                    self._await(channel, lambda: bool(self._filled), "the chief to bring values")
                return Frame(kinds.DONE)
            case kinds.ASSIGN, ():
                with self._changed:
                    self._require_filled()
                    blocks = frame.tensors[: self._blocks]
                    if len(frame.tensors) > self._blocks:
                        self._updater.fill(blocks, frame.tensors[self._blocks :])
                    else:
                        self._updater.assign(blocks)
                return Frame(kinds.DONE)
            case kinds.FINISH, ():
                return self._finish(channel, worker)
            case kinds.FOLLOW, (int(training), int(epoch)):
                with self._changed:
                    self._await(
                        channel,
                        lambda: self._trainings > training or self._tickets.epoch > epoch,
                        f"epoch {epoch} to end",
                    )
                    return Frame(kinds.DONE, (self._trainings > training,))
            case kinds.STOP, ():
                with self._changed:
                    self._tickets.stopped = True
                    self._changed.notify_all()
                return Frame(kinds.DONE)
            case _:
                raise bad_header(frame, channel.peer)

    # What workers ask for ---------------------------------------------------------------------------------------------

    def _fill(self, version: int, tensors: Sequence[Array]) -> Frame:
        blocks = self._blocks
        with self._changed:
            # Whoever comes second has nothing to add: the values are there.
            if not self._filled:
                self._updater.fill(tensors[:blocks], tensors[blocks:] or None)
                self._filled = new_generation()
                self._perform(decide(self._state, Restarted(version), self._clock()))
                _log.info("%s has values, of version %d", self._task, version)
                self._changed.notify_all()
        return Frame(kinds.DONE)

    def _pull(self, channel: Channel, worker: str, everything: bool, extras: Any, wish: Any) -> Frame:
        with self._changed:
            self._await(channel, lambda: bool(self._filled), "the chief to bring values")
            if wish is not None and worker not in self._state.members:
                self._event(Joined(worker))
            return self._values(channel, worker, everything, extras, wish, applied=False)

    def _push(
        self, channel: Channel, worker: str, version: int, weight: float, extras: Any, wish: Any, knobs: Any,
        tensors: Sequence[Array],
    ) -> Frame:  # fmt: skip
        expected = self._optimized + len(extras) + 2 * self._tables
        if len(tensors) != expected:
            raise InvalidArgumentError(None, None, f"{worker} pushed {len(tensors)} arrays instead of {expected}")
        with self._changed:
            self._require_filled()
            self._free.discard(worker)
            decision = decide(self._state, Gave(worker, version), self._clock())
            dropped = any(isinstance(action, Drop) for action in decision.actions)
            if not dropped:
                split = self._optimized + len(extras)
                changes = dict(zip(extras, tensors[self._optimized : split], strict=True))
                rows = [(tensors[at], tensors[at + 1]) for at in range(split, len(tensors), 2)]
                self._round.add(tensors[: self._optimized], changes, rows, weight, knobs)
            self._perform(decision)
            self._await(channel, lambda: worker in self._free, "")
            self._free.discard(worker)
            return self._values(channel, worker, False, extras, wish, applied=not dropped)

    def _await_epoch(self, channel: Channel, worker: str, epoch: int) -> None:
        """Waits until nobody is more than an epoch behind: the chief validates, and may stop training."""
        self._tickets.asked[worker] = epoch
        self._changed.notify_all()
        if isinstance(self._choice, Asynchronous):  # the others keep together by themselves
            self._await(channel, lambda: self._tickets.may_begin(epoch), "others that are more than an epoch behind")

    def _values(
        self, channel: Channel, worker: str, everything: bool, extras: Any, wish: Any, *, applied: bool
    ) -> Frame:
        ticket = protocol.EPOCH_OVER
        match wish:
            case None:
                self._tickets.at_work.pop(worker, None)
            case (int(training), int(epoch), int(steps), int(exhausted)):
                if exhausted >= 0:
                    self._tickets.exhausted(epoch, exhausted)
                self._await_epoch(channel, worker, epoch)
                if training < self._trainings:
                    ticket = protocol.TRAINING_OVER
                else:
                    ticket = self._tickets.take(worker, epoch, steps, self.version)
                self._changed.notify_all()
            case _:
                raise InvalidArgumentError(None, None, f"{worker} asked for a step in words unknown here")
        values = self._updater.values(None if everything else extras)
        names: list[str] = []
        if everything:
            state = self._updater.state()
            values += state.values()
            names += state
        return Frame(kinds.VALUES, (self.version, applied, ticket, names), values)

    def _rows(self, channel: Channel, numbers: Sequence[Array]) -> Frame:
        if len(numbers) != self._tables:
            raise InvalidArgumentError(None, None, f"asked for rows of {len(numbers)} tables; there are {self._tables}")
        with self._changed:
            self._await(channel, lambda: bool(self._filled), "the chief to bring values")
            return Frame(kinds.DONE, (), self._updater.rows(numbers))

    def _finish(self, channel: Channel, worker: str) -> Frame:
        with self._changed:
            trainings = self._trainings
            self._leave(worker, "")
            self._await(channel, lambda: self._trainings > trainings or not self._state.members, "the others to finish")
        return Frame(kinds.DONE)

    # Decisions --------------------------------------------------------------------------------------------------------

    def _event(self, event: Event) -> None:
        self._perform(decide(self._state, event, self._clock()))

    def _perform(self, decision: Decision) -> None:
        self._state = decision.state
        if decision.reason:
            _log.info("%s: %s", self._task, decision.reason)
        for action in decision.actions:
            if isinstance(action, Go):
                self._free.add(action.worker)
                self._changed.notify_all()
            elif isinstance(action, Apply):
                self._round.apply(self._updater)
                self.updates += 1
        if decision.state.updating:
            self._event(Updated())

    def _leave(self, worker: str, reason: str) -> None:
        self._tickets.left(worker)
        self._free.discard(worker)
        self._event(Left(worker, reason))
        if not self._state.members and not reason:
            # All have finished. Whatever comes next begins as this did: with all workers.
            self._trainings += 1
            self._state = State(choice=self._state.choice, version=self.version)
            self._tickets.begin_training()
        self._changed.notify_all()

    def _require_filled(self) -> None:
        if not self._filled:
            raise AbortedError(None, None, f"{self._task} was started anew: its values are gone")

    def _await(self, channel: Channel, ready: Callable[[], bool], what: str) -> None:
        """Waits, with the lock given away meanwhile, and says now and then for what."""
        speak_at = self._clock() + _SPEAK_S
        while not self._changed.wait_for(ready, _LOOK_S):
            if channel.closed or channel.peer_gone():
                raise UnavailableError(None, None, f"{channel.peer} is gone")
            now = self._clock()
            self._event(Tick())
            if now >= speak_at:
                channel.send(Frame(kinds.WAIT, (what or waiting_text(self._state, now),)))
                speak_at = now + _SPEAK_S


class ParameterService:
    """All sets of parameters of this task, as its server knows them.

    Args:
      task: this task's name, for people.
    """

    def __init__(self, task: str) -> None:
        self._task = task
        self._sets: dict[str, HostedParameters] = {}
        self._changed = threading.Condition()

    def host(self, name: str, parameters: HostedParameters) -> None:
        """Answers from now on for the set ``name``."""
        with self._changed:
            self._sets[name] = parameters
            self._changed.notify_all()

    def serve(self, channel: Channel, hello: Frame) -> None:
        """Serves a channel that begins with a HELLO frame; waits for the program to come to that set."""
        match hello.header:
            case (str(name), *_):
                pass
            case _:
                raise bad_header(hello, channel.peer)
        spoken = time.monotonic()
        with self._changed:
            while not self._changed.wait_for(lambda: name in self._sets, _LOOK_S):
                if channel.closed or channel.peer_gone():
                    return
                if time.monotonic() - spoken >= _SPEAK_S:
                    spoken = time.monotonic()
                    channel.send(Frame(kinds.WAIT, (f"the program of {self._task} to come to {name!r}",)))
            found = self._sets[name]
        found.serve(channel, hello)
