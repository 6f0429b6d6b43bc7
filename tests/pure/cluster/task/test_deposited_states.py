"""States that the chief keeps for ``ps`` that have ended, frame by frame."""

from __future__ import annotations

import errno
from types import SimpleNamespace

import numpy as np
import pytest

from headwater.cluster.task import exchange
from headwater.cluster.task.answers import raise_error
from headwater.cluster.task.deposited_states import CHIEF_TIMEOUT_S, DepositedStates, StateAtChief
from headwater.cluster.task.kinds import DEPOSIT_STATE, DONE, FETCH_STATE
from headwater.cluster.transport.channel import memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.problems import Problem
from headwater.data.io import array_file
from headwater.errors import (
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
)
from tests.support.deposits import Link


def kept(link: Link, number: int = 0) -> StateAtChief:
    return StateAtChief("what", number, "/job:worker/task:0", link)


def found(one: StateAtChief) -> tuple[list[object], list[object]] | None:
    """The deposited state with which the task continues."""
    fetched = one.fetch()
    if fetched is None:
        return None
    fetched.discard_at_chief()
    return list(fetched.words), [tensor.tolist() for tensor in fetched.tensors]


def test_a_state_is_there_once() -> None:
    link = Link(DepositedStates())
    one, other = kept(link), kept(link, 1)
    assert one.fetch() is None
    one.deposit(("a", 1), [np.arange(2)])
    assert other.fetch() is None
    assert found(one) == (["a", 1], [[0, 1]])
    assert one.fetch() is None


def test_the_last_deposit_counts() -> None:
    link = Link(DepositedStates())
    one = kept(link)
    one.deposit(("a",), [])
    one.deposit(("b",), [])
    assert found(one) == (["b"], [])


@pytest.mark.parametrize("lost", range(3))
def test_each_frame_may_be_repeated(lost: int) -> None:
    """Of leaving, fetching and dropping a state one answer is lost."""
    link = Link(DepositedStates(), lost)
    one = kept(link)
    one.deposit(("a",), [np.arange(2)])
    assert found(one) == (["a"], [[0, 1]])
    assert link.opened == 4
    assert one.fetch() is None


def test_fetching_is_retried_a_limited_number_of_times() -> None:
    link = Link(DepositedStates(), *range(10))
    with pytest.raises(UnavailableError):
        kept(link).fetch()
    assert link.opened == 3


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that have passed, which do only where somebody pauses."""
    seconds = [0.0]

    def pause(more: float) -> None:
        seconds[0] += more

    monkeypatch.setattr(exchange, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    monkeypatch.setattr(exchange, "pause", pause)
    return seconds


@pytest.mark.parametrize("problem", [Problem.SILENT, Problem.CLOSED, Problem.NO_ANSWER, Problem.UNREACHABLE])
def test_a_chief_that_stalls_for_20_seconds_is_awaited(problem: Problem, passed: list[float]) -> None:
    link = Link(DepositedStates())
    one = kept(link)

    def stands_still() -> None:
        until = passed[0] + 20.0
        link.refuses = lambda: problem if passed[0] < until else None

    stands_still()
    one.require_chief()
    stands_still()
    one.deposit(("a",), [])
    stands_still()
    assert found(one) == (["a"], [])
    assert passed[0] >= 60.0


def test_a_chief_that_stalls_is_not_awaited_forever(passed: list[float]) -> None:
    link = Link(DepositedStates())
    link.refuses = lambda: Problem.SILENT
    with pytest.raises(UnavailableError):
        kept(link).fetch()
    assert CHIEF_TIMEOUT_S <= passed[0] < CHIEF_TIMEOUT_S + 1.0


@pytest.mark.parametrize("problem", [Problem.REFUSED, Problem.UNKNOWN_HOST, Problem.TOKEN])
def test_a_chief_that_is_not_there_is_not_awaited(problem: Problem, passed: list[float]) -> None:
    """The chief may be missing, for example, while the tasks of a cluster start."""
    link = Link(DepositedStates())
    link.refuses = lambda: problem
    for ask in (kept(link).fetch, kept(link).require_chief):
        link.tried = 0
        with pytest.raises(UnavailableError):
            ask()
        assert (link.tried, passed[0]) == (1, 0.0)


@pytest.mark.parametrize("lost", [(), (0, 1, 2), (1, 2, 3)])
def test_no_later_incarnation_uses_a_state_that_the_next_one_lacked(lost: tuple[int, ...]) -> None:
    """The next request did not reach the chief, or every answer was lost: to a fetch, or to a discard."""
    service = DepositedStates()
    kept(Link(service, incarnation=1)).deposit(("a",), [])
    service.discard_outdated("what", 0, 1)  # the chief may yet come to the life that has left it
    service.discard_outdated("what", 1, 2)
    service.discard_outdated("other", 0, 2)
    if lost:
        with pytest.raises(UnavailableError):
            found(kept(Link(service, *lost, incarnation=2)))
    service.discard_outdated("what", 0, 2)
    assert kept(Link(service, incarnation=3)).fetch() is None


def test_a_known_incarnation_may_deposit_its_state() -> None:
    service = DepositedStates()
    service.discard_outdated("what", 0, 1)
    kept(Link(service, incarnation=1)).deposit(("a",), [])
    service.discard_outdated("what", 0, 1)
    assert found(kept(Link(service, incarnation=2))) == (["a"], [])


def test_parts_belong_to_the_state_that_is_left_after_them() -> None:
    service = DepositedStates()
    one = kept(Link(service, incarnation=1))
    rows = [np.arange(6, dtype=np.float32).reshape(3, 2), np.array([True, False]), np.zeros((0, 4), np.int64)]
    one.deposit_part(0, (7, "x"), rows)
    one.deposit_part(1, (), [np.arange(3)])
    assert kept(Link(service, incarnation=2)).fetch() is None  # it is not all there
    one.deposit(("a",), [])
    fetched = kept(Link(service, incarnation=2)).fetch()
    assert fetched is not None
    assert [list(part.header) for part in map(fetched.part, (1, 0))] == [[], [7, "x"]]
    for given, came in zip(rows, fetched.part(0).tensors, strict=True):
        assert (given.dtype, given.shape, given.tolist()) == (came.dtype, came.shape, came.tolist())
    with pytest.raises(NotFoundError, match="no part 2"):
        fetched.part(2)
    fetched.discard_at_chief()
    with pytest.raises(NotFoundError, match="no deposited state"):
        fetched.part(0)


def test_an_incomplete_deposit_discards_earlier_deposits() -> None:
    service = DepositedStates()
    kept(Link(service, incarnation=1)).deposit(("a",), [])
    kept(Link(service, incarnation=2)).deposit_part(0, (), [])
    assert kept(Link(service, incarnation=3)).fetch() is None
    last = kept(Link(service, incarnation=3))
    last.deposit(("c",), [])
    assert found(kept(Link(service, incarnation=4))) == (["c"], [])


def test_a_chief_reports_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def pwrite(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(array_file.os, "pwrite", pwrite)
    with pytest.raises(ResourceExhaustedError, match="No space left on device"):
        kept(Link(DepositedStates())).deposit_part(0, (), [np.arange(3)])


@pytest.mark.parametrize("frame", [Frame(DEPOSIT_STATE, (1, 2)), Frame(FETCH_STATE, ("what",)), Frame(DONE)])
def test_frames_that_make_no_sense(frame: Frame) -> None:
    mine, theirs = memory_pair()
    DepositedStates().serve(theirs, frame)
    with pytest.raises(InvalidArgumentError):
        raise_error(mine.recv(), "the chief")
