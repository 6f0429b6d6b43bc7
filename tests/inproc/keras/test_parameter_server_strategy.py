"""Keras on parameter servers: what `fit` makes of a model is what it makes of it on one machine."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.consistency import Consistency, from_text
from headwater.keras.parameter_server.model import ServedModel, serve_model, served_model
from headwater.keras.parameter_server.strategy import ParameterServerStrategy
from headwater.parameters.layout import FixedShardsPartitioner, Partitioner
from headwater.parameters.local_servers import LocalServers

import keras  # isort: skip - the package before it chooses the backend

# Keras's own arrays do not know NumPy's newest keyword.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(96, 6)).astype(np.float32)
Y = (X @ RNG.normal(size=(6, 3))).argmax(1)
NUMBERS = RNG.integers(0, 50, (96, 4)).astype(np.int32)


class Place:
    """A worker of a cluster whose ``ps`` are in this process."""

    task = None

    def __init__(
        self,
        worker: int,
        workers: int,
        choice: Consistency,
        partitioner: Partitioner | None,
        table_bytes: int,
        exact_tables: bool,
    ) -> None:
        self.worker, self.workers, self.choice = worker, workers, choice
        self.partitioner, self.table_bytes, self.exact_tables = partitioner, table_bytes, exact_tables
        self.is_chief = worker == 0


class Cluster:
    """Several workers as threads, each with a model of its own, and ``ps`` in this process.

    Args:
      make: makes the model; called once for each worker.
      workers: how many.
      servers: how many.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        *,
        workers: int = 1,
        servers: int = 2,
        consistency: str = "async",
        partitioner: Partitioner | None = None,
        table_bytes: int = 1 << 30,
        exact_tables: bool = False,
    ) -> None:
        choice = from_text(consistency, workers)
        self.models = [make() for _ in range(workers)]
        self.served: list[ServedModel] = []
        for worker, model in enumerate(self.models):
            place = Place(worker, workers, choice, partitioner, table_bytes, exact_tables)
            serve_model(model, place)
            served = served_model(model)
            assert served is not None
            served.servers = servers
            self.served.append(served)
        first = self.served[0]
        first.model.optimizer.build(first.model.trainable_variables)
        layout = first.layout()
        self.local = LocalServers(first.model.name, layout, functools.partial(first._updater, layout), choice)
        for worker, served in enumerate(self.served):
            initial = [np.asarray(variable.value) for variable in served.variables]
            served.use(self.local.client(initial, worker))

    def fit(self, *args: Any, callbacks: Callable[[], list[Any]] | None = None, **kwargs: Any) -> list[Any]:
        """`fit` on every worker at once, with callbacks of its own; their histories."""
        found: list[Any] = [None] * len(self.models)
        errors: list[BaseException] = []

        def work(worker: int) -> None:
            try:
                own = callbacks() if callbacks is not None else None
                found[worker] = self.models[worker].fit(*args, verbose=0, callbacks=own, **kwargs)
            except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
                errors.append(error)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(len(self.models))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return found

    def stop(self) -> None:
        for served in self.served:
            served.close()
        self.local.stop()


def dense(optimizer: Callable[[], Any], seed: int = 1) -> Any:
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(8, activation="tanh", name="hidden"), keras.layers.Dense(3, name="out")],
        name="dense",
    )
    model.compile(optimizer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def assert_same(found: Any, expected: Any) -> None:
    for one, other in zip(found.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adam with schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.05, 20)),
    "adamw, clipped by value": lambda: keras.optimizers.AdamW(0.02, weight_decay=0.1, clipvalue=0.01),
    "rmsprop, clipped by norm": lambda: keras.optimizers.RMSprop(0.01, clipnorm=0.05),
    "lion, clipped by all norms": lambda: keras.optimizers.Lion(0.01, global_clipnorm=0.05),
    "adagrad with averages": lambda: keras.optimizers.Adagrad(0.1, use_ema=True, ema_momentum=0.9),
    "ftrl": lambda: keras.optimizers.Ftrl(0.1),
    "accumulated": lambda: keras.optimizers.Nadam(0.02, gradient_accumulation_steps=2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_one_worker_makes_what_keras_makes(name: str) -> None:
    alone = dense(OPTIMIZERS[name])
    alone.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    cluster = Cluster(lambda: dense(OPTIMIZERS[name]))
    (history,) = cluster.fit(X, Y, batch_size=16, epochs=2, shuffle=False)
    assert_same(cluster.models[0], alone)
    assert len(history.history["loss"]) == 2
    slots = zip(cluster.models[0].optimizer.variables, alone.optimizer.variables, strict=True)
    for mine, theirs in slots:
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=2e-5, atol=2e-6, err_msg=mine.path)
    cluster.stop()


@pytest.mark.parametrize("partitioner", [None, FixedShardsPartitioner(2)], ids=["whole", "split"])
def test_synchronous_workers_make_what_one_makes_with_the_same_batches(partitioner: Partitioner | None) -> None:
    def make() -> Any:
        return dense(lambda: keras.optimizers.Adam(0.02))

    alone = make()
    # 96 examples in batches of 20: the last batch of an epoch is smaller, and its shares are uneven.
    alone.fit(X, Y, batch_size=20, epochs=3, shuffle=False, verbose=0)
    cluster = Cluster(make, workers=3, consistency="sync", partitioner=partitioner)
    cluster.fit(X, Y, batch_size=20, epochs=3, shuffle=False)
    for model in cluster.models:
        assert_same(model, alone)
    assert int(cluster.models[0].optimizer.iterations.value) == 15
    cluster.stop()


def test_an_epoch_has_as_many_updates_as_alone_however_many_workers_there_are() -> None:
    cluster = Cluster(lambda: dense(lambda: keras.optimizers.SGD(0.1)), workers=3)
    cluster.fit(X, Y, batch_size=16, epochs=2)
    assert [host.version for host in cluster.local.hosts] == [12, 12]
    cluster.fit(X, Y, batch_size=16, epochs=1)
    assert [host.version for host in cluster.local.hosts] == [18, 18]
    cluster.stop()


def test_moving_statistics_come_from_all_workers() -> None:
    def make() -> Any:
        keras.utils.set_random_seed(2)
        model = keras.Sequential(
            [keras.Input((6,)), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5), keras.layers.Dense(3)],
            name="normal",
        )
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model

    alone = make()
    alone.fit(X, Y, batch_size=16, epochs=1, shuffle=False, verbose=0)
    cluster = Cluster(make)
    cluster.fit(X, Y, batch_size=16, epochs=1, shuffle=False)
    for one, other in zip(cluster.models[0].layers[0].weights, alone.layers[0].weights, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5, err_msg=one.path)
    cluster.stop()
    cluster = Cluster(make, workers=2, consistency="sync")
    cluster.fit(X, Y, batch_size=16, epochs=1, shuffle=False)
    mean = [model.layers[0].moving_mean.numpy() for model in cluster.models]
    np.testing.assert_array_equal(mean[0], mean[1])
    # Means of means of halves are the means of the whole.
    np.testing.assert_allclose(mean[0], alone.layers[0].moving_mean.numpy(), rtol=1e-4, atol=1e-5)
    cluster.stop()


def embedding(optimizer: Callable[[], Any]) -> Any:
    keras.utils.set_random_seed(3)
    numbers = keras.Input((4,), dtype="int32")
    found = keras.layers.Embedding(50, 5, name="table")(numbers)
    model = keras.Model(numbers, keras.layers.Dense(3)(keras.layers.Flatten()(found)), name="embedding")
    model.compile(optimizer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@pytest.mark.parametrize(
    ("optimizer", "exact"),
    [
        (lambda: keras.optimizers.SGD(0.5), False),
        (lambda: keras.optimizers.Adagrad(0.5), False),
        (lambda: keras.optimizers.Adam(0.05), True),
        (lambda: keras.optimizers.SGD(0.5, global_clipnorm=0.1), False),
    ],
    ids=["sgd, lazy", "adagrad, lazy", "adam, exact", "clipped"],
)
def test_tables_on_the_ps_make_what_keras_makes(optimizer: Callable[[], Any], exact: bool) -> None:
    alone = embedding(optimizer)
    alone.fit(NUMBERS, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    cluster = Cluster(lambda: embedding(optimizer), table_bytes=0, exact_tables=exact)
    assert [layer.name for layer in cluster.served[0].tables] == ["table"]
    cluster.fit(NUMBERS, Y, batch_size=16, epochs=2, shuffle=False)
    assert_same(cluster.models[0], alone)
    cluster.stop()


def test_lazy_updates_leave_rows_alone_that_a_step_does_not_use() -> None:
    cluster = Cluster(lambda: embedding(lambda: keras.optimizers.Adam(0.1)), table_bytes=0)
    before = cluster.models[0].get_layer("table").get_weights()[0]
    cluster.fit(np.full((16, 4), 7, np.int32), Y[:16], batch_size=16, epochs=3)
    after = cluster.models[0].get_layer("table").get_weights()[0]
    changed = np.flatnonzero((before != after).any(axis=1))
    assert changed.tolist() == [7]
    cluster.stop()


def test_only_the_rows_in_use_travel() -> None:
    cluster = Cluster(lambda: embedding(lambda: keras.optimizers.SGD(0.1)), table_bytes=0)
    cluster.models[0].fit(NUMBERS, Y, batch_size=16, epochs=1, shuffle=False, verbose=0)
    traffic = cluster.served[0].traffic()
    assert traffic.rows == sum(len(np.unique(NUMBERS[start : start + 16])) for start in range(0, 96, 16))
    cluster.stop()


def test_synchronous_workers_share_the_rows_of_a_batch() -> None:
    def make() -> Any:
        return embedding(lambda: keras.optimizers.Adagrad(0.3))

    alone = make()
    alone.fit(NUMBERS, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    cluster = Cluster(make, workers=2, consistency="sync", table_bytes=0)
    cluster.fit(NUMBERS, Y, batch_size=16, epochs=2, shuffle=False)
    assert_same(cluster.models[1], alone)
    cluster.stop()


def test_the_chief_validates_stops_training_and_saves_an_ordinary_file(tmp_path: Path) -> None:
    cluster = Cluster(lambda: dense(lambda: keras.optimizers.Adam(0.02)), workers=2)
    path = tmp_path / "best.keras"

    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1 and "val_loss" in (logs or {}):
                self.model.stop_training = True

    histories = cluster.fit(
        X,
        Y,
        batch_size=16,
        epochs=50,
        validation_data=(X, Y),
        callbacks=lambda: [keras.callbacks.ModelCheckpoint(str(path)), Stop()],
    )
    assert histories[0].epoch == [0, 1]
    assert len(histories[1].epoch) < 50
    loaded = keras.models.load_model(path)
    # The other worker may have been at the last of the twelve steps of two epochs.
    assert int(loaded.optimizer.iterations.value) >= 11
    assert type(loaded) is keras.Sequential
    cluster.stop()


def test_a_learning_rate_that_a_callback_sets_reaches_the_ps() -> None:
    def make() -> Any:
        return dense(lambda: keras.optimizers.SGD(0.1))

    def schedule(epoch: int, rate: float) -> float:
        return rate * 0.1**epoch

    alone = make()
    kwargs: dict[str, Any] = {"batch_size": 16, "epochs": 3, "shuffle": False}
    alone.fit(X, Y, verbose=0, callbacks=[keras.callbacks.LearningRateScheduler(schedule)], **kwargs)
    cluster = Cluster(make)
    cluster.fit(X, Y, callbacks=lambda: [keras.callbacks.LearningRateScheduler(schedule)], **kwargs)
    assert_same(cluster.models[0], alone)
    cluster.stop()


def test_training_goes_on_when_a_ps_is_lost_and_started_anew() -> None:
    cluster = Cluster(lambda: dense(lambda: keras.optimizers.Adam(0.02)), workers=2)

    class Lose(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1 and self.model is cluster.models[0]:
                cluster.local.restart(1)

    cluster.fit(X, Y, batch_size=16, epochs=4, callbacks=lambda: [Lose()])
    # The first ps has seen all updates; the second goes on from what the chief had read at the end of an epoch.
    assert cluster.local.hosts[0].version == 24
    assert cluster.local.hosts[1].version >= 12
    cluster.stop()


def test_what_cannot_work_is_said() -> None:
    class Own(keras.Model):
        def train_step(self, state: Any, data: Any) -> Any:
            raise NotImplementedError

    strategy = ParameterServerStrategy()
    with strategy.scope():
        model = Own()
        model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="train_step of its own"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="global_clipnorm needs the gradients"):
        Cluster(lambda: dense(lambda: keras.optimizers.SGD(0.1, global_clipnorm=1.0)), consistency="sync")
    with pytest.raises(ValueError, match="table_updates must be"):
        ParameterServerStrategy(table_updates="eager")


def test_a_model_in_the_scope_trains_without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    strategy = ParameterServerStrategy()
    with strategy.scope():
        model = dense(lambda: keras.optimizers.Adam(0.05))
    history = model.fit(X, Y, batch_size=16, epochs=20, verbose=0)
    assert history.history["accuracy"][-1] > 0.9
    assert strategy.traffic(model).rows == 0
    loss = model.train_on_batch(X, Y, return_dict=True)["loss"]
    assert loss < history.history["loss"][0]
