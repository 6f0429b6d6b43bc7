"""Dynamic embeddings in synchronous training: with any number of workers, the updates equal those of one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater.ps.tables.cluster import LocalTables
from tests.inproc.keras.test_parameter_server_strategy import Cluster

import keras  # isort: skip - the package before it chooses the backend

from headwater.keras.layers import DynamicEmbedding
from headwater.tables import Initializer

pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Explicitly requested dtype int64:UserWarning"),
]

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: keras.optimizers.SGD(0.05),
    "momentum": lambda: keras.optimizers.SGD(0.05, momentum=0.9),
    "adam": lambda: keras.optimizers.Adam(0.05),
    "schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 3, 0.5)),
    "adagrad": lambda: keras.optimizers.Adagrad(0.3),
}
ROWS, BATCH, EPOCHS = 44, 12, 3
_random = np.random.default_rng(3)
# each example uses all rows, so every row is part of each update
IDS = _random.permuted(np.tile(np.arange(6), (ROWS, 1)), axis=1)
TARGETS = _random.normal(size=(ROWS, 2)).astype(np.float32)
WEIGHTS = np.where(np.arange(ROWS) % 5 < 2, 4.0, 0.5).astype(np.float32)


def model_of(table: Any, optimizer: str) -> Any:
    layers = [keras.Input((6,), dtype="int32"), table, keras.layers.Flatten(), keras.layers.Dense(2)]
    model = keras.Sequential(layers, name="model")
    model.layers[-1].set_weights([np.linspace(-1, 1, 36).reshape(18, 2), np.zeros(2)])
    model.compile(OPTIMIZERS[optimizer](), "mse")
    return model


@pytest.mark.parametrize(
    ("optimizer", "workers", "servers"),
    [("sgd", 2, 1), ("adam", 4, 2), ("schedule", 2, 2), ("momentum", 3, 2), ("adagrad", 2, 1), ("adam", 1, 2)],
)
def test_workers_make_the_updates_of_one_process(optimizer: str, workers: int, servers: int) -> None:
    settings: dict[str, Any] = {"sample_weight": WEIGHTS, "batch_size": BATCH, "epochs": EPOCHS, "shuffle": False}
    alone = model_of(keras.layers.Embedding(6, 3, embeddings_initializer=keras.initializers.Constant(0.1)), optimizer)
    expected = alone.fit(IDS, TARGETS, verbose=0, **settings).history["loss"]

    def made() -> Any:
        return model_of(DynamicEmbedding(3, initializer=Initializer(kind="constant", a=0.1), name="rows"), optimizer)

    cluster, tables = Cluster(made, workers=workers, servers=servers, consistency="sync"), LocalTables(servers)
    for worker, served in enumerate(cluster.served):
        assert served._dynamic is not None
        served._dynamic.use(tables.client(worker))
    histories = cluster.fit(IDS, TARGETS, **settings)
    for history in histories:
        np.testing.assert_allclose(history.history["loss"], expected, rtol=1e-4)
    predicted = alone.predict(IDS, verbose=0)
    for model in cluster.models:
        np.testing.assert_allclose(model.predict(IDS, verbose=0), predicted, rtol=1e-3, atol=1e-4)
    layer: Any = cluster.models[0].get_layer("rows")
    assert {told.step for told in layer.statistics().values()} == {EPOCHS * -(-ROWS // BATCH)}
    cluster.stop()
    tables.stop()
