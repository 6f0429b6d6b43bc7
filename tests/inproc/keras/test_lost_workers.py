"""Synchronous workers, one of which is lost within an epoch, make the updates of one process."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import pytest

from headwater.ps.tables.cluster import LocalTables
from headwater.tables import Initializer
from tests.inproc.keras.test_parameter_server_strategy import Cluster

import keras  # isort: skip - the package before it chooses the backend

from headwater.keras.layers import DynamicEmbedding

pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Explicitly requested dtype int64:UserWarning"),
]

ROWS, BATCH = 21, 6
_random = np.random.default_rng(3)
IDS = _random.permuted(np.tile(np.arange(6), (ROWS, 1)), axis=1)
TARGETS = _random.normal(size=(ROWS, 2)).astype(np.float32)
WEIGHTS = np.where(np.arange(ROWS) % 5 < 2, 4.0, 0.5).astype(np.float32)
SETTINGS: dict[str, Any] = {"batch_size": BATCH, "epochs": 3, "shuffle": False, "verbose": 0}


class _Lost(Exception):
    """Ends the training of a worker."""


class Loses(keras.callbacks.Callback):
    """Ends the training of this worker after ``steps`` of its steps, as if its process had ended."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._left -= 1
        if not self._left:
            raise _Lost


def make(table: Any) -> Any:
    layers = [keras.Input((6,), dtype="int32"), table, keras.layers.Flatten(), keras.layers.Dense(2)]
    model = keras.Sequential(layers, name="model")
    model.layers[-1].set_weights([np.linspace(-1, 1, 36).reshape(18, 2), np.zeros(2)])
    model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
    return model


@pytest.fixture(scope="module")
def alone() -> tuple[Any, dict[str, Any]]:
    """Returns a model trained by one process, and its history."""
    model = make(keras.layers.Embedding(6, 3, embeddings_initializer=keras.initializers.Constant(0.1)))
    return model, model.fit(IDS, TARGETS, sample_weight=WEIGHTS, **SETTINGS).history


@pytest.mark.parametrize(("workers", "servers", "steps"), [(2, 1, 3), (3, 1, 6), (3, 2, 5)])
def test_the_others_compute_its_part_of_the_batch(
    workers: int, servers: int, steps: int, alone: tuple[Any, dict[str, Any]]
) -> None:
    one, expected = alone

    def table() -> Any:
        return make(DynamicEmbedding(3, initializer=Initializer(kind="constant", a=0.1), name="rows"))

    cluster, tables = Cluster(table, workers=workers, servers=servers, consistency="sync"), LocalTables(servers)
    for worker, served in enumerate(cluster.served):
        assert served._dynamic is not None
        served._dynamic.use(tables.client(worker))
    histories: dict[int, Any] = {}

    def train(worker: int) -> None:
        callbacks = [Loses(steps)] if worker == workers - 1 else []
        fit = functools.partial(cluster.models[worker].fit, IDS, TARGETS, sample_weight=WEIGHTS, **SETTINGS)
        try:
            histories[worker] = fit(callbacks=callbacks).history
        except _Lost:
            cluster.served[worker].close()

    threads = [threading.Thread(target=train, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert histories.keys() == set(range(workers - 1))
    for history in histories.values():
        for name, values in expected.items():
            np.testing.assert_allclose(history[name], values, rtol=1e-4, err_msg=name)
    for worker in histories:
        model = cluster.models[worker]
        np.testing.assert_allclose(model.predict(IDS, verbose=0), one.predict(IDS, verbose=0), rtol=1e-3, atol=1e-4)
    assert int(cluster.models[0].optimizer.iterations) == int(one.optimizer.iterations)
    cluster.stop()
    tables.stop()
