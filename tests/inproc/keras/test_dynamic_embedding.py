"""Keras models with dynamic embeddings, and with tables stored by rows: their results and refusals."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.data.io.event_file import summary_iterator
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.keras import ParameterServerStrategy

import keras  # isort: skip - the package before it chooses the backend

from headwater.keras.layers import DynamicEmbedding
from headwater.keras.tensorboard import TensorBoard
from headwater.tables import Initializer, LeastRecent

RNG = np.random.default_rng(0)
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"),
    # JAX warns of the inputs with which Keras traces a model. Ids themselves are not passed to JAX.
    pytest.mark.filterwarnings("ignore:Explicitly requested dtype int64:UserWarning"),
]

#: Far beyond the range of JAX's integers.
FAR = 1 << 40


def closed(strategy: ParameterServerStrategy) -> None:
    for served in strategy._models_to_serve():
        served.close()


def examples(rows: int = 512) -> tuple[dict[str, Any], Any]:
    """Returns users (64-bit ids) and items (strings), and whether a planted score is positive."""
    users, items = RNG.integers(0, 40, rows), RNG.integers(0, 20, rows)
    scores = np.linspace(-2, 2, 40)[users] + np.linspace(1, -1, 20)[items]
    x = {"user": users[:, None] * FAR - 7, "item": np.array([f"item {n}" for n in items])[:, None]}
    return x, (scores > 0).astype(np.float32)[:, None]


def two_towers(optimizer: Any, name: str) -> Any:
    user, item = keras.Input((1,), dtype="int64", name="user"), keras.Input((1,), dtype="string", name="item")
    found = [DynamicEmbedding(4, name="users")(user), DynamicEmbedding(4, strings=True, name="items")(item)]
    hidden = keras.layers.Dense(8, activation="tanh")(keras.layers.Flatten()(keras.layers.Concatenate()(found)))
    model = keras.Model({"user": user, "item": item}, keras.layers.Dense(1, activation="sigmoid")(hidden), name=name)
    model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"])
    return model


def test_validations_continue_a_generator_and_begin_arrays_again() -> None:
    strategy = ParameterServerStrategy()
    x, y = examples()
    with strategy.scope():
        model = two_towers(keras.optimizers.SGD(0.0), "validated")
    parts = [({name: values[at : at + 64] for name, values in x.items()}, y[at : at + 64]) for at in range(0, 512, 64)]
    losses = [model.evaluate(*part, verbose=0)[0] for part in parts]
    settings: dict[str, Any] = {"epochs": 3, "validation_steps": 2, "validation_batch_size": 64, "verbose": 0}
    found = model.fit(x, y, validation_data=(part for part in parts), **settings).history["val_loss"]
    np.testing.assert_allclose(found, np.mean(np.reshape(losses[:6], (3, 2)), 1), rtol=1e-5)
    found = model.fit(x, y, validation_data=(x, y), **settings).history["val_loss"]
    np.testing.assert_allclose(found, [np.mean(losses[:2])] * 3, rtol=1e-5)
    loss, _ = model.evaluate(itertools.cycle(parts), steps=3, verbose=0)
    assert loss == pytest.approx(np.mean(losses[:3]), rel=1e-5)
    assert len(model.predict((part for part, _ in itertools.cycle(parts)), steps=3, verbose=0)) == 3 * 64
    closed(strategy)


def test_a_model_of_64_bit_and_string_ids_learns_is_saved_loaded_and_trained_further(tmp_path: Path) -> None:
    strategy = ParameterServerStrategy()
    x, y = examples()
    with strategy.scope():
        model = two_towers(keras.optimizers.Adam(0.02), "first")
    model.fit(x, y, batch_size=32, epochs=6, verbose=0, validation_data=(x, y))
    loss, accuracy = model.evaluate(x, y, verbose=0, batch_size=100)
    assert accuracy > 0.9
    predicted = model.predict(x, verbose=0, batch_size=100)
    assert np.mean((predicted > 0.5) == y) == pytest.approx(accuracy)
    few = {name: values[:5] for name, values in x.items()}
    np.testing.assert_allclose(np.asarray(model(few)), predicted[:5], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.predict_on_batch(few), predicted[:5], rtol=1e-4, atol=1e-6)

    model.save(tmp_path / "towers.keras")
    loaded = keras.saving.load_model(tmp_path / "towers.keras")
    np.testing.assert_allclose(loaded.predict(x, verbose=0), predicted, rtol=1e-4, atol=1e-6)
    with pytest.raises(FailedPreconditionError, match="'users', a DynamicEmbedding, is trained in the scope of"):
        loaded.fit(x, y, verbose=0)

    with strategy.scope():
        further = keras.saving.load_model(tmp_path / "towers.keras")
    history = further.fit(x, y, batch_size=32, epochs=1, verbose=0)
    assert history.history["loss"][0] < loss + 0.02
    # The rows were restored with their optimizer's state and their use counts.
    users = further.get_layer("users")
    told = users.client.statistics(users.table_name)
    assert sum(one.rows for one in told.values()) == 40
    assert max(one.step for one in told.values()) == 7 * 16
    closed(strategy)


def test_tensorboard_shows_rows_and_the_load_of_each_ps(tmp_path: Path) -> None:
    strategy = ParameterServerStrategy()
    x, y = examples()
    with strategy.scope():
        model = two_towers(keras.optimizers.Adam(0.02), "drawn")
    model.fit(x, y, batch_size=32, epochs=2, verbose=0, callbacks=[TensorBoard(tmp_path, write_graph=False)])
    found: dict[str, list[float]] = {}
    for file in (tmp_path / "train").iterdir():
        for event in summary_iterator(file):
            for value in event.summary.value:
                found.setdefault(value.tag, []).append(value.simple_value)
    assert found["tables/users/rows"] == found["tables/users/made"] == [40, 40]
    assert found["tables/items/rows"] == [20, 20]
    assert found["tables/users/hit_rate"] == [1, 1]
    parts = [name for name in found if name.startswith("tables/users/rows/")]
    assert parts
    assert sum(found[name][-1] for name in parts) == 40
    loads = [found[name.replace("rows", "lookups")] for name in parts]
    assert all(first < last for first, last in loads)
    closed(strategy)


OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.05),
    "nesterov": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adagrad": lambda: keras.optimizers.Adagrad(0.5),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.02, momentum=0.5),
    "centered": lambda: keras.optimizers.RMSprop(0.02, centered=True),
    "adam": lambda: keras.optimizers.Adam(0.05),
    "schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.5)),
    "ftrl": lambda: keras.optimizers.Ftrl(0.5, l1_regularization_strength=0.001),
    "clipped": lambda: keras.optimizers.SGD(1.0, clipnorm=0.05),
    "clipped values": lambda: keras.optimizers.SGD(1.0, clipvalue=0.01),
    "nadam": lambda: keras.optimizers.Nadam(0.05),
    "adamw": lambda: keras.optimizers.AdamW(0.05, weight_decay=0.1),
    "lion": lambda: keras.optimizers.Lion(0.01),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_any_optimizer_of_keras_updates_rows_as_it_updates_a_table(kind: str) -> None:
    rng = np.random.default_rng(1)
    ids = np.stack([rng.permutation(12) for _ in range(8)])  # each batch uses all rows, so no update waits
    targets = rng.normal(size=(8, 12)).astype(np.float32)

    def made(table: Any, name: str) -> Any:
        model = keras.Sequential(
            [keras.Input((12,), dtype="int32"), table, keras.layers.Reshape((36,)), keras.layers.Dense(12)], name=name
        )
        model.layers[-1].set_weights([np.linspace(-1, 1, 36 * 12).reshape(36, 12), np.zeros(12)])
        model.compile(OPTIMIZERS[kind](), "mse")
        return model

    alone = made(keras.layers.Embedding(12, 3, embeddings_initializer=keras.initializers.Constant(0.1)), "alone")
    strategy = ParameterServerStrategy()
    with strategy.scope():
        grown = made(DynamicEmbedding(3, initializer=Initializer(kind="constant", a=0.1)), "grown")
    for model in (alone, grown):
        model.fit(ids, targets, batch_size=2, epochs=3, shuffle=False, verbose=0)
    expected = alone.predict(ids, verbose=0)
    assert np.abs(expected - made(keras.layers.Embedding(12, 3), "new").predict(ids, verbose=0)).max() > 0.01
    # Adam divides by square roots of small numbers, which amplifies rounding errors.
    np.testing.assert_allclose(grown.predict(ids, verbose=0), expected, rtol=2e-4, atol=1e-4)
    closed(strategy)


@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_rows_that_are_pooled_train_as_rows_that_a_model_pools(combiner: str, strings: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    numbers = rng.integers(1, 400, (64, 3, 12))
    numbers[rng.random(numbers.shape) < 0.3] = 0
    numbers[4, 1] = 0  # nothing is left of it
    ids = np.where(numbers > 0, np.char.add("item ", numbers.astype(str)), "") if strings else numbers * FAR
    weights = (numbers > 0).astype(np.float32)
    if combiner != "sum":
        counts = np.maximum(weights.sum(-1, keepdims=True), 1.0)
        weights /= counts if combiner == "mean" else np.sqrt(counts)
    y = rng.normal(size=(64, 1)).astype(np.float32)
    kind = "string" if strings else "int64"

    def made(pools: bool) -> Any:
        given, shares = keras.Input((3, 12), dtype=kind, name="ids"), keras.Input((3, 12), name="shares")
        settings: dict[str, Any] = {"strings": strings, "seed": 2, "initializer": "normal"}
        if pools:
            found = DynamicEmbedding(8, combiner=combiner, padding="" if strings else 0, **settings)
            # Two calls: the rows of the first call precede the rows of the second.
            one, two = found(given[:, :2]), found(given[:, 2])
            hidden = keras.layers.Concatenate(axis=1)([one, keras.layers.Reshape((1, 8))(two)])
        else:
            rows = DynamicEmbedding(8, **settings)(given)
            hidden = keras.ops.sum(rows * keras.ops.expand_dims(shares, -1), axis=2)
        out = keras.layers.Dense(1, kernel_initializer="ones")(keras.layers.Flatten()(hidden))
        model = keras.Model({"ids": given, "shares": shares}, out, name=f"pools_{pools}")
        model.compile(keras.optimizers.Adagrad(0.1), "mse")
        return model

    x = {"ids": ids, "shares": weights}
    answers: list[Any] = []
    received: list[int] = []
    for pools in (True, False):
        strategy = ParameterServerStrategy()
        with strategy.scope():
            model = made(pools)
        model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
        received.append(strategy.traffic(model).received_bytes)
        answers.append(model.predict(x, verbose=0))
        model.save(tmp_path / "pools.keras")
        loaded = keras.saving.load_model(tmp_path / "pools.keras")
        np.testing.assert_allclose(loaded.predict(x, verbose=0), answers[-1], rtol=1e-5, atol=1e-6)
        closed(strategy)
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-4, atol=1e-5)
    assert 3 * received[0] < received[1]


def test_invalid_pooling_arguments_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"combiner": "max"}, "combiner is 'max'"),
        ({"padding": 0}, "requires a combiner"),
        ({"combiner": "sum", "padding": ""}, "padding is '', and ids are integers"),
        ({"wire": "float8"}, "wire is 'float8'"),
    ]
    for settings, why in cases:
        with pytest.raises(ValueError, match=why):
            DynamicEmbedding(4, **settings)


def test_optimizers_that_rows_cannot_have_are_refused() -> None:
    for optimizer, why in (
        (keras.optimizers.Adam(use_ema=True), "use_ema"),
        (keras.optimizers.SGD(gradient_accumulation_steps=2), "gradient_accumulation_steps"),
        (keras.optimizers.Adafactor(), "Adafactor keeps"),
    ):
        strategy = ParameterServerStrategy()
        with strategy.scope():
            model = two_towers(optimizer, "refused")
        with pytest.raises(ValueError, match=why):
            model.fit(*examples(8), verbose=0)


def test_evicted_rows_start_with_initial_values() -> None:
    strategy = ParameterServerStrategy()
    with strategy.scope():
        table = DynamicEmbedding(2, max_rows=64, eviction=LeastRecent(), name="few")
        model = keras.Sequential(
            [keras.Input((1,), dtype="int64"), table, keras.layers.Flatten(), keras.layers.Dense(1)]
        )
        model.compile("sgd", "mse")
    ids = np.arange(640, dtype=np.int64)[:, None] * FAR
    model.fit(ids, np.ones((640, 1)), batch_size=16, shuffle=False, verbose=0)
    assert table.client is not None
    (told,) = table.client.statistics(table.table_name).values()
    assert told.rows <= 64
    assert told.evicted >= 640 - 64
    closed(strategy)


def test_transformed_ids_are_exact_or_refused() -> None:
    def model_of(change: Any, kind: str, strings: bool = False) -> Any:
        ids = keras.Input((4,), dtype=kind)
        rows = DynamicEmbedding(2, strings=strings, initializer="normal", name="rows")(change(ids))
        made = keras.Model(ids, keras.ops.sum(rows, axis=(1, 2)))
        made.compile("sgd", "mse")
        return made

    table = DynamicEmbedding(2, initializer="normal")
    ids = np.arange(8, dtype=np.int64).reshape(2, 4)
    moved = model_of(lambda given: keras.ops.concatenate([given[:, 1:3], given[:, :1]], axis=1), "int64")
    far = ids * FAR
    expected = np.asarray(table(far[:, :3])).sum((1, 2))
    np.testing.assert_allclose(moved.predict(far, verbose=0), expected, rtol=1e-5)
    computed = model_of(lambda given: given + 3, "int64")
    expected = np.asarray(table(ids + 3)).sum((1, 2))
    np.testing.assert_allclose(computed.predict(ids, verbose=0), expected, rtol=1e-5)
    with pytest.raises(InvalidArgumentError, match="computes with it in 32 bits"):
        computed.predict(far, verbose=0)
    with pytest.raises(ValueError, match="holds strings, which only embedding layers take"):
        doubled = keras.layers.Lambda(lambda given: given * 2, output_shape=(4,))
        model_of(doubled, "string", strings=True).predict(ids.astype(str), verbose=0)
    with pytest.raises(InvalidArgumentError, match="strings"):
        model_of(lambda given: given, "int64", strings=True).predict(ids, verbose=0)


def test_a_custom_loss_trains_rows_like_the_same_loss_of_keras() -> None:
    def custom(y: Any, predicted: Any) -> Any:
        return keras.ops.mean(keras.ops.square(y - predicted), axis=-1)

    ids, y = RNG.integers(0, 50, (32, 3)), RNG.random((32, 1))
    losses: list[list[float]] = []
    for loss in ("mse", custom):
        keras.utils.set_random_seed(1)
        strategy = ParameterServerStrategy()
        with strategy.scope():
            given = keras.Input((3,), dtype="int64")
            rows = DynamicEmbedding(4, name="rows")(given)
            model = keras.Model(given, keras.layers.Dense(1)(keras.layers.Flatten()(rows)), name="custom")
            model.compile("sgd", loss)
        losses.append(model.fit(ids, y, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"])
        closed(strategy)
    assert losses[0] == pytest.approx(losses[1])


def with_table(rows: int, tied: bool = False, **settings: Any) -> Any:
    ids = keras.Input((3,), dtype="int64")
    table = keras.layers.Embedding(rows, 8, name="words")
    pooled = keras.ops.mean(table(ids), axis=1)
    if tied:

        class Tied(keras.layers.Layer):
            def call(self, given: Any) -> Any:
                return keras.ops.softmax(keras.ops.matmul(given, keras.ops.transpose(table.embeddings)))

        return keras.Model(ids, Tied()(keras.layers.Dense(8)(pooled)), **settings)
    return keras.Model(ids, keras.layers.Dense(1)(pooled), **settings)


@pytest.mark.parametrize("least", [0, 1 << 30], ids=["rows", "whole"])
@pytest.mark.parametrize("wrong", [-3, 50, 1 << 35])
def test_an_id_outside_a_fixed_table_is_named_in_training_and_prediction(least: int, wrong: int) -> None:
    strategy = ParameterServerStrategy(table_bytes=least)
    with strategy.scope():
        model = with_table(50, name="outside")
        model.compile("sgd", "mse")
    ids, y = RNG.integers(0, 50, (6, 3)), np.zeros((6, 1))
    model.fit(ids, y, batch_size=6, verbose=0)
    before = model.predict(ids, verbose=0)
    ids[4, 1] = wrong
    told = rf"'words': id {wrong} at \(4, 1\) of the batch is outside the table, whose ids are 0 to 49"
    with pytest.raises(InvalidArgumentError, match=told):
        model.fit(ids, y, batch_size=6, shuffle=False, verbose=0)
    for method in (model.predict, model.evaluate):
        with pytest.raises(InvalidArgumentError, match=told):
            method(ids, **({"y": y} if method == model.evaluate else {}), verbose=0)
    ids[4, 1] = 0
    assert np.isfinite(before).all()
    closed(strategy)


def test_a_model_that_reads_a_tables_weights_itself_is_refused_or_has_all_of_it() -> None:
    ids = RNG.integers(0, 50, (64, 3))
    strategy = ParameterServerStrategy(table_bytes=0)
    with strategy.scope():
        model = with_table(50, tied=True, name="tied")
        model.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(ValueError, match="reads the weights of layer 'words' directly"):
        model.fit(ids, ids[:, 0], verbose=0)
    strategy = ParameterServerStrategy()
    with strategy.scope():
        whole = with_table(50, tied=True, name="whole")
        whole.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy")
    losses = whole.fit(ids, ids[:, 0], epochs=8, verbose=0).history["loss"]
    assert losses[-1] < losses[0] - 0.3
    closed(strategy)


@pytest.mark.parametrize("place", ["layer", "loss", "metric"])
def test_weights_of_a_table_that_are_read_through_a_closure_are_refused_with_the_layers_name(place: str) -> None:
    table = keras.layers.Embedding(50, 4, name="words")

    def logits(vectors: Any) -> Any:
        return keras.ops.matmul(vectors, keras.ops.transpose(table.embeddings))

    def penalised(y: Any, predicted: Any) -> Any:
        return keras.losses.mean_squared_error(y, predicted) + keras.ops.sum(keras.ops.square(table.embeddings))

    strategy = ParameterServerStrategy(table_bytes=0)
    with strategy.scope():
        inputs = keras.Input((3,), dtype="int32")
        found = keras.layers.Flatten()(table(inputs))
        if place == "layer":
            found = keras.layers.Lambda(logits, output_shape=(50,))(keras.layers.Dense(4)(found))
        model = keras.Model(inputs, keras.layers.Dense(1)(found))
        told: dict[str, Any] = {"loss": penalised if place == "loss" else "mse"}
        if place == "metric":
            told["metrics"] = [penalised]
        model.compile("sgd", **told)
    ids = RNG.integers(0, 50, (64, 3))
    with pytest.raises(ValueError, match="reads the weights of layer 'words' directly"):
        model.fit(ids, np.zeros((64, 1)), verbose=0)
    closed(strategy)
