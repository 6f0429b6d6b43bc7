"""Who does which step."""

from __future__ import annotations

from headwater.ps.protocol import EPOCH_OVER, TRAINING_OVER, UNKNOWN_STEPS
from headwater.ps.tickets import Tickets


def test_every_step_is_done_by_one_worker() -> None:
    tickets = Tickets(in_rounds=False)
    assert [tickets.take(worker, 0, 3, 0) for worker in "abab"] == [0, 1, 2, EPOCH_OVER]
    assert tickets.take("a", 1, 3, 3) == 0
    assert tickets.take("b", 0, 3, 3) == EPOCH_OVER


def test_a_round_is_one_step_of_all() -> None:
    tickets = Tickets(in_rounds=True)
    assert [tickets.take(worker, 0, 2, 7) for worker in "ab"] == [0, 0]
    assert [tickets.take(worker, 0, 2, 8) for worker in "ab"] == [1, 1]
    assert tickets.take("a", 0, 2, 9) == EPOCH_OVER
    assert tickets.take("a", 1, 2, 9) == 0


def test_the_end_of_data_ends_the_epoch_for_all() -> None:
    tickets = Tickets(in_rounds=False)
    assert [tickets.take(worker, 0, UNKNOWN_STEPS, 0) for worker in "aab"] == [0, 1, 2]
    tickets.exhausted(0, 2)
    assert tickets.take("a", 0, UNKNOWN_STEPS, 0) == EPOCH_OVER


def test_nobody_begins_an_epoch_while_another_is_two_behind() -> None:
    tickets = Tickets(in_rounds=False)
    tickets.asked = {"fast": 3, "slow": 1}
    assert not tickets.may_begin(3)
    assert tickets.may_begin(2)
    tickets.left("slow")
    assert tickets.may_begin(3)


def test_data_of_different_lengths_are_noticed_whichever_is_told_first() -> None:
    for told_first in (True, False):
        tickets = Tickets(in_rounds=True)
        assert [tickets.take(worker, 0, UNKNOWN_STEPS, 0) for worker in "ab"] == [0, 0]
        tickets.ended("a")
        assert not tickets.uneven
        if told_first:
            tickets.exhausted(0, 0)
            assert tickets.uneven
            continue
        tickets.ended("b")
        assert [tickets.take(worker, 0, UNKNOWN_STEPS, 1) for worker in "ab"] == [1, 1]
        tickets.exhausted(0, 1)
        assert not tickets.uneven
        tickets.ended("b")
        assert tickets.uneven
        tickets.reach(1, UNKNOWN_STEPS, 2)
        assert not tickets.uneven


def test_training_ends_early() -> None:
    tickets = Tickets(in_rounds=False)
    tickets.take("a", 0, 5, 0)
    tickets.stopped = True
    assert tickets.take("a", 0, 5, 1) == TRAINING_OVER
    tickets.begin_training()
    assert tickets.take("a", 0, 5, 1) == 0
