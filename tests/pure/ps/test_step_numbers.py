"""Assignment of step numbers to workers."""

from __future__ import annotations

from headwater.ps.protocol import EPOCH_OVER, TRAINING_OVER, UNKNOWN_STEPS
from headwater.ps.step_numbers import StepNumbers


def test_every_step_is_done_by_one_worker() -> None:
    step_numbers = StepNumbers(in_rounds=False)
    assert [step_numbers.assign(worker, 0, 3, 0) for worker in "abab"] == [0, 1, 2, EPOCH_OVER]
    assert step_numbers.assign("a", 1, 3, 3) == 0
    assert step_numbers.assign("b", 0, 3, 3) == EPOCH_OVER


def test_a_round_is_one_step_of_all() -> None:
    step_numbers = StepNumbers(in_rounds=True)
    assert [step_numbers.assign(worker, 0, 2, 7) for worker in "ab"] == [0, 0]
    assert [step_numbers.assign(worker, 0, 2, 8) for worker in "ab"] == [1, 1]
    assert step_numbers.assign("a", 0, 2, 9) == EPOCH_OVER
    assert step_numbers.assign("a", 1, 2, 9) == 0


def test_the_end_of_data_ends_the_epoch_for_all() -> None:
    step_numbers = StepNumbers(in_rounds=False)
    assert [step_numbers.assign(worker, 0, UNKNOWN_STEPS, 0) for worker in "aab"] == [0, 1, 2]
    step_numbers.end_epoch(0, 2)
    assert step_numbers.assign("a", 0, UNKNOWN_STEPS, 0) == EPOCH_OVER


def test_no_worker_is_two_epochs_ahead() -> None:
    step_numbers = StepNumbers(in_rounds=False)
    step_numbers.asked = {"fast": 3, "slow": 1}
    assert not step_numbers.may_begin(3)
    assert step_numbers.may_begin(2)
    step_numbers.forget_worker("slow")
    assert step_numbers.may_begin(3)


def test_the_epoch_of_a_lost_chief_is_known_until_it_resumes() -> None:
    step_numbers = StepNumbers(in_rounds=True)
    step_numbers.asked = {"chief": 1, "worker": 2}
    step_numbers.forget_worker("chief", resumes=True)
    assert not step_numbers.has_begun("chief", 2)
    step_numbers.asked["chief"] = 2
    assert step_numbers.has_begun("chief", 2)
    step_numbers.forget_worker("chief")
    assert step_numbers.has_begun("chief", 3)


def test_data_of_different_lengths_are_noticed_in_any_order() -> None:
    for told_first in (True, False):
        step_numbers = StepNumbers(in_rounds=True)
        assert [step_numbers.assign(worker, 0, UNKNOWN_STEPS, 0) for worker in "ab"] == [0, 0]
        step_numbers.complete_step("a")
        assert not step_numbers.uneven
        if told_first:
            step_numbers.end_epoch(0, 0)
            assert step_numbers.uneven
            continue
        step_numbers.complete_step("b")
        assert [step_numbers.assign(worker, 0, UNKNOWN_STEPS, 1) for worker in "ab"] == [1, 1]
        step_numbers.end_epoch(0, 1)
        assert not step_numbers.uneven
        step_numbers.complete_step("b")
        assert step_numbers.uneven
        step_numbers.reach(1, UNKNOWN_STEPS, 2)
        assert not step_numbers.uneven


def test_training_ends_early() -> None:
    step_numbers = StepNumbers(in_rounds=False)
    step_numbers.assign("a", 0, 5, 0)
    step_numbers.stopped = True
    assert step_numbers.assign("a", 0, 5, 1) == TRAINING_OVER
    step_numbers.reset()
    assert step_numbers.assign("a", 0, 5, 1) == 0
