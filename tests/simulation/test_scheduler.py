"""Tests of the scheduler: a seed defines a history, and defects in a history are found."""

from __future__ import annotations

import pytest

from tests.simulation import primitives
from tests.simulation.scheduler import Deadlock, HistoryError, Killed, OutOfTime, Simulation, running


def _counting(seed: int) -> tuple[list[tuple[float, str]], int]:
    """Runs threads that append to a list under a lock, with random pauses; returns the list and the trace."""
    simulation = Simulation(seed, preemption=0.3)
    seen: list[tuple[float, str]] = []

    def main() -> None:
        lock = primitives.Lock()

        def count(name: str) -> None:
            for _ in range(5):
                with lock:
                    seen.append((running().now, name))
                running().sleep(running().random.random())

        threads = [primitives.Thread(target=count, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    simulation.run(main)
    return seen, simulation.trace


def test_the_same_seed_is_the_same_history() -> None:
    assert _counting(7) == _counting(7)


def test_other_seeds_are_other_histories() -> None:
    assert len({_counting(seed)[1] for seed in range(20)}) == 20


def _find_failing_seeds(histories: int, main: object) -> list[int]:
    found: list[int] = []
    for seed in range(histories):
        try:
            Simulation(seed, preemption=0.3).run(main)  # type: ignore[arg-type]
        except HistoryError:
            found.append(seed)
    return found


def test_two_locks_taken_in_two_orders_are_found() -> None:
    def main() -> None:
        first, second = primitives.Lock(), primitives.Lock()

        def take(one: primitives.Lock, other: primitives.Lock) -> None:
            with one, other:
                pass

        threads = [
            primitives.Thread(target=take, args=(first, second), name="forwards"),
            primitives.Thread(target=take, args=(second, first), name="backwards"),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = _find_failing_seeds(60, main)
    assert 0 < len(found) < 60
    with pytest.raises(Deadlock, match=r"(?s)forwards.* waits for a lock that history#0/backwards") as caught:
        Simulation(found[0], preemption=0.3).run(main)
    assert f"history {found[0]}" in str(caught.value)


def _lost_wake_up(under_lock: bool) -> list[int]:
    """Runs two threads: one checks for a value and then waits for it; the other stores the value and wakes the
    first."""

    def main() -> None:
        changed = primitives.Condition()
        there: list[int] = []

        def bring() -> None:
            there.append(1)
            with changed:
                changed.notify_all()

        thread = primitives.Thread(target=bring)
        thread.start()
        if under_lock:
            with changed:
                while not there:
                    changed.wait()
        elif not there:
            with changed:  # the defect under test: the value may have been stored since the check
                changed.wait()
        thread.join()

    return _find_failing_seeds(60, main)


def test_a_lost_wake_up_is_found() -> None:
    assert _lost_wake_up(under_lock=False)
    assert not _lost_wake_up(under_lock=True)


def test_a_composite_update_is_found() -> None:
    def main() -> None:
        count = [0]
        lock = primitives.Lock()

        def add() -> None:
            seen = count[0]
            with lock:  # the defect under test: the value was read outside of the lock
                count[0] = seen + 1

        threads = [primitives.Thread(target=add) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if count[0] != 3:
            raise HistoryError("an update was lost")

    assert 0 < len(_find_failing_seeds(60, main)) < 60


def test_time_passes_only_when_all_wait() -> None:
    times: list[float] = []

    def main() -> None:
        event = primitives.Event()
        running().after(100.0, event.set)
        assert not event.wait(99.0)
        times.append(running().now)
        assert event.wait(99.0)
        times.append(running().now)

    Simulation(1).run(main)
    assert times == [99.0, 100.0]


def test_busy_waiting_is_detected() -> None:
    def main() -> None:
        while True:
            running().sleep(0.2)

    with pytest.raises(OutOfTime, match="is not over after 60 s"):
        Simulation(1, horizon_s=60.0).run(main)


def test_a_killed_process_does_nothing_more() -> None:
    done: list[str] = []

    def main() -> None:
        simulation = running()
        process = simulation.process("task")
        event = primitives.Event()

        def program() -> None:
            try:
                event.wait()
            finally:
                done.append("unwound")
                try:
                    event.wait()
                except Killed:
                    done.append("cannot wait")
                    raise

        simulation.thread(process, "program", program).start()
        simulation.sleep(1.0)
        simulation.kill(process)
        simulation.sleep(1.0)
        assert done == ["unwound", "cannot wait"]

    Simulation(3).run(main)


def test_a_stopped_process_continues_in_the_same_state() -> None:
    ticks: list[float] = []

    def main() -> None:
        simulation = running()
        process = simulation.process("task")

        def program() -> None:
            while True:
                simulation.sleep(1.0)
                ticks.append(simulation.now)

        simulation.thread(process, "program", program).start()
        simulation.sleep(2.5)
        simulation.stop(process)
        simulation.sleep(10.0)
        assert len(ticks) == 2
        simulation.go_on(process)
        simulation.sleep(1.5)

    Simulation(3).run(main)
    assert ticks == [1.0, 2.0, 12.5, 13.5]


def test_an_error_in_any_thread_ends_the_history() -> None:
    def main() -> None:
        def fails() -> None:
            raise ValueError("broken")

        primitives.Thread(target=fails).start()
        running().sleep(1.0)

    with pytest.raises(ValueError, match="broken"):
        Simulation(3).run(main)
