"""Every example of an epoch is applied once, whatever becomes of the workers that have it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.ps.accounting.ledger import Ledger, Nothing, Plan, ReturnedRange, Work

WORKERS = ("a", "b", "c")
EPOCHS = 3


def ledger() -> Ledger:
    return Ledger(run=1, seed=7)


def plan(size: int = 10, batch: int = 4, **others: Any) -> Plan:
    return Plan(size=size, batch=batch, **others)


def test_an_epoch_is_handed_out_in_batches_and_is_over_when_all_is_applied() -> None:
    book = ledger()
    works = [book.assign_range(worker, 0, 0, plan()) for worker in "aba"]
    assert works == [Work(0, 0, 4), Work(0, 4, 8), Work(0, 8, 10)]
    assert book.assign_range("b", 0, 0, plan()) is Nothing.YET
    assert not book.has_work(0, 0)
    assert book.record_gradient("a", [Work(0, 0, 4), Work(0, 8, 10)])
    assert book.record_gradient("b", [Work(0, 4, 8)])
    assert str(book) == "epoch 0: 0 of 10 examples done, 10 assigned, 0 waiting"
    applied = book.mark_applied()
    assert [worker for worker, _ in applied.ranges] == ["a", "a", "b"]
    assert applied.over == [0]
    assert book.assign_range("a", 0, 0, plan()) is Nothing.OVER
    assert str(book) == "epoch 0 done"


def test_the_next_epoch_begins_when_one_is_handed_out_and_the_second_next_when_it_is_over() -> None:
    book, small = ledger(), plan(size=2, batch=2)
    assert [book.assign_range(worker, 0, 9, small) for worker in "ab"] == [Work(0, 0, 2), Work(1, 0, 2)]
    assert book.assign_range("c", 0, 9, small) is Nothing.YET
    book.record_gradient("b", [Work(1, 0, 2)])
    assert book.mark_applied().over == [1]
    assert book.assign_range("c", 0, 9, small) == Work(2, 0, 2)
    assert book.assign_range("b", 0, 9, small) is Nothing.YET
    book.record_gradient("a", [Work(0, 0, 2)])
    book.mark_applied()
    assert book.assign_range("b", 0, 9, small) == Work(3, 0, 2)


def test_ranges_of_a_lost_worker_are_reassigned_and_its_gradient_is_dropped() -> None:
    book = ledger()
    first = book.assign_range("a", 0, 0, plan())
    assert isinstance(first, Work)
    (back,) = book.return_ranges("a", "it was killed")
    assert (back.work, back.tries, back.aside) == (first, 1, False)
    assert book.assign_range("b", 0, 0, plan()) == first
    book.restore_ranges("a")
    assert not book.record_gradient("a", [first])
    assert book.record_gradient("b", [first])


def test_worker_that_reconnects_in_time_keeps_its_ranges() -> None:
    book = ledger()
    first, second = (book.assign_range("a", 0, 0, plan(tries=1)) for _ in range(2))
    assert isinstance(first, Work)
    assert isinstance(second, Work)
    assert all(back.aside for back in book.return_ranges("a", "its channel has ended"))
    book.restore_ranges("a")
    assert book.record_gradient("a", [first, second])
    assert book.ranges_set_aside(0, 0) == []


def test_restarted_program_has_no_ranges() -> None:
    book = ledger()
    first = book.assign_range("a", 0, 0, plan())
    assert isinstance(first, Work)
    book.return_ranges("a", "it was killed")
    book.handle_restart("a")
    book.restore_ranges("a")
    assert not book.record_gradient("a", [first])


def test_a_gradient_with_a_reassigned_range_returns_its_other_ranges() -> None:
    book = ledger()
    first, second = (book.assign_range("a", 0, 0, plan()) for _ in range(2))
    assert isinstance(first, Work)
    assert isinstance(second, Work)
    book.return_failed("a", first, "")
    assert not book.record_gradient("a", [first, second])
    assert not book.holds("a", second)
    assert [book.assign_range("b", 0, 0, plan()) for _ in range(2)] == [first, second]


def test_a_range_is_not_given_twice_in_one_gradient() -> None:
    book = ledger()
    first = book.assign_range("a", 0, 0, plan())
    assert isinstance(first, Work)
    assert not book.record_gradient("a", [first, first])


def test_a_range_that_keeps_failing_is_set_aside_and_the_epoch_is_never_over() -> None:
    book = ledger()
    small = plan(size=4, batch=2, tries=2)
    backs: list[ReturnedRange] = []
    for worker in "ab":
        assert book.assign_range(worker, 0, 1, small) == Work(0, 0, 2)
        backs += book.return_failed(worker, Work(0, 0, 2), "it is not a number")
    assert [back.aside for back in backs] == [False, True]
    assert book.assign_range("a", 0, 0, small) == Work(0, 2, 4)
    assert book.assign_range("b", 0, 0, small) is Nothing.YET
    book.record_gradient("a", [Work(0, 2, 4)])
    assert book.mark_applied().over == []
    assert book.assign_range("b", 0, 0, small) is Nothing.ASIDE
    assert book.assign_range("b", 0, 1, small) is Nothing.ASIDE
    assert book.ranges_set_aside(0, 1) == [(Work(0, 0, 2), "it is not a number (b)")]
    assert "2 set aside" in str(book)
    assert Ledger.from_bytes(book.to_bytes()).ranges_set_aside(0, 1) == book.ranges_set_aside(0, 1)


def test_a_late_gradient_does_not_count_as_a_try() -> None:
    book = ledger()
    once = plan(tries=1)
    work = book.assign_range("a", 0, 0, once)
    assert isinstance(work, Work)
    for _ in range(3):
        assert book.record_gradient("a", [work])
        book.return_dropped("a", [work])
        assert book.assign_range("a", 0, 0, once) == work


def test_an_update_that_cannot_be_made_is_a_try() -> None:
    book = ledger()
    work = book.assign_range("a", 0, 0, plan())
    assert isinstance(work, Work)
    book.record_gradient("a", [work])
    (back,) = book.return_gathered("a gradient has another shape")
    assert back.tries == 1
    assert book.assign_range("b", 0, 0, plan()) == work


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_parts_of_a_batch_are_the_batch(count: int) -> None:
    """Workers that make an update together have the rows of one batch, also of the last one."""
    book = ledger()
    whole = plan(size=50, batch=20)
    for start, stop in ((0, 20), (20, 40), (40, 50)):
        works = [book.assign_range(str(number), 0, 0, whole, (number, count)) for number in reversed(range(count))]
        places = [place for work in works if isinstance(work, Work) for place in range(work.start, work.stop)]
        assert places == list(range(start, stop))


def test_a_batch_in_turn_is_assigned_after_all_before_it_is_applied() -> None:
    book, whole = ledger(), plan(size=10, batch=4, in_turn=True)
    first, second = (book.assign_range(worker, 0, 0, whole, (at, 2)) for at, worker in enumerate("ab"))
    assert (first, second) == (Work(0, 0, 2), Work(0, 2, 4))
    # An empty range of the present batch: the worker waits for its update.
    assert book.assign_range("c", 0, 0, whole, (2, 3)) == Work(0, 0, 0)
    book.record_gradient("a", [Work(0, 0, 2)])
    book.return_ranges("b", "lost")
    assert book.assign_range("c", 0, 0, whole, (1, 2), joins=True) == Work(0, 0, 0)
    # The rest of the same batch.
    assert book.assign_range("a", 0, 0, whole, (0, 1)) == Work(0, 2, 4)
    book.record_gradient("a", [Work(0, 2, 4)])
    assert book.assign_range("a", 0, 0, whole, (0, 1)) == Work(0, 0, 0)
    book.mark_applied()
    assert book.assign_range("a", 0, 0, whole, (0, 1)) == Work(0, 4, 8)
    assert whole.batch_of(Work(0, 8, 9)) == Work(0, 8, 10)


def test_workers_with_other_data_are_refused_by_name() -> None:
    book = ledger()
    book.assign_range("a", 0, 0, plan())
    book.assign_range("b", 0, 0, plan(seed=7))
    with pytest.raises(FailedPreconditionError, match=r"b goes through epoch 0 with size=11 instead of 10, seed=3 ins"):
        book.assign_range("b", 0, 0, plan(size=11, seed=3))


@pytest.mark.parametrize("wrong", [{"size": 0}, {"batch": 0}, {"tries": 0}, {"seed": -1}])
def test_a_plan_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        plan(**wrong)
    with pytest.raises(TypeError, match=r"batch must be a whole number, not 2\.0"):
        plan(batch=2.0)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"run":1,"seed":0,"training":0,"over":[[3,3]],"epochs":[]}', b"\xff"]
)
def test_bytes_that_are_no_ledger_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="not a ledger"):
        Ledger.from_bytes(data)


def test_done_ranges_that_go_beyond_the_epoch_are_refused() -> None:
    book = ledger()
    book.assign_range("a", 0, 0, plan())
    book.record_gradient("a", [Work(0, 0, 4)])
    book.mark_applied()
    with pytest.raises(InvalidArgumentError, match="beyond 10"):
        Ledger.from_bytes(book.to_bytes().replace(b"[0,4]", b"[0,40]"))


def test_ranges_of_workers_are_passed_to_the_next_ledger() -> None:
    book, small = ledger(), plan(size=20, batch=2, tries=2)
    first, second, third, lost = (book.assign_range(worker, 0, 0, small) for worker in "aabc")
    assert isinstance(first, Work)
    assert isinstance(second, Work)
    assert isinstance(third, Work)
    assert isinstance(lost, Work)
    book.return_failed("a", first, "it cannot be read")
    assert book.assign_range("a", 0, 0, small) == first
    book.return_ranges("c", "its channel has ended")
    other = Ledger.from_bytes(book.to_bytes(()))
    assert other.to_bytes(()) == book.to_bytes(())
    assert str(other) == str(book) == "epoch 0: 0 of 20 examples done, 6 assigned, 14 waiting"
    other.restore_ranges("c")
    assert other.record_gradient("c", [lost])
    assert other.record_gradient("a", [second])
    assert [back.aside for back in other.return_failed("a", first, "it cannot be read")] == [True]
    assert other.handle_restart("b") == [ReturnedRange("b", third, 1, False, "its program was restarted")]
    assert other.assign_range("b", 0, 0, small) == third


def test_gathered_ranges_are_assigned_to_workers_that_push_again() -> None:
    book = ledger()
    first, second = (book.assign_range(worker, 0, 0, plan()) for worker in "ab")
    assert isinstance(first, Work)
    assert isinstance(second, Work)
    assert book.record_gradient("a", [first])
    assert book.record_gradient("b", [second])
    other = Ledger.from_bytes(book.to_bytes(["a"]))
    assert other.holders() == ["a"]
    assert other.assign_range("c", 0, 0, plan()) == second
    assert other.record_gradient("a", [first])
    assert not other.record_gradient("b", [second])
    assert Ledger.from_bytes(book.to_bytes()).holders() == []


def test_restarted_worker_gets_its_remaining_range_again() -> None:
    book = ledger()
    first, second = (book.assign_range("a", 0, 0, plan()) for _ in range(2))
    assert isinstance(first, Work)
    assert isinstance(second, Work)
    assert book.record_gradient("a", [first])
    book.handle_restart("a")
    assert book.assign_range("a", 0, 0, plan()) == second
    assert book.record_gradient("a", [second])
    other = Ledger.from_bytes(book.to_bytes(["a"]))
    assert other.holds("a", second)
    assert other.assign_range("b", 0, 0, plan()) == first


@pytest.mark.parametrize(
    "hands",
    [
        [[["a", [[0, 0, 4, 0]]], ["b", [[0, 2, 6, 0]]]], [], [[0, 6, []]]],
        [[["a", [[0, 0, 4, 0]]]], [], [[0, 4, [[2, 4, 0]]]]],
        [[["a", [[0, 0, 4, 0]]]], [], [[0, 8, []]]],
        [[["a", [[1, 0, 4, 0]]]], [], [[0, 0, []]]],
        [[["a", [[0, 8, 12, 0]]]], [], [[0, 4, []]]],
        [[["a", [[0, 0, 4]]]], [], [[0, 4, []]]],
        [[], [], [[1, 0, []]]],
        [[], [], [[0, 20, [[0, 20, 0]]]]],
    ],
    ids=["twice held", "held and waiting", "missing", "another epoch", "beyond", "no tries", "unknown", "too large"],
)
def test_ranges_that_workers_cannot_hold_are_refused(hands: object) -> None:
    book = ledger()
    work = book.assign_range("a", 0, 0, plan())
    assert isinstance(work, Work)
    book.return_failed("a", work, "")
    state = json.loads(book.to_bytes(()))
    with pytest.raises(InvalidArgumentError, match="not a ledger of examples"):
        Ledger.from_bytes(json.dumps({**state, "hands": hands}).encode())


def test_memory_does_not_grow_with_the_examples() -> None:
    book, large = ledger(), plan(size=1_000_000, batch=10)
    sizes: list[int] = []
    for _ in range(2_000):
        works = {worker: book.assign_range(worker, 0, 0, large) for worker in "abcd"}
        for worker, work in works.items():
            assert isinstance(work, Work)
            book.record_gradient(worker, [work])
        book.mark_applied()
        sizes.append(len(book.to_bytes("abcd")))
    assert max(sizes) < 260


class Cluster(RuleBasedStateMachine):
    """Workers that take and give examples, stall, return, are killed and restarted; and a ``ps`` that is restored."""

    @initialize(size=st.integers(1, 12), batch=st.integers(1, 5), tries=st.integers(1, 4))
    def begin(self, size: int, batch: int, tries: int) -> None:
        self.book = ledger()
        self.plan = plan(size, batch, tries=tries)
        #: What each worker believes to have, whatever the ledger thinks.
        self.mind: dict[str, list[Work]] = {worker: [] for worker in WORKERS}
        self.gathered: list[tuple[str, Work]] = []
        #: What each worker has given last.
        self.ranges: dict[str, list[Work]] = {}
        self.applied: list[Work] = []
        self.saved: tuple[bytes, int] = (self.book.to_bytes(), 0)

    @rule(worker=st.sampled_from(WORKERS), share=st.none() | st.tuples(st.integers(0, 1), st.just(2)))
    def take(self, worker: str, share: tuple[int, int] | None) -> None:
        useful = self.book.has_work(0, EPOCHS - 1)
        found = self.book.assign_range(worker, 0, EPOCHS - 1, self.plan, share)
        assert useful == (found is not Nothing.YET)
        if isinstance(found, Work):
            self.mind[worker].append(found)
        if found is Nothing.OVER:
            self.check_all_is_applied()

    @rule(worker=st.sampled_from(WORKERS), count=st.integers(1, 3), late=st.booleans())
    def give(self, worker: str, count: int, late: bool) -> None:
        """Late: the update of that version is made, so the gradient is dropped."""
        works, self.mind[worker] = self.mind[worker][:count], self.mind[worker][count:]
        if works and self.book.record_gradient(worker, works):
            if late:
                self.book.return_dropped(worker, works)
            else:
                self.gathered += [(worker, work) for work in works]
            self.ranges[worker] = works

    @rule(fails=st.booleans())
    def update(self, fails: bool) -> None:
        if fails:
            self.book.return_gathered("it cannot be made")
        else:
            assert sorted(self.book.mark_applied().ranges) == sorted(self.gathered)
            self.applied += [work for _, work in self.gathered]
        self.gathered = []

    @rule(worker=st.sampled_from(WORKERS), reason=st.sampled_from(["", "it was lost"]))
    def lose(self, worker: str, reason: str) -> None:
        """It is taken for lost, and may live."""
        self.book.return_ranges(worker, reason)

    @rule(worker=st.sampled_from(WORKERS))
    def come_back(self, worker: str) -> None:
        self.book.restore_ranges(worker)

    @rule(worker=st.sampled_from(WORKERS))
    def start_anew(self, worker: str) -> None:
        self.book.return_ranges(worker, "it was killed")
        self.book.handle_restart(worker)
        self.mind[worker] = []

    @precondition(lambda self: any(self.mind.values()))
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from([worker for worker in WORKERS if self.mind[worker]]))
        self.book.return_failed(worker, self.mind[worker].pop(), "it cannot be read")

    @rule()
    def save(self) -> None:
        self.saved = (self.book.to_bytes(), len(self.applied))

    @rule()
    def restore(self) -> None:
        """Another process has the ledger and the parameters of the last save; workers know nothing of it."""
        data, count = self.saved
        self.book = Ledger.from_bytes(data)
        self.applied, self.gathered = self.applied[:count], []

    @rule(again=st.sets(st.sampled_from(WORKERS)))
    def hand_off(self, again: set[str]) -> None:
        """Another process takes the ledger over; gathered gradients are lost, and some workers repeat their last
        gradient."""
        held = {worker: [work for work in self.mind[worker] if self.book.holds(worker, work)] for worker in WORKERS}
        self.book = Ledger.from_bytes(self.book.to_bytes(again))
        for worker, works in held.items():
            assert all(self.book.holds(worker, work) for work in works)
        for worker, work in self.gathered:
            comes = worker in again and work in self.ranges[worker]
            assert self.book.holds(worker, work) == comes
            if comes:
                self.mind[worker].insert(0, work)
        self.gathered = []

    @invariant()
    def none_is_applied_twice(self) -> None:
        counts = Counter(place for work in self.applied for place in places(work))
        assert set(counts.values()) <= {1}

    @invariant()
    def none_is_lost(self) -> None:
        for count in self.book.counts():
            assert min(count.done, count.out, count.waiting, count.aside) >= 0
            assert count.done == sum(work.stop - work.start for work in self.applied if work.epoch == count.epoch)

    def check_all_is_applied(self) -> None:
        counts = Counter(place for work in self.applied for place in places(work))
        assert counts == Counter((epoch, place) for epoch in range(EPOCHS) for place in range(self.plan.size))

    def teardown(self) -> None:
        """One worker that processes all remaining examples ends every epoch, unless some were set aside."""
        if not hasattr(self, "book"):
            return
        self.update(False)
        for worker in WORKERS:
            self.start_anew(worker)
        while isinstance(found := self.book.assign_range("d", 0, EPOCHS - 1, self.plan), Work):
            self.mind["d"] = [found]
            self.give("d", 1, False)
            self.update(False)
        if found is Nothing.OVER:
            self.check_all_is_applied()
        else:
            assert found is Nothing.ASIDE
            assert self.book.ranges_set_aside(0, EPOCHS - 1)


def places(work: Work) -> list[tuple[int, int]]:
    return [(work.epoch, place) for place in range(work.start, work.stop)]


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
