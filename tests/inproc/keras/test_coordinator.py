"""A coordinator and workers that call functions by name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

from headwater.cluster.task.answers import raise_error
from headwater.cluster.task.kinds import CALL, DONE, END_CALLS, OPEN_CALLS
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import (
    CancelledError,
    GaveUpError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    UnavailableError,
    UnknownError,
)
from headwater.keras.coordinator.calls import CallServer, Registry
from headwater.keras.coordinator.coordinator import ClusterCoordinator, name_of
from headwater.keras.coordinator.values import PerWorker, decode, encode
from headwater.keras.parameter_server.strategy import ParameterServerStrategy


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterCoordinator]:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    made = ClusterCoordinator(ParameterServerStrategy())
    yield made
    made.close()


def test_functions_run_and_their_results_are_fetched(coordinator: ClusterCoordinator) -> None:
    def add(one: Any, other: Any, *, times: int = 1) -> Any:
        return {"sum": (one + other) * times, "kinds": (None, "text", b"bytes", [True])}

    first = coordinator.schedule(add, args=(1, 2))
    second = coordinator.schedule(add, args=(np.arange(3), first), kwargs={"times": 2})
    with pytest.raises(UnknownError, match=r"TypeError in .*add"):  # an array and a dict
        second.fetch()
    assert coordinator.fetch([first])[0] == {"sum": 3, "kinds": (None, "text", b"bytes", [True])}
    with pytest.raises(UnknownError):
        coordinator.join()
    third = coordinator.schedule(add, args=(np.arange(3), 1))
    coordinator.join()
    assert coordinator.done()
    np.testing.assert_array_equal(third.fetch()["sum"], [1, 2, 3])


def test_each_worker_has_iterators_of_its_own(coordinator: ClusterCoordinator) -> None:
    made = coordinator.create_per_worker_dataset(lambda: [10, 20])
    one, other = iter(made), iter(made)

    def take(batches: Any) -> int:
        return next(batches)

    taken = [coordinator.schedule(take, args=(batches,)) for batches in (one, one, other)]
    coordinator.join()
    assert coordinator.fetch(taken) == [10, 20, 10]
    coordinator.schedule(take, args=(one,))
    with pytest.raises(OutOfRangeError, match="a dataset ended"):
        coordinator.join()
    with pytest.raises(TypeError, match="pass its iterator to schedule"):
        next(one)


def test_scheduled_functions_are_cancelled_when_one_fails(coordinator: ClusterCoordinator) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def fail() -> None:
        begun.set()
        go_on.wait()
        raise ValueError("no")

    failing = coordinator.schedule(fail)
    begun.wait()
    later = [coordinator.schedule(fail) for _ in range(3)]
    go_on.set()
    with pytest.raises(UnknownError, match=r"ValueError in .*fail: no"):
        failing.fetch()
    for result in later:
        with pytest.raises(CancelledError, match="scheduled before, failed"):
            result.fetch()
    with pytest.raises(UnknownError):
        coordinator.join()


class Absent:
    """A worker that does not start before the deadline."""

    def reach(self) -> None:
        raise GaveUpError(None, None, "gave up waiting for /job:worker/task:1")


def test_scheduled_functions_fail_when_no_worker_is_left(coordinator: ClusterCoordinator) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def busy() -> None:
        begun.set()
        go_on.wait()

    first = coordinator.schedule(busy)
    begun.wait()
    second = coordinator.schedule(busy)
    coordinator._workers.clear()  # the connection of this process sends nothing more
    coordinator._start("/job:worker/task:1", cast(Any, Absent()))
    with pytest.raises(UnavailableError, match=r"no worker is left .*: gave up waiting for /job:worker/task:1"):
        second.fetch()
    go_on.set()
    first.fetch()
    with pytest.raises(UnavailableError, match="no worker is left"):
        coordinator.join()
    with pytest.raises(UnavailableError, match="no worker is left"):
        coordinator.schedule(busy)


def served(registry: Registry) -> Channel:
    """Returns a channel to a worker with these functions."""
    server = CallServer("/job:worker/task:1", registry)
    server.start()
    ours, theirs = memory_pair()
    threading.Thread(target=lambda: server.serve(theirs, theirs.recv()), daemon=True).start()
    ours.send(Frame(OPEN_CALLS))
    return ours


def test_a_worker_calls_only_registered_functions() -> None:
    registry = Registry()
    name = registry.add(len)
    channel = served(registry)
    for wanted in ("os.system", "builtins.eval", "headwater.keras.coordinator.calls.name_of"):
        channel.send(Frame(CALL, (wanted, encode((["x"], {}), []))))
        with pytest.raises(NotFoundError, match="has not registered"):
            raise_error(channel.recv(), "it")
    channel.send(Frame(CALL, (name, encode((([1, 2],), {}), []))))
    answer = channel.recv()
    assert (answer.kind, answer.header) == (DONE, (2,))
    channel.send(Frame(END_CALLS))
    assert channel.recv().kind == DONE


def test_values_travel_as_they_are() -> None:
    value = {"a": (1, [2.5, None]), 3: np.eye(2), "w": PerWorker(4, 5)}
    arrays: list[Any] = []
    found = decode(encode(value, arrays), arrays, lambda what: (what.dataset, what.iterator))
    assert found["a"] == (1, [2.5, None])
    assert found["w"] == (4, 5)
    np.testing.assert_array_equal(found[3], np.eye(2))
    with pytest.raises(InvalidArgumentError, match="a function cannot be sent"):
        encode(test_values_travel_as_they_are, [])
    with pytest.raises(InvalidArgumentError, match="malformed value in a call"):
        decode({"array": 7}, [], lambda what: what)


def test_functions_are_called_alike_on_all_tasks() -> None:
    assert name_of(test_functions_are_called_alike_on_all_tasks).endswith(
        "test_coordinator.test_functions_are_called_alike_on_all_tasks"
    )
