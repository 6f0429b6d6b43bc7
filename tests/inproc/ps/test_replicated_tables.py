"""Backups of dynamic tables have bitwise equal rows, and each push counts once."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from headwater.cluster.task import kinds
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import ResourceExhaustedError
from headwater.ps import service
from headwater.ps.layout import make_layout
from headwater.ps.replicas.tables import TABLES, Programs, TablesCopy
from headwater.ps.service import ParameterService
from headwater.ps.tables.client import TableClient
from headwater.ps.tables.cluster import LocalTables
from headwater.ps.tables.rounds import Round
from headwater.state.sites import Site
from headwater.tables import Admission, Age, Initializer, LeastFrequent, LeastRecent, Table, TableConfig
from headwater.tables import snapshots as saving
from headwater.tables.optimizers import SGD, Adagrad, Adam, GeneralOptimizer
from tests.inproc.ps.replicated import TwoServers, together
from tests.support.cuts import Cuts

DIM, KEYS = 4, 400


def _moved(rows: Any, state: Any, gradients: Any, step: int, rate: float) -> Any:
    (seen,) = state
    return rows - rate * gradients / step, [seen + 1]


CONFIGS: dict[str, TableConfig] = {
    "grows": TableConfig(dim=DIM, optimizer=Adagrad(0.1)),
    "exact": TableConfig(dim=DIM, optimizer=Adam(0.1, exact=True)),
    "strings": TableConfig(dim=DIM, optimizer=Adam(0.1), strings=True, shards=3),
    "least recent": TableConfig(dim=DIM, optimizer=Adam(0.1), eviction=LeastRecent(), max_rows=90, shards=3),
    "least frequent": TableConfig(dim=DIM, optimizer=SGD(0.1), eviction=LeastFrequent(), max_rows=60, shards=2),
    "seen thrice": TableConfig(
        dim=DIM, optimizer=SGD(0.1), eviction=LeastRecent(), max_rows=60, admission=Admission(sightings=3), shards=2
    ),
    "by chance": TableConfig(
        dim=DIM, optimizer=SGD(0.1), eviction=Age(5), max_rows=60, admission=Admission(probability=0.3), shards=2
    ),
    "counts": TableConfig(dim=DIM, optimizer=SGD(1.0), initializer=Initializer(kind="constant", a=0.0)),
    "of the program": TableConfig(dim=DIM, optimizer=GeneralOptimizer(apply=_moved, slots=(1.0,), name="moved")),
}


class Tables(TwoServers):
    """Two servers with two replicas of each server's tables.

    Args:
      cuts: see `TwoServers`.
    """

    def __init__(self, cuts: Cuts | None = None) -> None:
        self._programs = [Programs(), Programs()]
        for programs in self._programs:
            programs.make("of the program", CONFIGS["of the program"])
        no_parameters: Any = None
        super().__init__(make_layout([], 2), lambda _: no_parameters, [], cuts=cuts)
        self.name = TABLES

    def _copy(self, index: int, shard: int, site: Site) -> Any:
        return TablesCopy(shard, tasks=2, programs=self._programs[index], site=site)

    def _serve_first(self, service: ParameterService, channel: Channel, first: Frame) -> None:
        if first.kind != kinds.OPEN_TABLES:
            return super()._serve_first(service, channel, first)
        _, _, shard, *_ = first.header
        hosted = service._hosted.get(f"{TABLES}/{shard}")  # None before it begins
        return hosted.serve(channel, first) if isinstance(hosted, TablesCopy) else None

    def worker(self, *names: str) -> TableClient:
        """Returns a worker's client for some of the tables above."""
        client = TableClient("/job:worker/task:0", self.server_links(), replicas=2)
        for name in names:
            client.open(name, CONFIGS[name])
        return client

    def held(self, index: int, shard: int) -> list[Any]:
        """Returns the contents of a replica."""
        contents = self.copies[index][shard]._contents
        clients = sorted((client.number, client.last) for client in contents._clients.values() if client.last)
        return [clients, *(part for table in contents.tables() for part in _parts(table))]

    def taken_over(self) -> list[tuple[list[Any], list[Any]]]:
        """Returns for each shard the contents of its primary, and of the backup after its promotion."""
        found: list[tuple[list[Any], list[Any]]] = []
        for number in (0, 1):
            self.paired()
            before = self.primary(number)
            had = self.held(before, number)
            self.kill(before)
            after = self.primary(number)
            assert after != before
            found.append((had, self.held(after, number)))
            self.start(before)
        self.paired()
        return found


def _parts(table: Table) -> list[Any]:
    """Returns the contents of a table by key: use, values with state, and counts of keys without a row."""
    found = [table.shard_records(shard) for shard in range(table.config.shards)]
    words = np.concatenate([words for words, _ in found])
    values = np.concatenate([values for _, values in found])
    order = np.lexsort(words.T[::-1])
    words[:, 1] &= ~np.int64(3)  # the saved rows, and the later changes
    rates = table.rates if table.config.optimizer.kind >= 0 else ()
    return [table.name, table.step, table.learning_rate, rates, words[order], values[order], *table.shards.sightings]


def assert_alike(servers: Tables) -> None:
    for had, has in servers.taken_over():
        assert len(had) == len(has) > 1
        for one, other in zip(had, has, strict=True):
            np.testing.assert_array_equal(one, other)


def train(client: TableClient, step: int, *names: str) -> None:
    """Makes a step with random keys, some of which are frequent."""
    random = np.random.default_rng(step)
    numbers = {name: (KEYS * random.random(24) ** 2).astype(np.int64) for name in names}
    ids = {name: keys.astype(str) if CONFIGS[name].strings else keys for name, keys in numbers.items()}
    client.look_up(ids)
    client.update(ids, {name: random.normal(size=(24, DIM)).astype(np.float32) for name in names})


@pytest.mark.parametrize("name", CONFIGS)
def test_the_backup_has_the_same_bits(name: str) -> None:
    servers = Tables()
    client = servers.worker(name)
    servers.paired()
    for step in range(30):
        train(client, step, name)
    assert_alike(servers)
    for step in range(30, 60):  # also if rows are stored at other positions
        train(client, step, name)
    if CONFIGS[name].eviction is not None:
        assert sum(told.evicted for told in client.statistics(name).values())
    assert_alike(servers)
    client.close()
    servers.stop()


def test_tables_are_handed_over_while_a_worker_trains() -> None:
    """Each push counts once, and the replicas are bitwise equal, although they serve alternately."""
    servers = Tables()
    client = servers.worker("counts", "least recent")
    servers.paired()
    done = threading.Event()
    pushed = np.zeros(KEYS)

    def push() -> None:
        step = 0
        while not done.is_set():
            train(client, step, "least recent")
            keys = np.arange(step % 7, KEYS, 7)
            client.update({"counts": keys}, {"counts": np.full((len(keys), DIM), -1, np.float32)})
            pushed[keys] += 1
            step += 1

    def move() -> None:
        for shard in (0, 1, 0):
            servers.hand_off(shard)
        done.set()

    together(push, move)
    found = client.look_up({"counts": np.arange(KEYS)}, training=False)["counts"]
    np.testing.assert_array_equal(found[:, 0], pushed)
    assert_alike(servers)
    client.close()
    servers.stop()


def test_a_copy_is_filled_up_while_rows_change_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step changes all tables after each piece of the snapshot; all pieces have the state at the first one."""
    names = [name for name in CONFIGS if name != "of the program"]
    pieces = saving.TableSnapshot.pieces
    monkeypatch.setattr(saving.TableSnapshot, "pieces", lambda self: pieces(self, 8))
    cuts = Cuts()
    servers = Tables(cuts)
    client = servers.worker(*names)
    servers.paired()
    for step in range(10):
        train(client, step, *names)
    servers.kill(1)
    for step in range(10, 30):
        train(client, step, *names)
    send, made, one_at_a_time = cuts.pass_on, 0, threading.Lock()

    def pass_on(frame: Frame, channel: Channel) -> None:
        nonlocal made
        send(frame, channel)
        if frame.kind == kinds.ROWS:
            with one_at_a_time:
                made += 1
                train(client, 100 + made, *names)

    cuts.pass_on = pass_on
    servers.start(1)
    servers.paired()
    cuts.pass_on = send
    assert made > 40
    train(client, 30, *names)
    assert_alike(servers)
    client.close()
    servers.stop()


def test_a_table_gets_other_rows_in_both() -> None:
    servers = Tables()
    client = servers.worker("grows")
    servers.paired()
    for step in range(5):
        train(client, step, "grows")
    every = list(client.all_rows("grows"))
    rows = [np.concatenate([part[at] for part in every]) for at in (1, 2)]
    client.replace("grows", 7, rows[0], rows[1] + 1)
    train(client, 5, "grows")
    assert_alike(servers)
    client.close()
    servers.stop()


def test_a_table_opened_late_is_replicated_too() -> None:
    servers = Tables()
    client = servers.worker("grows")
    servers.paired()
    train(client, 0, "grows")
    client.open("least recent", CONFIGS["least recent"])
    for step in range(1, 20):
        train(client, step, "grows", "least recent")
    assert_alike(servers)
    client.close()
    servers.stop()


def test_a_round_that_is_not_over_survives_its_primary_and_a_new_copy() -> None:
    servers, undisturbed = Tables(), LocalTables(2)
    now = Round(1, 0)
    workers = [servers.worker("exact", "strings") for _ in range(2)]
    alone = [undisturbed.client(rank) for rank in range(2)]
    for rank, (one, other) in enumerate(zip(workers, alone, strict=True)):
        for name in ("exact", "strings"):
            other.open(name, CONFIGS[name])
        for client in (one, other):
            client.gather(lambda: now, rank)
    for step in range(6):
        now = Round(1, step)
        servers.paired()
        for worker, pair in enumerate(zip(workers, alone, strict=True)):
            for client in pair:
                train(client, 2 * step + worker, "exact", "strings")
            if worker == 0 and step % 2 == 0:  # the backup is promoted, and a new one is filled
                before = servers.primary(step // 2 % 2)
                servers.kill(before)
                servers.start(before)
                servers.paired()
    now = Round(1, 6)
    ids = {"exact": np.arange(KEYS), "strings": np.arange(KEYS).astype(str)}
    found, expected = workers[0].look_up(ids, training=False), alone[0].look_up(ids, training=False)
    for name in ids:
        np.testing.assert_array_equal(found[name], expected[name])
    assert_alike(servers)
    for client in (*workers, *alone):
        client.close()
    undisturbed.stop()
    servers.stop()


def test_a_call_that_needs_more_rows_than_there_may_be_changes_nothing() -> None:
    servers = Tables()
    client = servers.worker("least frequent")
    servers.paired()
    train(client, 0, "least frequent")
    with pytest.raises(Exception, match="one call needs"):
        client.look_up({"least frequent": np.arange(1000, 2000)})
    train(client, 1, "least frequent")
    assert_alike(servers)
    client.close()
    servers.stop()


def test_rows_that_go_for_a_call_that_fails_go_in_both() -> None:
    """All existing rows belong to keys of the call, so each eviction makes the call need another row."""
    servers = Tables()
    client = servers.worker("least frequent")
    servers.paired()
    client.look_up({"least frequent": np.arange(100)})
    before = client.statistics("least frequent")
    with pytest.raises(ResourceExhaustedError, match="one call needs"):
        client.look_up({"least frequent": np.arange(160)})
    assert all(told.rows < before[task].rows for task, told in client.statistics("least frequent").items())
    train(client, 0, "least frequent")
    assert_alike(servers)
    client.close()
    servers.stop()


def test_a_cut_at_every_frame() -> None:
    """Each push counts once, at whichever frame the channel is cut, and whichever replica serves."""
    cuts = Cuts()
    servers = Tables(cuts)
    client = servers.worker("counts")
    keys = np.arange(8)
    pushed = 0
    for frame in range(12):
        for arrives in (False, True):
            servers.paired()
            cuts.plan(before=() if arrives else {frame}, after={frame} if arrives else ())
            for _ in range(3):
                client.update({"counts": keys}, {"counts": np.full((8, DIM), -1, np.float32)})
                pushed += 1
            cuts.plan()
    expected = np.full((8, DIM), pushed, np.float32)
    np.testing.assert_array_equal(client.look_up({"counts": keys})["counts"], expected)
    servers.taken_over()
    np.testing.assert_array_equal(client.look_up({"counts": keys})["counts"], expected)
    client.close()
    servers.stop()


def test_servers_are_killed_in_turn_while_a_worker_pushes() -> None:
    servers = Tables()
    client = servers.worker("counts")
    keys, ends, pushed, progress = np.arange(8), threading.Event(), 0, threading.Condition()

    def push() -> None:
        nonlocal pushed
        while not ends.is_set():
            client.update({"counts": keys}, {"counts": np.full((8, DIM), -1, np.float32)})
            with progress:
                pushed += 1
                progress.notify_all()

    pushes = threading.Thread(target=push)
    pushes.start()
    for number in range(4):
        servers.paired()
        servers.kill(number % 2)
        with progress:
            before = pushed
            progress.wait_for(lambda before=before: pushed > before + 2)
        servers.start(number % 2)
    servers.paired()
    ends.set()
    pushes.join()
    np.testing.assert_array_equal(client.look_up({"counts": keys})["counts"], np.full((8, DIM), pushed, np.float32))
    client.close()
    servers.stop()


@pytest.mark.parametrize("name", ["exact", "strings", "least recent", "of the program"])
def test_tables_of_servers_that_end_at_once_are_there_when_they_are_back(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LOST_TIMEOUT_S", 0.1)
    servers = Tables()
    client = servers.worker(name)
    servers.paired()
    for step in range(20):
        train(client, step, name)
    had = [servers.held(servers.primary(shard), shard) for shard in (0, 1)]
    servers.end_at_once()
    servers.paired()
    for shard in (0, 1):
        for one, other in zip(had[shard], servers.held(servers.primary(shard), shard), strict=True):
            np.testing.assert_array_equal(one, other)
    train(client, 20, name)
    client.close()
    servers.stop()
