"""``headwater status HOST:PORT``: shows the state of a running cluster's tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headwater.cluster.addresses import parse_address
from headwater.cluster.pauses import pause
from headwater.cluster.telemetry.sizes import size_text
from headwater.cluster.telemetry.snapshot import SNAPSHOT_DETAIL, Rates, Snapshot, rates
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.handlers import TaskStatus
from headwater.cluster.transport.security import Security
from headwater.errors import OpError
from headwater.platform.cli.console import table_console

_MAX_CONCURRENT_CALLS = 64
_TIMEOUT_S = 5.0
_SHOWN_VARIABLES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskReport:
    """The status of one task, or the reason why it is unknown.

    Attributes:
      task, address: the name and the address of the task.
      problem: why the task cannot be queried; empty if it answers.
      generation, started, version: the task's current incarnation, its start and its version of Headwater.
      snapshot: its state; None if it cannot be queried.
      rates: rates since the previous report; None without a previous report of the same incarnation.
    """

    task: str
    address: str
    problem: str = ""
    generation: int = 0
    started: float = 0.0
    version: str = ""
    snapshot: Snapshot | None = None
    rates: Rates | None = None

    def to_json(self) -> dict[str, object]:
        """Returns the report as a JSON object."""
        return asdict(self)


class ClusterWatch:
    """Queries all tasks of a cluster repeatedly.

    Args:
      address: the address of any task of the cluster.

    Raises:
      OpError: the task cannot be queried.
    """

    def __init__(self, address: str) -> None:
        self._security = Security.from_environment()
        self._clients: dict[str, ControlClient] = {}
        self._before: dict[str, tuple[int, Snapshot]] = {}
        self._pool = ThreadPoolExecutor(_MAX_CONCURRENT_CALLS)
        first = self._status("the task", address)
        self._cluster = {first.task: address}
        for task, its_address in _snapshot(first).cluster.items():
            self._cluster.setdefault(task, its_address)

    def reports(self) -> list[TaskReport]:
        """Returns a report of every task, in the order of the cluster; all are taken at about the same time."""
        tasks = sorted(self._cluster)
        return list(self._pool.map(self._report, tasks, [self._cluster[task] for task in tasks]))

    def close(self) -> None:
        """Closes all connections."""
        self._pool.shutdown()
        for client in self._clients.values():
            client.close()

    def _status(self, task: str, address: str) -> TaskStatus:
        if address not in self._clients:
            self._clients[address] = ControlClient(parse_address(address), peer=task, security=self._security)
        return self._clients[address].status(timeout_s=_TIMEOUT_S)

    def _report(self, task: str, address: str) -> TaskReport:
        try:
            status = self._status(task, address)
            snapshot = _snapshot(status)
        except (OpError, ValueError) as error:
            self._before.pop(task, None)
            return TaskReport(task=task, address=address, problem=str(error).partition("\n")[0])
        before = self._before.get(task)
        self._before[task] = status.generation, snapshot
        known = before is not None and before[0] == status.generation
        return TaskReport(
            task=status.task,
            address=address,
            generation=status.generation,
            started=status.started,
            version=status.version,
            snapshot=snapshot,
            rates=rates(before[1], snapshot) if before and known else None,
        )


def _snapshot(status: TaskStatus) -> Snapshot:
    data = status.details.get(SNAPSHOT_DETAIL)
    if data is None:
        raise ValueError(f"{status.task} runs Headwater {status.version}, which does not report its state")
    return Snapshot.decode(data)


def status(address: str, *, watch: bool, as_json: bool, interval_s: float) -> int:
    """Shows the state of a cluster.

    Args:
      address: ``host:port`` of any of its tasks.
      watch: repeat until Ctrl-C.
      as_json: print JSON, one object per line.
      interval_s: seconds between two queries; rates are averages over this time.

    Returns:
      The exit code: 1 if a task cannot be queried.

    Raises:
      OpError: the task at ``address`` cannot be queried.
      ValueError: ``address`` is not an address, or the task there provides no snapshot.
    """
    with ExitStack() as stack:
        watching = ClusterWatch(address)
        stack.callback(watching.close)
        console = table_console()
        show = None
        if watch and not as_json and console.is_terminal:
            show = stack.enter_context(Live(console=console, auto_refresh=False))
        reports: Sequence[TaskReport] = ()
        try:
            for reports in _poll(watching, interval_s, watch):
                if as_json:
                    print(json.dumps([report.to_json() for report in reports]), flush=True)
                elif show is not None:
                    show.update(render(reports), refresh=True)
                else:
                    console.print(render(reports))
        except KeyboardInterrupt:
            if not watch:
                raise
    return 1 if any(report.problem for report in reports) else 0


def _poll(watching: ClusterWatch, interval_s: float, watch: bool) -> Iterator[list[TaskReport]]:
    watching.reports()
    pause(interval_s)
    yield watching.reports()
    while watch:
        pause(interval_s)
        yield watching.reports()


def render(reports: Sequence[TaskReport]) -> RenderableType:
    """Renders the reports as tables: tasks, write failures, workers, training, embedding tables, traffic, variables."""
    parts: list[RenderableType] = [_tasks(reports)]
    of_training = (
        _write_failures(reports),
        _workers(reports),
        _groups(reports),
        _copies(reports),
        _embeddings(reports),
    )
    for table in (*of_training, _traffic(reports), _variables(reports)):
        if table.row_count:
            parts += [Text(""), table]
    return Group(*parts)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _tasks(reports: Sequence[TaskReport]) -> Table:
    table = _table("task", "address", "generation", "up", "step", "steps/s", "runs/s", "variables", "waits for")
    for report in reports:
        snapshot = report.snapshot
        if snapshot is None:
            table.add_row(report.task, report.address, *[""] * 6, Text(report.problem, "red"))
            continue
        speed = report.rates
        waits = "; ".join(f"{wait.what} ({wait.seconds:.0f} s)" for wait in snapshot.waits if wait.seconds >= 1)
        table.add_row(
            report.task,
            report.address,
            f"{report.generation:016x}"[:8],
            _duration(time.time() - report.started),
            "" if snapshot.global_step is None else str(snapshot.global_step),
            "" if speed is None or speed.global_step is None else f"{speed.global_step:.1f}",
            "" if speed is None else f"{speed.steps:.1f}",
            f"{snapshot.variables_count}, {_size(snapshot.variables_bytes)}" if snapshot.variables_count else "",
            Text(waits, "yellow"),
        )
    return table


def _write_failures(reports: Sequence[TaskReport]) -> Table:
    table = _table("cannot write", "on", "for", "failures", "because")
    for report in reports:
        for one in report.snapshot.troubles if report.snapshot else ():
            if one.message:
                duration = f"{one.seconds:.0f} s"
                table.add_row(one.what, report.task, duration, str(one.failures), Text(one.message, "red"))
    return table


def _workers(reports: Sequence[TaskReport]) -> Table:
    table = _table("steps of", "at", "ended", "latest", "now", "")
    for report in reports:
        for one in report.snapshot.workers if report.snapshot else ():
            where = f"waits for {one.waiting}" if one.waiting else "in a step" if one.in_step else "between two steps"
            table.add_row(
                one.worker,
                report.task,
                str(one.steps),
                f"{one.idle_s:.0f} s ago",
                where,
                Text("behind" if one.behind else "", "red"),
            )
    return table


def _groups(reports: Sequence[TaskReport]) -> Table:
    table = _table(
        "training", "task", "updates", "staleness", "greatest", "dropped", "workers", "waiting", "examples", "saved"
    )
    for report in reports:
        for group in report.snapshot.groups if report.snapshot else ():
            how = ", ".join(filter(None, (group.consistency, group.optimizer)))
            table.add_row(
                f"{group.name} ({how})" if how else group.name,
                report.task,
                str(group.updates),
                f"{group.staleness:.2f}",
                str(group.staleness_max),
                str(group.dropped),
                str(len(group.workers)) if group.workers else "",
                Text(group.waiting, "yellow"),
                Text(group.examples, "red" if "set aside" in group.examples else ""),
                Text(group.saved, "red" if group.lost_updates else ""),
            )
    return table


def _copies(reports: Sequence[TaskReport]) -> Table:
    table = _table("copies or shards of", "on", "updates", "status")
    for report in reports:
        for group in report.snapshot.groups if report.snapshot else ():
            if group.copies or group.shards:
                how = Text(group.copies or f"shards {group.shards}", "red" if group.lacks_backup else "")
                table.add_row(group.name, report.task, str(group.updates), how)
    return table


def _embeddings(reports: Sequence[TaskReport]) -> Table:
    headings = ("rows", "memory", "file", "hits", "admitted", "refused", "evicted", "rows/s", "share", "most used")
    table = _table("embedding", "on", *headings)
    speeds: dict[str, float] = {}
    for report in reports:
        for name, speed in (report.rates.rows if report.rates else {}).items():
            speeds[name] = speeds.get(name, 0.0) + speed
    for report in reports:
        for one in report.snapshot.tables if report.snapshot else ():
            speed = report.rates.rows.get(one.name) if report.rates else None
            total = speeds.get(one.name)
            table.add_row(
                one.name,
                report.task,
                str(one.rows),
                _size(one.nbytes),
                _size(one.file_bytes) if one.file_bytes else "",
                f"{one.hit_rate:.1%}",
                str(one.made),
                str(one.refused),
                str(one.evicted),
                "" if speed is None else f"{speed:.0f}",
                # This ps's share of all lookups, which makes a hot ps visible.
                f"{speed / total:.0%}" if speed is not None and total else "",
                ", ".join(f"{key} ({uses})" for key, uses in one.hot[:3]),
            )
    return table


def _traffic(reports: Sequence[TaskReport]) -> Table:
    table = _table("channels of", "with", "open", "out/s", "in/s")
    for report in reports:
        for peer in report.snapshot.peers if report.snapshot else ():
            sent, received = report.rates.bytes.get(peer.peer, (0.0, 0.0)) if report.rates else (0.0, 0.0)
            table.add_row(report.task, peer.peer, str(peer.channels), _size(sent), _size(received))
    return table


def _variables(reports: Sequence[TaskReport]) -> Table:
    table = _table("variables of", "name", "shape", "type", "size", "updates")
    for report in reports:
        snapshot = report.snapshot
        if snapshot is None:
            continue
        for size in snapshot.variables[:_SHOWN_VARIABLES]:
            shape = "x".join(map(str, size.shape))
            table.add_row(report.task, size.name, shape, size.dtype, _size(size.nbytes), str(size.updates))
        if snapshot.variables_count > _SHOWN_VARIABLES:
            table.add_row(report.task, f"... and {snapshot.variables_count - _SHOWN_VARIABLES} more", "", "", "", "")
    return table


def _size(nbytes: float) -> str:
    return size_text(nbytes, "GiB")


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
