"""Metrics of a task for Prometheus, served at a separate address on request."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headwater.cluster.addresses import Address
from headwater.cluster.task.metrics_address import METRICS
from headwater.cluster.telemetry.snapshot import GroupProgress, PeerTraffic, Snapshot, TableLoad
from headwater.cluster.telemetry.troubles import Trouble
from headwater.cluster.telemetry.watchdog import WorkerProgress
from headwater.errors import UnavailableError

_log = logging.getLogger("headwater")

_PEER_METRICS: tuple[tuple[str, str, Callable[[PeerTraffic], float]], ...] = (
    ("open_channels_sent_bytes", "Bytes sent over open channels", lambda peer: peer.sent),
    ("open_channels_received_bytes", "Bytes received over open channels", lambda peer: peer.received),
)
_GROUP_METRICS: tuple[tuple[str, str, Callable[[GroupProgress], float]], ...] = (
    ("updates", "Updates of a group of variables", lambda group: group.updates),
    ("staleness_mean", "Mean staleness of gradients, in updates", lambda group: group.staleness),
    ("staleness_max", "Greatest staleness of a gradient, in updates", lambda group: group.staleness_max),
    ("dropped_gradients", "Gradients that arrived too late", lambda group: group.dropped),
    ("workers", "Workers that take part", lambda group: len(group.workers)),
    ("saved_bytes", "Bytes written to save this task's state", lambda group: group.saved_bytes),
    ("lost_updates", "Updates lost because this task restored its saved state", lambda group: group.lost_updates),
    ("lacks_backup", "1 on a primary that has no complete backup now", lambda group: group.lacks_backup),
    ("backup_lag", "Frames that the backup has yet to confirm", lambda group: group.backup_lag),
)
_TABLE_METRICS: tuple[tuple[object, str, str, Callable[[TableLoad], float]], ...] = (
    (GaugeMetricFamily, "table_rows", "Rows of an embedding table", lambda one: one.rows),
    (GaugeMetricFamily, "table_bytes", "Memory for rows, their state, keys and index", lambda one: one.nbytes),
    (
        GaugeMetricFamily,
        "table_file_bytes",
        "Size of the file for rows that do not fit into memory",
        lambda one: one.file_bytes,
    ),
    (CounterMetricFamily, "table_hits", "Lookups of rows in memory", lambda one: one.hits),
    (CounterMetricFamily, "table_misses", "Lookups of rows in the file", lambda one: one.misses),
    (CounterMetricFamily, "table_admissions", "Rows created so far", lambda one: one.made),
    (CounterMetricFamily, "table_refusals", "Lookups of keys not admitted", lambda one: one.refused),
    (CounterMetricFamily, "table_dropped_gradients", "Gradients of keys not admitted", lambda one: one.dropped),
    (CounterMetricFamily, "table_evictions", "Evicted rows", lambda one: one.evicted),
    (CounterMetricFamily, "table_updates", "Updates of an embedding table", lambda one: one.updates),
    (
        GaugeMetricFamily,
        "table_lost_updates",
        "Updates lost because the task restored its save",
        lambda one: one.lost_updates,
    ),
)
_WORKER_METRICS: tuple[tuple[str, str, Callable[[WorkerProgress], float]], ...] = (
    ("worker_steps", "Steps of a worker that have ended here", lambda one: one.steps),
    ("worker_idle_seconds", "Time since a worker ended its latest step", lambda one: one.idle_s),
    ("worker_behind", "1 if a worker makes no steps while others continue or wait", lambda one: one.behind),
)

_TROUBLE_METRICS: tuple[tuple[object, str, str, Callable[[Trouble], float]], ...] = (
    (CounterMetricFamily, "write_failures", "Failed attempts to write a file", lambda one: one.failures),
    (
        GaugeMetricFamily,
        "write_failing_seconds",
        "Time since the first failure of attempts that still fail",
        lambda one: one.seconds,
    ),
)


class MetricsServer:
    """Serves ``/metrics``.

    Args:
      address: the address to listen at.
      task: the task's name, a label of every metric.
      snapshot: returns the current snapshot.

    Attributes:
      address: the ``host:port`` of its server.

    Raises:
      UnavailableError: the address is not available.
    """

    def __init__(self, address: Address, task: str, snapshot: Callable[[], Snapshot]) -> None:
        # Use a separate registry: the default one also has metrics of the process and of other libraries.
        registry = CollectorRegistry()
        registry.register(_Collector(task, snapshot))
        try:
            self._server, self._thread = start_http_server(address.port, address.host, registry)
        except OSError as error:
            raise UnavailableError(f"cannot serve metrics at {address} ({METRICS}): {error}") from error
        self.address: str = f"{address.host}:{self._server.server_port}"
        _log.info("%s serves metrics at http://%s/metrics", task, self.address)

    def stop(self) -> None:
        """Stops the server and frees the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Collector:
    def __init__(self, task: str, snapshot: Callable[[], Snapshot]) -> None:
        self._task = task
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        """Returns the current metrics."""
        return metrics_of(self._task, self._snapshot())


def metrics_of(task: str, snapshot: Snapshot) -> Iterable[Metric]:
    """Yields the metrics of a snapshot."""
    yield _metric(CounterMetricFamily, "steps", "Parts of steps run", task, [((), snapshot.steps)])
    yield _metric(GaugeMetricFamily, "sessions", "Sessions with plans here", task, [((), snapshot.sessions)])
    if snapshot.global_step is not None:
        yield _metric(GaugeMetricFamily, "global_step", "Shared step", task, [((), snapshot.global_step)])
    yield _metric(GaugeMetricFamily, "variables", "Variables held", task, [((), snapshot.variables_count)])
    yield _metric(GaugeMetricFamily, "variables_bytes", "Size of all variables", task, [((), snapshot.variables_bytes)])
    longest = max((wait.seconds for wait in snapshot.waits), default=0.0)
    yield _metric(GaugeMetricFamily, "waiting_steps", "Steps that wait", task, [((), len(snapshot.waits))])
    yield _metric(GaugeMetricFamily, "longest_wait_seconds", "Longest wait of a present step", task, [((), longest)])
    for name, what, amount in _PEER_METRICS:
        values = [((peer.peer,), amount(peer)) for peer in snapshot.peers]
        yield _metric(GaugeMetricFamily, name, what, task, values, "peer")
    for name, what, value in _GROUP_METRICS:
        values = [((group.name,), value(group)) for group in snapshot.groups]
        yield _metric(GaugeMetricFamily, name, what, task, values, "group")
    for kind, name, what, count in _TABLE_METRICS:
        values = [((one.name,), count(one)) for one in snapshot.tables]
        yield _metric(kind, name, what, task, values, "table")
    hot = [((one.name, str(key)), uses) for one in snapshot.tables for key, uses in one.hot]
    yield _metric(GaugeMetricFamily, "table_key_uses", "Uses of the most used keys", task, hot, "table", "key")
    for name, what, number in _WORKER_METRICS:
        values = [((one.worker,), number(one)) for one in snapshot.workers]
        yield _metric(GaugeMetricFamily, name, what, task, values, "worker")
    for kind, name, what, amount in _TROUBLE_METRICS:
        values = [((one.what,), amount(one)) for one in snapshot.troubles]
        yield _metric(kind, name, what, task, values, "what")


def _metric(kind: Any, name: str, what: str, task: str, values: Any, *labels: str) -> Metric:
    metric = kind(f"headwater_{name}", what, labels=("task", *labels))
    for own, value in values:
        metric.add_metric((task, *own), value)
    return metric
