"""The copies that a ``ps`` has of a set's shards, where each shard has two of them, which move.

A move is a change of views: the primary feeds a copy at another ``ps`` while workers push, and hands over; see
`headwater.state.copy`. What is here says to each copy where it should be: because another ``ps`` or a command asks
for that, or because this one comes or goes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from headwater.cluster.claims import Claim
from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.task.waiting import LOOK_S, Reminder
from headwater.cluster.telemetry.snapshot import GroupProgress, VariableSize
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import FailedPreconditionError, OpError, UnavailableError
from headwater.ps.hosted import Hosted
from headwater.ps.recovery import WayBack
from headwater.ps.replicas.processes import KnownServers, server_name, server_number
from headwater.ps.shards.directory import Directory, Load, Told
from headwater.ps.shards.moves import MOVE_S, spread
from headwater.ps.shards.places import Places
from headwater.state.aims import Aim
from headwater.state.leaving import LOST_S, leave_now
from headwater.state.views import View

_log = logging.getLogger("headwater")

#: How long a ``ps`` that ends waits until its copies are elsewhere, where others are there, in seconds.
LEAVE_S: Final = 300.0


class MovingCopy(Hosted, Protocol):
    """A copy of a shard; see `headwater.state.copy.KeptCopy`."""

    @property
    def view(self) -> View | None: ...

    @property
    def serves(self) -> bool: ...

    @property
    def aimed(self) -> Aim | None: ...

    @property
    def settled(self) -> bool: ...

    @property
    def is_spare(self) -> bool: ...

    @property
    def lacks_second(self) -> bool: ...

    @property
    def behind(self) -> int: ...

    @property
    def held_up_s(self) -> float: ...

    def aim(self, primary: int, second: int | None) -> None: ...

    def load(self) -> Load: ...

    def described(self) -> str: ...

    def leave(self) -> bool: ...


class CopyHolder:
    """The copies on this ``ps`` of the shards of a set: one of each shard, of which most may be spare.

    Args:
      directory: where shards are, as far as this task knows.
      servers: the ``ps`` of which it knows.
      copies: by shard; all of them.
      task: this task's name.
      address: where others reach it.
      hear_over: called with the reason where this task comes after the job is over.
      began: called with the name of another ``ps`` that says that it begins.
    """

    def __init__(
        self,
        directory: Directory,
        servers: KnownServers,
        copies: Mapping[int, MovingCopy],
        *,
        task: str,
        address: str,
        hear_over: Callable[[str], None],
        began: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.copies: Mapping[int, MovingCopy] = copies
        self._directory = directory
        self._servers = servers
        self._name = directory.name
        self._task = task
        self._address = address
        self._hear_over = hear_over
        self._began = began
        self._changed = threading.Condition()
        self._leaves = False
        self._over = False
        self._closed = False
        directory.learn(Places(addresses={task: address}))

    # Coming and going -------------------------------------------------------------------------------------------------

    def join(self) -> None:
        """Says to the other ``ps`` where this one is. Where it has no copy, and copies are elsewhere, gets its share
        from them; ends where the job is over."""
        told = self._tell_all(begins=True)
        while not (self._closed or self._leaves or self._over):
            if any(not copy.is_spare for copy in self.copies.values()):
                return
            if any(one.over for one in told):
                self._hear_over("other ps say so")
                return
            try:
                if all(copy.view is not None for copy in self.copies.values()):
                    moved = spread(self._directory, me=self._told())
                    _log.warning("%s has joined: %d shards of %r have moved", self._task, len(moved), self._name)
                    return
            except OpError as error:
                _log.info("%s has no copies of %r yet: %s", self._task, self._name, error.message)
                told = self._tell_all()
            self._pause(LOOK_S)

    def hand_over(self, is_needed: Callable[[], bool]) -> None:
        """The task ends though the job goes on: other ``ps`` get its copies, and it takes none any more. Those that no
        other one will have, the chief keeps.

        Args:
          is_needed: whether workers wait for those that were lost to come back, where none other is there.
        """
        with self._changed:
            self._leaves = True
        others = self._await_others(is_needed)
        if len(others) > 1:
            try:
                spread(self._directory, without=(self._task,), me=self._told())
            except OpError as error:
                _log.warning("%s leaves to others where its copies go: %s", self._task, error.message)
        # None is brought to this task from now on; what is still here goes to any of those that stay. One that is about
        # to end, too, does not wait for this one.
        self._servers.leaving.add(self._task)
        self._tell_all(leaves=True)
        give_up_at = time.monotonic() + LEAVE_S
        while (kept := self._kept()) and others and self._others() and time.monotonic() < give_up_at:
            if self._closed or self._over:
                break
            self._pause(LOOK_S)
        if kept:
            _log.warning("%s ends with its copies of shards %s of %r", self._task, _listed(kept), self._name)
        else:
            _log.warning("%s has given away its copies of %r", self._task, self._name)
        if not self._over:
            leave_now(list(self.copies.values()))

    def _await_others(self, is_needed: Callable[[], bool]) -> list[Told]:
        """What other ``ps`` say of themselves that take copies. Where there is none, waits for those that were lost, as
        long as this one ``is_needed``; those that are about to end, too, say so, and are not waited for."""
        began, reminder = time.monotonic(), Reminder()
        while True:
            answers = self._directory.ask_all()
            found = [one for one in answers.values() if one.takes]
            lost = [task for task in self._others() if task not in answers]
            kept, waited_s = self._kept(), time.monotonic() - began
            if found or not (kept and lost and is_needed()) or self._closed or waited_s >= LOST_S:
                return found
            if reminder.is_due():
                _log.warning(
                    "%s waits to end until %s takes its copies of shards %s of %r",
                    self._task,
                    " or ".join(lost),
                    _listed(kept),
                    self._name,
                )
            self._pause(LOOK_S)

    def _others(self) -> list[str]:
        """The other ``ps`` that have not said that they are about to end."""
        return [task for task in map(server_name, self._servers.staying()) if task != self._task]

    def _kept(self) -> list[int]:
        """The shards of which this task has one of the two copies, or is fed one, which may be one by now."""
        return [shard for shard, copy in self.copies.items() if not copy.is_spare]

    def _tell_all(self, *, begins: bool = False, leaves: bool = False) -> list[Told]:
        """Tells every other ``ps`` of this one; what those say that answer."""
        found: list[Told] = []
        for task in self._directory.servers():
            try:
                if task != self._task:
                    found.append(self._directory.ask(task, begins=begins, leaves=leaves)[0])
            except OpError as error:
                _log.debug("%s does not hear of %s: %s", task, self._task, error.message)
        return found

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._over, seconds)

    # Other tasks ------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame, watchdog: ProgressWatchdog) -> None:
        """Answers a worker where the shard is served here; else says where it is."""
        self._copy_of(hello, channel).serve(channel, hello, watchdog)

    def take(self, channel: Channel, first: Frame) -> None:
        """Takes what a primary sends, and answers what another task asks of shards."""
        if first.kind == kinds.SECOND:
            return self._copy_of(first, channel).take(channel, first)
        try:
            match first.kind, first.header:
                case kinds.WHERE, (str(), str(asker), words, bool(begins), bool(leaves)):
                    answer = self._answer(asker, Places.of(words), begins=begins, leaves=leaves)
                case kinds.MOVE, (str(), int(shard), str(primary), str(address), str(second), str(its)):
                    self._directory.learn(Places(addresses={primary: address, second: its}))
                    answer = Frame(kinds.DONE, self._move(shard, primary, second))
                case _:
                    raise bad_header(first, channel.peer)
        except Exception as error:
            if channel.peer_gone():
                raise
            answer = error_frame(0, error, self._task)
        return channel.send(answer)

    def _copy_of(self, first: Frame, channel: Channel) -> MovingCopy:
        _, _, number = str(first.header[0]).rpartition("/")
        if not number.isdecimal() or int(number) not in self.copies:
            raise bad_header(first, channel.peer)
        return self.copies[int(number)]

    def _answer(self, asker: str, known: Places, *, begins: bool, leaves: bool) -> Frame:
        self._directory.learn(known)
        if begins and (address := known.addresses.get(asker)):
            self._directory.note_address(asker, address)
        if leaves:
            self._servers.leaving.add(asker)
        elif begins:
            self._servers.leaving.discard(asker)
            self._began(asker)
        for shard, copy in self.copies.items():
            if (view := copy.view) is not None:
                self._directory.note(shard, view.term, server_name(view.primary.ps))
        told = self._told()
        loads = [(shard, load.nbytes, load.rate, load.second) for shard, load in told.loads.items()]
        return Frame(kinds.DONE, (self._directory.words(), told.takes, told.over, loads))

    def _told(self) -> Told:
        """What this ``ps`` says of itself: of the shards that it serves."""
        loads = {shard: copy.load() for shard, copy in self.copies.items() if copy.serves}
        return Told(takes=not (self._leaves or self._closed or self._over), over=self._over, loads=loads)

    def _move(self, shard: int, primary: str, second: str) -> tuple[float, int]:
        """Has the copies of a shard that is served here go to two ``ps``; returns when they are there, or another one
        serves and goes on with that.

        Returns:
          For how long workers could not have the shard, in seconds; and how many bytes it has.

        Raises:
          FailedPreconditionError: it cannot move.
          UnavailableError: it is not served here, has not moved within `MOVE_S`, or is to go elsewhere by now.
        """
        copy = self.copies.get(shard)
        if copy is None or not copy.serves:
            raise UnavailableError(None, None, f"shard {shard} of {self._name!r} is not served by {self._task}")
        if self._over:
            raise FailedPreconditionError(None, None, f"no shards of {self._name!r} move: the job is over")
        nbytes, stays = copy.load().nbytes, primary == self._task
        aim = Aim(server_number(primary), server_number(second))
        copy.aim(*aim)
        give_up_at = time.monotonic() + MOVE_S
        while copy.serves and not (stays and copy.settled):
            if self._closed or self._over or copy.aimed != aim or time.monotonic() >= give_up_at:
                raise UnavailableError(None, None, f"shard {shard} of {self._name!r} has not gone to {primary}")
            self._pause(LOOK_S)
        return (0.0 if stays else copy.held_up_s), nbytes

    # What the task asks -----------------------------------------------------------------------------------------------

    @property
    def _serving(self) -> list[MovingCopy]:
        return [copy for copy in self.copies.values() if copy.serves]

    @property
    def version(self) -> int:
        """How many updates the values of the first shard have seen that it serves."""
        return next((copy.version for copy in self._serving), 0)

    @property
    def counts_steps(self) -> bool:
        """Whether its version is the job's step."""
        return self.copies[0].counts_steps

    @property
    def steps(self) -> int:
        """Gradients of workers that it has answered, for one shard."""
        return max(copy.steps for copy in self.copies.values())

    @property
    def way_back(self) -> WayBack | None:
        """None: it has no state of its own in a folder."""
        return None

    def sizes(self) -> list[VariableSize]:
        """What it holds, of what it serves; see `HostedParameters.sizes`."""
        return [size for copy in self._serving for size in copy.sizes()]

    def group(self) -> GroupProgress:
        """How training goes, and which copies it has."""
        serving = [shard for shard, copy in self.copies.items() if copy.serves]
        following = [shard for shard in self._kept() if shard not in serving]
        lacking = [shard for shard in serving if self.copies[shard].lacks_second]
        roles = f"primary of {_listed(serving)}, second of {_listed(following)}"
        found = self.copies[serving[0]].group() if serving else GroupProgress(name=self._name)
        return replace(
            found,
            name=self._name,
            copies=roles + (f", NO SECOND COPY of {_listed(lacking)}" if lacking else ""),
            lacks_second=bool(lacking),
            second_behind=sum(copy.behind for copy in self._serving),
            shards=f"{_listed(serving)} of {len(self.copies)}",
        )

    def waits(self) -> list[tuple[str, float]]:
        """Which workers wait here."""
        return [wait for copy in self.copies.values() for wait in copy.waits()]

    def refusal(self, task: Claim) -> str:
        """See `HostedParameters.refusal`."""
        return next((reason for copy in self.copies.values() if (reason := copy.refusal(task))), "")

    def job_over(self) -> None:
        """The chief's program has ended."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        for copy in self.copies.values():
            copy.job_over()

    def worker_ended(self) -> None:
        """See `HostedParameters.worker_ended`."""
        for copy in self.copies.values():
            copy.worker_ended()

    def close(self) -> None:
        """The task stops."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for copy in self.copies.values():
            copy.close()


def _listed(shards: Iterable[int]) -> str:
    return ", ".join(map(str, shards)) or "none"
