"""Coordinator and looper threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from headwater.errors import CancelledError, OutOfRangeError
from headwater.tf1.training.coordinator import Coordinator, LooperThread


def started(*targets: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    return threads


def test_threads_stop_when_asked() -> None:
    coord = Coordinator()
    threads = started(coord.wait_for_stop, coord.wait_for_stop)
    assert not coord.should_stop()
    coord.request_stop()
    coord.join(threads)
    assert coord.should_stop()
    assert coord.joined


def test_joining_needs_no_request_when_all_threads_end() -> None:
    coord = Coordinator()
    coord.join(started(lambda: None))
    assert not coord.should_stop()


def test_the_first_error_is_raised_where_threads_are_joined() -> None:
    coord = Coordinator()

    def fail() -> None:
        with coord.stop_on_exception():
            raise KeyError("first")

    threads = started(fail, coord.wait_for_stop)
    threads[0].join()
    coord.request_stop(ValueError("second"))
    with pytest.raises(KeyError, match="first"):
        coord.join(threads)
    with pytest.raises(KeyError, match="first"):
        coord.raise_requested_exception()


def test_the_end_of_the_input_is_no_error() -> None:
    coord = Coordinator()
    with coord.stop_on_exception():
        raise OutOfRangeError(None, None, "queue is closed")
    assert coord.should_stop()
    coord.join()


def test_other_errors_may_be_no_errors_either() -> None:
    coord = Coordinator(clean_stop_exception_types=(CancelledError,))
    coord.request_stop(CancelledError(None, None, "cancelled"))
    coord.join()
    coord.clear_stop()
    coord.request_stop(OutOfRangeError(None, None, "end"))
    with pytest.raises(OutOfRangeError):
        coord.join()


def test_exc_info_is_taken_too() -> None:
    coord = Coordinator()
    error = ValueError("x")
    coord.request_stop((ValueError, error, None))
    with pytest.raises(ValueError, match="x"):
        coord.join()


def test_an_error_after_joining_is_raised_at_once() -> None:
    coord = Coordinator()
    coord.request_stop()
    coord.join()
    coord.request_stop()
    with pytest.raises(ValueError, match="late"):
        coord.request_stop(ValueError("late"))


def test_threads_that_do_not_stop_are_named() -> None:
    coord = Coordinator()
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="stubborn")
    thread.start()
    coord.register_thread(thread)
    coord.request_stop()
    try:
        with pytest.raises(RuntimeError, match="stubborn"):
            coord.join(stop_grace_period_secs=0)
        coord.register_thread(thread)
        coord.join(stop_grace_period_secs=0, ignore_live_threads=True)
    finally:
        release.set()
        thread.join()


def test_clearing_allows_another_round() -> None:
    coord = Coordinator()
    coord.request_stop(ValueError("x"))
    coord.clear_stop()
    assert not coord.should_stop()
    coord.request_stop()
    coord.join()


def test_a_looper_calls_until_the_coordinator_stops() -> None:
    coord = Coordinator()
    calls: list[int] = []

    def target(step: int, stop_at: int) -> None:
        calls.append(step)
        if len(calls) == stop_at:
            coord.request_stop()

    LooperThread.loop(coord, None, target, args=(1,), kwargs={"stop_at": 3})
    coord.join()
    assert calls == [1, 1, 1]


def test_a_timed_looper_calls_at_once_and_then_in_time() -> None:
    coord = Coordinator()
    calls: list[str] = []

    class Looper(LooperThread):
        def start_loop(self) -> None:
            calls.append("start")

        def run_loop(self) -> None:
            calls.append("run")
            if len(calls) == 3:
                coord.request_stop()

        def stop_loop(self) -> None:
            calls.append("stop")

    Looper(coord, 0.001).start()
    coord.join()
    assert calls == ["start", "run", "run", "stop"]


def test_an_error_in_a_looper_stops_all() -> None:
    coord = Coordinator()

    def fail() -> None:
        raise KeyError("x")

    LooperThread.loop(coord, 60, fail)
    with pytest.raises(KeyError):
        coord.join()


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="Coordinator"):
        LooperThread(None, 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="target"):
        LooperThread(Coordinator(), 1, args=(1,))
