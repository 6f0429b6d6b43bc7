"""Planned places of the replicas of shards."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headwater.ps.replicas.places import Pair, plan_copies


def planned(pairs: dict[int, Pair], loads: dict[int, float], servers: list[str]) -> dict[int, Pair]:
    return pairs | {move.shard: move.after for move in plan_copies(pairs, loads, servers)}


def ring(shards: int, servers: list[str]) -> dict[int, Pair]:
    """Copies as they are at the beginning."""
    around = dict(pairwise([*servers, servers[0]]))
    return {
        shard: Pair(servers[shard % len(servers)], around[servers[shard % len(servers)]]) for shard in range(shards)
    }


def totals(pairs: dict[int, Pair], loads: dict[int, float]) -> dict[str, float]:
    """By server the load of all copies that it has."""
    found: dict[str, float] = {}
    for shard, pair in pairs.items():
        for server in pair:
            if server is not None:
                found[server] = found.get(server, 0.0) + loads[shard]
    return found


def serving(pairs: dict[int, Pair], loads: dict[int, float]) -> dict[str, float]:
    """Returns the load of each server as a primary."""
    return {one: sum(loads[shard] for shard, pair in pairs.items() if pair.primary == one) for one, _ in pairs.values()}


def test_even_placement_is_kept() -> None:
    assert plan_copies(ring(6, ["ps0", "ps1"]), dict.fromkeys(range(6), 1.0), ["ps0", "ps1"]) == []


def test_a_third_ps_gets_a_third_of_the_copies_and_of_the_serving() -> None:
    pairs, loads = ring(6, ["ps0", "ps1"]), dict.fromkeys(range(6), 1.0)
    after = planned(pairs, loads, ["ps0", "ps1", "ps2"])
    assert totals(after, loads) == {"ps0": 4, "ps1": 4, "ps2": 4}
    assert serving(after, loads) == {"ps0": 2, "ps1": 2, "ps2": 2}
    assert sum(set(pairs[shard]) != set(after[shard]) for shard in pairs) == 4


def test_a_leaving_ps_keeps_no_shards_and_other_replicas_stay() -> None:
    pairs, loads = ring(6, ["ps0", "ps1", "ps2"]), dict.fromkeys(range(6), 1.0)
    after = planned(pairs, loads, ["ps0", "ps2"])
    assert totals(after, loads) == {"ps0": 6, "ps2": 6}
    assert serving(after, loads) == {"ps0": 3, "ps2": 3}


def test_a_copy_that_is_missing_is_made() -> None:
    assert planned({0: Pair("ps1", None)}, {0: 1.0}, ["ps0", "ps1"]) == {0: Pair("ps1", "ps0")}


def test_shards_of_one_ps_are_spread_over_both_again() -> None:
    after = planned(dict.fromkeys(range(4), Pair("ps1", None)), dict.fromkeys(range(4), 1.0), ["ps0", "ps1"])
    assert serving(after, dict.fromkeys(range(4), 1.0)) == {"ps0": 2, "ps1": 2}


def moved(places: dict[int, str], loads: dict[int, float], servers: list[str]) -> dict[int, str]:
    """Returns the places of shards with one replica each after the planned moves."""
    pairs = {shard: Pair(place, None) for shard, place in places.items()}
    after = pairs | {move.shard: move.after for move in plan_copies(pairs, loads, servers, replicas=1)}
    assert all(pair.backup is None for pair in after.values())
    return {shard: pair.primary for shard, pair in after.items()}


def test_a_third_ps_gets_its_share_and_nothing_else_moves() -> None:
    places = {shard: f"ps{shard % 2}" for shard in range(6)}
    after = moved(places, dict.fromkeys(range(6), 1.0), ["ps0", "ps1", "ps2"])
    changed = [shard for shard in places if places[shard] != after[shard]]
    assert [after[shard] for shard in changed] == ["ps2", "ps2"]
    assert {places[shard] for shard in changed} == {"ps0", "ps1"}


def test_shards_of_other_ps_move_to_the_remaining_ps() -> None:
    places = {shard: f"ps{shard % 3}" for shard in range(6)}
    assert set(moved(places, dict.fromkeys(range(6), 1.0), ["ps0"]).values()) == {"ps0"}


def test_a_hot_shard_gets_a_ps_of_its_own() -> None:
    places = {0: "ps0", 1: "ps1", 2: "ps0", 3: "ps1"}
    assert moved(places, {0: 1.0, 1: 10.0, 2: 1.0, 3: 5.0}, ["ps0", "ps1"]) == {0: "ps0", 1: "ps1", 2: "ps0", 3: "ps0"}


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0.1, 100)), min_size=1, max_size=20),
    st.sets(st.sampled_from("abc"), min_size=1),
)
def test_no_move_increases_the_maximum_load_and_planning_terminates(
    shards: list[tuple[str, float]], servers: set[str]
) -> None:
    places = {shard: place for shard, (place, _) in enumerate(shards)}
    loads = {shard: load for shard, (_, load) in enumerate(shards)}
    after = moved(places, loads, sorted(servers))
    assert set(after.values()) <= servers
    assert moved(after, loads, sorted(servers)) == after
    if set(places.values()) <= servers:
        of_one = {shard: Pair(place, None) for shard, place in places.items()}
        then = {shard: Pair(place, None) for shard, place in after.items()}
        assert max(totals(then, loads).values()) <= max(totals(of_one, loads).values()) * (1 + 1e-9)


NAMES = ["a", "b", "c", "d"]
PAIRS = st.permutations(NAMES).map(lambda names: Pair(names[0], names[1])) | st.sampled_from(NAMES).map(
    lambda name: Pair(name, None)
)


@given(
    st.lists(st.tuples(PAIRS, st.floats(0.1, 100)), min_size=1, max_size=12),
    st.sets(st.sampled_from("abc"), min_size=2),
)
def test_replicas_are_separate_and_balanced_and_planning_terminates(
    shards: list[tuple[Pair, float]], servers: set[str]
) -> None:
    pairs = {shard: pair for shard, (pair, _) in enumerate(shards)}
    loads = {shard: load for shard, (_, load) in enumerate(shards)}
    after = planned(pairs, loads, sorted(servers))
    for primary, second in after.values():
        assert primary != second
        assert {primary, second} <= servers
    assert plan_copies(after, loads, sorted(servers)) == []
    had = totals(after, loads)
    most, least = max(had.values()), min(had.get(server, 0.0) for server in servers)
    # Two of which one has more than a shard's load more than the other: that has no copy of it, and would get one.
    assert most - least <= max(loads.values()) * (1 + 1e-6)
    if all({*pair} <= servers for pair in pairs.values()):
        assert most <= max(totals(pairs, loads).values()) * (1 + 1e-9)
