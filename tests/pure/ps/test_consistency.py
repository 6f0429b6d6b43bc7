"""When a worker may continue, and when gradients become an update."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.ps.consistency import (
    Action,
    Announced,
    Apply,
    Asynchronous,
    BoundedStaleness,
    Consistency,
    Contributed,
    DataEnd,
    Discard,
    Drop,
    Event,
    Go,
    Joined,
    KOfN,
    Left,
    MembershipComplete,
    Part,
    Released,
    Restarted,
    Stopped,
    Synchronous,
    Tick,
    TrainingState,
    Updated,
    decide,
    from_text,
    is_early,
    to_text,
    waited_for,
    waiting_text,
)


class Story:
    """Applies events one after the other; ``actions`` are the actions of the last."""

    def __init__(self, choice: Consistency, *, held: bool = False) -> None:
        self.state = TrainingState(choice=choice, held=held)
        self.actions: tuple[Action, ...] = ()
        self.reason = ""

    def __call__(self, event: Event, now: float = 0.0) -> tuple[Action, ...]:
        decision = decide(self.state, event, now)
        self.state, self.actions, self.reason = decision.state, decision.actions, decision.reason
        return self.actions


def test_asynchronous_workers_do_not_wait() -> None:
    story = Story(Asynchronous())
    assert story(Contributed("a", 0)) == (Apply(1, 0), Go("a", 1))
    assert story(Contributed("b", 0)) == (Apply(1, 1), Go("b", 2))
    assert story(Contributed("a", 1)) == (Apply(1, 1), Go("a", 3))
    assert waited_for(story.state) == ()


def test_bounded_staleness_waits_for_the_slowest() -> None:
    story = Story(BoundedStaleness(steps=2))
    story(Joined("slow"))
    story(Joined("fast"))
    for version in range(2):
        assert story(Contributed("fast", version)) == (Apply(1, 0), Go("fast", version + 1))
    assert story(Contributed("fast", 2), 7.0) == (Apply(1, 0),)
    assert waited_for(story.state) == ("slow",)
    assert waiting_text(story.state, 9.0) == "fast (at most 2 steps ahead) for slow, 2 s so far"
    assert story(Contributed("slow", 0), 10.0) == (Apply(1, 3), Go("fast", 4), Go("slow", 4))
    assert waiting_text(story.state, 11.0) == ""


def test_bounded_staleness_continues_after_a_worker_left() -> None:
    story = Story(BoundedStaleness(steps=0))
    story(Joined("a"))
    story(Joined("b"))
    assert story(Contributed("a", 0)) == (Apply(1, 0),)
    assert story(Left("b", "its connection broke")) == (Go("a", 1),)
    assert story.reason == "b left (its connection broke): continuing with 1 worker"
    story(Contributed("a", 1))
    assert story(Contributed("c", 1)) == (Apply(1, 1), Go("c", 3))  # nobody waits for it to catch up
    assert story.reason == "c joins: 2 workers now"


def test_synchronous_takes_one_gradient_of_each() -> None:
    story = Story(Synchronous(workers=2))
    assert story(Contributed("a", 0)) == ()
    assert waiting_text(story.state, 3.0) == "a (synchronous) for 1 more worker to connect, 3 s so far"
    assert story(Contributed("b", 0)) == (Apply(2),)
    assert story(Updated()) == (Go("a", 1), Go("b", 1))
    assert story(Contributed("b", 1)) == ()
    assert waited_for(story.state) == ("a",)
    assert story(Contributed("a", 1)) == (Apply(2),)


def test_many_that_wait_are_not_all_named() -> None:
    story = Story(Synchronous(workers=9))
    for name in "abcdefgh":
        story(Contributed(name, 0))
    waiting = "a, b, c, d, e and 3 others (synchronous)"
    assert waiting_text(story.state, 3.0) == f"{waiting} for 1 more worker to connect, 3 s so far"
    story(Joined("z"))
    assert waiting_text(story.state, 4.0) == f"{waiting} for z, 4 s so far"


def test_synchronous_group_forms_again() -> None:
    story = Story(Synchronous(workers=2))
    for name in "ab":
        story(Contributed(name, 0))
    story(Updated())
    story(Contributed("a", 1))
    assert story(Left("b", "killed")) == (Apply(1),)
    assert story.reason == "b left (killed): continuing with 1 worker"
    story(Updated())
    assert story(Joined("c")) == ()
    assert story.reason == "c joins: 2 workers now"
    assert story(Contributed("a", 2)) == ()
    assert story(Contributed("c", 1)) == (Drop("c", 1), Go("c", 2))  # of variables that are gone: once more
    assert story(Contributed("c", 2)) == (Apply(2),)


def test_gradient_of_a_worker_that_left_counts() -> None:
    story = Story(Synchronous(workers=2))
    story(Joined("a"))
    story(Contributed("b", 0))
    story(Left("b"))
    assert story(Joined("c")) == ()
    story(Contributed("a", 0))
    assert story(Contributed("c", 0)) == (Apply(3),)


def test_k_of_n_drops_late_gradients() -> None:
    story = Story(KOfN(k=2))
    for name in "abc":
        story(Joined(name))
    assert story(Contributed("a", 0)) == ()
    assert story(Contributed("b", 0)) == (Apply(2),)
    assert story(Contributed("c", 0)) == (Drop("c", 1),)  # while the update is being made
    assert story(Updated()) == (Go("a", 1), Go("b", 1), Go("c", 1))
    story(Contributed("a", 1))
    assert story(Contributed("c", 0)) == (Drop("c", 1), Go("c", 1))
    assert story.state.dropped == 2


def test_a_released_worker_contributes_again_to_the_same_update() -> None:
    story = Story(KOfN(k=2))
    story(Joined("a"))
    story(Joined("b"))
    assert story(Contributed("a", 0)) == ()
    assert story(Released("b")) == ()  # it does not wait
    assert story(Released("a"), 3.0) == (Go("a", 0),)
    assert waiting_text(story.state, 4.0) == ""
    assert story(Contributed("a", 0)) == (Apply(2),)
    assert story(Updated()) == (Go("a", 1),)


def test_gathered_gradients_become_an_update_when_data_end() -> None:
    story = Story(KOfN(k=3))
    assert story(DataEnd()) == ()
    for name in "abc":
        story(Joined(name))
    assert story(Contributed("a", 0)) == ()
    story(Left("b", "it has no data"))
    story(Left("c", "it has no data"))
    assert story(DataEnd()) == (Apply(1),)
    assert story(DataEnd()) == ()  # it is being made
    story(Updated())
    assert story(DataEnd()) == ()
    assert story.state.version == 1


def test_k_of_n_with_fewer_workers_than_k() -> None:
    story = Story(KOfN(k=3, n=2))
    assert story(Contributed("a", 0)) == ()
    assert story(Joined("b")) == (Go("a", 0),)
    assert story(Contributed("b", 0)) == (Go("b", 0),)
    assert story(Contributed("b", 0)) == (Apply(3),)
    assert story(Updated()) == (Go("b", 1),)


def test_the_updating_worker_reconnects() -> None:
    story = Story(Synchronous(workers=2))
    for name in "ab":
        story(Contributed(name, 0))
    assert story.state.updating
    assert story(Restarted(0)) == (Go("a", 0), Go("b", 0))
    assert story.reason == "the variables are at version 0, after 0; 2 gradients are lost"
    story(Contributed("a", 0))
    # It may have reached some accumulators and not all: it is asked for once more.
    assert story(Restarted(0)) == (Go("a", 0),)
    assert story.reason == "the variables are at version 0, after 0; 1 gradients are lost"
    # What b gives is of a step that began before.
    assert story(Contributed("b", 0)) == (Drop("b", 1), Go("b", 0))
    story(Contributed("a", 0))
    assert story(Contributed("b", 0)) == (Apply(2),)
    assert story(Restarted(1)) == (Go("a", 1), Go("b", 1))  # the update was made, and nobody said so
    assert story.reason == ""
    story(Restarted(7))
    assert story.state.version == 7


def test_the_first_start_keeps_gathered_gradients() -> None:
    story = Story(Synchronous(workers=2))
    story(Contributed("a", 60))  # before the chief has said that a checkpoint of version 60 was restored
    assert story(Restarted(60)) == ()
    assert story(Contributed("b", 60)) == (Apply(2),)


def test_no_update_is_made_before_the_start() -> None:
    story = Story(KOfN(k=2, n=3), held=True)
    assert story(Contributed("a", 60)) == ()
    assert story(Contributed("b", 60), 1.0) == ()
    assert waiting_text(story.state, 3.0) == "a, b (2 of n) for the chief to start the training, 3 s so far"
    assert story(DataEnd()) == ()
    assert story(Restarted(60)) == (Apply(2),)
    assert story(Updated()) == (Go("a", 61), Go("b", 61))


def test_the_data_end_before_the_start() -> None:
    story = Story(Synchronous(workers=2), held=True)
    assert story(Contributed("a", 0)) == ()
    assert story(DataEnd()) == ()
    assert story(Restarted(0)) == ()
    assert story(DataEnd()) == (Apply(1),)


def test_a_restarted_gate_requests_forgotten_gradients_again() -> None:
    story = Story(Synchronous(workers=2))
    story(Contributed("a", 60))
    assert story(Restarted(60, again=True)) == (Go("a", 60),)


def test_an_older_checkpoint_is_restored_while_workers_wait() -> None:
    story = Story(Synchronous(workers=2))
    story(Restarted(100))
    story(Contributed("a", 100))
    assert story(Restarted(60)) == (Go("a", 60),)
    assert story(Contributed("a", 60)) == ()
    # Another one was in the middle of a step of the past, and a third in its first.
    story(Announced("c"))
    assert story(Restarted(60)) == (Go("a", 60),)
    assert story(Contributed("c", 60)) == (Drop("c", 1), Go("c", 60))
    assert story(Contributed("c", 60)) == ()
    assert story(Contributed("a", 60)) == (Apply(2),)
    story(Updated())
    # Of a version that is yet to come: nothing knows of it any more.
    assert story(Contributed("a", 100)) == (Drop("a", 1), Go("a", 61))


def test_a_void_step_ends_with_its_session() -> None:
    story = Story(Synchronous(workers=1))
    story(Restarted(0))
    story(Announced("a"))
    story(Restarted(0))
    story(Left("a"))
    story(Announced("a"))
    assert story(Contributed("a", 0)) == (Apply(1),)


def test_patience() -> None:
    story = Story(Synchronous(workers=2, patience_s=10.0))
    for name in "ab":
        story(Contributed(name, 0))
    story(Updated(), 1.0)
    story(Contributed("a", 1), 2.0)
    assert story(Tick(), 11.9) == ()
    assert story(Tick(), 12.0) == (Apply(1),)
    assert story.reason == "b left (no gradient for 10 s): continuing with 1 worker"
    story(Updated(), 12.5)
    assert story(Tick(), 100.0) == ()  # of the last one nobody waits
    assert story(Contributed("b", 1), 101.0) == (Drop("b", 1), Go("b", 2))
    assert story.reason == "b joins: 2 workers now"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KOfN(k=0), "k must be at least 1, but is 0"),
        (lambda: KOfN(k=1, n=0), "n must be at least 1, but is 0"),
        (lambda: Synchronous(workers=-1), "workers must be at least 1, but is -1"),
        (lambda: BoundedStaleness(steps=-1), "steps must be at least 0, but is -1"),
        (lambda: Asynchronous(patience_s=0.0), "patience_s must be positive, but is 0"),
    ],
)
def test_choices_that_cannot_be(make: type, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


CHOICES = st.one_of(
    st.just(Asynchronous()),
    st.builds(BoundedStaleness, steps=st.integers(0, 3)),
    st.builds(KOfN, k=st.integers(1, 4), n=st.none() | st.integers(1, 3)),
    st.builds(Synchronous, workers=st.integers(1, 3)),
)


@given(CHOICES, st.none() | st.floats(0.1, 1e6))
def test_choices_as_text(choice: Consistency, patience_s: float | None) -> None:
    choice = replace(choice, patience_s=patience_s)
    assert from_text(to_text(choice)) == choice


@pytest.mark.parametrize("text", ["", "synchronous", "asynchronous 3", "k-of-n x", "k-of-n 0", "patience 3", "often"])
def test_text_that_is_no_choice(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a choice of consistency .*'staleness=4'"):
        from_text(text)


@settings(deadline=None)
@given(CHOICES, st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["step", "step", "step", "leave"]))))
def test_some_worker_can_always_proceed(choice: Consistency, moves: list[tuple[str, str]]) -> None:
    """Whoever is in a step may end it or leave: then somebody is in a step, or workers are yet to come."""
    story = Story(choice)
    at: dict[str, int] = dict.fromkeys("abc", 0)
    for name in at:
        story(Joined(name))

    def hear(actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Go):
                at[action.worker] = action.version
        if story.state.updating:
            hear(story(Updated()))

    for name, move in moves:
        member = story.state.members.get(name)
        if move == "leave":
            hear(story(Left(name)))
        elif member is None or member.waits_since is None:
            hear(story(Contributed(name, at[name])))
        present = story.state.members.values()
        assert not present or any(member.waits_since is None for member in present) or not story.state.formed
        assert not story.state.updating
        if isinstance(choice, BoundedStaleness) and present:
            clocks = [member.clock for member in present]
            assert max(clocks) - min(clocks) <= choice.steps + 1


@pytest.mark.parametrize("choice", [Synchronous(workers=3), KOfN(k=2), KOfN(k=2, n=3)])
def test_the_last_worker_waits_for_no_other(choice: Consistency) -> None:
    story = Story(choice)
    story(Joined("late"))
    assert not any(isinstance(action, Go) for action in story(Contributed("late", 0)))
    actions = story(MembershipComplete())
    if story.state.updating:
        actions = story(Updated())
    assert [action.worker for action in actions if isinstance(action, Go)] == ["late"]


def test_a_whole_batch_is_an_update_although_a_worker_is_lost() -> None:
    story = Story(Synchronous(workers=3))
    for name in "abc":
        story(Joined(name))
    assert story(Contributed("a", 0, part=Part(7, 0, 3, 8))) == ()
    assert story(Contributed("b", 0, part=Part(7, 0, 3, 8))) == ()
    # Both continue with the same values: one of them computes the last two, and the other has nothing to compute.
    assert story(Left("c", "lost")) == (Go("a", 0), Go("b", 0))
    assert story(Contributed("a", 0, part=Part(7, 0, 0, 8))) == ()
    assert story(Contributed("b", 0, part=Part(7, 0, 2, 8))) == (Apply(4),)
    assert story(Updated()) == (Go("a", 1), Go("b", 1))
    assert story.state.batch is None


def test_a_worker_that_joins_within_an_update_waits_for_it() -> None:
    story = Story(Synchronous(workers=1))
    assert story(Contributed("a", 0, part=Part(7, 0, 4, 8))) == (Go("a", 0),)
    story(Joined("b"))
    assert story(Contributed("a", 0, part=Part(7, 0, 4, 8))) == ()
    assert story(Contributed("b", 0, part=Part(7, 0, 0, 8))) == (Apply(3),)
    story(Updated())
    assert story(Contributed("b", 0, part=Part(7, 0, 0, 8))) == (Go("b", 1),)


def test_no_part_of_a_batch_is_an_update_when_the_data_end() -> None:
    story = Story(Synchronous(workers=2))
    story(Joined("b"))
    story(Contributed("a", 0, part=Part(7, 0, 4, 8)))
    story(Left("a", "lost"))
    story(Left("b", "it has no data"))
    assert story(DataEnd()) == ()
    story(Joined("b"))
    assert story(Contributed("b", 0, part=Part(7, 0, 4, 8))) == (Apply(2),)


def test_gradients_of_a_batch_are_discarded_when_the_next_one_begins_elsewhere() -> None:
    story = Story(Synchronous(workers=2))
    story(Joined("a"))
    story(Contributed("b", 0, part=Part(7, 0, 4, 8)))
    # Another ``ps`` had the gradient of `a` before it was lost, and made the update.
    assert story(Left("a", "lost")) == (Go("b", 0),)
    discarded = Discard("another ps has used the rest of their batch")
    assert story(Contributed("b", 0, part=Part(7, 1, 8, 8))) == (discarded, Apply(1))
    assert story.state.dropped == 1


@pytest.mark.parametrize("part", [None, Part(7, 1, 4, 8), Part(7, 1, 0, 8)], ids=["unknown", "half", "empty"])
def test_no_synchronous_update_is_made_after_a_worker_has_stopped_the_training(part: Part | None) -> None:
    story = Story(Synchronous(workers=3))
    for worker in "abc":
        story(Joined(worker))
    story(Contributed("b", 0, part=part))
    assert story(Stopped()) == (Discard("the training was stopped"), Go("b", 0))
    assert story(Contributed("c", 0, part=part))[-1] == Go("c", 0)
    assert story(Left("a")) == story(Left("b")) == story(Left("c")) == story(DataEnd()) == ()
    assert (story.state.version, story.state.gathered) == (0, 0)


def test_gradients_of_a_batch_that_is_an_update_already_are_dropped() -> None:
    story = Story(Synchronous(workers=2))
    story(Joined("b"))
    story(Contributed("a", 0, part=Part(7, 0, 4, 8)))
    assert story(Contributed("b", 0, part=Part(7, 0, 4, 8))) == (Apply(2),)
    story(Updated())
    # Another ``ps`` has lost the gradient of `b`, and has it computed again.
    assert story(Contributed("a", 1, part=Part(7, 0, 4, 8))) == (Drop("a", 1), Go("a", 1))
    assert story(Contributed("a", 1, part=Part(7, 1, 4, 8))) == ()
    # A worker that has joined another ``ps`` after that update waits for it here.
    assert is_early(story.state, "c", Part(7, 2, 0, 8))
    assert not is_early(story.state, "b", Part(7, 2, 4, 8))
    assert not is_early(story.state, "c", Part(7, 1, 0, 8))
