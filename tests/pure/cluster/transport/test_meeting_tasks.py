"""A link to a task that is lost during the handshake: the link connects again."""

from __future__ import annotations

import pytest

from headwater.cluster.addresses import parse_address
from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.handlers import DeviceInfo, TaskStatus
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.links import LinkSettings
from headwater.cluster.transport.waiting import Patience, Waiter
from headwater.errors import DeadlineExceededError
from headwater.graph.master.links import TaskLink


class _Control(ControlClient):
    """The control plane of a task that answers the second time only."""

    def __init__(self) -> None:
        self.asked = 0

    def status(self, *, timeout_s: float = 10.0, wait: bool = False) -> TaskStatus:
        return TaskStatus(task="/job:ps/task:0", generation=7, started=0.0, pid=1, version="")

    def list_devices(self) -> list[DeviceInfo]:
        self.asked += 1
        if self.asked == 1:
            raise DeadlineExceededError(None, None, "the network lost the answer")
        return [DeviceInfo(name="/job:ps/replica:0/task:0/device:CPU:0", type="CPU")]

    def close(self) -> None:
        return


class _Link(TaskLink):
    # It answers a control plane only: neither has a channel.
    def _attempt(self, limit_s: float | None = None) -> _Control:  # type: ignore[override]
        assert isinstance(self._control, _Control)
        return self._control


def test_an_answer_that_is_lost_while_a_task_is_met_is_asked_for_again() -> None:
    pauses: list[float] = []
    waiter = Waiter(Patience(), clock=lambda: sum(pauses), pause=lambda seconds: bool(pauses.append(seconds)))
    link_settings = LinkSettings(me=PeerIdentity(task="/job:worker/task:0", generation=1), waiter=waiter)
    link = _Link(link_settings, TaskName("ps", 0), parse_address("ps0:1"), Claim())
    link._control = control = _Control()
    status = link.wait()
    assert status.generation == 7
    assert status.devices == ("/job:ps/replica:0/task:0/device:CPU:0",)
    assert control.asked == 2
    assert len(pauses) == 1


def test_an_answer_that_is_lost_each_time_is_given_up_after_the_deadline() -> None:
    now = [0.0]

    def pause(seconds: float) -> bool:
        now[0] += seconds
        return False

    waiter = Waiter(Patience(deadline_s=5.0), clock=lambda: now[0], pause=pause)
    link = _Link(
        LinkSettings(me=PeerIdentity(task="/job:worker/task:0", generation=1), waiter=waiter),
        TaskName("ps", 0),
        parse_address("ps0:1"),
        Claim(),
    )

    class Silent(_Control):
        def list_devices(self) -> list[DeviceInfo]:
            raise DeadlineExceededError(None, None, "the network lost the answer")

    link._control = Silent()
    with pytest.raises(Exception, match=r"gave up waiting for /job:ps/task:0 at ps0:1 after 5 s.*lost the answer"):
        link.wait()
