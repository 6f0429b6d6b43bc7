"""Threads that are used again: their number does not grow with the calls."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from headwater.cluster.transport.daemon_threads import DaemonThreads

CALLERS = 4


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_threads_are_used_again() -> None:
    threads = DaemonThreads("tested")
    found: set[int] = set()

    def call() -> None:
        for _ in range(500):
            found.add(threads.submit(threading.get_ident).result())

    callers = [threading.Thread(target=call) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    threads.shutdown()
    # Threads that have told their results may not wait for work yet; it was one for each four calls.
    assert len(found) <= 10 * CALLERS


def test_calls_wait_for_one_of_the_most_threads() -> None:
    threads = DaemonThreads("tested", most=1)
    go_on = threading.Event()
    first, second = threads.submit(go_on.wait), threads.submit(threading.get_ident)
    assert not second.done()
    go_on.set()
    assert first.result()
    assert second.result() != threading.get_ident()
    threads.shutdown()
