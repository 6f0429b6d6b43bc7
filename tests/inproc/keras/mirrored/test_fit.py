"""`fit`, `evaluate` and `predict` of mirrored models have the results of one worker with the same global batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater.data.dataset import Dataset
from headwater.data.io.tfrecord import TFRecordWriter
from headwater.data.options import AutoShardPolicy, Options
from headwater.data.readers import TFRecordDataset
from headwater.tf2.namespace import tf
from tests.support.mirrored import with_workers

# Keras's own variables cause this warning when NumPy requests their values.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
ROWS = 50
_random = np.random.default_rng(0)
X = _random.normal(size=(ROWS, 5)).astype("float32")
Y = _random.integers(0, 3, size=ROWS).astype("int32")


def make_model(loss: Any = None, layers: Any = (), optimizer: Any = "adam", **settings: Any) -> Any:
    model = keras.Sequential(
        [keras.Input((5,)), keras.layers.Dense(8, activation="relu"), *layers, keras.layers.Dense(3)]
    )
    values = np.random.default_rng(1)
    model.set_weights([values.normal(size=weight.shape).astype("float32") * 0.3 for weight in model.get_weights()])
    model.compile(
        optimizer,
        loss or keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        **settings,
    )
    return model


def dataset(batch: int = 16) -> Any:
    return Dataset.from_tensor_slices((X, Y)).batch(batch)


def run(model: Any, **settings: Any) -> tuple[list[Any], dict[str, Any]]:
    settings.setdefault("epochs", 2)
    history = model.fit(verbose=0, **settings)
    return model.get_weights(), history.history


def check_equal(count: int, settings: Callable[[], dict[str, Any]], make: Callable[[], Any] = make_model) -> None:
    alone, history = run(make(), **settings())
    results = with_workers(count, lambda _, mirror: run(mirror(make()), **settings()))
    for weights, logs in results:
        assert logs.keys() == history.keys()
        for name, values in history.items():
            np.testing.assert_allclose(logs[name], values, rtol=2e-5, atol=1e-6, err_msg=name)
        for ours, theirs in zip(weights, alone, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-6)
    for weights, logs in results[1:]:
        assert logs == results[0][1]
        assert all((ours == theirs).all() for ours, theirs in zip(weights, results[0][0], strict=True))


@pytest.mark.parametrize("count", [2, 3])
def test_workers_together_make_the_steps_of_one(count: int) -> None:
    check_equal(count, lambda: {"x": X, "y": Y, "batch_size": 16, "shuffle": False, "validation_data": (X[:7], Y[:7])})


# Keras warns at the end of data with an unknown number of batches.
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("policy", [AutoShardPolicy.FILE, AutoShardPolicy.HINT, AutoShardPolicy.DATA])
def test_every_record_of_files_counts_once(tmp_path: Path, policy: AutoShardPolicy, count: int) -> None:
    names = [str(tmp_path / f"part-{number}") for number in range(5)]
    for number, name in enumerate(names):
        with TFRecordWriter(name) as writer:
            writer.write_all([x.tobytes() + y.tobytes() for x, y in zip(X[number::5], Y[number::5], strict=True)])

    def parse(record: Any) -> Any:
        return np.frombuffer(record.item(), np.float32, 5), np.frombuffer(record.item(), np.int32, 1, 20)[0]

    def data() -> Any:
        options = Options()
        options.experimental_distribute.auto_shard_policy = policy
        files = TFRecordDataset(names)
        if policy is AutoShardPolicy.HINT:
            files = files.shard(-1, -1)
        return files.map(parse).batch(8).with_options(options)

    expected = make_model().evaluate(X, Y, verbose=0)
    for found in with_workers(count, lambda _, mirror: mirror(make_model()).evaluate(data(), verbose=0)):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    if policy is AutoShardPolicy.DATA:
        check_equal(count, lambda: {"x": data()})


def test_batches_of_a_dataset_are_global_ones() -> None:
    check_equal(
        2,
        lambda: {
            "x": dataset().repeat(),
            "steps_per_epoch": 5,
            "validation_data": dataset(10).repeat(),
            "validation_steps": 2,
        },
    )


def test_fewer_rows_than_workers() -> None:
    check_equal(3, lambda: {"x": X[:10], "y": Y[:10], "batch_size": 4, "shuffle": False})


def test_weights_of_examples_and_classes() -> None:
    weights = np.linspace(0, 2, ROWS)
    check_equal(2, lambda: {"x": X, "y": Y, "sample_weight": weights, "batch_size": 8, "shuffle": False})
    check_equal(2, lambda: {"x": X, "y": Y, "class_weight": {0: 2.0, 2: 0.5}, "batch_size": 8, "shuffle": False})
    check_equal(2, lambda: {"x": dataset(), "class_weight": {0: 2.0, 2: 0.5}})


def test_losses_that_are_sums_add_up() -> None:
    def make() -> Any:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
        return make_model(loss, optimizer=keras.optimizers.SGD(1e-3))

    check_equal(2, lambda: {"x": X, "y": Y, "batch_size": 8, "shuffle": False}, make)


def test_several_steps_at_once_and_steps_without_compilation() -> None:
    settings = {"x": X, "y": Y, "batch_size": 10, "shuffle": False}
    check_equal(2, lambda: settings, lambda: make_model(steps_per_execution=2))
    check_equal(2, lambda: {**settings, "epochs": 1}, lambda: make_model(run_eagerly=True))


def test_generators_and_keras_datasets() -> None:
    class Batches(keras.utils.PyDataset):
        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> Any:
            return X[index * 10 : index * 10 + 10], Y[index * 10 : index * 10 + 10]

    def generate() -> Any:
        while True:
            yield X[:10], Y[:10]

    check_equal(2, lambda: {"x": Batches(), "shuffle": False})
    check_equal(2, lambda: {"x": generate(), "steps_per_epoch": 3, "shuffle": False})


@pytest.mark.parametrize("without_state", [False, True])
def test_a_model_with_a_step_of_its_own_is_shared_too(without_state: bool) -> None:
    class Own(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(3, kernel_initializer="ones")

        def build(self, shape: Any) -> None:
            self.dense.build(shape)
            super().build(shape)

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs)

        def train_step(self, state: Any, data: Any) -> Any:
            logs, state = super().train_step(state, data)
            return {**logs, "rows": keras.ops.mean(data[0]) * 0 + 1.0}, state

    class AsInTensorFlow(Own):
        def train_step(self, data: Any) -> Any:  # pyrefly: ignore[bad-override]
            return {**keras.Model.train_step(self, data), "rows": tf.reduce_mean(data[0]) * 0 + 1.0}

    def make() -> Any:
        model = (AsInTensorFlow if without_state else Own)()
        model.build((None, 5))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")])
        return model

    check_equal(2, lambda: {"x": X, "y": Y, "batch_size": 10, "shuffle": False}, make)


def test_state_of_layers_is_the_same_everywhere() -> None:
    def body(_: int, mirror: Any) -> Any:
        layers = (keras.layers.BatchNormalization(), keras.layers.Dropout(0.5, seed=3))
        model = mirror(make_model(layers=layers))
        run(model, x=X, y=Y, batch_size=16)
        return [np.asarray(variable.value) for variable in model.variables]

    first, second = with_workers(2, body)
    assert all((ours == theirs).all() for ours, theirs in zip(first, second, strict=True))
    counters = [value for value in first if value.dtype == np.uint32]
    assert [list(value) for value in counters] == [[3, 8]]  # the seed is unchanged, 2 epochs of 4 steps were counted


def test_shuffled_data_are_shuffled_alike() -> None:
    seen: dict[int, list[Any]] = {0: [], 1: []}

    def body(rank: int, mirror: Any) -> Any:
        model = mirror(make_model(run_eagerly=True))
        step = type(model).train_step

        def train_step(state: Any, data: Any) -> Any:
            seen[rank].append(np.asarray(data[0]))
            return step(model, state, data)

        object.__setattr__(model, "train_step", train_step)
        return run(model, x=X, y=Y, batch_size=10)

    with_workers(2, body)
    for epoch in (slice(0, 5), slice(5, 10)):
        rows = np.concatenate([*seen[0][epoch], *seen[1][epoch]])
        assert {row.tobytes() for row in rows} == {row.tobytes() for row in X}
    assert not (seen[0][0] == seen[0][5]).all()


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_others_finish_when_one_worker_has_no_more_data() -> None:
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF

    def body(rank: int, mirror: Any) -> Any:
        model = mirror(make_model())
        own = Dataset.from_tensor_slices((X[: 40 - 30 * rank], Y[: 40 - 30 * rank])).batch(20).with_options(options)
        steps: list[int] = []
        counter = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: steps.append(batch))
        weights, logs = run(model, x=own, epochs=1, callbacks=[counter])
        return weights, logs, steps

    first, second = with_workers(2, body)
    assert first[2] == second[2] == [0, 1, 2, 3]  # of 10 rows each; the second worker has one of these rows
    assert first[1] == second[1]
    assert all((ours == theirs).all() for ours, theirs in zip(first[0], second[0], strict=True))


def test_evaluate_and_predict_are_those_of_the_whole() -> None:
    alone = make_model()
    expected = alone.evaluate(X, Y, batch_size=16, verbose=0), alone.predict(X, batch_size=16, verbose=0)

    def body(_: int, mirror: Any) -> Any:
        model = mirror(make_model())
        return (
            model.evaluate(X, Y, batch_size=16, verbose=0),
            model.predict(X, batch_size=16, verbose=0),
            model.predict(dataset(), verbose=0),
            model.test_on_batch(X, Y),
            model.predict_on_batch(X[:3]),
        )

    for evaluated, predicted, of_dataset, on_batch, few in with_workers(2, body):
        np.testing.assert_allclose(evaluated, expected[0], rtol=1e-5)
        np.testing.assert_allclose(on_batch, expected[0], rtol=1e-5)
        for found in (predicted, of_dataset):
            np.testing.assert_allclose(found, expected[1], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(few, expected[1][:3], rtol=1e-4, atol=1e-6)


def test_steps_on_single_batches_are_shared() -> None:
    alone = make_model()
    expected = alone.train_on_batch(X, Y)

    def body(_: int, mirror: Any) -> Any:
        model = mirror(make_model())
        return model.train_on_batch(X, Y), model.get_weights()

    for logs, weights in with_workers(2, body):
        np.testing.assert_allclose(logs, expected, rtol=1e-5)
        for ours, theirs in zip(weights, alone.get_weights(), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_all_begin_with_the_variables_of_the_first() -> None:
    def body(rank: int, mirror: Any) -> Any:
        model = mirror(make_model(optimizer="sgd"))
        model.set_weights([weight + rank for weight in model.get_weights()])
        return run(model, x=X, y=Y, batch_size=16, epochs=1, shuffle=False)[0]

    first, second = with_workers(2, body)
    assert all((ours == theirs).all() for ours, theirs in zip(first, second, strict=True))
    alone = run(make_model(optimizer="sgd"), x=X, y=Y, batch_size=16, epochs=1, shuffle=False)[0]
    np.testing.assert_allclose(first[0], alone[0], rtol=1e-4, atol=1e-6)
