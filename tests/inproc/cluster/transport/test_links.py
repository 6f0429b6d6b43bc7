"""The link to another task."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from headwater.cluster.addresses import parse_address
from headwater.cluster.names import TaskName
from headwater.cluster.transport.handlers import TaskStatus
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.links import Link, LinkSettings
from headwater.cluster.transport.waiting import Patience, Waiter
from headwater.errors import DeadlineExceededError, UnavailableError

STATUS = TaskStatus(task="/job:worker/task:1", generation=2, started=0.0, pid=1, version="", details={})


class Ending(Link):
    """A link to a task that accepts the connection and then ends, a number of times; after that, the task stays."""

    ends = 1

    class _Channel:
        def close(self) -> None: ...

    def _attempt(self, limit_s: float | None = None) -> Any:
        return self._Channel()

    @property
    def control(self) -> Any:
        return self

    def status(self, *, wait: bool) -> TaskStatus:
        assert wait
        self.ends -= 1
        if self.ends >= 0:
            raise DeadlineExceededError(None, None, "a call to /job:worker/task:1 failed: Deadline Exceeded")
        return STATUS


def _link(deadline_s: float) -> Ending:
    waiter = Waiter(Patience(deadline_s=deadline_s, first_pause_s=0.0))
    me = PeerIdentity(task="/job:worker/task:0", generation=1)
    return Ending(LinkSettings(me=me, waiter=waiter), TaskName("worker", 1), parse_address("localhost:1"))


def test_a_task_that_restarts_during_its_identification_is_awaited(caplog: pytest.LogCaptureFixture) -> None:
    link = _link(600.0)
    with caplog.at_level(logging.WARNING):
        assert link.reach() == STATUS
    assert "waits for /job:worker/task:1 at localhost:1" in caplog.text


def test_an_unreachable_task_is_given_up_after_the_deadline() -> None:
    link = _link(0.0)
    link.ends = 1000
    with pytest.raises(UnavailableError, match="gave up waiting for /job:worker/task:1 at localhost:1"):
        link.reach()


def _unavailable(control: Any) -> None:
    del control
    raise UnavailableError(None, None, "connection refused")


@pytest.mark.parametrize(("may_restart", "attempts"), [(True, 4), (False, 1)])
def test_only_a_task_that_may_return_is_asked_again(may_restart: bool, attempts: int) -> None:
    now = [0.0]

    def pause(seconds: float) -> bool:
        del seconds
        now[0] += 0.4
        return False

    waiter = Waiter(Patience(), clock=lambda: now[0], pause=pause)
    link = Ending(
        LinkSettings(me=PeerIdentity(task="/job:chief/task:0", generation=1), waiter=waiter),
        TaskName("worker", 1),
        parse_address("localhost:1"),
    )
    link.ends = 1000
    with pytest.raises(UnavailableError):
        link.call(_unavailable, may_restart=may_restart)
    assert 1000 - link.ends == attempts
