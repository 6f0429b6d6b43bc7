"""A worker's connections for embedding tables: one frame to each ``ps``, and its answer."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, raise_error
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.waiting import Patience
from headwater.errors import AbortedError, OpError, UnavailableError
from headwater.ps.client import ServerLink
from headwater.ps.conversation import Traffic

_log = logging.getLogger("headwater")

_Result = TypeVar("_Result")


@dataclass(kw_only=True, slots=True)
class _Session:
    task: str
    link: ServerLink
    number: int
    channel: Channel | None = None


class TableSessions:
    """The connections of one worker to every ``ps``. Used by one thread at a time.

    Attributes:
      tasks: the names of the ``ps``.
      traffic: amount of data exchanged so far.

    Args:
      worker: the name of the worker.
      links: a name for messages and a route, for each ``ps``.
      tables: returns the contents of the first frame of a connection: for each table its name, its configuration, and a
        folder with saves or None.
      replicas: number of replicas of each part. If there are two, or parts move, the first frame of a connection names
        the part.
      shards: number of parts that move between ``ps``; None if each ``ps`` has one fixed part.
      on_handshake: called after each handshake with a ``ps``, with its number and the generation of its process.
    """

    def __init__(
        self,
        worker: str,
        links: Sequence[tuple[str, ServerLink]],
        tables: Callable[[], Sequence[object]],
        *,
        replicas: int = 1,
        shards: int | None = None,
        on_handshake: Callable[[int, int], None] | None = None,
    ) -> None:
        self._worker = worker
        self._sessions = [_Session(task=task, link=link, number=number) for number, (task, link) in enumerate(links)]
        self._replicas = replicas
        self._shards = shards
        self._tables = tables
        self._on_handshake = on_handshake
        self._number = secrets.randbits(62)  # identifies the updates of this program on a ps
        self.tasks: Final = [task for task, _ in links]
        self.traffic: Traffic = Traffic()

    def open(self) -> None:
        """Reopens every connection with the present tables.

        Raises:
          OpError: a ``ps`` cannot be reached, or has another table with one of the names.
        """
        self.close()  # the first frame of a connection lists the tables
        for session in self._sessions:
            self._retry(session, lambda session=session: self._open_channel(session))

    def close(self) -> None:
        """Closes all connections."""
        for session in self._sessions:
            self._drop(session)

    def exchange(self, frames: Sequence[Frame | None]) -> list[Frame | None]:
        """Sends each ``ps`` its frame, if that is not None, and returns the answers. Waits for lost ``ps``."""
        # Send all frames before receiving any answer, so that all ps work concurrently.
        sent = [self._send(session, frame) for session, frame in zip(self._sessions, frames, strict=True)]
        answers: list[Frame | None] = []
        failed: OpError | None = None
        for session, frame, was_sent in zip(self._sessions, frames, sent, strict=True):
            try:
                answers.append(None if frame is None else self._receive(session, frame, was_sent))
            except OpError as error:
                failed = failed or error  # the other ps have received their frames: read their answers anyway
            except BaseException:
                self.close()  # an unread answer would be read as the answer to a later frame
                raise
        if failed is not None:
            raise failed
        self.traffic += Traffic(sent_bytes=_nbytes(frames), received_bytes=_nbytes(answers), round_trips=1)
        return answers

    def _send(self, session: _Session, frame: Frame | None) -> bool:
        if frame is None or session.channel is None:
            return False
        try:
            session.channel.send(frame)
        except (UnavailableError, AbortedError):
            return False
        return True

    def _receive(self, session: _Session, frame: Frame, was_sent: bool) -> Frame:
        def attempt() -> Frame:
            nonlocal was_sent
            if not was_sent:
                self._open_channel(session).send(frame)
            # An attempt after this one needs a new connection, and sends the frame again.
            was_sent = False
            assert session.channel is not None
            return self._answer(session.channel, session.task)

        return self._retry(session, attempt)

    def _retry(self, session: _Session, work: Callable[[], _Result]) -> _Result:
        """Repeats ``work`` while the ``ps`` is lost, up to the deadline."""
        give_up_at = time.monotonic() + Patience.from_environment().deadline_s
        while True:
            try:
                return work()
            except (UnavailableError, AbortedError) as error:
                if time.monotonic() >= give_up_at:
                    raise
                _log.warning("%s reconnects to %s: %s", self._worker, session.task, error.message)

    def _drop(self, session: _Session) -> None:
        if session.channel is not None:
            session.link.release_channel(session.channel, False)
            session.channel = None

    def _open_channel(self, session: _Session) -> Channel:
        self._drop(session)
        session.link.reach()
        channel = session.channel = session.link.open_channel()
        named = self._replicas > 1 or self._shards is not None
        which = (session.number, self._shards, self._replicas) if named else ()
        channel.send(Frame(kinds.OPEN_TABLES, (self._number, self._tables(), *which)))
        self._answer(channel, session.task)
        if self._on_handshake is not None:
            self._on_handshake(session.number, channel.peer_generation)
        return channel

    def _answer(self, channel: Channel, task: str) -> Frame:
        while (answer := channel.recv()).kind == kinds.WAIT:
            _log.info("%s waits for %s: %s", self._worker, task, *answer.header)
        if answer.kind == kinds.ERROR:
            raise_error(answer, task)
        if answer.kind != kinds.DONE:
            raise bad_header(answer, task)
        return answer


def _nbytes(frames: Sequence[Frame | None]) -> int:
    """Returns the bytes of the tensors of some frames."""
    return sum(tensor.nbytes for frame in frames if frame is not None for tensor in frame.tensors)
