"""A ledger that is restored from the variable of applied examples continues from the same state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import AbortedError, FailedPreconditionError, OutOfRangeError
from headwater.graph.resources.containers import Resources
from headwater.graph.resources.example_ledger import RESUME_S, ExampleLedger, GatheredRange, RangeRequest
from headwater.ps.accounting.ledger import Plan, Work

PLAN = Plan(size=11, batch=3, tries=1000, shuffle=False)
EPOCHS = 4
REQUEST = RangeRequest(worker="w", epochs=EPOCHS, plan=PLAN)


class Blocked(Exception):
    """A step would wait."""


class FakeStep:
    """A step of one thread."""

    follows = False

    def __init__(self, number: int, session: str = "s") -> None:
        self.number, self.session = number, session
        self.calls: list[Callable[[], object]] = []

    def wait_until(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        del condition
        if not ready():
            raise Blocked(what)

    def check(self) -> None: ...

    def commit(self) -> None: ...

    def at_end(self, call: Callable[[], object]) -> None:
        self.calls.append(call)

    def end(self) -> None:
        for call in self.calls:
            call()


class Task:
    """A task with the variable, as the executable of an update changes it."""

    def __init__(self, applied: np.ndarray) -> None:
        self.resources = Resources()
        self.cell = self.resources.cell("", "applied")
        self.cell.value = applied
        self.now = 0.0
        self.ledger = self.resources.get_or_make("", "examples", ExampleLedger, self._made)

    def _made(self) -> ExampleLedger:
        return ExampleLedger(
            "examples", "/job:ps/task:0", self.resources, self.cell, log_dir="", clock=lambda: self.now
        )

    def range_of(self, step: FakeStep) -> GatheredRange:
        return GatheredRange(self.resources, "examples", step.session, step.number)

    def copy(self) -> Task:
        """Another replica of it, which continues if this one is lost."""
        second = Task(self.cell.value)
        second.ledger.install_state(self.ledger.state())
        return second

    def apply(self, step: FakeStep, epoch: int, start: int) -> None:
        with self.resources.lock:
            made = self.ledger.admit(step)
            value = self.cell.value.copy()
            value[1, 0] += 1
            value[epoch % 2, 1 + start // PLAN.batch] = epoch + 1
            self.cell.value = value
            self.cell.counts[self.cell.slot] += 1
            made()


def empty() -> np.ndarray:
    return np.zeros((2, 1 + -(-PLAN.size // PLAN.batch)), np.int64)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_each_example_is_applied_once_for_any_fate_of_steps(data: st.DataObject) -> None:
    task, steps, number = Task(empty()), list[tuple[FakeStep, int, int]](), 0
    applied: dict[tuple[int, int], int] = {}
    saved = task.cell.value, dict(applied)
    for _ in range(300):
        what = data.draw(st.sampled_from("ttaaaefdsr")) if number < 60 else "ta"[number % 2]
        number += 1
        if what == "t":
            step = FakeStep(number, data.draw(st.sampled_from("xyz")) if number < 60 else "x")
            try:
                work, _ = task.ledger.assign_range(step, REQUEST)
            except OutOfRangeError:
                break
            except Blocked:
                assert steps
                what = "a"
            else:
                steps.append((step, work.epoch, work.start))
                continue
        if what == "s":
            saved = task.cell.value, dict(applied)
        elif what == "r":
            task, applied = Task(saved[0].copy()), dict(saved[1])
        elif what == "f" and steps:
            task.ledger.session_ended(steps[0][0].session, "lost")
        elif what in "aed" and steps:
            step, epoch, start = steps.pop(data.draw(st.integers(0, len(steps) - 1)) if number < 60 else 0)
            if what == "a":
                try:
                    task.apply(step, epoch, start)
                except AbortedError:
                    pass
                else:
                    applied[epoch, start] = applied.get((epoch, start), 0) + 1
            step.end()
    assert applied == {(epoch, start): 1 for epoch in range(EPOCHS) for start in range(0, PLAN.size, PLAN.batch)}


class Round:
    """An accumulator of a task, and the step that takes what is in it.

    Args:
      task: the task.
      before: what another copy of the task had, which is lost.
    """

    def __init__(self, task: Task, before: Round | None = None) -> None:
        self.task = task
        self.inside: list[GatheredRange] = []
        self.taken: list[Work] = []
        self.works: dict[tuple[str, int], Work] = {}
        self.step: FakeStep | None = None
        if before is not None:
            self.inside = [GatheredRange(task.resources, "examples", *one.key) for one in before.inside]
            self.taken, self.works, self.step = before.taken, before.works, before.step

    def give(self, step: FakeStep, work: Work) -> None:
        one = self.task.range_of(step)
        one.accept()
        self.inside.append(one)
        self.works[one.key] = work
        self.task.ledger.mark_step_given(step)

    def clear(self) -> None:
        for one in self.inside:
            one.drop()
        self.inside.clear()

    def take(self, number: int, session: str) -> None:
        self.step, ranges, self.inside = FakeStep(number, session), self.inside, []
        self.taken = [self.works[one.key] for one in ranges]
        works = self.task.ledger.assign_taken_ranges(self.step, ranges)
        assert {Work(*work) for work in works.tolist()} == {*self.taken}

    def apply(self) -> list[tuple[int, int]]:
        """Makes the update; the ranges that it has applied."""
        assert self.step is not None
        works = self.taken
        with self.task.resources.lock:
            made = self.task.ledger.admit_round(self.step)
            value = self.task.cell.value.copy()
            value[1, 0] += 1
            for epoch, start, _ in works:
                value[epoch % 2, 1 + start // PLAN.batch] = epoch + 1
            self.task.cell.value = value
            self.task.cell.counts[self.task.cell.slot] += 1
            made()
        return [(work.epoch, work.start) for work in works]

    def end(self) -> None:
        assert self.step is not None
        self.task.ledger.end_step(self.step.session, self.step.number)
        self.step = None


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_each_example_is_applied_once_in_rounds_for_any_fate_of_steps(data: st.DataObject) -> None:
    """Workers take ranges, give their gradients, are lost; updates are taken, made, refused, and left undone; other
    copies of the task take over."""
    task = Task(empty())
    rounds, steps = Round(task), list[tuple[FakeStep, Work]]()
    applied: dict[tuple[int, int], int] = {}
    saved = task.cell.value, dict(applied)
    number, over = 0, False
    while not over:
        number += 1
        chosen = number < 60
        what = data.draw(st.sampled_from("tttggggdcTTAAAEfsroo")) if chosen else "tgTAE"[number % 5]
        session = data.draw(st.sampled_from("xyz")) if chosen else "x"
        assert number < 600, "it does not end"
        if what == "t":
            step = FakeStep(number, session)
            try:
                work, _ = task.ledger.assign_range(step, REQUEST)
            except OutOfRangeError:
                over = True
            except Blocked:
                assert steps or rounds.inside or rounds.step
            else:
                steps.append((step, work))
        elif what in "gd" and steps:
            step, work = steps.pop(data.draw(st.integers(0, len(steps) - 1)) if chosen else 0)
            if what == "g":
                with suppress(AbortedError):
                    rounds.give(step, work)
            else:  # too late
                task.range_of(step).drop()
            task.ledger.end_step(step.session, step.number)
        elif what == "c":
            rounds.clear()
        elif what == "T" and rounds.step is None and rounds.inside:
            rounds.take(number, session)
        elif what == "A" and rounds.step is not None:
            with suppress(AbortedError):
                for place in rounds.apply():
                    applied[place] = applied.get(place, 0) + 1
            rounds.end()
        elif what == "E" and rounds.step is not None:
            rounds.end()
        elif what == "f":
            task.ledger.session_ended(session, "lost")
        elif what == "o":
            task = task.copy()
            rounds = Round(task, rounds)
        elif what == "s":
            saved = task.cell.value, dict(applied)
        elif what == "r":
            task, applied, steps = Task(saved[0].copy()), dict(saved[1]), []
            rounds = Round(task)
    assert applied == {(epoch, start): 1 for epoch in range(EPOCHS) for start in range(0, PLAN.size, PLAN.batch)}


def test_fewer_gradients_make_an_update_once_no_other_can_arrive() -> None:
    task = Task(empty())
    ledger, rounds = task.ledger, Round(task)
    first, second, third, chief = FakeStep(1, "a"), FakeStep(2, "b"), FakeStep(3, "c"), FakeStep(4, "chief")
    two = RangeRequest(worker="w", epochs=1, plan=Plan(size=4, batch=2, shuffle=False))
    told: list[str] = []

    def wait(condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        """In this thread, the events while the third step waits."""
        del condition
        assert not ready(), what
        assert not ledger.is_starved()
        with pytest.raises(Blocked, match="gradients of 'examples'"):
            ledger.wait_for_round(chief, 3)
        rounds.give(second, works[1])
        assert ready()
        assert ledger.is_starved()
        assert ledger.wait_for_round(chief, 3) == 2
        third.wait_until = no_more  # type: ignore[method-assign]

    def no_more(condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        del condition
        assert told == ["starved"]
        assert not ready(), what  # it was told so once
        rounds.take(5, "chief")
        rounds.apply()
        assert ready()

    works = [ledger.assign_range(step, two)[0] for step in (first, second)]
    rounds.give(first, works[0])
    third.wait_until = wait  # type: ignore[method-assign]
    with pytest.raises(OutOfRangeError):
        ledger.assign_range(third, two, lambda: told.append("starved"))


def test_two_ranges_in_a_step() -> None:
    task, step = Task(empty()), FakeStep(1)
    task.ledger.assign_range(step, REQUEST)
    with pytest.raises(FailedPreconditionError, match=r"get_next\(\) can be called once"):
        task.ledger.assign_range(step, REQUEST)


def test_without_a_value() -> None:
    task = Task(empty())
    task.cell.value = None
    with pytest.raises(FailedPreconditionError, match="uninitialized value applied"):
        task.ledger.assign_range(FakeStep(1), REQUEST)


def test_another_plan_is_named() -> None:
    task = Task(empty())
    task.ledger.assign_range(FakeStep(1), REQUEST)
    other = RangeRequest(worker="other", epochs=EPOCHS, plan=Plan(size=11, batch=4, shuffle=False))
    with pytest.raises(FailedPreconditionError, match="other goes through epoch 0 with batch=4 instead of 3"):
        task.ledger.assign_range(FakeStep(2), other)


def test_a_backup_continues_with_the_ranges_of_steps() -> None:
    first = Task(empty())
    steps = [FakeStep(number) for number in range(3)]
    works = [first.ledger.assign_range(step, REQUEST)[0] for step in steps]
    second = first.copy()
    second.apply(steps[1], *works[1][:2])  # a step that is resumed
    other, _ = second.ledger.assign_range(FakeStep(9, "other"), REQUEST)
    assert other not in works
    steps[0].end()
    second.ledger.end_step("s", 0)  # one that has failed
    assert second.ledger.assign_range(FakeStep(10, "other"), REQUEST)[0] == works[0]


def test_ranges_of_aborted_steps_are_reassigned() -> None:
    first = Task(empty())
    lost, resumed = FakeStep(1), FakeStep(2)
    works = [first.ledger.assign_range(step, REQUEST)[0] for step in (lost, resumed)]
    second = first.copy()
    others = [
        second.ledger.assign_range(FakeStep(number), REQUEST)[0] for number in range(3, 9)
    ]  # all others of two epochs
    assert not set(works).intersection(others)
    second.ledger.mark_resumed("s", 2)
    with pytest.raises(Blocked):
        second.ledger.assign_range(FakeStep(9), REQUEST)
    second.now += RESUME_S + 1.0
    assert second.ledger.assign_range(FakeStep(10), REQUEST)[0] == works[0]
    with pytest.raises(Blocked):
        second.ledger.assign_range(FakeStep(11), REQUEST)
    second.apply(resumed, *works[1][:2])
