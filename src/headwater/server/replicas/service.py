"""The copies that a ``ps`` of graphs has: that of its own task, and that of the ``ps`` before it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.master.links import SESSIONS_DETAIL, STEPS_DETAIL
from headwater.server.replicas.copy import GraphCopy, Surroundings
from headwater.server.snapshot import add_state
from headwater.task.answers import bad_header
from headwater.task.kinds import OPEN_COPY, SECOND
from headwater.task.service import Service
from headwater.task.shell import TaskShell
from headwater.telemetry.snapshot import Snapshot
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame

_log = logging.getLogger("headwater")


class CopyService(Service):
    """Serves masters, and follows other copies.

    Args:
      shell: the task.
      copies: by name.
      around: what copies need of their process.
    """

    kinds: ClassVar[Collection[int]] = (OPEN_COPY, SECOND)

    def __init__(self, shell: TaskShell, copies: Sequence[GraphCopy], around: Surroundings) -> None:
        self.copies: Sequence[GraphCopy] = copies
        self._shell = shell
        self._around = around

    def start(self) -> None:
        """Begins to ask who serves."""
        for copy in self.copies:
            copy.start()

    def serve(self, channel: Channel, first: Frame) -> None:
        match first.kind, first.header:
            case _, (int(task),) if first.kind == OPEN_COPY and (found := self._of_task(task)) is not None:
                found.serve(channel, lambda: self._shell.disconnected(channel))
            case _, (str(name), *_) if first.kind == SECOND and (found := self._called(name)) is not None:
                found.take(channel, first)
            case _:
                raise bad_header(first, channel.peer)

    def _of_task(self, index: int) -> GraphCopy | None:
        return next((copy for copy in self.copies if copy.served.index == index), None)

    def _called(self, name: str) -> GraphCopy | None:
        return next((copy for copy in self.copies if copy.name == name), None)

    def has_served(self, generation: int) -> bool:
        return any(copy.runtime.has_served(generation) for copy in self.copies)

    def refusal(self, task: Claim) -> str:
        if not task.task:
            return ""
        name = str(TaskName.parse(task.task))
        claim = dataclasses.replace(task, task=TaskName.parse(task.task).device_prefix)
        reasons = (
            copy.runtime.refusal(
                claim,
                address=self._around.address(name),
                connected=lambda generation: self._around.connected(name, generation),
            )
            for copy in self.copies
            if copy.serves
        )
        return next((reason for reason in reasons if reason), "")

    def lost(self, task: str, generation: int) -> None:
        for copy in self.copies:
            # A copy that follows hears what becomes of it from the one that serves, and it may ask before it is served.
            if (
                generation
                and copy.has_met(generation)
                and copy.runtime.lose(generation, "its last connection has ended")
            ):
                _log.warning("%s has lost %s, whose sessions are still open", copy.served, task)

    def is_open(self, session: str) -> bool:
        return any(copy.runtime.knows(session) for copy in self.copies)

    def job_over(self, reason: str) -> None:
        for copy in self.copies:
            copy.job_over()
            copy.runtime.resources.job_over(reason)

    def close(self) -> None:
        for copy in self.copies:
            copy.close()

    def details(self) -> Mapping[str, bytes]:
        return {
            STEPS_DETAIL: str(sum(copy.steps for copy in self.copies)).encode(),
            SESSIONS_DETAIL: str(sum(copy.runtime.session_count() for copy in self.copies if copy.serves)).encode(),
        }

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        for copy in self.copies:
            if copy.serves:
                snapshot = add_state(snapshot, copy.runtime)
        groups = (copy.group() for copy in self.copies)
        return dataclasses.replace(snapshot, groups=(*snapshot.groups, *groups))
