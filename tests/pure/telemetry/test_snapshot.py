"""What a task says of itself: as JSON and back, and what two moments tell."""

from __future__ import annotations

import pytest

from headwater.telemetry.snapshot import Group, PeerTraffic, Snapshot, VariableSize, Wait, rates, total_traffic

FULL = Snapshot(
    at=10.0,
    steps=100,
    sessions=2,
    global_step=50,
    peers=(PeerTraffic(peer="/job:worker/task:0", channels=2, sent=1000, received=3000),),
    variables=(VariableSize(name="w", nbytes=40, dtype="float32", shape=(2, 5), updates=3),),
    variables_count=1,
    variables_bytes=40,
    waits=(Wait(what="gradients", seconds=1.5),),
    groups=(Group(name="g", updates=3, staleness=0.5, staleness_max=2, dropped=1, workers=("a",), waiting="a for b"),),
    cluster={"/job:ps/task:0": "127.0.0.1:1"},
    metrics="127.0.0.1:2",
)


def test_as_json_and_back() -> None:
    assert Snapshot.decode(FULL.encode()) == FULL
    assert Snapshot.decode(b'{"at": 1.0, "of a later version": [1]}') == Snapshot(at=1.0)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"at": 1, "peers": [3]}', b'{"at": 1, "waits": [{}]}', b"\xff"])
def test_what_is_no_snapshot(data: bytes) -> None:
    with pytest.raises(ValueError):
        Snapshot.decode(data)


def test_rates() -> None:
    later = Snapshot(
        at=12.0,
        steps=150,
        global_step=60,
        peers=total_traffic([("/job:worker/task:0", 3000, 2000), ("b", 10, 20), ("b", 30, 40)]),
    )
    found = rates(FULL, later)
    assert found.steps == 25
    assert found.global_step == 5
    # Of the first one a channel was closed meanwhile: what it received went with it.
    assert found.bytes == {"/job:worker/task:0": (1000, 0), "b": (20, 30)}
    assert rates(FULL, Snapshot(at=12.0)).global_step is None
