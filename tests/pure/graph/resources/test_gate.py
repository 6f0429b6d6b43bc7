"""The gate of workers with gathered gradients: another worker restarts an update whose maker was lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from headwater.errors import AbortedError
from headwater.graph.resources.gate import Gate
from headwater.ps.consistency import KOfN


class Blocked(Exception):
    """A step would wait."""


class Looks:
    """A step that does not wait."""

    def wait_until(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        del condition
        if not ready():
            raise Blocked(what)


@pytest.fixture
def gate() -> Gate:
    gate = Gate("gate", KOfN(k=1))
    gate.restart(0, name=7)
    with pytest.raises(Blocked):
        gate.end_step(Looks(), "worker", "worker", 0, 7)
    return gate


def test_lost_updater_is_replaced_by_one_replica(gate: Gate) -> None:
    assert gate.wait_for_update(Looks(), "maker") == (1, 7)
    gate.session_ended("maker", "lost")
    with pytest.raises(AbortedError, match="an update was not completed: its worker is lost"):
        gate.wait_for_update(Looks(), "mender")
    with pytest.raises(Blocked):
        gate.wait_for_update(Looks(), "other")  # one is enough
    gate.restart(0, again=True, name=8)
    assert gate.end_step(Looks(), "worker", "worker", 0, 7) == (0, 8)


def test_next_replica_replaces_a_lost_replacement(gate: Gate) -> None:
    gate.wait_for_update(Looks(), "maker")
    gate.session_ended("maker", "lost")
    with pytest.raises(AbortedError):
        gate.wait_for_update(Looks(), "mender")
    gate.session_ended("mender", "lost")
    with pytest.raises(AbortedError, match="its worker is lost"):
        gate.wait_for_update(Looks(), "other")


def test_a_gate_consults_the_ledger_under_the_lock_of_the_resources() -> None:
    """An update holds this lock while it notifies the gate: otherwise each could wait for the other."""
    lock = threading.RLock()
    gate = Gate("gate", KOfN(k=1), lock=lock)
    gate.restart(0, name=7)
    free: list[bool] = []

    class Account:
        name = "account"

        def mark_step_given(self, step: object) -> None:
            del step
            other = threading.Thread(target=lambda: free.append(lock.acquire(blocking=False)))
            other.start()
            other.join()

        def is_starved(self) -> bool:
            return False

    with pytest.raises(Blocked):
        gate.end_step(Looks(), "worker", "worker", 0, 7, 1, Account())
    assert free == [False]


def test_no_update_is_due_before_the_start() -> None:
    gate = Gate("gate", KOfN(k=1))
    with pytest.raises(Blocked):
        gate.end_step(Looks(), "worker", "worker", 0, 0)
    with pytest.raises(Blocked):
        gate.wait_for_update(Looks(), "maker")
    gate.restart(0, name=7)
    assert gate.wait_for_update(Looks(), "maker") == (1, 7)
