"""The processes of job ``ps`` that may hold replicas: all in the cluster spec, and any that join a running job.

A graph's *tasks* are fixed by its program. The *processes* that hold their replicas may change: a process announces
itself to all others when it starts, and before it ends. A record of a process has the incarnation and the state of the
process. The pair (incarnation, state) only increases, so the greater of two records of a process is the newer one,
whatever the order in which the records arrive.

The frame between processes, on a channel of its own::

    PROCESSES  (records, over)     answered by DONE (records); ``over``: the job is over, and its workers have ended

with ``records`` as (number, incarnation, state, address), where ``state`` is 0 for running, 1 for draining and 2 for
ended.
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
from headwater.state.aims import Placement, distribute_replicas
from headwater.state.member import new_incarnation
from headwater.state.sites import PeerServerLink, may_be_reachable

_log = logging.getLogger("headwater")

THERE: Final = 0
LEAVING: Final = 1
GONE: Final = 2

#: Initial and largest delay between attempts to notify unreachable processes, in seconds; the delay doubles.
_FIRST_DELAY_S: Final = 0.1
_MAX_DELAY_S: Final = 2.0
#: How long a process may take to answer, in seconds.
_ANSWER_TIMEOUT_S: Final = 2.0


class Record(NamedTuple):
    """The state of a process: its incarnation, a number that grows with each start; its state; and its address."""

    incarnation: int
    state: int
    address: str


class GraphProcesses:
    """This task's view of the processes that may hold replicas. Thread-safe.

    Args:
      addresses: addresses of the initially known processes, by number.
      tasks: numbers of the graph's tasks, and of the processes that initially hold them.
      link: returns the link to a process, given its number and address.
      me: number of this process; None if this task is not a ``ps``.

    Attributes:
      tasks: numbers of the graph's tasks.
      met: whether any other task has sent records to this task.
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
        # Incarnation numbers start at the present time, not at 0: masters may know the number of this process's
        # previous incarnation, and the present number must be greater, even if every process that could report the
        # previous number has ended.
        self._records = {
            number: Record(new_incarnation() if number == me else 0, THERE, address)
            for number, address in addresses.items()
        }
        self._acknowledged: dict[int, dict[int, Record]] = {}
        self._closed = False
        self._sender = threading.Thread(target=self._send_to_all, name="processes", daemon=True)

    # Interface for replicas (`headwater.state.sites.Processes`) ----------------------------------------------------

    def numbers(self) -> Sequence[int]:
        with self._changed:
            return sorted(number for number, record in self._records.items() if record.state != GONE)

    def staying(self) -> Sequence[int]:
        with self._changed:
            return sorted(number for number, record in self._records.items() if record.state == THERE)

    def name(self, number: int) -> str:
        return str(TaskName(PS, number))

    def present(self) -> list[tuple[int, str]]:
        """Returns number and address of each process that has not ended. If all known processes have ended, returns all
        of them, because some may have restarted without a running process that could pass on their announcements."""
        with self._changed:
            all_gone = all(record.state == GONE for record in self._records.values())
            known = sorted(self._records.items())
            return [(number, record.address) for number, record in known if all_gone or record.state != GONE]

    @property
    def is_extra(self) -> bool:
        """Whether this process is not among the processes that initially hold the tasks."""
        return self._me not in self.tasks

    def link(self, number: int) -> PeerServerLink:
        with self._changed:
            record = self._records.get(number)
        if record is None or record.state == GONE:
            raise UnavailableError(f"no task has announced {self.name(number)}")
        return self._link(number, record.address)

    def others_stay(self, *, lost: bool = False) -> bool:
        """Whether, as far as is known, another process is reachable and does not drain. With ``lost``, unreachable
        processes that have announced neither their drain nor their end count, too."""
        return any(may_be_reachable(self, number) or lost for number in self.staying() if number != self._me)

    def desired_placement(self, task: int) -> Placement | None:
        """Returns the processes that should hold the replicas of a task; None if all processes drain or have ended."""
        staying = list(self.staying())
        return distribute_replicas(self.tasks, staying)[self.tasks.index(task)] if staying else None

    def pair(self, task: int) -> tuple[int, int]:
        """Returns the processes that initially hold the replicas of a task."""
        return task, self.tasks[(self.tasks.index(task) + 1) % len(self.tasks)]

    # Exchange of records ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts to announce this process to others."""
        self._sender.start()

    def words(self) -> list[tuple[int, int, int, str]]:
        """Returns the known records as (number, incarnation, state, address), for a frame to another task."""
        with self._changed:
            return [(number, its.incarnation, its.state, its.address) for number, its in sorted(self._records.items())]

    def merge_records(self, words: Any) -> None:
        """Merges the records of another task.

        Raises:
          InvalidArgumentError: ``words`` are not records.
        """
        try:
            report = {
                int(number): Record(int(incarnation), int(state), str(address))
                for number, incarnation, state, address in words
            }
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"malformed list of processes: {words!r}") from error
        with self._changed:
            self.met = True
            for number, record in report.items():
                known = self._records.get(number)
                if number == self._me:
                    assert known is not None
                    # The other task knows a previous incarnation of this process with a greater number (clocks differ,
                    # for example). Choose a greater number, so that this incarnation's records count as newer.
                    if record[:2] > known[:2]:
                        self._records[number] = known._replace(incarnation=record.incarnation + 1)
                elif known is None or record[:2] > known[:2]:
                    self._records[number] = record
                    if known is None or known.state != record.state:
                        _log.warning("%s %s", self.name(number), _STATES[record.state].format(record.address))
            self._changed.notify_all()

    def set_state(self, state: int) -> None:
        """Records that this process drains, or has ended."""
        with self._changed:
            if self._me is not None:
                self._records[self._me] = self._records[self._me]._replace(state=state)
            self._changed.notify_all()

    def _send_to_all(self) -> None:
        again_s = _FIRST_DELAY_S
        while not self._closed:
            others = self._others()
            try:
                missed = self._send_to_each(others)
            except RuntimeError as error:  # no thread could be started
                _log.warning("cannot start the threads that send the list of ps processes; retrying: %s", error)
                missed = set(others)
            self._wait_for_missing_records(missed, again_s)
            again_s = min(2 * again_s, _MAX_DELAY_S) if missed else _FIRST_DELAY_S

    def _others(self) -> list[int]:
        return [number for number in self.numbers() if number != self._me]

    def _wait_for_missing_records(self, missed: Collection[int], again_s: float) -> None:
        """Waits until a process other than those in ``missed`` lacks records. If ``missed`` is not empty, waits at most
        ``again_s`` seconds, after which the caller retries those processes."""

        def lacks_records() -> bool:
            others = [number for number in self._others() if number not in missed]
            return self._closed or any(self._acknowledged.get(number) != self._records for number in others)

        with self._changed:
            self._changed.wait_for(lacks_records, again_s if missed else None)

    def others_answer(self) -> bool:
        """Returns whether any other process answers; also True if no other process has ever sent records to this
        process."""
        others = self._others()
        return not self.met or len(self._send_to_each(others, again=True)) < len(others)

    def _send_to_each(self, numbers: Sequence[int], *, over: bool = False, again: bool = False) -> set[int]:
        """Sends the records to processes and returns the processes that have not answered. Uses a thread for each
        process, so that one without an answer does not delay the others; see `_exchange_records`."""
        missed: set[int] = set()

        def send(number: int) -> None:
            if not self._exchange_records(number, over=over, again=again):
                missed.add(number)

        threads = [threading.Thread(target=send, args=[number], daemon=True) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return missed

    def _exchange_records(self, number: int, *, over: bool = False, again: bool = False) -> bool:
        """Exchanges records with a process; returns whether it has answered.

        Args:
          number: the process's number.
          over: announce that the job is over.
          again: send the records even if the process has them already.
        """
        with self._changed:
            report = dict(self._records)
            if not (over or again) and self._acknowledged.get(number) == report:
                return True
        try:
            frame = Frame(kinds.PROCESSES, (self.words(), over))
            answer = exchange(self.link(number), self.name(number), frame, _ANSWER_TIMEOUT_S)
            match answer.header:
                case (words,):
                    self.merge_records(words)
                case _:
                    raise bad_header(answer, self.name(number))
        except OpError as error:
            _log.debug("cannot send the list of ps processes to %s: %s", self.name(number), error.message)
            return False
        with self._changed:
            self._acknowledged[number] = report
        return True

    def send_now(self, *, over: bool = False) -> None:
        """Sends the records to all other processes and returns when each has answered or could not be reached.
        ``over``: also announces that the job is over."""
        self._send_to_each(self._others(), over=over)

    def close(self) -> None:
        """Stops sending records."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


_STATES: Final = ("has joined at {}", "is about to end", "has ended")
