"""Owns this ``ps``'s shards of a set: serves workers, sends shards to other ``ps`` and receives them.

A shard that moves is frozen: from its snapshot until the receiver has acknowledged that it is installed, the sender
changes nothing and answers no worker. The receiver alone decides whether the move has happened, and decides only once.
A sender that gets no acknowledgement asks the receiver (TOOK) until it has an answer. If the receiver has not installed
the shard when it is asked, it answers no, and refuses the shard from then on. The sender does not serve the shard
before it has the answer, so two ``ps`` never serve a shard at the same time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headwater.cluster.claims import Claim
from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.task.exchange import answer_on
from headwater.cluster.task.waiting import LOOK_S, Reminder
from headwater.cluster.telemetry.snapshot import GroupProgress, VariableSize
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.errors import FailedPreconditionError, OpError, UnavailableError
from headwater.ps.host import HostedParameters
from headwater.ps.left_states import LeavingState
from headwater.ps.recovery import WayBack
from headwater.ps.shards.directory import Directory, Expect, Load, Told
from headwater.ps.shards.moves import hand_off, spread
from headwater.ps.shards.places import Places, ShardPlace
from headwater.ps.updater import Updater

_log = logging.getLogger("headwater")

#: The shard that never moves: it counts steps, and accounts for examples.
FIXED: Final = 0
#: How long another ``ps`` may take to prepare for a shard, and to install it, in seconds.
PREPARE_S: Final = 60.0
TAKE_S: Final = 60.0
#: How long to wait for the end of a round before a shard moves, in seconds.
ROUND_S: Final = 60.0
#: Pause between two attempts, in seconds.
PAUSE_S: Final = 0.1
#: How long a ``ps`` that starts waits for others that do not answer, in seconds.
BEGIN_S: Final = 30.0
#: How long workers may take to connect after a shard was moved; see `HostMemory.install_words`.
COME_S: Final = 15.0

#: Failures to connect after which a ``ps`` is assumed to have no process.
_NOT_THERE: Final = (Problem.REFUSED, Problem.UNREACHABLE, Problem.UNKNOWN_HOST, Problem.NO_ANSWER)

#: Makes an empty host of a shard with its updater.
Make = Callable[[int], tuple[HostedParameters, Updater]]
#: Makes the handoff of a shard's state to the chief at a graceful shutdown.
Leaving = Callable[[int, HostedParameters], LeavingState]
#: Runs an updater once, to compile it before workers wait for it. Arguments: its shard and the hyperparameters.
Rehearse = Callable[[Updater, int, Sequence[float]], None]


@dataclass(kw_only=True, slots=True)
class _Slot:
    """State of a shard on this ``ps``.

    Attributes:
      host: the shard's host; None where another ``ps`` owns the shard.
      updater: the host's updater.
      since: time at which the host was installed (`time.monotonic`).
      moving: whether it is being sent to another ``ps``.
      offered: the ``ps`` that is about to send the shard, and the term of the move; None where there is no offer.
      void: offers of this term, and of earlier ones, must not be accepted any more.
    """

    host: HostedParameters | None = None
    updater: Updater | None = None
    since: float = 0.0
    moving: bool = False
    offered: tuple[str, int] | None = None
    void: int = -1


class ShardHolder:
    """Owns this ``ps``'s shards: serves workers, sends shards to other servers and receives them.

    Args:
      directory: this task's knowledge of the places of shards.
      shards: number of shards.
      task: this task's name.
      address: this task's address for the others.
      make: makes the host of a shard.
      rehearse: see `Rehearse`.
      expect: see `Expect`.
      end_with_job: called with the reason where this task joins after the job is over.
      leaving: see `Leaving`.
    """

    def __init__(
        self,
        directory: Directory,
        shards: int,
        *,
        task: str,
        address: str,
        make: Make,
        rehearse: Rehearse,
        expect: Expect,
        end_with_job: Callable[[str], None],
        leaving: Leaving,
    ) -> None:
        self.directory: Directory = directory
        self._name = directory.name
        self._task = task
        self._address = address
        self._make = make
        self._rehearse = rehearse
        self._expect = expect
        self._end_with_job = end_with_job
        self._leaving = leaving
        self._changed = threading.Condition()
        self._slots = [_Slot() for _ in range(shards)]
        self._begun = False
        self._leaves = False
        self._over = False
        # Whether the program of a worker has ended without an error.
        self._has_ended = False
        # Whether another ps reported, when this one started, that the job is over.
        self._late = False
        self._closed = False
        self._steps = 0
        self.moved: int = 0
        directory.merge(Places(addresses={task: address}))

    # Start ------------------------------------------------------------------------------------------------------------

    def start(self, first: Mapping[int, ShardPlace]) -> None:
        """Asks the other ``ps`` for the places of shards, then makes this task's shards.

        This task's shards are the shards that other ``ps`` report to be here. A ``ps`` that refuses connections or
        cannot be reached is assumed to have no process. This method waits up to `BEGIN_S` seconds for any other ``ps``
        that does not answer.

        Args:
          first: the initial place of each shard, used where no ``ps`` knows the place.
        """
        answered: set[str] = {self._task}
        give_up_at, reminder = time.monotonic() + BEGIN_S, Reminder()
        while not self._closed:
            for task in self.directory.servers():
                if task not in answered and self._has_told(task):
                    answered.add(task)
            silent = sorted(set(self.directory.servers()) - answered)
            if not silent:
                break
            if time.monotonic() >= give_up_at:
                _log.warning("%s begins without %s, which does not answer", self._task, ", ".join(silent))
                break
            if reminder.is_due():
                _log.info("%s waits for %s to say where shards are", self._task, ", ".join(silent))
            with self._changed:
                self._changed.wait_for(lambda: self._closed, PAUSE_S)
        # Initial places have term 0, so they do not replace reported places of later terms.
        self.directory.merge(Places(shards=dict(first)))
        with self._changed:
            for shard, place in self.directory.places().items():
                if place.task == self._task:
                    self._have(shard, *self._make(shard))
        for state in self._states():
            if not state.restore():
                break  # the chief does not answer: do not repeat that wait for each further shard
        with self._changed:
            self._begun = True
            self._changed.notify_all()

    def _has_told(self, task: str) -> bool:
        try:
            told, _ = self.directory.exchange_places(task, begins=True)
            self._late = self._late or told.over
        except OpError as error:
            cause = error.__cause__
            return isinstance(cause, ConnectFailure) and cause.problem in _NOT_THERE
        return True

    def _have(self, shard: int, host: HostedParameters, updater: Updater) -> None:
        """Installs a shard on this ``ps``. `_changed` is held."""
        slot = self._slots[shard]
        slot.host, slot.updater, slot.since = host, updater, time.monotonic()
        # An answer from a frozen shard could acknowledge an update that the moved snapshot lacks.
        if shard != FIXED:
            host.secured = lambda channel: host.waiting.secure(channel, lambda: slot.host is host)
        if self._over:
            host.job_over()
        elif self._has_ended:
            host.worker_ended()

    @property
    def held(self) -> list[int]:
        """The shards that it owns."""
        return [shard for shard, slot in enumerate(self._slots) if slot.host is not None]

    @property
    def moving(self) -> list[int]:
        """The shards that it is sending to another ``ps``: it may still own them."""
        return [shard for shard, slot in enumerate(self._slots) if slot.moving]

    def updater(self, shard: int) -> Updater | None:
        """Returns the updater of a shard; None where another ``ps`` owns the shard."""
        return self._slots[shard].updater

    @property
    def _hosts(self) -> list[HostedParameters]:
        return [host for slot in self._slots if (host := slot.host) is not None]

    # Service interface ------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Number of updates applied to its first shard."""
        return next((host.version for host in self._hosts), 0)

    @property
    def counts_steps(self) -> bool:
        """Whether its version is the job's global step."""
        return self._slots[FIXED].host is not None

    @property
    def steps(self) -> int:
        """Number of pushed gradients that were answered: the maximum over shards, as each step pushes to all shards."""
        return max([self._steps, *(host.steps for host in self._hosts)])

    @property
    def way_back(self) -> WayBack | None:
        """Shards that move keep no state on disk, so there is no recovery report."""
        return None

    def sizes(self) -> list[VariableSize]:
        """Returns the sizes of its shards' blocks and optimizer state; see `HostedParameters.sizes`."""
        return [size for host in self._hosts for size in host.sizes()]

    def group(self) -> GroupProgress:
        """Returns the progress of the training, and this task's shards."""
        hosts = self._hosts
        if not hosts:
            return GroupProgress(name=self._name, shards=f"none of {len(self._slots)}")
        held = ", ".join(map(str, self.held))
        return replace(hosts[0].group(), name=self._name, shards=f"{held} of {len(self._slots)}")

    def waits(self) -> list[tuple[str, float]]:
        """Returns the workers that wait here, each with the reason and the start of the wait."""
        return [wait for host in self._hosts for wait in host.waits()]

    def refusal(self, task: Claim) -> str:
        """Returns why a task has no right to its place, see `HostedParameters.refusal`."""
        return next((reason for host in self._hosts if (reason := host.refusal(task))), "")

    def job_over(self) -> None:
        """Marks the job as over: the chief's program has ended."""
        with self._changed:
            self._over = True
            hosts = self._hosts
        # Release `_changed` first: each call acquires the host's lock, which a running update may hold for long.
        for host in hosts:
            host.job_over()

    def worker_ended(self) -> None:
        """Records that the program of a worker has ended without an error."""
        with self._changed:
            self._has_ended = True
            hosts = self._hosts
        for host in hosts:
            host.worker_ended()

    def close(self) -> None:
        """Ends all waits, because the task stops."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def hand_off(self) -> None:
        """Sends the shards to other ``ps``, because this task shuts down during the job, and accepts no further shards.

        The first shard, and shards that no other ``ps`` accepts, are deposited with the chief for the next incarnation
        of this task.
        """
        with self._changed:
            self._leaves = True
        hand_off(self.directory, [shard for shard in self.held if shard != FIXED], self.send_shard, self._told())
        with self._changed:  # another ps or a command may have requested some of the moves
            self._changed.wait_for(lambda: self._closed or not self.moving)
        if not set(self.held) - {FIXED}:
            _log.warning("%s has given away its shards of %r", self._task, self._name)
        for state in self._states():
            if not state.deposit():
                break

    def _states(self) -> list[LeavingState]:
        """Returns the handoffs of the states of this task's shards."""
        hosts = [(shard, slot.host) for shard, slot in enumerate(self._slots)]
        return [self._leaving(shard, host) for shard, host in hosts if host is not None]

    def join(self) -> None:
        """Requests shards from other ``ps`` if this ``ps`` owns none. If the job is over, ends this task instead."""
        if self._late and not self.held:
            self._end_with_job("other ps say so")
            return
        while not (self._closed or self._leaves or self.held):
            try:
                moved = spread(self.directory, me=self._told())
            except OpError as error:
                _log.info("%s has no shards of %r yet: %s", self._task, self._name, error.message)
                if any(told.over for told in self.directory.query_all().values()):
                    self._end_with_job("other ps say so")
                    return
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, LOOK_S)
            else:
                _log.warning("%s has joined: %d shards of %r have moved", self._task, len(moved), self._name)
                return

    # Workers ----------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame, watchdog: ProgressWatchdog) -> None:
        """Serves a worker where this task owns the shard; otherwise sends an error that names the shard's owner."""
        _, _, number = str(hello.header[0]).rpartition("/")
        if not number.isdecimal() or int(number) >= len(self._slots):
            raise bad_header(hello, channel.peer)
        shard, reminder = int(number), Reminder()
        while not channel.peer_gone():
            with self._changed:
                begun = self._changed.wait_for(lambda: self._begun or self._closed, LOOK_S)
                host = self._slots[shard].host
            if host is not None:
                return host.serve(channel, hello, watchdog)
            if begun:
                place = self.directory.of(shard)
                where = (
                    f"{place.task} has" if place is not None and place.task != self._task else "no ps is known to have"
                )
                reason = f"{where} shard {shard} of {self._name!r}"
                return channel.send(error_frame(0, UnavailableError(None, None, reason), self._task))
            reminder.send_if_due(channel, f"{self._task} to hear where the shards of {self._name!r} are")
        return None

    # Other tasks ------------------------------------------------------------------------------------------------------

    def serve_peer(self, channel: Channel, first: Frame) -> None:
        """Answers a request of another task about shards."""
        try:
            match first.kind, first.header:
                case kinds.WHERE, (str(), str(asker), words, bool(begins), bool()):
                    answer = self._answer_where(asker, Places.of(words), begins=begins)
                case kinds.MOVE, (str(), int(shard), str(target), str(address)):
                    answer = Frame(kinds.DONE, self.send_shard(self._known(shard), target, address))
                case kinds.OFFER, (str(), int(shard), int(term), str(source), words, [*hyperparameters]):
                    self.directory.merge(Places.of(words))
                    answer = self._accept(
                        channel,
                        self._known(shard),
                        term,
                        source,
                        [float(hyperparameter) for hyperparameter in hyperparameters],
                    )
                case kinds.TOOK, (str(), int(shard), int(term)):
                    answer = Frame(kinds.DONE, (self._has_taken(self._known(shard), term),))
                case _:
                    raise bad_header(first, channel.peer)
        except Exception as error:
            if channel.peer_gone():
                raise
            answer = error_frame(0, error, self._task)
        channel.send(answer)

    def _known(self, shard: int) -> int:
        if not 0 <= shard < len(self._slots):
            raise FailedPreconditionError(
                None, None, f"{self._name!r} has {len(self._slots)} shards on {self._task}, and none of number {shard}"
            )
        return shard

    def _answer_where(self, asker: str, known: Places, *, begins: bool) -> Frame:
        with self._changed:
            # The asker has just started, and this answer tells it the owner of each shard. So a shard that its previous
            # incarnation offered must not be installed here any more.
            for slot in self._slots:
                if begins and slot.offered is not None and slot.offered[0] == asker:
                    slot.void = max(slot.void, slot.offered[1])
            self.directory.merge(known)
            for shard in self.held:
                self._drop(shard)
            self._claim()
        told = self._told()
        loads = [(shard, load.nbytes, load.rate, None) for shard, load in told.loads.items()]
        return Frame(kinds.DONE, (self.directory.words(), told.takes, told.over, loads))

    def _told(self) -> Told:
        """Returns this ``ps``'s report on itself."""
        with self._changed:
            now = time.monotonic()
            loads = {
                shard: Load(
                    nbytes=sum(size.nbytes for size in host.sizes()),
                    rate=host.workers.travelled / max(1.0, now - slot.since),
                )
                for shard, slot in enumerate(self._slots)
                if (host := slot.host) is not None
            }
            takes = self._begun and not (self._leaves or self._closed or self._over)
            return Told(takes=takes, over=self._over, loads=loads)

    def _drop(self, shard: int) -> None:
        """Discards a shard that another ``ps`` is known to own. `_changed` is held."""
        slot, place = self._slots[shard], self.directory.of(shard)
        if slot.host is None or slot.moving or place is None or place.task == self._task:
            return
        _log.warning("%s drops shard %d of %r: %s has it", self._task, shard, self._name, place.task)
        self._part_with(slot)

    def _claim(self) -> None:
        """Creates empty hosts for lost shards: all reports place them on this ``ps``, which does not have them.

        The chief fills the hosts again, unless another ``ps`` turns out to own a shard. `_changed` is held.
        """
        lost = [
            shard
            for shard, place in self.directory.places().items()
            if place.task == self._task and self._slots[shard].host is None and self._begun
        ]
        for shard in lost:
            _log.warning("%s has lost shard %d of %r", self._task, shard, self._name)
            self._have(shard, *self._make(shard))
        # Ask in a thread, as `_changed` is held here. An answer may show that another ps owns the shard.
        if lost:
            threading.Thread(target=self.directory.query_all, daemon=True).start()

    def _part_with(self, slot: _Slot) -> None:
        """Removes a shard from this task; its workers look for it elsewhere. `_changed` is held."""
        host = slot.host
        assert host is not None
        self._steps = max(self._steps, host.steps)
        slot.host = slot.updater = None
        with host.lock:  # wakes `Waiting.secure`, which finds that this task no longer owns the shard
            host.lock.notify_all()
        host.workers.close_connections()

    # Sending ----------------------------------------------------------------------------------------------------------

    def send_shard(self, shard: int, target: str, address: str) -> tuple[float, int]:
        """Sends a shard to another ``ps``.

        Args:
          shard: its number.
          target: name of the other ``ps``.
          address: its address.

        Returns:
          For how long workers could not use the shard, in seconds; and its size in bytes.

        Raises:
          FailedPreconditionError: the shard cannot move.
          UnavailableError: this task does not own the shard, or the other ``ps`` did not accept it.
        """
        if shard == FIXED:
            raise FailedPreconditionError(
                None,
                None,
                f"shard {shard} of {self._name!r} stays on {self._task}: it counts steps and accounts for examples",
            )
        slot = self._slots[shard]
        with self._changed:
            self._changed.wait_for(lambda: self._begun and not slot.moving, PREPARE_S)
            if self._over:
                raise FailedPreconditionError(None, None, f"no shards of {self._name!r} move: the job is over")
            host, updater, place = slot.host, slot.updater, self.directory.of(shard)
            if not self._begun or slot.moving or host is None or updater is None or place is None:
                raise UnavailableError(None, None, f"shard {shard} of {self._name!r} is not on {self._task}")
            if target == self._task:
                return 0.0, 0
            slot.moving = True
        try:
            until = time.monotonic() + PREPARE_S
            while not host.waiting.wait_filled(LOOK_S):
                if self._closed or self._over or self.directory.of(shard) != place or time.monotonic() >= until:
                    raise UnavailableError(None, None, f"shard {shard} of {self._name!r} has no values yet")
            self.directory.merge(Places(addresses={target: address}))
            return self._transfer(shard, slot, host, updater, place.term + 1, target)
        finally:
            with self._changed:
                slot.moving = False
                self._drop(shard)  # another ps may turn out to own it
                self._changed.notify_all()

    def _transfer(
        self, shard: int, slot: _Slot, host: HostedParameters, updater: Updater, term: int, target: str
    ) -> tuple[float, int]:
        link = self.directory.link(target)
        channel = link.open_channel_now()
        try:
            words, hyperparameters = self.directory.words(), list(host.updates.hyperparameters)
            channel.send(Frame(kinds.OFFER, (self._name, shard, term, self._task, words, hyperparameters)))
            if answer_on(channel, target, PREPARE_S).header != (True,):
                raise UnavailableError(None, None, f"{target} takes no shards now")
            # Freeze before the snapshot: an update that is acknowledged after the snapshot would be lost by the move.
            with host.lock:
                if not host.waiting.freeze_outside_rounds(
                    f"shard {shard} of {self._name!r} to move to {target}", ROUND_S
                ):
                    what = (
                        f"a round of shard {shard} of {self._name!r} has gradients of workers that do not wait for it"
                    )
                    raise UnavailableError(None, None, f"{what}, and has not ended within {ROUND_S:g} s")
                try:
                    began = time.monotonic()
                    memory = host.memory.words()
                    values, state = updater.values(None), updater.state()
                    arrays = [*values, *state.values()]
                    nbytes = sum(array.nbytes for array in arrays)
                except BaseException:
                    host.waiting.unfreeze()
                    raise
            _log.warning("%s gives shard %d of %r to %s", self._task, shard, self._name, target)
            taken: bool | None = None
            try:
                channel.send(Frame(kinds.STATE, (list(state), memory), arrays))
                taken = answer_on(channel, target, TAKE_S).header == (True,)
            except Exception as error:  # noqa: BLE001 - whatever it is, the other one may have all of it
                _log.warning("%s does not know whether %s has shard %d: %s", self._task, target, shard, error)
        finally:
            link.release_channel(channel, False)
        # Neither serve nor discard the shard until its owner is known. If this ps served the shard, there could be two
        # owners that accept different updates. If it discarded the shard, there might be no owner, and the shard would
        # be lost.
        if taken is None:
            taken = self._wait_until_installed(shard, term, target)
        with self._changed:
            if taken:
                self.directory.record_move(shard, term, target)
                self.moved += 1
                self._part_with(slot)
            else:
                # Others may have learned of that term, so claim the shard with a later one.
                self.directory.record_move(shard, term + 1, self._task)
                host.waiting.unfreeze()
        if not taken:
            raise UnavailableError(None, None, f"{target} has not taken shard {shard} of {self._name!r}")
        seconds = time.monotonic() - began
        _log.warning(
            "%s gave shard %d of %r to %s: %d bytes in %.3f s", self._task, shard, self._name, target, nbytes, seconds
        )
        return seconds, nbytes

    def _wait_until_installed(self, shard: int, term: int, target: str) -> bool:
        """Returns whether the other ``ps`` has installed a shard. Waits for it to return if it is lost, as workers
        do."""
        reminder = Reminder()
        while not self._closed:
            try:
                answer = self.directory.exchange(target, Frame(kinds.TOOK, (self._name, shard, term)), TAKE_S)
                return answer.header == (True,)
            except (OpError, MemoryError) as error:
                cause = error.__cause__
                if isinstance(cause, ConnectFailure) and cause.problem is Problem.REFUSED:
                    # The target's process has ended, and the shards in its memory are lost. But if it had already sent
                    # this shard to another ps, that ps reports a place with this term or a later one.
                    self.directory.query_all()
                    place = self.directory.of(shard)
                    return place is not None and place.term >= term
                if reminder.is_due():
                    what = "%s waits for %s to say whether it has shard %d of %r: %s"
                    _log.warning(what, self._task, target, shard, self._name, error)
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, PAUSE_S)
        raise UnavailableError(None, None, f"{self._task} ends")

    # Receiving --------------------------------------------------------------------------------------------------------

    def _accept(self, channel: Channel, shard: int, term: int, source: str, hyperparameters: Sequence[float]) -> Frame:
        """Receives a shard that another ``ps`` offers."""
        slot = self._slots[shard]
        with self._changed:
            self._changed.wait_for(lambda: self._begun or self._closed, PREPARE_S)
            free = slot.host is None and slot.offered is None and term > slot.void
            if not free or not self._begun or self._leaves or self._closed or self._over:
                return Frame(kinds.DONE, (False,))
            slot.offered = source, term
        try:
            host, updater = self._make(shard)
            # Compile before the sender freezes the shard, so that workers do not wait for the compilation.
            self._rehearse(updater, shard, hyperparameters)
            channel.send(Frame(kinds.DONE, (True,)))
            frame = channel.recv(ROUND_S + TAKE_S)
            match frame.kind, frame.header:
                case kinds.STATE, ([*names], memory):
                    pass
                case _:
                    raise bad_header(frame, channel.peer)
            values = len(frame.tensors) - len(names)
            updater.fill(frame.tensors[:values], frame.tensors[values:] or None)
            host.memory.install_words(memory, COME_S)
            workers = host.workers.known_workers()
            self._expect(workers)
            with self._changed:
                # Refuse the shard if this ps shuts down: it has already reported its shards, without this one.
                taken = term > slot.void and not (self._leaves or self._closed)
                if taken:
                    self.directory.record_move(shard, term, self._task, self._address)
                    self._have(shard, host, updater)
        finally:
            with self._changed:
                slot.offered = None
        if taken:
            _log.warning("%s has shard %d of %r now, from %s", self._task, shard, self._name, source)
            threading.Thread(target=self._remove_absent_workers, args=(slot, host, workers), daemon=True).start()
        else:
            self._expect(workers, coming=False)
        return Frame(kinds.DONE, (taken,))

    def _remove_absent_workers(self, slot: _Slot, host: HostedParameters, workers: Collection[str]) -> None:
        """Removes workers that do not connect after a shard has moved here.

        A worker that is connected for another shard stays: it is computing, and connects when it has its gradient.
        """
        awaited = set(workers)
        while awaited:
            with self._changed:
                left = self._changed.wait_for(lambda: self._closed or slot.host is not host, COME_S)
            self._expect(workers, coming=False)
            if left:
                return
            connected = {worker for each in self._hosts for worker in list(each.updates.connections)}
            host.workers.remove_absent_workers(connected)
            awaited = host.workers.expected[0]

    def _has_taken(self, shard: int, term: int) -> bool:
        """Returns whether a shard was installed with a term; if not, refuses that term from now on."""
        slot = self._slots[shard]
        with self._changed:
            place = self.directory.of(shard)
            taken = place is not None and place.term >= term
            # The sender keeps the shard after this answer, so its STATE frame must be refused if it arrives late.
            if not taken:
                slot.void = max(slot.void, term)
            return taken
