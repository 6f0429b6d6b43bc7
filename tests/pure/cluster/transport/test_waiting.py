"""Waits for a task: their log messages, the intervals between these, and the end of a wait. No time passes."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable

import pytest

from headwater.cluster.addresses import Address
from headwater.cluster.transport.problems import ConnectFailure, Problem, failure_of
from headwater.cluster.transport.waiting import Patience, Waiter
from headwater.errors import (
    AbortedError,
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    UnauthenticatedError,
    UnavailableError,
)

ADDRESS = Address("ps0", 2222)


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.now += seconds
        return False


def wait(
    outcomes: Callable[[Clock], object], *, patience: Patience | None = None, deadline_s: float | None = None
) -> tuple[object, Clock]:
    clock = Clock()
    waiter = Waiter(patience or Patience(), clock=clock, pause=clock.pause)
    result = waiter.connect(
        lambda: outcomes(clock),
        me="/job:worker/task:0",
        peer="/job:ps/task:0",
        address=ADDRESS,
        deadline_s=deadline_s,
    )
    return result, clock


def failing(problem: Problem, *, takes_s: float = 0.0, until_s: float = float("inf")) -> Callable[[Clock], object]:
    def attempt(clock: Clock) -> object:
        clock.now += takes_s
        if clock.now - 1000.0 >= until_s:
            return "connected"
        raise ConnectFailure(problem, problem.value)

    return attempt


def test_at_once_and_silently(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        result, clock = wait(lambda clock: "connected")
    assert result == "connected"
    assert clock.pauses == []
    assert caplog.messages == []


def test_a_line_every_few_seconds(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        wait(failing(Problem.REFUSED, until_s=21))
    lines = caplog.messages
    assert len(lines) == 5 + 1
    assert lines[2].startswith("/job:worker/task:0 waits for /job:ps/task:0 at ps0:2222, 1")
    assert "refused (nothing listens there yet" in lines[2]
    assert "gives up in" in lines[2]
    assert lines[-1].startswith("/job:worker/task:0 reached /job:ps/task:0 at ps0:2222 after 2")


def test_pauses_grow_to_a_limit() -> None:
    _, clock = wait(failing(Problem.REFUSED, until_s=60))
    assert clock.pauses[0] == 0.05
    assert clock.pauses == sorted(clock.pauses)
    assert clock.pauses[-1] == 1.0


@pytest.mark.parametrize(
    "problem", [Problem.REFUSED, Problem.UNKNOWN_HOST, Problem.SILENT, Problem.NOT_HEADWATER, Problem.CLOSED]
)
def test_a_deadline(problem: Problem) -> None:
    with pytest.raises(UnavailableError) as caught:
        wait(failing(problem))
    message = str(caught.value)
    assert message.startswith("/job:worker/task:0 gave up waiting for /job:ps/task:0 at ps0:2222 after 600 s")
    assert problem.value in message


def test_the_deadline_is_kept_to() -> None:
    clock = Clock()
    waiter = Waiter(Patience(), clock=clock, pause=clock.pause)
    with pytest.raises(UnavailableError):
        waiter.connect(lambda: failing(Problem.REFUSED)(clock), me="a", peer="b", address=ADDRESS, deadline_s=3.3)
    assert clock.now == pytest.approx(1003.3)
    with pytest.raises(UnavailableError, match="gave up waiting for b at ps0:2222: refused"):
        waiter.connect(lambda: failing(Problem.REFUSED)(clock), me="a", peer="b", address=ADDRESS, deadline_s=0)


def test_nothing_answers_at_all(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), pytest.raises(UnavailableError) as caught:
        wait(failing(Problem.NO_ANSWER, takes_s=5))
    assert "ps0:2222" in caught.value.message
    assert "firewall" in caught.value.message
    assert "after 2" in caught.value.message  # seconds: within half a minute
    assert len(caplog.messages) >= 4
    assert all("firewall" in line for line in caplog.messages)


def test_a_task_that_has_answered_before_is_awaited_longer() -> None:
    outcomes = iter([Problem.REFUSED])

    def attempt(clock: Clock) -> object:
        return failing(next(outcomes, Problem.NO_ANSWER), takes_s=5, until_s=300)(clock)

    result, _ = wait(attempt)
    assert result == "connected"


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (Problem.TOKEN, UnauthenticatedError),
        (Problem.CERTIFICATE, UnauthenticatedError),
        (Problem.VERSION, FailedPreconditionError),
        (Problem.GENERATION, AbortedError),
    ],
)
def test_permanent_failures_are_not_retried(problem: Problem, error: type[OpError]) -> None:
    attempts: list[None] = []

    def attempt(clock: Clock) -> object:
        attempts.append(None)
        raise ConnectFailure(problem, "this is why")

    with pytest.raises(error, match="this is why"):
        wait(attempt)
    assert len(attempts) == 1


def test_cancelled() -> None:
    waiter = Waiter(Patience())

    def attempt() -> object:
        waiter.cancel()
        raise ConnectFailure(Problem.REFUSED, "refused")

    with pytest.raises(CancelledError, match="stopped while it waited for b"):
        waiter.connect(attempt, me="a", peer="b", address=ADDRESS)


def test_other_errors_pass_through() -> None:
    with pytest.raises(ZeroDivisionError):
        wait(lambda clock: 1 / 0)


def test_settings() -> None:
    environ = {"HEADWATER_CONNECT_DEADLINE_S": "30", "HEADWATER_SILENCE_DEADLINE_S": " 5.5 "}
    assert Patience.from_environment(environ) == Patience(deadline_s=30, silence_deadline_s=5.5)
    assert Patience.from_environment({"HEADWATER_CONNECT_DEADLINE_S": ""}) == Patience()
    with pytest.raises(InvalidArgumentError, match="HEADWATER_CONNECT_DEADLINE_S is 'soon'"):
        Patience.from_environment({"HEADWATER_CONNECT_DEADLINE_S": "soon"})
    for wrong in ("-1", "nan"):
        with pytest.raises(InvalidArgumentError, match="deadline_s"):
            Patience.from_environment({"HEADWATER_CONNECT_DEADLINE_S": wrong})


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (ConnectionRefusedError(111, "Connection refused"), Problem.REFUSED),
        (TimeoutError("timed out"), Problem.NO_ANSWER),
        (socket.gaierror(-2, "Name or service not known"), Problem.UNKNOWN_HOST),
        (OSError(113, "No route to host"), Problem.UNREACHABLE),
        (OSError(101, "Network is unreachable"), Problem.UNREACHABLE),
        (ConnectionResetError(104, "Connection reset by peer"), Problem.CLOSED),
        (EOFError(), Problem.CLOSED),
        (ssl.SSLError(1, "wrong version number"), Problem.CERTIFICATE),
        (OSError(24, "Too many open files"), Problem.DESCRIPTORS),
        (OSError(5, "Input/output error"), Problem.OTHER),
    ],
)
def test_socket_errors_are_classified(error: Exception, problem: Problem) -> None:
    failure = failure_of(error)
    assert failure.problem is problem
    assert failure.detail
    if problem is not Problem.OTHER:
        assert failure.hint in str(failure)
