"""Keras on parameter servers: `fit` trains a model as it does on one machine."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from headwater.keras.internals import in_symbolic_scope
from headwater.keras.parameter_server.model import ServedModel, serve_model, served_model
from headwater.keras.parameter_server.own_momentum import MomentumAt, OwnMomentum
from headwater.keras.parameter_server.strategy import ParameterServerStrategy
from headwater.keras.preemption import Preempted
from headwater.keras.programs import updates_made
from headwater.ps.consistency import Consistency, from_text
from headwater.ps.layout import FixedShardsPartitioner, Partitioner
from headwater.ps.local_servers import LocalServers
from headwater.state.state_saver import Saves
from headwater.tf2.namespace import tf

import keras  # isort: skip - the package before it chooses the backend

# Keras's own arrays do not support NumPy's newest keyword.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(96, 6)).astype(np.float32)
Y = (X @ RNG.normal(size=(6, 3))).argmax(1).astype(np.int32)
NUMBERS = RNG.integers(0, 50, (96, 4)).astype(np.int32)


class Place:
    """A worker of a cluster whose ``ps`` are in this process."""

    task = None
    staleness_aware = False
    saves = None
    shards = None
    small_tables = False
    wire = "float32"

    def __init__(
        self,
        worker: int,
        workers: int,
        choice: Consistency,
        partitioner: Partitioner | None,
        table_bytes: int,
        exact_tables: bool,
        momentum_at: MomentumAt,
    ) -> None:
        self.worker, self.workers, self.choice = worker, workers, choice
        self.partitioner, self.table_bytes, self.exact_tables = partitioner, table_bytes, exact_tables
        self.replicas = 1
        self.momentum_at = momentum_at
        self.is_chief = worker == 0


class Cluster:
    """Several workers as threads, each with its own model, and ``ps`` in this process.

    Args:
      make: makes the model; called once for each worker.
      workers: number of workers.
      servers: number of ``ps``.
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
        saves: Saves | None = None,
        momentum_at: MomentumAt = "ps",
    ) -> None:
        choice = from_text(consistency, workers)
        self.models = [make() for _ in range(workers)]
        self.served: list[ServedModel] = []
        for worker, model in enumerate(self.models):
            place: Any = Place(worker, workers, choice, partitioner, table_bytes, exact_tables, momentum_at)
            serve_model(model, place)
            served = served_model(model)
            assert served is not None
            served.servers = servers
            self.served.append(served)
        first = self.served[0]
        first.model.optimizer.build(first.model.trainable_variables)
        layout = first.layout()
        make_updater = functools.partial(first._updater, layout)
        self.local = LocalServers(first.model.name, layout, make_updater, choice, saves=saves, squares=first.squares())
        for worker, served in enumerate(self.served):
            initial = [np.asarray(variable.value) for variable in served.variables]
            client = self.local.client(initial, worker)
            if worker == 0 and updates_made(served.model.optimizer):  # it was loaded
                client.set_initial_state(served._split_state)
            served.use(client)

    def fit(self, *args: Any, callbacks: Callable[[], list[Any]] | None = None, **kwargs: Any) -> list[Any]:
        """Runs `fit` on every worker at once, each with its own callbacks; returns their histories."""
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
    "adafactor": lambda: keras.optimizers.Adafactor(0.05),
    "lamb": lambda: keras.optimizers.Lamb(0.02),
    "muon": lambda: keras.optimizers.Muon(0.02),
    "accumulated": lambda: keras.optimizers.Nadam(0.02, gradient_accumulation_steps=2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_one_worker_trains_like_keras(name: str) -> None:
    alone = dense(OPTIMIZERS[name])
    alone.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    cluster = Cluster(lambda: dense(OPTIMIZERS[name]), servers=2, partitioner=FixedShardsPartitioner(2))
    (history,) = cluster.fit(X, Y, batch_size=16, epochs=2, shuffle=False)
    assert_same(cluster.models[0], alone)
    assert len(history.history["loss"]) == 2
    slots = zip(cluster.models[0].optimizer.variables, alone.optimizer.variables, strict=True)
    for mine, theirs in slots:
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=2e-5, atol=2e-6, err_msg=mine.path)
    cluster.stop()


@pytest.mark.parametrize(("name", "divided"), [("adam", True), ("adam", False), ("adafactor", False)])
def test_a_saved_model_is_restored_to_another_number_of_shards(name: str, divided: bool, tmp_path: Path) -> None:
    make = {"adam": lambda: keras.optimizers.Adam(0.02), "adafactor": lambda: keras.optimizers.Adafactor(0.05)}[name]

    def train(model: Any, servers: int) -> Any:
        partitioner = FixedShardsPartitioner(servers) if divided else None
        cluster = Cluster(lambda: model, servers=servers, partitioner=partitioner)
        cluster.fit(X, Y, batch_size=16, epochs=1, shuffle=False)
        cluster.stop()
        return model

    alone = dense(make)
    alone.fit(X, Y, batch_size=16, epochs=3, shuffle=False, verbose=0)
    model = dense(make)
    for servers in (2, 3, 1):
        train(model, servers).save(tmp_path / f"{servers}.keras")
        model = keras.models.load_model(tmp_path / f"{servers}.keras")
    assert_same(model, alone)


def test_an_evaluator_that_falls_behind_learns_the_newest_finished_epoch() -> None:
    cluster = Cluster(lambda: dense(OPTIMIZERS["sgd"]))
    found: list[tuple[bool, int]] = []

    def evaluate() -> None:
        evaluator = cluster.local.client([np.asarray(it.value) for it in cluster.served[0].variables], 1)
        evaluator.connect()
        found.append(evaluator.follow(0, 0))
        evaluator.close()

    class InEpochTwo(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            self.asks = epoch == 2

        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            if self.asks:
                evaluate()

    cluster.fit(X, Y, batch_size=96, epochs=4, callbacks=lambda: [InEpochTwo()])
    evaluate()
    assert found == [(False, 1), (True, 3)]
    cluster.stop()


def test_one_worker_with_local_momentum_trains_like_nesterov() -> None:
    def make(nesterov: bool) -> Any:
        return dense(lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=nesterov))

    alone = make(True)
    alone.fit(X, Y, batch_size=16, epochs=3, shuffle=False, verbose=0)
    cluster = Cluster(lambda: make(False), momentum_at="worker")
    cluster.fit(X, Y, batch_size=16, epochs=3, shuffle=False)
    assert_same(cluster.models[0], alone)
    cluster.stop()


def test_workers_keep_the_momentum_of_their_own_gradients() -> None:
    momentum, gradients = OwnMomentum(0.5), [np.array([2.0, -4.0], np.float32), np.array(1.0, np.float32)]
    np.testing.assert_array_equal(momentum(gradients)[0], [3.0, -6.0])  # v = g, u = g / 2 + g
    first, second = momentum(gradients)
    np.testing.assert_array_equal(first, [3.5, -7.0])  # v = g / 2 + g, u = v / 2 + g
    assert second == 1.75


@pytest.mark.parametrize(
    ("make", "settings", "match"),
    [
        (lambda: dense(lambda: keras.optimizers.Adam(0.1)), {}, "needs keras.optimizers.SGD with momentum, not Adam"),
        (lambda: dense(lambda: keras.optimizers.SGD(0.1)), {}, "needs keras.optimizers.SGD with momentum, not SGD$"),
        (
            lambda: embedding(lambda: keras.optimizers.SGD(0.1, momentum=0.9)),
            {"table_bytes": 0},
            "of the rows of table, which stay on the ps",
        ),
    ],
    ids=["adam", "no momentum", "rows"],
)
def test_momentum_that_workers_cannot_keep_is_refused(
    make: Callable[[], Any], settings: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        Cluster(make, momentum_at="worker", **settings)


@pytest.mark.parametrize("partitioner", [None, FixedShardsPartitioner(2)], ids=["whole", "split"])
@pytest.mark.parametrize(
    "optimizer",
    [lambda: keras.optimizers.Adam(0.02), lambda: keras.optimizers.SGD(0.5, 0.9, global_clipnorm=0.2)],
    ids=["adam", "clipped by all norms"],
)
def test_synchronous_workers_train_like_one_worker_with_the_same_batches(
    optimizer: Callable[[], Any], partitioner: Partitioner | None
) -> None:
    def make() -> Any:
        return dense(optimizer)

    alone = make()
    # 96 examples in batches of 20: the last batch of an epoch is smaller, and its shares are uneven.
    alone.fit(X, Y, batch_size=20, epochs=3, shuffle=False, verbose=0)
    cluster = Cluster(make, workers=3, consistency="sync", partitioner=partitioner)
    cluster.fit(X, Y, batch_size=20, epochs=3, shuffle=False)
    for model in cluster.models:
        assert_same(model, alone)
    assert int(cluster.models[0].optimizer.iterations.value) == 15
    cluster.stop()


@pytest.mark.parametrize("consistency", ["async", "staleness=1", "sync"])
def test_metrics_are_those_of_the_job(consistency: str) -> None:
    def make() -> Any:
        model = dense(lambda: keras.optimizers.SGD(0.0))
        model.compile(
            model.optimizer,
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2, name="top")],
        )
        return model

    # The values never change, so the workers' metrics together equal one worker's metrics on all data.
    expected = make().evaluate(X, Y, batch_size=10, return_dict=True, verbose=0)
    cluster = Cluster(make, workers=3, consistency=consistency)
    for history in cluster.fit(X, Y, batch_size=10, epochs=2):
        for name, value in expected.items():
            np.testing.assert_allclose(history.history[name], [value] * 2, rtol=1e-5, err_msg=name)
    cluster.stop()


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum"])
def test_synchronous_workers_report_the_results_of_one_worker(reduction: str) -> None:
    def make() -> Any:
        model = dense(lambda: keras.optimizers.SGD(0.01))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)
        model.compile(model.optimizer, loss, metrics=["accuracy"])
        return model

    alone = make()
    expected = alone.fit(X, Y, batch_size=20, epochs=2, shuffle=False, verbose=0).history
    cluster = Cluster(make, workers=3, consistency="sync")
    for history in cluster.fit(X, Y, batch_size=20, epochs=2, shuffle=False):
        for name, values in expected.items():
            np.testing.assert_allclose(history.history[name], values, rtol=1e-4, err_msg=name)
    assert_same(cluster.models[1], alone)
    cluster.stop()


class Doubled(keras.Model):
    """A model with a custom train_step, which doubles the gradients and logs their norm."""

    def __init__(self) -> None:
        super().__init__(name="doubled")
        self.hidden, self.out = keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(3)

    def call(self, inputs: Any) -> Any:
        return self.out(self.hidden(inputs))

    def train_step(self, state: Any, data: Any) -> Any:
        trainable, others, optimizer, metrics = state
        x, y = data
        gradient: Any = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)
        (loss, (_, y_pred, others, metrics)), found = gradient(
            trainable, others, metrics, x, y, None, training=True, optimizer_variables=optimizer
        )
        trainable, optimizer = self.optimizer.stateless_apply(optimizer, [2 * g for g in found], trainable)
        logs, metrics = self._update_metrics_variables(metrics, loss, x, y, y_pred, None)
        return {**logs, "rows": jax.numpy.float32(len(x))}, (trainable, others, optimizer, metrics)


class DoubledAsInTensorFlow(Doubled):
    """As `Doubled`, with a tape and without the state."""

    def train_step(self, data: Any) -> Any:  # pyrefly: ignore[bad-override]
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        gradients = [2 * gradient for gradient in tape.gradient(loss, self.trainable_variables)]
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        tracker: Any = self._loss_tracker
        tracker.update_state(loss, sample_weight=len(x))
        return {"loss": tracker.result(), "rows": tf.cast(tf.shape(x)[0], tf.float32)}


@pytest.mark.parametrize("kind", [Doubled, DoubledAsInTensorFlow])
@pytest.mark.parametrize("consistency", ["async", "sync"])
def test_a_train_step_of_the_models_own_works(consistency: str, kind: Any) -> None:
    def make() -> Any:
        keras.utils.set_random_seed(4)
        model = kind()
        model.compile(keras.optimizers.Adam(0.02), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model(X[:1])  # builds it
        return model

    alone = make()
    expected = alone.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0).history
    cluster = Cluster(make, workers=2 if consistency == "sync" else 1, consistency=consistency)
    histories = cluster.fit(X, Y, batch_size=16, epochs=2, shuffle=False)
    assert_same(cluster.models[0], alone)
    np.testing.assert_allclose(histories[0].history["loss"], expected["loss"], rtol=1e-5)
    assert histories[0].history["rows"][0] == (8 if consistency == "sync" else 16)
    cluster.stop()


def test_a_train_step_that_applies_twice_is_refused() -> None:
    class Twice(Doubled):
        def train_step(self, state: Any, data: Any) -> Any:
            super().train_step(state, data)
            return super().train_step(state, data)

    def make() -> Any:
        model = Twice()
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model(X[:1])  # builds it
        return model

    cluster = Cluster(make)
    with pytest.raises(ValueError, match=r"must call self\.optimizer\.stateless_apply once for parameter servers"):
        cluster.fit(X, Y)
    cluster.stop()


def test_callbacks_are_called_once_per_steps_per_execution() -> None:
    def make() -> Any:
        model = dense(lambda: keras.optimizers.Adam(0.02))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(model.optimizer, loss, steps_per_execution=4)
        return model

    heard: list[tuple[str, int]] = []

    class Hears(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            heard.append(("begin", batch))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            heard.append(("end", batch))

    alone = make()
    alone.fit(X, Y, batch_size=12, shuffle=False, verbose=0, callbacks=[Hears()])
    expected = list(heard)
    heard.clear()
    cluster = Cluster(make)
    cluster.fit(X, Y, batch_size=12, shuffle=False, callbacks=lambda: [Hears()])
    assert heard == expected
    assert_same(cluster.models[0], alone)
    cluster.stop()


@pytest.mark.parametrize("scale", [2.0**10, 2.0**24], ids=["finite", "too large at first"])
def test_losses_are_scaled_as_keras_scales_them(scale: float) -> None:
    def make() -> Any:
        keras.config.set_dtype_policy("mixed_float16")
        try:
            model = dense(lambda: keras.optimizers.SGD(0.1, momentum=0.9))
        finally:
            keras.config.set_dtype_policy("float32")
        scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), scale, dynamic_growth_steps=4)
        model.compile(scaled, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        return model

    alone = make()
    alone.fit(X, Y, batch_size=16, epochs=4, shuffle=False, verbose=0)
    cluster = Cluster(make)
    cluster.fit(X, Y, batch_size=16, epochs=4, shuffle=False)
    mine, theirs = cluster.models[0].optimizer, alone.optimizer
    assert float(mine.dynamic_scale.value) == float(theirs.dynamic_scale.value) != scale
    assert int(mine.step_counter.value) == int(theirs.step_counter.value)
    for one, other in zip(cluster.models[0].get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    cluster.stop()


@pytest.mark.parametrize(("momentum", "warned"), [(0.9, 1), (0.5, 0)])
def test_momentum_of_asynchronous_workers_gets_a_warning(
    momentum: float, warned: int, caplog: pytest.LogCaptureFixture
) -> None:
    strategy = ParameterServerStrategy()
    served = ServedModel(dense(lambda: keras.optimizers.SGD(0.1, momentum=momentum)), strategy)
    strategy.workers = 4
    served.connect()
    assert sum("acts like more momentum" in record.getMessage() for record in caplog.records) == warned
    served.close()


def test_number_of_updates_of_an_epoch_does_not_depend_on_the_number_of_workers() -> None:
    cluster = Cluster(lambda: dense(lambda: keras.optimizers.SGD(0.1)), workers=3)
    cluster.fit(X, Y, batch_size=16, epochs=2)
    assert [host.version for host in cluster.local.hosts] == [12, 12]
    cluster.fit(X, Y, batch_size=16, epochs=1)
    assert [host.version for host in cluster.local.hosts] == [18, 18]
    cluster.stop()


def test_moving_statistics_use_the_data_of_all_workers() -> None:
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
    # The mean of the means of two halves is the mean of the whole.
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
def test_tables_on_the_ps_train_like_keras(optimizer: Callable[[], Any], exact: bool) -> None:
    alone = embedding(optimizer)
    alone.fit(NUMBERS, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    cluster = Cluster(lambda: embedding(optimizer), table_bytes=0, exact_tables=exact)
    assert [layer.name for layer in cluster.served[0].tables] == ["table"]
    cluster.fit(NUMBERS, Y, batch_size=16, epochs=2, shuffle=False)
    assert_same(cluster.models[0], alone)
    cluster.stop()


def test_lazy_updates_change_only_rows_used_by_the_step() -> None:
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


@pytest.mark.parametrize("consistency", ["async", "staleness=1", "sync"])
def test_early_stopping_ends_training_for_all_by_the_metrics_of_the_job(consistency: str) -> None:
    # The values never change, so neither do the job's metrics; a single worker's share of an epoch does change.
    cluster = Cluster(lambda: dense(lambda: keras.optimizers.SGD(0.0)), workers=3, consistency=consistency)
    stopping: list[Any] = []

    def callbacks() -> list[Any]:
        stopping.append(keras.callbacks.EarlyStopping("accuracy", mode="max", min_delta=1e-4, patience=2))
        return stopping[-1:]

    histories = cluster.fit(X, Y, batch_size=10, epochs=20, callbacks=callbacks)
    losses = [history.history["loss"] for history in histories]
    assert len(losses[0]) == 3
    for found in losses:
        np.testing.assert_allclose(found[:3], losses[0], rtol=1e-5)
        # With bounded staleness, other workers may have begun another epoch meanwhile.
        assert len(found) <= 3 + (consistency == "staleness=1")
    assert sorted(callback.stopped_epoch for callback in stopping) == [0, 0, 2]  # it is the chief's history
    cluster.stop()


@pytest.mark.parametrize("consistency", ["async", "sync", "staleness=0", "staleness=3", "k=1"])
def test_all_workers_have_the_weights_that_early_stopping_restores(consistency: str) -> None:
    cluster = Cluster(lambda: dense(lambda: keras.optimizers.SGD(0.1)), workers=2, consistency=consistency)
    seen: list[Any] = []

    class Records(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            assert self.model is not None
            if self.model is cluster.models[0] and epoch == 0:
                seen.extend(self.model.get_weights())

    def callbacks() -> list[Any]:
        # The loss falls, so the first epoch is the best one, and the second epoch the last.
        return [Records(), keras.callbacks.EarlyStopping("loss", mode="max", patience=1, restore_best_weights=True)]

    histories = cluster.fit(X, Y, batch_size=10, epochs=9, callbacks=callbacks)
    epochs = [history.epoch for history in histories]
    if consistency == "k=1":  # the other worker makes the steps of the first epoch alone if this one starts late
        epochs[1] = [0, *epochs[1][-1:]]
    assert epochs == [[0, 1], [0, 1]]
    # No step of the next epoch is made, except if an update uses a part of a batch.
    assert int(cluster.models[0].optimizer.iterations) == 2 * 10 or consistency == "k=1"
    for model in cluster.models:
        for one, other in zip(model.get_weights(), seen, strict=True):
            np.testing.assert_array_equal(one, other)
    cluster.stop()


def test_the_chief_validates_stops_training_and_saves_an_ordinary_file(tmp_path: Path) -> None:
    cluster = Cluster(lambda: dense(lambda: keras.optimizers.Adam(0.02)), workers=2)
    path = tmp_path / "best.keras"

    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1 and "val_loss" in (logs or {}):
                assert self.model is not None
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
    # The other worker may have reached the last of the twelve steps of two epochs.
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


def test_a_learning_rate_that_a_callback_sets_outlives_a_save_before_the_next_step(tmp_path: Path) -> None:
    def make() -> Any:
        return dense(lambda: keras.optimizers.SGD(0.1, momentum=0.5))

    def callbacks(folder: str) -> list[Any]:
        plateau = keras.callbacks.ReduceLROnPlateau("loss", mode="max", factor=0.5, patience=1)
        return [plateau, keras.callbacks.BackupAndRestore(str(tmp_path / folder))]

    alone = make()
    kwargs: dict[str, Any] = {"batch_size": 16, "epochs": 4, "shuffle": False}
    expected = alone.fit(X, Y, verbose=0, callbacks=callbacks("alone"), **kwargs)
    cluster = Cluster(make, workers=2, consistency="sync")
    first, _ = cluster.fit(X, Y, callbacks=lambda: callbacks("cluster"), **kwargs)
    np.testing.assert_allclose(first.history["learning_rate"], expected.history["learning_rate"])
    for model in cluster.models:
        assert_same(model, alone)
    np.testing.assert_allclose(float(cluster.models[0].optimizer.learning_rate), 0.0125)
    cluster.stop()


def test_a_chief_that_is_asked_to_end_after_a_restart_continues_with_the_same_epoch(tmp_path: Path) -> None:
    def fit(*more: Any) -> tuple[list[int], int]:
        cluster = Cluster(lambda: dense(lambda: keras.optimizers.SGD(0.1)))
        backup = keras.callbacks.BackupAndRestore(str(tmp_path / "backup"))
        ends = [keras.callbacks.LambdaCallback(on_epoch_begin=each(cluster)) for each in more]
        try:
            (history,) = cluster.fit(X, Y, batch_size=16, epochs=3, callbacks=lambda: [backup, *ends])
            return history.epoch, updates_made(cluster.models[0].optimizer)
        finally:
            cluster.stop()

    def ask_to_end(cluster: Cluster) -> Callable[[int, Any], None]:
        def ask(epoch: int, _logs: Any) -> None:
            cluster.served[0].stop_wanted = epoch == 1

        return ask

    for _ in range(2):
        with pytest.raises(Preempted) as ended:
            fit(ask_to_end)
        assert ended.value.epoch == 1
    # The values contain the one update of epoch 1 that each interrupted job had made, and that update is repeated.
    assert fit() == ([0, 1, 2], 3 * 6 + 2)


def test_training_continues_after_a_ps_restarts() -> None:
    cluster = Cluster(lambda: dense(lambda: keras.optimizers.Adam(0.02)), workers=2)

    class Lose(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1 and self.model is cluster.models[0]:
                cluster.local.restart(1)

    cluster.fit(X, Y, batch_size=16, epochs=4, callbacks=lambda: [Lose()])
    # The first ps has seen all updates; the second continues from the values that the chief had read at the end of an
    # epoch.
    assert cluster.local.hosts[0].version == 24
    assert cluster.local.hosts[1].version >= 12
    cluster.stop()


def test_rows_and_state_of_tables_survive_a_restart_of_a_ps() -> None:
    def make() -> Any:
        return embedding(lambda: keras.optimizers.Adam(0.05))

    settings: dict[str, Any] = {"batch_size": 16, "epochs": 3, "shuffle": False}
    cluster, undisturbed = Cluster(make, table_bytes=0), Cluster(make, table_bytes=0)
    lost = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, _: epoch != 1 or cluster.local.restart(1))
    cluster.fit(NUMBERS, Y, callbacks=lambda: [lost], **settings)
    undisturbed.fit(NUMBERS, Y, **settings)
    # The values at the end of the epoch are those from which it was restarted.
    assert_same(cluster.models[0], undisturbed.models[0])
    cluster.stop()
    undisturbed.stop()


@pytest.mark.parametrize("exact", [False, True], ids=["lazy", "exact"])
def test_a_ps_continues_with_its_own_rows_and_their_state(exact: bool, tmp_path: Path) -> None:
    def make() -> Any:
        return embedding(lambda: keras.optimizers.Adam(0.05))

    class Saving(keras.callbacks.Callback):
        """Saves while training continues, then restarts a ``ps``."""

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            for saver in cluster.local.savers.values():
                assert saver.save()
            if batch == 4:
                cluster.local.restart(1)

    settings: dict[str, Any] = {"batch_size": 16, "epochs": 3, "shuffle": False}
    saves = Saves(folder=str(tmp_path))
    cluster = Cluster(make, table_bytes=0, exact_tables=exact, saves=saves)
    undisturbed = Cluster(make, table_bytes=0, exact_tables=exact)
    cluster.fit(NUMBERS, Y, callbacks=lambda: [Saving()], **settings)
    undisturbed.fit(NUMBERS, Y, **settings)
    # There were no updates after the restored state.
    assert_same(cluster.models[0], undisturbed.models[0])
    assert [host.version for host in cluster.local.hosts] == [18, 18]
    cluster.stop()
    undisturbed.stop()


def test_unsupported_configurations_are_reported() -> None:
    with pytest.raises(ValueError, match="global_clipnorm needs the gradients"):
        Cluster(lambda: dense(lambda: keras.optimizers.SGD(0.1, global_clipnorm=1.0)), workers=3, consistency="k=2")
    with pytest.raises(ValueError, match="momentum_at must be 'ps' or 'worker', not 'both'"):
        ParameterServerStrategy(momentum_at="both")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="momentum_at='worker' is for consistency 'async'"):
        ParameterServerStrategy(momentum_at="worker", consistency="sync")
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


@pytest.mark.parametrize("hook", ["on_batch_begin", "on_train_batch_begin", "on_batch_end", "on_train_batch_end"])
def test_callbacks_with_one_hook_for_batches_are_called_as_in_one_process(
    hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)

    def batches_of(model: Any) -> list[int]:
        found: list[int] = []
        callback = keras.callbacks.Callback()
        setattr(callback, hook, lambda batch, logs=None: found.append(batch))
        model.fit(X, Y, batch_size=16, epochs=2, verbose=0, callbacks=[callback])
        return found

    with ParameterServerStrategy().scope():
        served = dense(lambda: keras.optimizers.SGD(0.1))
    assert batches_of(served) == batches_of(dense(lambda: keras.optimizers.SGD(0.1))) == [*range(6)] * 2


def test_replicas_need_a_second_ps() -> None:
    with pytest.raises(ValueError, match="needs a second ps"):
        ParameterServerStrategy(replicas=2)


def test_batches_are_evaluated_with_the_values_after_training() -> None:
    alone = dense(lambda: keras.optimizers.SGD(0.1))
    cluster = Cluster(lambda: dense(lambda: keras.optimizers.SGD(0.1)))
    (model,) = cluster.models
    for one in (alone, model):
        one.train_on_batch(X, Y)
    np.testing.assert_allclose(model.test_on_batch(X, Y), alone.test_on_batch(X, Y), rtol=1e-5)
    for one in (alone, model):
        one.train_on_batch(X, Y)
    np.testing.assert_allclose(model.predict_on_batch(X), alone.predict_on_batch(X), rtol=1e-4, atol=1e-6)
    cluster.stop()


class LossOfTraining(keras.Sequential):
    """A model whose custom loss is doubled in training."""

    def compute_loss(self, *args: Any, training: bool = True, **kwargs: Any) -> Any:  # type: ignore[bad-override]  # Keras passes names
        assert training or in_symbolic_scope()  # Keras builds a model's metrics by a symbolic call
        return 2 * super().compute_loss(*args, training=training, **kwargs)


def test_callbacks_get_keras_numbers_of_batches_and_losses_are_tried_in_training() -> None:
    numbers: list[tuple[str, int]] = []

    class Numbers(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            numbers.append(("begin", batch))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            numbers.append(("end", batch))

    def make() -> Any:
        model: Any = LossOfTraining([keras.Input((6,)), keras.layers.Dense(3)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.1), loss, steps_per_execution=3)
        return model

    make().fit(X[:40], Y[:40], batch_size=8, verbose=0, callbacks=[Numbers()])
    alone = list(numbers)
    numbers.clear()
    cluster = Cluster(make)
    cluster.fit(X[:40], Y[:40], batch_size=8, callbacks=lambda: [Numbers()])
    assert numbers == alone
    cluster.stop()
