"""Backups of each part have every acknowledged update once, at whichever frame connections are cut."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest

from headwater import ParameterServer
from headwater.cluster.task import kinds
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import UnavailableError
from headwater.ps import service
from headwater.ps.accounting.accounts import Accounts
from headwater.ps.batches import Examples
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import from_text
from headwater.ps.host_memory import HostMemory
from headwater.ps.replicas import shard as shard_copies
from headwater.ps.replicas.limits import require_replicas
from headwater.ps.replicas.shard import ShardCopy
from headwater.state.copy import Replica
from headwater.state.feed import Feed
from headwater.state.views import RequestKind, View, WitnessRequest
from headwater.state.witness import Witnesses
from tests.inproc.keras.test_parameter_server import LEAVES, PARAMS, alone, close, gradients
from tests.inproc.ps.accounted import BATCH, SIZE, exact
from tests.inproc.ps.accounted import gradients as counted_examples
from tests.inproc.ps.replicated import Replicated, ones, together
from tests.support.cuts import Cuts

STEPS = 4


def versions(servers: Replicated) -> list[int]:
    """Returns, for the primary of each shard, the number of updates that it has seen."""
    return [servers.copies[servers.primary(shard)][shard].version for shard in (0, 1)]


def take_over(servers: Replicated, client: ParameterClient) -> list[Any]:
    """Promotes the backups, and returns their values."""
    servers.paired()
    index = servers.primary(0)
    servers.kill(index)
    servers.start(index)
    servers.paired()
    if servers.primary(1) == index:
        servers.kill(index)
    client.pull()
    return client.values()


def _frames() -> int:
    cuts = Cuts()
    servers = Replicated(PARAMS, optax.adam(0.1), cuts=cuts)
    client = servers.client()
    servers.paired()
    cuts.plan()
    client.push(gradients(0))
    frames = cuts.frames
    client.close()
    servers.stop()
    return frames


def test_a_push_takes_four_frames_for_each_part() -> None:
    """The worker's push and its answer; the primary's change to the backup and its confirmation."""
    assert _frames() == 8


def test_the_backup_has_the_same_bits() -> None:
    servers = Replicated(PARAMS, optax.adamw(0.05))
    client = servers.client()
    servers.paired()
    for step in range(10):
        client.push(gradients(step))
    before = [np.array(value) for value in client.values()]
    after = take_over(servers, client)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    # The optimizer's state was transferred, too.
    client.push(gradients(10))
    close(client.values(), alone(optax.adamw(0.05), [gradients(step) for step in range(11)]))
    client.close()
    servers.stop()


def test_a_cut_at_every_frame() -> None:
    cuts = Cuts()
    servers = Replicated(PARAMS, optax.sgd(1.0), cuts=cuts)
    client = servers.client()
    pushed = 0
    for frame in range(16):
        for arrives in (False, True):
            servers.paired()
            cuts.plan(before=() if arrives else {frame}, after={frame} if arrives else ())
            for _ in range(STEPS):
                assert client.push(ones(PARAMS))[1]
            assert cuts.made == 1
            cuts.plan()
            pushed += STEPS
            assert versions(servers) == [pushed, pushed]
    servers.paired()
    client.pull()
    counted(client, pushed)
    take_over(servers, client)
    counted(client, pushed)
    client.close()
    servers.stop()


def test_a_restarted_backup_is_a_backup_again() -> None:
    servers = Replicated(PARAMS, optax.sgd(1.0))
    client = servers.client()
    servers.paired()
    ended = 1 - servers.primary(0)
    for index in (ended, 1 - ended):
        client.push(ones(PARAMS))
        servers.end(index)
        client.push(ones(PARAMS))
        servers.start(index)
        servers.paired()
    take_over(servers, client)
    counted(client, 4)
    client.close()
    servers.stop()


def test_workers_do_not_wait_for_a_backup_that_cannot_apply_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Replicated(PARAMS, optax.sgd(1.0))
    client = servers.client()
    servers.paired()
    refuses = threading.Event()
    refuses.set()

    def watch(copy: Replica, link: Any, channel: Any) -> None:
        if refuses.is_set():
            channel.recv()
            raise UnavailableError(None, None, "there is no memory for the next frame")

    monkeypatch.setattr(Replica, "_watch", watch)
    for shard in (0, 1):
        servers.copies[servers.primary(shard)][shard]._feed.end()
    client.push(ones(PARAMS))
    refuses.clear()
    servers.paired()
    take_over(servers, client)
    counted(client, 1)
    client.close()
    servers.stop()


@pytest.mark.parametrize("how", ["_start_feed", "_end_snapshot", "_is_filled"])
def test_a_replica_continues_after_an_error_of_its_thread(
    how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fails, method = threading.Event(), getattr(ShardCopy, how)
    fails.set()

    def once(*given: Any) -> Any:
        if fails.is_set():
            fails.clear()
            raise MemoryError
        return method(*given)

    monkeypatch.setattr(ShardCopy, how, staticmethod(once) if how == "_end_snapshot" else once)
    servers = Replicated(PARAMS, optax.sgd(1.0))
    client = servers.client()
    servers.paired()
    client.push(ones(PARAMS))
    take_over(servers, client)
    counted(client, 1)
    client.close()
    servers.stop()
    assert "MemoryError" in caplog.text


def test_an_update_that_could_not_be_sent_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Replicated(PARAMS, optax.sgd(1.0))
    client = servers.client()
    servers.paired()
    words, fails = HostMemory.words, threading.Event()

    def once(memory: HostMemory) -> Any:
        if fails.is_set():
            fails.clear()
            raise UnavailableError(None, None, "there is no memory")
        return words(memory)

    monkeypatch.setattr(HostMemory, "words", once)
    fails.set()
    assert client.push(ones(PARAMS))[1]
    take_over(servers, client)
    counted(client, 1)
    client.close()
    servers.stop()


def test_copies_are_handed_over_while_workers_push() -> None:
    servers = Replicated(PARAMS, optax.sgd(1.0))
    clients = [servers.client(0), servers.client(1)]
    servers.paired()
    done = threading.Event()
    pushed = [0, 0]

    def train(number: int) -> None:
        while not done.is_set():
            assert clients[number].push(ones(PARAMS))[1]
            pushed[number] += 1

    def move() -> None:
        for shard in (0, 1, 0):
            servers.hand_off(shard)
        done.set()

    together(partial(train, 0), partial(train, 1), move)
    assert versions(servers) == [sum(pushed)] * 2
    clients[0].pull()
    counted(clients[0], sum(pushed))
    take_over(servers, clients[0])
    counted(clients[0], sum(pushed))
    for client in clients:
        client.close()
    servers.stop()


def counted(client: ParameterClient, pushed: int) -> None:
    """Checks that the values contain exactly this number of gradients of `ones`."""
    for value, initial in zip(client.values(), LEAVES, strict=True):
        np.testing.assert_allclose(value, initial + pushed, rtol=1e-5)


def test_two_workers_and_cuts_anywhere() -> None:
    chance = random.Random(7)
    cuts = Cuts()
    servers = Replicated(PARAMS, optax.sgd(1.0), cuts=cuts)
    clients = [servers.client(0), servers.client(1)]
    pushed = made = 0

    def train(client: ParameterClient) -> None:
        for _ in range(STEPS):
            assert client.push(ones(PARAMS))[1]

    for _ in range(12):
        before, after = (set(chance.sample(range(80), chance.randrange(8))) for _ in range(2))
        cuts.plan(before=before, after=after)
        together(*(partial(train, client) for client in clients))
        made += cuts.made
        cuts.plan()
        pushed += 2 * STEPS
        assert versions(servers) == [pushed, pushed]
    assert made > 12
    clients[0].pull()
    counted(clients[0], pushed)
    take_over(servers, clients[0])
    counted(clients[0], pushed)
    for client in clients:
        client.close()
    servers.stop()


def test_unsent_updates_are_lost_with_the_record_of_their_requests() -> None:
    """If a primary is killed between updates that it sends together, the backup has none of them: otherwise updates
    that workers push again would be applied twice.
    """
    cuts = Cuts()
    servers = Replicated(PARAMS, optax.sgd(1.0), cuts=cuts)
    client = servers.client()
    servers.paired()
    copy = servers.copies[0][0]
    updater, host = copy._updater, copy._host
    with host.lock:
        for _ in range(2):
            updater.apply([np.full(value.shape, -1, np.float32) for value in updater.values(None)], {}, (), ())
    killed, confirmed = threading.Event(), threading.Event()
    sent: list[int] = []
    send = cuts.pass_on

    def kill() -> None:
        servers.kill(0)
        killed.set()

    def pass_on(frame: Frame, channel: Channel) -> None:
        if frame.kind == kinds.UPDATE_BACKUP:
            sent.append(frame.header[0])
            if frame.header[-1] is not None and not killed.is_set():
                assert confirmed.wait(60)
                threading.Thread(target=kill).start()
                channel.close()
        send(frame, channel)
        if frame.kind == kinds.DONE and len(sent) > 1 and frame.header == (sent[1],):
            confirmed.set()

    cuts.pass_on = pass_on
    assert client.push(ones(PARAMS))[1]
    assert killed.wait(60)
    assert len(sent) > 2
    client.pull()
    counted(client, 1)
    client.close()
    servers.stop()


def test_servers_are_killed_in_turn_while_two_workers_push() -> None:
    servers = Replicated(PARAMS, optax.sgd(1.0))
    clients = [servers.client(0), servers.client(1)]
    ends = threading.Event()
    taken = [0, 0]
    progress = threading.Condition()

    def train(worker: int) -> None:
        while not ends.is_set():
            assert clients[worker].push(ones(PARAMS))[1]
            with progress:
                taken[worker] += 1
                progress.notify_all()
        clients[worker].finish(0)

    def kill() -> None:
        try:
            for number in range(4):
                servers.paired()
                index = number % 2
                servers.kill(index)
                for worker in (0, 1):
                    with progress:
                        before = taken[worker]
                        progress.wait_for(lambda worker=worker, before=before: taken[worker] > before + 2)
                for shard in (0, 1):
                    assert "NO BACKUP" in servers.copies[1 - index][shard].group().copies
                servers.start(index)
            servers.paired()
        finally:
            ends.set()

    together(lambda: train(0), lambda: train(1), kill)
    assert versions(servers) == [sum(taken)] * 2
    clients[0].pull()
    counted(clients[0], sum(taken))
    for client in clients:
        client.close()
    servers.stop()


COUNTS: dict[str, Any] = {"counts": np.zeros((SIZE, 2), np.float32)}
BATCHES = {"batch_size": BATCH, "shuffle": False}


def counting(folder: Path, cuts: Cuts | None = None) -> Replicated:
    """Returns servers that count examples, half of them on each."""
    return Replicated(COUNTS, optax.sgd(-1.0), cuts=cuts, log_dir=str(folder))


def counter(servers: Replicated, number: int = 0) -> ParameterServer:
    """Returns a worker that iterates over examples."""
    ps = ParameterServer(COUNTS, optax.sgd(-1.0))
    ps._client = servers.client(number)
    ps._examples = Examples(ps._client)
    return ps


def ends(servers: Replicated, folder: Path, *workers: ParameterServer, epochs: int) -> None:
    """Ends all workers, and checks that each example was applied once in each epoch, on either part."""
    together(*(ps.finish for ps in workers))
    client = workers[0]._client
    client.pull()
    np.testing.assert_array_equal(client.values()[0], np.full((SIZE, 2), epochs, np.float32))
    for ps in workers:
        ps._client.close()
    servers.stop()
    exact(folder, epochs)


def test_examples_count_once_though_the_first_server_is_killed(tmp_path: Path) -> None:
    """The ledger is replicated with the updates: the backup has both an update and its examples' record, or neither."""
    servers = counting(tmp_path)
    ps = counter(servers)
    servers.paired()
    for number, batch in enumerate(ps.batches(np.arange(SIZE), epochs=2, **BATCHES)):
        if number == 6:
            servers.kill(0)
        if number == 12:
            servers.start(0)
            servers.paired()
            servers.kill(1)
        assert ps.push(counted_examples(batch))
    ends(servers, tmp_path, ps, epochs=2)


def test_examples_stay_assigned_when_the_first_part_has_a_new_primary(tmp_path: Path) -> None:
    """Another worker sends the next request to the new primary: it does not get the range of the worker that has not
    reconnected yet.
    """
    servers = counting(tmp_path)
    one, other = counter(servers, 0), counter(servers, 1)
    servers.paired()
    ranges = [iter(ps.batches(np.arange(SIZE), epochs=1, **BATCHES)) for ps in (one, other)]
    mine, its = next(ranges[0]), next(ranges[1])
    ahead = next(ranges[0])
    servers.hand_off(0)
    for _ in range(2):
        assert other.push(counted_examples(its))
        its = next(ranges[1])
        assert not {*its.tolist()} & {*mine.tolist(), *ahead.tolist()}
        servers.paired()
        servers.kill(index := servers.primary(0))
        servers.start(index)
        servers.paired()

    def do_the_rest(ps: ParameterServer, first: list[int], batches: Iterator[Any]) -> None:
        for batch in itertools.chain([first], batches):
            assert ps.push(counted_examples(batch))

    together(
        partial(do_the_rest, one, [*mine, *ahead], ranges[0]), partial(do_the_rest, other, its.tolist(), ranges[1])
    )
    ends(servers, tmp_path, one, other, epochs=1)


@pytest.mark.parametrize("primary", [0, 1])
@pytest.mark.parametrize("frame", range(9))
def test_examples_count_once_though_a_server_dies_at_any_frame(frame: int, primary: int, tmp_path: Path) -> None:
    """The ninth frame is the first of the next step."""
    cuts = Cuts()
    servers = counting(tmp_path, cuts)
    ps = counter(servers)
    servers.paired()
    if servers.primary(0) != 0:
        servers.hand_off(0)
    for number, batch in enumerate(ps.batches(np.arange(SIZE), epochs=1, **BATCHES)):
        if number == 3:
            # In a thread of its own, because the thread that loses the frame may hold locks.
            cuts.on_cut = threading.Thread(target=servers.kill, args=(primary,)).start
            cuts.plan(before=[frame])
        assert ps.push(counted_examples(batch))
    assert cuts.made == 1
    ends(servers, tmp_path, ps, epochs=1)


def test_examples_of_a_worker_lost_with_the_primary_are_reassigned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_copies, "CONNECT_TIMEOUT_S", 0.1)
    servers = counting(tmp_path)
    one, lost = counter(servers, 0), counter(servers, 1)
    servers.paired()
    batches = iter(lost.batches(np.arange(SIZE), epochs=1, **BATCHES))
    next(batches)
    servers.kill(servers.primary(0))
    lost._client.close()
    for batch in one.batches(np.arange(SIZE), epochs=1, **BATCHES):
        assert one.push(counted_examples(batch))
    ends(servers, tmp_path, one, epochs=1)


def test_a_program_restarted_with_the_primary_holds_no_ranges(tmp_path: Path) -> None:
    servers = counting(tmp_path)
    one, before = counter(servers, 0), counter(servers, 1)
    servers.paired()
    batches = iter(before.batches(np.arange(SIZE), epochs=1, **BATCHES))
    held = next(batches).tolist()
    servers.kill(servers.primary(0))
    before._client.close()
    anew = counter(servers, 1)
    seen: list[int] = []
    for ps in (anew, one):
        for batch in ps.batches(np.arange(SIZE), epochs=1, **BATCHES):
            seen += batch.tolist()
            assert ps.push(counted_examples(batch))
    assert set(held) <= set(seen)
    ends(servers, tmp_path, one, anew, epochs=1)


def test_an_update_is_in_the_journal_before_the_other_copy_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the journal could lack an update that the backup has when the primary is killed in between."""
    happened: dict[int, list[str]] = {}
    send, write = Feed.send, Accounts.flush

    def sent(feed: Feed, kind: int, *arguments: Any) -> None:
        if kind == kinds.UPDATE_BACKUP:
            happened.setdefault(threading.get_ident(), []).append("sent")
        send(feed, kind, *arguments)

    def written(accounts: Accounts) -> None:
        write(accounts)
        happened.setdefault(threading.get_ident(), []).append("written")

    monkeypatch.setattr(Feed, "send", sent)
    monkeypatch.setattr(Accounts, "flush", written)
    servers = Replicated(PARAMS, optax.sgd(0.1), log_dir=str(tmp_path))
    client = servers.client()
    servers.paired()
    happened.clear()
    client.push(gradients(0))
    client.close()
    servers.stop()
    assert sum(whats.count("sent") for whats in happened.values()) == 2
    for whats in happened.values():
        assert whats[0] == "written"
        assert all(before == "written" for before, what in itertools.pairwise(whats) if what == "sent")


@pytest.mark.parametrize(
    ("replicas", "tasks", "consistency", "error"),
    [
        (3, 2, "async", "replicas must be 1 or 2, not 3"),
        (2, 1, "async", "needs a second ps"),
        (2, 2, "k=1", "replicas=2 and consistency '1 of n' cannot be combined"),
    ],
)
def test_invalid_configurations_are_rejected(replicas: int, tasks: int, consistency: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        require_replicas(replicas, tasks, from_text(consistency, 2))


def test_replicas_and_own_states_are_refused_together() -> None:
    with pytest.raises(ValueError, match="cannot be combined"):
        require_replicas(2, 2, from_text("async", 1), saves=True)


def test_one_process_has_no_second_ps() -> None:
    with pytest.raises(ValueError, match="needs a second ps"):
        ParameterServer(PARAMS, optax.sgd(1.0), replicas=2)


def test_states_of_two_ps_that_shut_down_together_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushes of a worker during the restart count once; the same is repeated for a second shutdown."""
    monkeypatch.setattr(service, "LOST_TIMEOUT_S", 0.1)
    servers = Replicated(PARAMS, optax.sgd(1.0))
    client = servers.client()
    servers.paired()
    pushed = 0
    for _ in range(2):
        client.push(ones(PARAMS))
        pushing = threading.Thread(target=lambda: [client.push(ones(PARAMS)) for _ in range(5)])
        pushing.start()
        servers.end_at_once()
        pushing.join()
        servers.paired()
        pushed += 6
    take_over(servers, client)
    counted(client, pushed)
    client.close()
    servers.stop()


def test_the_first_ps_to_shut_down_hands_over_to_the_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is also shutting down, and ends once it serves alone; the chief keeps its state."""
    monkeypatch.setattr(service, "LOST_TIMEOUT_S", 0.1)
    servers = Replicated(PARAMS, optax.sgd(1.0))
    client = servers.client()
    servers.paired()
    client.push(ones(PARAMS))
    first = servers.primary(0)
    servers.services[first].before_end(over=False)
    servers.kill(first)
    client.push(ones(PARAMS))
    servers.services[1 - first].before_end(over=False)
    servers.kill(1 - first)
    servers.start(first)
    client.push(ones(PARAMS))
    counted(client, 3)
    client.close()
    servers.stop()


def test_nothing_is_handed_over_to_a_ps_that_has_just_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver of the handoff ends, too, and deposits the state of both with the chief."""
    monkeypatch.setattr(service, "LOST_TIMEOUT_S", 0.0)
    ask, answered = Witnesses.request_view, threading.Event()

    def ask_late(witnesses: Witnesses, name: str, shard: int, request: WitnessRequest) -> View | None:
        if request.kind is not RequestKind.HAND_OFF or answered.is_set():
            return ask(witnesses, name, shard, request)
        servers.services[1 - first].before_end(over=False)
        view = ask(witnesses, name, shard, request)
        answered.set()
        return view

    monkeypatch.setattr(Witnesses, "request_view", ask_late)
    servers = Replicated(PARAMS, optax.sgd(1.0))
    chief, other = servers.client(0), servers.client(1)
    servers.paired()
    other.push(ones(PARAMS))
    first = servers.primary(0)
    for copy in servers.copies[first]:
        copy.request_placement(1 - first, first)
    answered.wait()
    for copy in servers.copies[first]:
        with copy._witness_lock:  # it has received the answer
            pass
    servers.services[first].before_end(over=False)
    for index in range(2):
        servers.kill(index)
        servers.start(index)
    chief.push(ones(PARAMS))
    counted(chief, 2)
    chief.close()
    other.close()
    servers.stop()
