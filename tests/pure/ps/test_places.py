"""Where shards are, and which of them are to move."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import InvalidArgumentError
from headwater.ps.shards.limits import first_servers, require_no_rows, require_no_sums, shards_of
from headwater.ps.shards.places import Places, ShardPlace, excess, first_places, plan_moves


def test_by_how_much_the_busiest_is_above_the_mean() -> None:
    assert excess({"a": 3.0, "b": 1.0}) == 0.5
    assert excess({"a": 1.0, "b": 1.0}) == 0.0
    assert excess({"a": 0.0, "b": 0.0}) == 0.0


def test_shards_begin_in_turns() -> None:
    assert first_places(5, ["a", "b"]) == {0: (0, "a"), 1: (0, "b"), 2: (0, "a"), 3: (0, "b"), 4: (0, "a")}


def test_the_later_term_prevails_in_any_order() -> None:
    told = [Places(shards={1: ShardPlace(term, f"ps{term}"), 2: ShardPlace(0, "ps0")}) for term in range(5)]
    random.Random(1).shuffle(told)
    known = Places()
    moved = [known.merge(other) for other in told]
    assert known.shards == {1: (4, "ps4"), 2: (0, "ps0")}
    assert moved[0] == [1, 2]
    assert all(2 not in shards for shards in moved[1:])


def test_places_are_decoded() -> None:
    known = Places(shards={3: ShardPlace(7, "ps1")}, addresses={"ps1": "host:1"})
    assert Places.of(known.words()) == known
    with pytest.raises(InvalidArgumentError, match="malformed shard locations"):
        Places.of([1, 2, 3])


def test_a_ps_that_has_moved_is_found_at_its_new_address() -> None:
    known = Places(shards={1: ShardPlace(0, "ps1")}, addresses={"ps1": "old:1", "ps0": "mine:1"})
    known.merge(Places(addresses={"ps1": "older:1"}))
    assert known.addresses["ps1"] == "old:1"
    known.merge(Places(shards={1: ShardPlace(1, "ps1")}, addresses={"ps1": "new:1", "ps0": "other:1"}))
    assert known.addresses == {"ps1": "new:1", "ps0": "mine:1"}


def moved(places: dict[int, str], loads: dict[int, float], servers: list[str]) -> dict[int, str]:
    return places | {move.shard: move.target for move in plan_moves(places, loads, servers)}


def totals(places: dict[int, str], loads: dict[int, float]) -> dict[str, float]:
    return {server: sum(loads[shard] for shard in places if places[shard] == server) for server in places.values()}


def test_a_third_ps_gets_its_share_and_nothing_else_moves() -> None:
    places = {shard: f"ps{shard % 2}" for shard in range(6)}
    moves = plan_moves(places, dict.fromkeys(range(6), 1.0), ["ps0", "ps1", "ps2"])
    assert [move.target for move in moves] == ["ps2", "ps2"]
    assert {move.source for move in moves} == {"ps0", "ps1"}
    assert 0 not in [move.shard for move in moves]


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
    assert after[0] == places[0]
    assert {after[shard] for shard in after if shard} <= servers
    assert plan_moves(after, loads, servers) == []
    if set(places.values()) <= servers:
        assert max(totals(after, loads).values()) <= max(totals(places, loads).values()) * (1 + 1e-9)


def test_unsupported_options_with_shards_are_rejected_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shards_of(None, 2, replicas=1, saves=False) is None
    assert shards_of(6, 2, replicas=1, saves=False) == 6
    assert shards_of(6, 0, replicas=1, saves=False) is None
    assert shards_of(6, 3, replicas=2, saves=False) == 6
    with pytest.raises(ValueError, match=r"shards=2 and replicas=2 .* with 3 initial ps"):
        shards_of(2, 3, replicas=2, saves=False)
    with pytest.raises(ValueError, match="shards=6 and recovery='own'"):
        shards_of(6, 2, replicas=1, saves=True)
    with pytest.raises(ValueError, match="at least 1"):
        shards_of(0, 2, replicas=1, saves=False)
    with pytest.raises(ValueError, match="shards=6 and consistency 'sync' cannot be combined with global_clipnorm"):
        require_no_sums("global_clipnorm", shards=6, replicas=1)
    with pytest.raises(ValueError, match="replicas=2 and consistency 'sync' cannot be combined with global_clipnorm"):
        require_no_sums("global_clipnorm", shards=None, replicas=2)
    require_no_sums("global_clipnorm", shards=None, replicas=1)
    with pytest.raises(ValueError, match=r"shards=6 .*embedding.*: set replicas=2"):
        require_no_rows(6, ["embedding"], replicas=1)
    require_no_rows(6, ["embedding"], replicas=2)
    require_no_rows(None, ["embedding"], replicas=1)
    monkeypatch.setenv("HEADWATER_SHARDS", "8")
    assert shards_of(None, 2, replicas=1, saves=False) == 8
    assert shards_of(4, 2, replicas=1, saves=False) == 4
    monkeypatch.setenv("HEADWATER_SHARDS", "many")
    with pytest.raises(ValueError, match="HEADWATER_SHARDS must be a number"):
        shards_of(None, 2, replicas=1, saves=False)


def test_a_ps_added_later_owns_no_shards_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_servers(3) == 3
    monkeypatch.setenv("HEADWATER_FIRST_PS", "2")
    assert first_servers(3) == 2
    assert first_servers(1) == 1
