"""Two conflicting claims to one place, and the rule that selects one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from hypothesis import assume, given
from hypothesis import strategies as st

from headwater.cluster.claims import NEW_CLAIM_S, Claim, ClaimedPlaces, Verdict, decide

HERE = "10.0.0.1:2222"
LIVING = Claim(task="/job:worker/replica:0/task:0", generation=1, started=2000.0, address=HERE)


def decided(holder: Claim | None, newcomer: Claim, *, connected: bool = True, address: str = HERE) -> Verdict:
    return decide(holder, newcomer, connected=connected, address=address)


def test_a_free_place_is_given_to_the_first_claim() -> None:
    assert decided(None, replace(LIVING, address="elsewhere:1", started=1.0)).prevails


def test_the_holder_of_a_place_keeps_it() -> None:
    assert decided(LIVING, LIVING).prevails


def test_a_restarted_worker_replaces_its_earlier_incarnation() -> None:
    assert decided(LIVING, replace(LIVING, generation=2, started=2001.0)).prevails


def test_an_older_claim_does_not_disturb_a_live_one() -> None:
    verdict = decided(LIVING, replace(LIVING, generation=2, started=1000.0))
    assert not verdict.prevails
    assert "was started later, and is alive" in verdict.reason


def test_a_claim_of_another_cluster_does_not_prevail_at_any_start_time() -> None:
    stranger = replace(LIVING, generation=2, started=3000.0, address="10.0.0.9:2222")
    verdict = decided(LIVING, stranger)
    assert not verdict.prevails
    assert f"belongs to another cluster: in this cluster, {LIVING.task} is at {HERE}" in verdict.reason
    assert decided(stranger, replace(LIVING, started=1.0)).prevails  # and gives way


def test_the_place_of_a_lost_task_is_free() -> None:
    """Its clock, too, may have been an hour ahead."""
    assert decided(LIVING, replace(LIVING, generation=2, started=1000.0), connected=False).prevails


def test_a_claim_without_a_start_time_is_accepted() -> None:
    assert decided(LIVING, replace(LIVING, generation=2, started=0.0)).prevails


CLAIMS = st.builds(
    Claim,
    task=st.just(LIVING.task),
    generation=st.integers(1, 3),
    started=st.sampled_from([1000.0, 2000.0, 3000.0]),
    address=st.sampled_from([HERE, "10.0.0.9:2222"]),
)


@given(CLAIMS, CLAIMS)
def test_one_of_two_live_claims_prevails_in_any_order(one: Claim, other: Claim) -> None:
    assume(one.generation != other.generation)
    assume((one.started, one.address == HERE) != (other.started, other.address == HERE))
    assert decided(one, other).prevails != decided(other, one).prevails


def test_a_claim_that_was_refused_or_replaced_never_prevails_again() -> None:
    now = SimpleNamespace(s=0.0)
    places, connected = ClaimedPlaces(lambda: now.s), set[int]()

    def claims(generation: int, started: float) -> str:
        newcomer = Claim(task="/job:worker/task:0", generation=generation, started=started)
        return places.claim(newcomer, connected=lambda holder: holder.generation in connected)

    assert claims(1, 10.0) == ""
    connected.add(1)
    assert "was started later" in claims(2, 5.0)
    connected.clear()
    assert "was started later" in claims(4, 5.0)  # it has asked just now, and may be about to connect
    now.s += NEW_CLAIM_S  # the place is free, but not for the one that was refused
    assert "was started later" in claims(2, 5.0)
    assert claims(5, 5.0) == ""
    assert "it was replaced by generation 5" in claims(1, 10.0)
    assert claims(3, 20.0) == ""
    assert "it was replaced by generation 3" in claims(5, 5.0)
    assert places.holds_place(3)
    assert not places.holds_place(1)


def test_a_partitioned_holder_regains_its_place() -> None:
    now = SimpleNamespace(s=0.0)
    places, connected = ClaimedPlaces(lambda: now.s), set[int]()

    def claims(generation: int, address: str) -> str:
        newcomer = replace(LIVING, generation=generation, address=address)
        return places.claim(newcomer, connected=lambda holder: holder.generation in connected, address=HERE)

    assert claims(1, HERE) == ""
    now.s += NEW_CLAIM_S
    assert claims(2, "10.0.0.9:2222") == ""
    connected.add(2)
    assert claims(1, HERE) == ""
    assert f"belongs to another cluster: in this cluster, {LIVING.task} is at {HERE}" in claims(2, "10.0.0.9:2222")
    now.s += NEW_CLAIM_S
    assert claims(3, HERE) == ""  # it was restarted, and its earlier incarnation has ended
    assert "it was replaced by generation 3" in claims(1, HERE)
