"""The dynamic embeddings of a model on parameter servers: their tables on the ``ps``, and their part of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from headwater.keras.combining.combination import keeps_train_step
from headwater.keras.embeddings.inference import dynamic_layers
from headwater.keras.embeddings.optimizers import row_optimizer
from headwater.keras.parameter_server.steps import inner_optimizer
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import Synchronous
from headwater.ps.conversation import Traffic
from headwater.ps.tables.client import TableClient
from headwater.ps.tables.cluster import LocalTables, connect_tables
from headwater.ps.tables.requests import DividedIds
from headwater.ps.tables.rounds import Round
from headwater.ps.updater import Array
from headwater.tables.optimizers import AnyOptimizer

if TYPE_CHECKING:
    from headwater.keras.parameter_server.strategy import ParameterServerStrategy


class DynamicTables:
    """The dynamic embeddings of a model.

    Args:
      model: a Keras model.
      place: this process's place in the cluster, and the strategy's options.
      clips: whether gradients are clipped on the ``ps``.
    """

    def __init__(self, model: Any, place: ParameterServerStrategy, *, clips: bool) -> None:
        self._model = model
        self._place = place
        self._clips = clips
        self._client: TableClient | None = None
        self._given: TableClient | None = None
        self._local: LocalTables | None = None

    @property
    def layers(self) -> list[Any]:
        """The model's dynamic embedding layers."""
        return dynamic_layers(self._model)

    def _name(self, layer: keras.Layer) -> str:
        return f"{self._model.name}/{layer.name}"

    def _optimizer(self, layer: Any) -> AnyOptimizer:
        if not keeps_train_step(self._model):
            raise ValueError(
                f"{type(self._model).__name__} has a train_step of its own, which computes no gradients of the rows of "
                f"layer {layer.name!r}, a DynamicEmbedding"
            )
        return row_optimizer(inner_optimizer(self._model.optimizer), layer.config.dim, clips=self._clips)

    def host(self) -> None:
        """On a ``ps``: makes the tables."""
        task = self._place.task
        assert task is not None
        for layer in self.layers:
            config = layer.table_config(self._optimizer(layer))
            task.tables(self._place.replicas, self._place.shards).make(self._name(layer), config, layer.saves)
            layer.forget()

    def use(self, client: TableClient) -> None:
        """Uses ``client`` instead of making one."""
        self._given = client

    def connect(self, servers: int, parameters: ParameterClient) -> None:
        """On a worker: connects to the tables. The chief sends the rows that its model has loaded, unless the tables on
        the ``ps`` already have rows.

        In synchronous training, an update of rows combines the gradients of all workers in a round of ``parameters``.
        """
        if not self.layers or self._client is not None:
            return
        task = self._place.task
        if self._given is not None:
            self._client = self._given
        elif task is not None:
            self._client = connect_tables(task, self._place.replicas, self._place.shards)
        else:
            self._local = LocalTables(servers)
            self._client = self._local.client()
        if isinstance(self._place.choice, Synchronous):
            self._client.gather(lambda: Round(*parameters.round), self._place.worker)
        for layer in self.layers:
            optimizer = self._optimizer(layer)
            name = self._name(layer)
            if self._local is not None:
                for service in self._local.services:
                    service.make(name, layer.table_config(optimizer), layer.saves)
            layer.connect(self._client, name, optimizer)
            statistics = layer.statistics().values()
            # The training has begun already, so the rows on the ps are newer than the rows that were loaded with the
            # model.
            if any(one.rows or one.step for one in statistics):
                layer.forget()
        self.send_loaded_rows()

    def send_loaded_rows(self) -> None:
        """On the chief: sends the rows that the model has loaded to the ``ps``. On another worker: drops these rows."""
        for layer in self.layers:
            if self._place.is_chief:
                layer.send_loaded_rows()
            else:
                layer.forget()

    def forget(self) -> None:
        """Drops the rows that the model has loaded into this process."""
        for layer in self.layers:
            layer.forget()

    def save(self) -> None:
        """Saves the tables with a folder for saves."""
        assert self._client is not None or not self.layers
        for layer in self.layers:
            if layer.saves is not None and self._client is not None:
                self._client.save_again(layer.table_name, layer.saves)

    def push(
        self,
        keys: Sequence[DividedIds],
        gradients: Sequence[Array],
        *,
        part: float,
        version: int,
        number: int | None = None,
    ) -> None:
        """Pushes gradients of rows.

        Args:
          keys: the keys of each layer.
          gradients: for each layer, the gradients of the rows of these keys.
          part: the fraction of the batch from which these gradients were computed.
          version: number of updates of the model, from which a schedule computes the learning rate.
          number: in synchronous training, the position of these examples in the epoch's plan, which orders the
            gradients of an update; None to order them by the number of the worker.
        """
        if not keys or not part:
            return
        client = self._client
        assert client is not None
        rate = self._rate_at(version)
        names = [layer.table_name for layer in self.layers]
        if rate is not None:
            for name in names:
                client.set_rate(name, rate)
        scaled = [array if part == 1.0 else array * np.float32(part) for array in gradients]
        client.push(
            dict(zip(names, keys, strict=True)),
            {name: np.asarray(array, np.float32) for name, array in zip(names, scaled, strict=True)},
            number,
        )

    def _rate_at(self, version: int) -> float | None:
        """The learning rate to send with an update: the schedule's, or, on the chief, the program's current rate."""
        rate = inner_optimizer(self._model.optimizer)._learning_rate
        if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
            return float(np.asarray(rate(version)))
        return float(rate.value) if self._place.is_chief and isinstance(rate, keras.Variable) else None

    def traffic(self) -> Traffic:
        """The traffic so far: bytes, round trips and rows."""
        return self._client.traffic() if self._client is not None else Traffic()

    def close(self) -> None:
        """Closes all connections."""
        if self._client is not None:
            self._client.close()
        if self._local is not None:
            self._local.stop()
