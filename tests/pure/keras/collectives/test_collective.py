"""Sums, broadcasts and gathers between the processes of a group."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.errors import AbortedError
from headwater.keras.collectives import collective
from headwater.keras.collectives.collective import WHOLE_BELOW_BYTES, Collective, LostPeerError
from tests.support.channel_pairs import shared_memory_pair, tcp_pair

Pair = Callable[[], tuple[Channel, Channel]]


def group(count: int, pair: Pair = memory_pair) -> list[Collective]:
    channels: list[dict[int, Channel]] = [{} for _ in range(count)]
    for first, second in itertools.combinations(range(count), 2):
        channels[first][second], channels[second][first] = pair()
    return [Collective(rank, [f"worker {n}" for n in range(count)], channels[rank]) for rank in range(count)]


def together(members: list[Collective], body: Callable[[Collective], Any]) -> list[Any]:
    """Returns the result of ``body``, or its error, for each member."""
    found: list[Any] = [None] * len(members)

    def run(member: Collective) -> None:
        try:
            found[member.rank] = body(member)
        except (LostPeerError, AbortedError) as error:
            found[member.rank] = error

    threads = [threading.Thread(target=run, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("pair", [memory_pair, shared_memory_pair, tcp_pair])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("length", [1, 1000, 3 * WHOLE_BELOW_BYTES])
def test_all_get_the_same_bits_of_a_sum(pair: Pair, count: int, length: int) -> None:
    vectors = [np.random.default_rng(rank).normal(size=length).astype(np.float32) for rank in range(count)]
    members = group(count, pair)
    sums = together(members, lambda member: [member.sum(vectors[member.rank], "test") for _ in range(3)])
    expected = sum(vectors[1:], vectors[0])
    for found in sums:
        for total in found:
            assert (total == expected).all()
    for member in members:
        member.close()


def test_broadcast_sends_the_first_value_and_gather_the_values_of_the_others() -> None:
    members = group(3)
    given = [np.arange(rank + 1) for rank in range(3)]
    assert [list(found[0]) for found in together(members, lambda m: m.broadcast([given[m.rank]], "test"))] == [[0]] * 3
    gathered = together(members, lambda member: member.gather([given[member.rank]], "test"))
    assert [{rank: list(part[0]) for rank, part in found.items()} for found in gathered] == [
        {1: [0, 1], 2: [0, 1, 2]},
        {0: [0], 2: [0, 1, 2]},
        {0: [0], 1: [0, 1]},
    ]


def test_processes_that_do_different_things_are_reported() -> None:
    found = together(group(2), lambda member: member.barrier(f"step {member.rank}"))
    told = [error for error in found if isinstance(error, AbortedError)]
    assert told
    assert (
        "worker 0 is at call 1 (step 0) while worker 1 is at call 1 (step 1)"
        in {error.message.partition(":")[0] for error in told}
        or "worker 1 is at call 1 (step 1) while worker 0 is at call 1 (step 0)" in told[0].message
    )


def test_a_slow_process_is_named_and_awaited(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(collective, "REPORT_S", 0.01)
    members = group(2)
    named = threading.Event()

    class Reads(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if len(caplog.records) >= 3:
                named.set()

    log, reads = logging.getLogger("headwater"), Reads()
    log.addHandler(reads)
    try:

        def body(member: Collective) -> int:
            if member.rank == 1:
                assert named.wait(60)
            return len(member.gather([], "step"))

        assert together(members, body) == [1, 1]
    finally:
        log.removeHandler(reads)
    assert caplog.records[2].getMessage().startswith("worker 0 waits for worker 1 at call 1 (step) for ")


def test_a_process_known_as_lost_is_lost_despite_its_open_channel() -> None:
    first, stopped = memory_pair()
    member = Collective(0, ["worker 0", "worker 1"], {1: first})
    waits = threading.Thread(target=first.break_off, args=("it was stopped",))
    waits.start()
    with pytest.raises(LostPeerError, match=r"^worker 1 is lost: .* is gone: it was stopped$") as raised:
        member.barrier("step")
    waits.join()
    assert raised.value.task == "worker 1"
    stopped.close()


def test_all_name_the_process_that_was_lost_first() -> None:
    members = group(3)
    members[2].close()
    # Worker 1 may hear of it from worker 0, which ends its own channels when it has noticed.
    found = together(members[:2], lambda member: member.barrier("step"))
    assert [error.task for error in found[:2]] == ["worker 2", "worker 2"]
    assert found[0].exit_code == 75
    assert found[0].message.startswith("worker 2 is lost: ")
