"""Histories of parameter servers with two replicas of each part, and one failure at a time.

A failure kills, stops or disconnects a task. The next failure happens only after each part has two replicas again.
Under this condition, no acknowledged update may be lost or applied twice. The checks thereby also detect that two
replicas of a part acknowledge updates at the same time, because the updates of one of them are lost. Each example of an
epoch must count once: on the first parameter server, and on all parameter servers if only parameter servers fail. In
some histories a table with rows, or a dynamic table, counts units as well.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from headwater.errors import UnavailableError
from headwater.ps.accounting.ledger import Plan
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import Consistency, from_text
from headwater.ps.layout import FixedShardsPartitioner, VariableSpec, make_layout
from headwater.ps.process import ParameterTask
from headwater.ps.replicas import shard, tables
from headwater.ps.row_changes import RowChanges
from headwater.ps.tables.client import TableClient
from headwater.ps.tables.cluster import connect_tables
from headwater.ps.updater import Array
from headwater.state.copy import Replica
from headwater.tables import SGD, Initializer, TableConfig
from tests.simulation.account import NO_UNIT, UNITS
from tests.simulation.examples import ExampleHistory
from tests.simulation.faults import Fault
from tests.simulation.parameters import CountingUpdater, ParameterHistory, Setting
from tests.simulation.scheduler import HistoryError, Simulation

#: Default number of rows in a piece of a snapshot.
ROWS_AT_ONCE = shard.ROWS_AT_ONCE


def count_complete_parts(copies: Iterable[Replica]) -> int:
    """Counts the parts that have among these replicas a primary and, if the part has two replicas, a complete backup.

    A primary with an outdated view does not count: it is a previous primary that has not received the newer view. A
    primary whose backup has restarted empty does not count either; the primary may not have noticed the loss of the
    backup yet.
    """
    terms = [(copy, 0 if copy.view is None else copy.view.term) for copy in copies]
    newest = {copy.name: term for copy, term in sorted(terms, key=itemgetter(1))}
    follow = {copy.name for copy, _ in terms if not (copy.serves or copy.is_free)}
    return sum(
        term == newest[copy.name]
        and (
            copy.has_complete_backup and copy.name in follow if copy.backup is not None else copy.has_desired_placement
        )
        for copy, term in terms
    )


class CopiesHistory(ParameterHistory):
    """A history; see `ParameterHistory`.

    Attributes:
      shards: number of movable shards of the variables; None if each parameter server has one fixed part.
      replicas: number of replicas of each part.
    """

    shards: int | None = None
    replicas: int = 2

    def __init__(self, simulation: Simulation, setting: Setting, *others: Any) -> None:
        super().__init__(simulation, setting, *others)
        self._served: dict[int, ParameterTask] = {}
        self._acknowledged: set[int] = set()
        self._final: Sequence[Any] = ()

    def _serve(self, index: int) -> None:
        task = self._served[index] = self._task("ps", index)
        choice = from_text(self.setting.consistency, self.setting.workers)
        task.host("set", self._layout, self._updater, choice, replicas=self.replicas, shards=self.shards)
        self._on_start(index, task)
        task.shell.wait_until_over()
        self._on_end(index)

    def _on_start(self, index: int, task: ParameterTask) -> None:
        """Hook: called when a parameter server has started to serve."""

    def _on_end(self, index: int) -> None:
        """Hook: called when a parameter server has ended without a failure."""

    def _access(self, task: ParameterTask, choice: Consistency, initial: Sequence[Any]) -> ParameterClient:
        return task.client("set", self._layout, choice, initial, replicas=self.replicas, shards=self.shards)

    def _recovery(self) -> Callable[[], bool]:
        return self._is_complete

    def _is_complete(self) -> bool:
        """Returns whether all tasks are running, and each part has two replicas."""
        if any(task.process.dead and not task.done for task in self.cluster.tasks.values()):
            return False
        return self._are_complete(copy for task in self._served.values() for copy in task.copies.values())

    def _are_complete(self, copies: Iterable[Replica]) -> bool:
        """Returns whether these replicas include a primary and a complete backup of each part."""
        return count_complete_parts(copies) == self.parts

    def _on_finish(self, index: int, client: ParameterClient) -> None:
        if index == 0:
            self._acknowledged = self.account.acknowledged - {NO_UNIT}
            client.pull()
            self._final = client.values()

    def _check(self) -> None:
        for name, values in zip("abt", self._final, strict=False):
            for part in range(self.parts):
                self.account.check(f"{name} of shard {part}", values[part], sorted(self._acknowledged))


class CountedRows:
    """A table with a row for each unit: the number of updates that contained the unit; see
    `headwater.ps.updater.HostedTable`."""

    def __init__(self) -> None:
        self.counts = np.zeros((UNITS, 1), np.float32)
        self._changes = RowChanges(UNITS)

    def initialize(self) -> None:
        """Does nothing: all rows are 0 from the start."""

    def read(self, start: int, stop: int, parts: Sequence[int]) -> list[Array]:
        del parts
        return [self.counts[start:stop].copy()]

    def write(self, start: int, arrays: Sequence[Array]) -> None:
        self.restore(np.arange(start, start + len(arrays[0])), arrays)

    def watch(self) -> None:
        """Does nothing: changes are always recorded."""

    def start_saving(self, *, whole: bool) -> int:
        return self._changes.start_save(whole=whole)

    def next_saved(self, count: int) -> tuple[Array, list[Array]] | None:
        return self._changes.next_rows([self.counts], count)

    def abandon_save(self) -> None:
        self._changes.abandon_save()

    def restore(self, numbers: Array, arrays: Sequence[Array]) -> None:
        self._changes.will_change(numbers, [self.counts])
        self.counts[numbers] = arrays[0]

    def add(self, numbers: Array, gradients: Array) -> None:
        """Counts an update of the rows ``numbers``."""
        self._changes.will_change(numbers, [self.counts])
        self.counts[numbers] += gradients > 0


class CountingRows(CountingUpdater):
    """Counts units in variables and in rows of a table."""

    def __init__(self, rows: int, *, strict: bool) -> None:
        super().__init__(rows, strict=strict)
        self.tables = (CountedRows(),)

    def apply(
        self,
        gradients: Sequence[Array],
        changes: Mapping[int, Array],
        tables: Sequence[tuple[Array, Array]],
        hyperparameters: Sequence[float],
        scale: float = 1.0,
    ) -> None:
        super().apply(gradients, changes, tables, hyperparameters, scale)
        self.tables[0].add(*tables[0])

    def rows(self, numbers: Sequence[Array]) -> list[Array]:
        return [self.tables[0].counts[numbers[0]]]


class CopiesOfRows(CopiesHistory):
    """A history in which a table counts units in addition to the variables."""

    def __init__(self, simulation: Simulation, setting: Setting, piece: int) -> None:
        super().__init__(simulation, setting)
        shard.ROWS_AT_ONCE = piece
        parts = self.parts
        specs = [VariableSpec(name=name, shape=(parts, UNITS), dtype="float32") for name in ("a", "b")]
        table = VariableSpec(name="t", shape=(parts * UNITS, 1), dtype="float32", optimized=False, table=True)
        self._layout = make_layout([*specs, table], parts, FixedShardsPartitioner(parts))
        simulation.note(f"a table is sent in pieces of {piece} rows")

    def close(self) -> None:
        shard.ROWS_AT_ONCE = ROWS_AT_ONCE

    def _updater(self, server: int) -> CountingUpdater:
        return CountingRows(self.setting.servers, strict=self._is_strict(server))

    def _access(self, task: ParameterTask, choice: Consistency, initial: Sequence[Any]) -> ParameterClient:
        return super()._access(task, choice, [*initial, None])

    def _push(self, client: ParameterClient, gradients: Sequence[Array], unit: int) -> bool:
        of_units = np.arange(self.parts) * UNITS + unit if unit < UNITS else np.arange(0)
        rows = {2: (of_units, np.ones((len(of_units), 1), np.float32))}
        return client.push([*gradients, None], rows=rows)[1]

    def _look(self, values: Sequence[Any]) -> None:
        super()._look(values[:2])

    def _on_finish(self, index: int, client: ParameterClient) -> None:
        super()._on_finish(index, client)
        if index == 0:
            counts = client.tables.read(2).reshape(self.parts, UNITS)
            self._final = [*self._final[:2], counts]


class CopiesOfTables(CopiesHistory):
    """A history in which a growing table counts units in addition to the variables: the first push of a unit creates
    its row."""

    def __init__(self, simulation: Simulation, setting: Setting, rows: int) -> None:
        super().__init__(simulation, setting)
        self._clients: dict[ParameterClient, TableClient] = {}
        self._in_table: set[int] = set()
        self._table = TableConfig(
            dim=1, optimizer=SGD(1.0), initializer=Initializer(kind="constant", a=0.0), shards=2, max_rows=rows
        )
        simulation.note(f"a table that grows to {rows} rows on each ps")

    def _is_complete(self) -> bool:
        services = [task.table_service for task in self._served.values()]
        kept = [service for service in services if isinstance(service, tables.CopiesOfTables)]
        return super()._is_complete() and self._are_complete(
            copy for service in kept for copy in service.copies.values()
        )

    def _access(self, task: ParameterTask, choice: Consistency, initial: Sequence[Any]) -> ParameterClient:
        client = super()._access(task, choice, initial)
        self._clients[client] = connect_tables(task, self.replicas, self.shards)
        return client

    def _client(self, index: int) -> ParameterClient:
        client = super()._client(index)
        with self._until_over(client):
            self._clients[client].open("t", self._table)
        return client

    @contextlib.contextmanager
    def _until_over(self, client: ParameterClient) -> Generator[None]:
        """Ignores errors of unavailable tables in the block if the job is over: a worker that was disconnected when the
        job ended finds no tables, and counts no further units in them."""
        try:
            yield
        except UnavailableError:
            if not self.cluster.tasks["worker0"].returned:
                raise
            del self._clients[client]

    def _push(self, client: ParameterClient, gradients: Sequence[Array], unit: int) -> bool:
        if unit < UNITS and client in self._clients:
            with self._until_over(client):
                self._clients[client].update({"t": [unit]}, {"t": [[-1.0]]})
                self._in_table.add(unit)
        return super()._push(client, gradients, unit)

    def _on_finish(self, index: int, client: ParameterClient) -> None:
        super()._on_finish(index, client)
        if index == 0:
            acknowledged = sorted(self._in_table)
            counts = self._clients[client].look_up({"t": np.arange(UNITS)}, training=False)["t"]
            self.account.check("the table", counts[:, 0], acknowledged)


class CopiesOfExamples(CopiesHistory, ExampleHistory):
    """A history of workers that iterate over epochs; see `ExampleHistory`.

    If only parameter servers fail, examples count once on all parameter servers, and not only on the first.
    """

    def _only_servers_fail(self) -> bool:
        return all(name.startswith("ps") for fault in self.setting.faults for name in (fault.task, fault.other))

    def _is_strict(self, server: int) -> bool:
        return super()._is_strict(server) or self._only_servers_fail()

    def _check(self) -> None:
        expected = self._epochs * self._plan.size
        for part in range(self.parts if self._only_servers_fail() else 1):
            for name, values in zip("ab", self._final, strict=True):
                wrong = {at: count for at, count in enumerate(values[part].tolist()) if count != (at < expected)}
                if wrong:
                    raise HistoryError(f"{name} of shard {part} has not counted these examples exactly once: {wrong}")


def history(seed: int) -> tuple[Simulation, CopiesHistory]:
    """Creates, but does not run, a history drawn from ``seed``."""
    return _history(seed, "copies", ("async",))


def history_in_step(seed: int) -> tuple[Simulation, CopiesHistory]:
    """Creates, but does not run, a history with synchronous or bounded consistency, drawn from ``seed``."""
    return _history(seed, "copies in step", ("sync", "staleness=2"))


def _history(seed: int, name: str, choices: Sequence[str]) -> tuple[Simulation, CopiesHistory]:
    simulation = Simulation(seed, horizon_s=900.0)
    setting, chance = draw_setting(seed, name, choices)
    return simulation, draw_history(simulation, setting, chance, KINDS)


#: The kinds of history: they count units in variables only, in rows, in a growing table, or count examples.
Kinds = tuple[type[CopiesHistory], type[CopiesOfRows], type[CopiesOfTables], type[CopiesOfExamples]]
KINDS: Kinds = CopiesHistory, CopiesOfRows, CopiesOfTables, CopiesOfExamples


def draw_setting(seed: int, name: str, choices: Sequence[str], servers: int = 2) -> tuple[Setting, random.Random]:
    """Returns a random setting with at least ``servers`` parameter servers, and the generator for further draws."""
    chance = random.Random(f"{name} {seed}")
    drawn = Setting.draw(chance)
    servers = max(servers, drawn.servers)
    tasks = [f"ps{index}" for index in range(servers)] + [f"worker{index}" for index in range(drawn.workers)]
    setting = replace(
        drawn,
        servers=servers,
        # Without choices nothing is drawn, so that existing seeds keep their histories.
        consistency=choices[0] if len(choices) == 1 else chance.choice(choices),
        steps=chance.randint(5, 40),
        snapshots=0,
        work_s=chance.choice((0.005, 0.1, 0.5)),
        faults=Fault.draw_some(chance, tasks, messages=300),
    )
    return setting, chance


def draw_history(simulation: Simulation, setting: Setting, chance: random.Random, kinds: Kinds) -> CopiesHistory:
    """Returns a random history of one of the ``kinds``."""
    only, rows, grows, examples = kinds
    if chance.random() < 0.3:
        plan = Plan(size=chance.randint(10, 60), batch=chance.randint(1, 4), tries=1000)
        epochs = chance.randint(1, 3)
        if chance.random() < 0.7:
            servers = [f"ps{index}" for index in range(setting.servers)]
            setting = replace(setting, faults=Fault.draw_some(chance, servers, messages=300))
        return examples(simulation, setting, plan, epochs)
    kind = chance.random()
    if kind < 0.4:
        return rows(simulation, setting, chance.choice((8, 64, 256)))
    if kind < 0.8:
        return grows(simulation, setting, UNITS)
    return only(simulation, setting)
