"""The processes of job ``ps`` that may have copies: those of the cluster spec, and those that come while a job runs.

A graph's *tasks* are those of its program, and stay. On which *processes* they are may change: a process that comes
tells all others that it is there, and one that is about to end tells them that. What one knows of another has a
number: of each two records of a process the later one counts, in whatever order they are heard.

The frame between processes, on a channel of its own::

    PROCESSES  (records, over)     answered by DONE (records); ``over``: the job is over, and its workers have left

with ``records`` as (number, life, state, address), ``state`` being 0 of one that is there, 1 of one that is about to
end, and 2 of one that has ended.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from headwater.cluster.names import TaskName
from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.exchange import exchange
from headwater.cluster.task.lifetime import PS
from headwater.cluster.transport.frames import Frame
from headwater.errors import InvalidArgumentError, OpError, UnavailableError
from headwater.state.aims import Aim, spread
from headwater.state.member import new_life
from headwater.state.sites import PeerServerLink, shows_life

_log = logging.getLogger("headwater")

THERE: Final = 0
LEAVING: Final = 1
GONE: Final = 2

#: Between the first two attempts to tell processes that could not be reached, and at most, in seconds; it doubles.
_AGAIN_S: Final = 0.1
_AT_MOST_S: Final = 2.0
#: How long a process may take to hear and to answer, in seconds.
_ANSWER_S: Final = 2.0


class Record(NamedTuple):
    """What is known of a process: a number that grows with each of its lives, whether it is there, and its address."""

    life: int
    state: int
    address: str


class GraphProcesses:
    """The processes that may have copies, as this task knows them. Used by several threads.

    Args:
      addresses: of those that are known at the beginning, by number.
      tasks: the numbers of the graph's tasks, and of the processes that they begin on.
      link: gives the way to a process, by its number and address.
      me: number of this one; None where this task is none.

    Attributes:
      tasks: see above.
      met: whether another task has told what it knows.
    """

    def __init__(
        self,
        addresses: Mapping[int, str],
        *,
        tasks: Sequence[int],
        link: Callable[[int, str], PeerServerLink],
        me: int | None = None,
    ) -> None:
        self.tasks: list[int] = sorted(tasks)
        self.met: bool = False
        self._link = link
        self._me = me
        self._changed = threading.Condition()
        # Where all processes end, nobody may be left to tell the next one of its former life.
        self._records = {
            number: Record(new_life() if number == me else 0, THERE, address) for number, address in addresses.items()
        }
        self._told: dict[int, dict[int, Record]] = {}
        self._closed = False
        self._teller = threading.Thread(target=self._tell_all, name="processes", daemon=True)

    # What copies ask (`headwater.state.sites.Processes`) -----------------------------------------------------------

    def numbers(self) -> Sequence[int]:
        with self._changed:
            return sorted(number for number, record in self._records.items() if record.state != GONE)

    def staying(self) -> Sequence[int]:
        with self._changed:
            return sorted(number for number, record in self._records.items() if record.state == THERE)

    def name(self, number: int) -> str:
        return str(TaskName(PS, number))

    def present(self) -> list[tuple[int, str]]:
        """Number and address of each; where all have ended, of each that there was: no other one can tell which is
        back."""
        with self._changed:
            all_gone = all(record.state == GONE for record in self._records.values())
            known = sorted(self._records.items())
            return [(number, record.address) for number, record in known if all_gone or record.state != GONE]

    @property
    def is_extra(self) -> bool:
        """Whether this process is none of those that the tasks begin on."""
        return self._me not in self.tasks

    def link(self, number: int) -> PeerServerLink:
        with self._changed:
            record = self._records.get(number)
        if record is None or record.state == GONE:
            raise UnavailableError(None, None, f"{self.name(number)} is not known to be there")
        return self._link(number, record.address)

    def others_stay(self, *, lost: bool = False) -> bool:
        """Whether another process stays that is there, as far as is known; or, where those count, too, that is ``lost``
        and has not said that it ends."""
        return any(shows_life(self, number) or lost for number in self.staying() if number != self._me)

    def aim(self, task: int) -> Aim | None:
        """On which processes the copies of a task should be; None where none stays."""
        staying = list(self.staying())
        return spread(self.tasks, staying)[self.tasks.index(task)] if staying else None

    def pair(self, task: int) -> tuple[int, int]:
        """The processes that have the copies of a task at the beginning."""
        return task, self.tasks[(self.tasks.index(task) + 1) % len(self.tasks)]

    # What processes tell each other -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins to tell other processes of this one."""
        self._teller.start()

    def words(self) -> list[tuple[int, int, int, str]]:
        """What is known, for another task."""
        with self._changed:
            return [(number, its.life, its.state, its.address) for number, its in sorted(self._records.items())]

    def learn(self, words: Any) -> None:
        """Takes what another task knows.

        Raises:
          InvalidArgumentError: it is nothing of the kind.
        """
        try:
            told = {int(number): Record(int(life), int(state), str(address)) for number, life, state, address in words}
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(None, None, f"no processes: {words!r}") from error
        with self._changed:
            self.met = True
            for number, record in told.items():
                known = self._records.get(number)
                if number == self._me:
                    assert known is not None
                    if record[:2] > known[:2]:  # of a former life, or of this one before it came back
                        self._records[number] = known._replace(life=record.life + 1)
                elif known is None or record[:2] > known[:2]:
                    self._records[number] = record
                    if known is None or known.state != record.state:
                        _log.warning("%s %s", self.name(number), _STATES[record.state].format(record.address))
            self._changed.notify_all()

    def say(self, state: int) -> None:
        """This process is about to end, or has ended."""
        with self._changed:
            if self._me is not None:
                self._records[self._me] = self._records[self._me]._replace(state=state)
            self._changed.notify_all()

    def _tell_all(self) -> None:
        again_s = _AGAIN_S
        while not self._closed:
            others = self._others()
            try:
                missed = self._tell_each(others)
            except RuntimeError as error:  # no thread is to be had now
                _log.warning("processes of graphs cannot be told of each other: %s", error)
                missed = set(others)
            self._await_news(missed, again_s)
            again_s = min(2 * again_s, _AT_MOST_S) if missed else _AGAIN_S

    def _others(self) -> list[int]:
        return [number for number in self.numbers() if number != self._me]

    def _await_news(self, missed: Collection[int], again_s: float) -> None:
        """Waits until there is something to tell; those that were ``missed`` are tried again after ``again_s``
        seconds."""

        def untold() -> bool:
            others = [number for number in self._others() if number not in missed]
            return self._closed or any(self._told.get(number) != self._records for number in others)

        with self._changed:
            self._changed.wait_for(untold, again_s if missed else None)

    def others_answer(self) -> bool:
        """Whether another process answers, or none ever has."""
        others = self._others()
        return not self.met or len(self._tell_each(others, again=True)) < len(others)

    def _tell_each(self, numbers: Sequence[int], *, over: bool = False, again: bool = False) -> set[int]:
        """Tells processes what is known here, all at once, as some may not answer; those that have not heard. See
        `_tell`."""
        missed: set[int] = set()

        def tell(number: int) -> None:
            if not self._tell(number, over=over, again=again):
                missed.add(number)

        tellers = [threading.Thread(target=tell, args=[number], daemon=True) for number in numbers]
        for teller in tellers:
            teller.start()
        for teller in tellers:
            teller.join()
        return missed

    def _tell(self, number: int, *, over: bool = False, again: bool = False) -> bool:
        """Tells a process what is known here, and takes what it knows; whether it has heard.

        Args:
          number: of the process.
          over: say that the job is over.
          again: say it though it has heard that already.
        """
        with self._changed:
            told = dict(self._records)
            if not (over or again) and self._told.get(number) == told:
                return True
        try:
            frame = Frame(kinds.PROCESSES, (self.words(), over))
            answer = exchange(self.link(number), self.name(number), frame, _ANSWER_S)
            match answer.header:
                case (words,):
                    self.learn(words)
                case _:
                    raise bad_header(answer, self.name(number))
        except OpError as error:
            _log.debug("%s does not hear which processes there are: %s", self.name(number), error.message)
            return False
        with self._changed:
            self._told[number] = told
        return True

    def tell_now(self, *, over: bool = False) -> None:
        """Tells all that can be reached at once; ``over``: also that the job is over."""
        self._tell_each(self._others(), over=over)

    def close(self) -> None:
        """Nothing is told any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


_STATES: Final = ("has come, at {}", "is about to end", "has ended")
