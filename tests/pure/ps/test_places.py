"""Known places of shards, and configurations with shards."""

from __future__ import annotations

import random

import pytest

from headwater.errors import InvalidArgumentError
from headwater.ps.shards.limits import first_servers, require_no_sums, shards_of
from headwater.ps.shards.places import Places, ShardPlace, excess


def test_by_how_much_the_busiest_is_above_the_mean() -> None:
    assert excess({"a": 3.0, "b": 1.0}) == 0.5
    assert excess({"a": 1.0, "b": 1.0}) == 0.0
    assert excess({"a": 0.0, "b": 0.0}) == 0.0


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
