"""A worker that asks a ``ps`` for a set of parameters that the program of the ``ps`` will not create."""

from __future__ import annotations

import threading

import pytest

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import raise_error
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import FailedPreconditionError
from headwater.ps.service import ParameterService


@pytest.mark.parametrize("asked_before", [True, False])
def test_a_set_that_the_program_cannot_create_any_more_is_refused(asked_before: bool) -> None:
    service = ParameterService("/job:ps/task:0", ProgressWatchdog(lambda _: True), is_needed=lambda: True)
    ours, theirs = memory_pair()
    serving = threading.Thread(target=service.serve, args=(theirs, Frame(kinds.HELLO, ("second",))))
    if asked_before:
        serving.start()
    service.refuse_other_sets()
    if not asked_before:
        serving.start()
    with pytest.raises(FailedPreconditionError, match="cannot create 'second' any more"):
        raise_error(ours.recv(), "/job:ps/task:0")
    serving.join()


def test_the_error_of_a_described_set_reaches_its_worker() -> None:
    service = ParameterService("/job:ps/task:0", ProgressWatchdog(lambda _: True), is_needed=lambda: True)
    made: list[tuple[str, bytes]] = []

    def make(name: str, description: bytes) -> None:
        made.append((name, description))
        raise FailedPreconditionError(None, None, "there is no room for it")

    service.refuse_other_sets(make)
    ours, theirs = memory_pair()
    serving = threading.Thread(target=service.serve, args=(theirs, Frame(kinds.HELLO, ("second", b"described"))))
    serving.start()
    with pytest.raises(FailedPreconditionError, match="there is no room for it"):
        raise_error(ours.recv(), "/job:ps/task:0")
    serving.join()
    assert made == [("second", b"described")]
