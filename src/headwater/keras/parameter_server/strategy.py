"""`ParameterServerStrategy`: Keras models with variables on tasks of job ``ps``."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from headwater.cluster.task.members import find_members
from headwater.errors import FailedPreconditionError
from headwater.graph.runtime.devices import local_devices, share_machine_with_tasks
from headwater.keras.embeddings.variables import watch_tables
from headwater.keras.parameter_server.model import ServedModel, serve_model, served_model
from headwater.keras.parameter_server.own_momentum import MomentumAt, require_momentum_at
from headwater.keras.strategy import Strategy, active_strategy
from headwater.ps.consistency import Consistency, from_text
from headwater.ps.conversation import Traffic
from headwater.ps.layout import Partitioner
from headwater.ps.process import ParameterTask, process_task
from headwater.ps.recovery import Recovery, saves_of
from headwater.ps.replicas.limits import require_replicas
from headwater.ps.shards.limits import shards_of
from headwater.ps.shards.moves import Moved
from headwater.state.state_saver import Saves
from headwater.tables.row_formats import Format, require_format

if TYPE_CHECKING:
    import keras


#: Default size from which tables are sent by rows, in bytes.
_TABLE_BYTES: Final = 1 << 20


class ParameterServerStrategy(Strategy):
    """Variables on parameter servers; workers compute gradients, the model's optimizer runs on the ``ps``.

    Every task runs the same program. On a ``ps``, ``fit`` serves and does not return; on workers it trains. Without a
    cluster, one process does both.

    >>> import headwater.keras
    >>> import keras
    >>> import numpy as np
    >>> strategy = headwater.keras.ParameterServerStrategy()
    >>> with strategy.scope():
    ...     model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    ...     model.compile(keras.optimizers.SGD(0.1), "mse")
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> history = model.fit(x, 3 * x, batch_size=16, epochs=20, shuffle=False, verbose=0)
    >>> bool(history.history["loss"][-1] < 0.1)
    True

    Args:
      cluster_resolver: the source of the cluster; ``TF_CONFIG`` by default.
      variable_partitioner: selects the variables to split by rows among the ``ps``: a `FixedShardsPartitioner`,
        `MinSizePartitioner` or `MaxSizePartitioner`. None splits no variables.
      consistency: ``"async"``: every gradient is applied on arrival. ``"sync"``: an update is the mean of one gradient
        of each worker. ``"k=3"``: an update is the mean of the first three gradients. ``"staleness=4"``: like async,
        but no worker is more than four steps ahead of the slowest. Or a choice of `headwater.ps.consistency`.
      table_bytes: the least size, in bytes, of embedding tables that stay on the ``ps``, so that only the rows of a
        batch are sent. None: 1 MiB, and smaller tables if a batch's rows are clearly smaller than the table, see
        `headwater.keras.embeddings.small`.
      table_updates: ``"lazy"``: the optimizer updates the rows that were used; ``"exact"``: all rows of the table. See
        `headwater.keras.parameter_server.table_updates`.
      wire: format of rows in messages: ``"float32"``; ``"bfloat16"``, with half the bytes; or ``"int8"``, with one byte
        for each number, and gradients as bfloat16. Values stored on the ``ps`` are not affected. See
        ``docs/parameter-servers.md``.
      staleness_aware: whether the step of a gradient of staleness τ is divided by τ, see
        `headwater.ps.host.HostedParameters`.
      momentum_at: where the momentum of `keras.optimizers.SGD` is kept in asynchronous training: ``"ps"``, one momentum
        for the gradients of all workers, or ``"worker"``, one per worker for its own gradients, so that stale gradients
        do not act as additional momentum; see `headwater.keras.parameter_server.own_momentum`.
      recovery: recovery of a ``ps`` that is lost and restarted. ``"copy"``: the chief sends the values that it last
        read, at the end of an epoch or for a checkpoint. ``"own"``, the default with ``saves``: the ``ps`` continues
        with its own saved state; for asynchronous and bounded consistency.
      saves: the folder for saved states, with a subfolder for each ``ps``. A restarted ``ps`` must be able to read it
        on any machine. States are removed at the end of the job. Without a cluster nothing is saved.
      save_every_s: interval of saves of a ``ps``, in seconds.
      replicas: number of ``ps`` that hold each part of the variables. With 2, an update is acknowledged when both
        ``ps`` have the update, and if one ``ps`` is lost, the other continues with all acknowledged updates; see
        ``docs/parameter-servers.md``.
      shards: number of parts of the variables, which can move between ``ps`` during training; see `scale`. A good
        number is twice the largest number of ``ps`` that will be used. None for one part on each ``ps``, which cannot
        move.

    Raises:
      ValueError: the cluster has no ``ps`` or no worker, or the consistency is invalid.
      ClusterConfigError: ``TF_CONFIG`` is invalid.
    """

    def __init__(
        self,
        cluster_resolver: object = None,
        variable_partitioner: Partitioner | None = None,
        *,
        consistency: str | Consistency = "async",
        table_bytes: int | None = None,
        table_updates: str = "lazy",
        wire: Format = "float32",
        staleness_aware: bool = False,
        momentum_at: MomentumAt = "ps",
        recovery: Recovery | None = None,
        saves: str | os.PathLike[str] | None = None,
        save_every_s: float = 5.0,
        replicas: int = 1,
        shards: int | None = None,
    ) -> None:
        if table_updates not in ("lazy", "exact"):
            raise ValueError(f"table_updates must be 'lazy' or 'exact', not {table_updates!r}")
        if table_bytes is not None and table_bytes < 0:
            raise ValueError(f"table_bytes must not be negative, but is {table_bytes}")
        self.small_tables: bool = table_bytes is None
        self.table_bytes: int = _TABLE_BYTES if table_bytes is None else table_bytes
        require_format(wire, "wire")
        self.wire: Format = wire
        self.staleness_aware = staleness_aware
        self.exact_tables: bool = table_updates == "exact"
        members = find_members(cluster_resolver)
        self._resolver = cluster_resolver
        self._models: list[Any] = []
        self.workers: int = len(members.workers) if members else 1
        self.worker: int = members.number if members and not members.is_server else 0
        self.partitioner = variable_partitioner
        self.choice: Consistency = from_text(consistency, self.workers)
        require_momentum_at(momentum_at, self.choice)
        self.momentum_at: MomentumAt = momentum_at
        self.saves: Saves | None = saves_of(recovery, saves, save_every_s, self.choice)
        require_replicas(replicas, len(members.servers) if members else 1, self.choice, saves=self.saves is not None)
        self.replicas: int = replicas
        servers = len(members.servers) if members else 0
        self.shards: int | None = shards_of(shards, servers, replicas=replicas, saves=self.saves is not None)
        # An evaluator is no task of the cluster, and may run anywhere.
        if members and not members.is_evaluator:
            share_machine_with_tasks(members.cluster, members.me)
        self.task: ParameterTask | None = process_task(members) if members else None
        if members:
            local_devices()  # starts JAX with this task's share of the cores
            self._expect_models()

    def placement(self) -> AbstractContextManager[object]:
        watch_tables(_active_with_servers)
        return super().placement()

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the job's files, and sends the initial values to the ``ps``."""
        return self.task is None or self.task.members.is_chief

    @property
    def cluster_resolver(self) -> Any:
        return self._resolver

    def traffic(self, model: keras.Model) -> Traffic:
        """Traffic of ``model`` between this worker and all ``ps`` so far."""
        served = served_model(model)
        return served.traffic() if served is not None else Traffic()

    def scale(self, ps: int | None = None) -> list[Moved]:
        """Moves the variables of all models between ``ps``; see `headwater.ParameterServer.scale`."""
        return self._balance_shards(ps, by_rate=False)

    def rebalance(self) -> list[Moved]:
        """Balances the traffic of the ``ps`` by moving shards; see `headwater.ParameterServer.rebalance`."""
        return self._balance_shards(None, by_rate=True)

    def _balance_shards(self, ps: int | None, *, by_rate: bool) -> list[Moved]:
        if self.shards is None or self.task is None:
            raise FailedPreconditionError("the variables have no shards: use ParameterServerStrategy(shards=...)")
        return self.task.balance_shards(ps, by_rate=by_rate)

    def adopt(self, model: object) -> None:
        serve_model(model, self)
        if model not in self._models:
            self._models.append(model)

    def connect_models(self) -> None:
        """On the chief: sends every model's values to the ``ps``."""
        for served in self._models_to_serve():
            served.connect()

    def sync_models(self) -> None:
        """Reads the current values of every model from the ``ps``."""
        for served in self._models_to_serve():
            served.sync(state=True)

    def _models_to_serve(self) -> list[ServedModel]:
        """The models of this scope that are compiled and built."""
        ready = [model for model in self._models if getattr(model, "optimizer", None) is not None and model.built]
        return [served for model in ready if (served := served_model(model)) is not None]

    def serve_models(self) -> None:
        """On a ``ps``: starts to serve every model that was made and compiled in the scope so far."""
        for served in self._models_to_serve():
            served.host()


def _active_with_servers() -> ParameterServerStrategy | None:
    strategy = active_strategy()
    return strategy if isinstance(strategy, ParameterServerStrategy) else None
