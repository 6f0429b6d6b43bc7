"""Models of TensorFlow 1.15's ``tf.keras``: arguments, losses, metrics, states. All values are TensorFlow 1.15's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater import tf
from headwater.keras.learning_phase import chosen_phase, restore_learning_phase

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
K, layers = tf.keras.backend, tf.keras.layers
X = np.arange(16).reshape(8, 2).astype(np.float32) / 10
Y = X.sum(1, keepdims=True)


def fitted(model: Any, y: Any = None, loss: Any = None, **arguments: Any) -> dict[str, list[float]]:
    model.compile("sgd", loss, metrics=arguments.pop("metrics", None))
    settings = {"epochs": 2, "batch_size": 8, "shuffle": False, "verbose": 0, **arguments}
    return model.fit(X, y, **settings).history


def test_weights_and_shapes_of_batches() -> None:
    weights = [np.array([[1.0], [2.0]]), np.array([3.0])]
    model = tf.keras.Sequential([layers.Dense(1, input_shape=(2,), weights=weights)])
    np.testing.assert_allclose(model.predict(X[:2], verbose=0).ravel(), [3.2, 3.8], rtol=1e-6)
    assert tf.keras.Sequential([layers.Dense(1, input_shape=(2,), batch_size=4)]).input_shape == (4, 2)
    shaped = tf.keras.Sequential([layers.Conv1D(2, 2, batch_input_shape=(None, 5, 1))])
    assert shaped.output_shape == (None, 4, 2)
    table = np.arange(6).reshape(3, 2)
    words = tf.keras.Sequential([layers.Embedding(3, 2, weights=[table], input_length=2, trainable=False)])
    np.testing.assert_array_equal(K.get_value(words.weights[0]), table)
    assert words.output_shape == (None, 2, 2)


def test_bad_arguments_of_layers() -> None:
    with pytest.raises(ValueError, match="weight list of length 1"):
        tf.keras.Sequential([layers.Dense(1, input_shape=(2,), weights=[np.ones((3, 1))])])
    with pytest.raises(ValueError, match="wrong"):
        layers.Dense(1, wrong=1)
    with pytest.raises(NotImplementedError, match="dynamic"):
        layers.Dense(1, dynamic=True)


def test_symbolic_losses() -> None:
    given = layers.Input((2,))
    code = layers.Dense(2, kernel_initializer="ones")(given)
    decoded = layers.Dense(2, kernel_initializer="ones")(code)
    model = tf.keras.Model(given, decoded)
    error = K.sum(K.square(given - decoded), axis=-1)
    model.add_loss(K.mean(error - 0.5 * K.sum(1 - K.square(code), axis=-1)))
    found = fitted(model, batch_size=4)
    np.testing.assert_allclose(found["loss"], [13.5929166, 2.9980697], rtol=1e-5)
    assert model.evaluate(X, verbose=0) == pytest.approx(1.0476687, rel=1e-5)
    assert model.predict(X, verbose=0).shape == (8, 2)


def test_a_symbolic_loss_trains_layers_beside_the_model() -> None:
    given = layers.Input((2,))
    model = tf.keras.Model(given, layers.Dense(1, kernel_initializer="ones")(given))
    model.add_loss(K.mean(K.square(layers.Dense(1, kernel_initializer="ones", use_bias=False)(given))))
    found = fitted(model, Y, "mse")
    np.testing.assert_allclose(found["loss"], [3.09, 2.9015522], rtol=1e-5)
    assert len(model.weights) == 3


def test_losses_of_weights_by_a_function() -> None:
    dense = layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Sequential([layers.InputLayer((2,)), dense])
    model.add_loss(lambda: K.sum(K.square(dense.kernel)))
    np.testing.assert_allclose(fitted(model, Y, "mse")["loss"], [2.0, 1.9220361], rtol=1e-5)


def test_metrics_of_models_and_layers() -> None:
    given = layers.Input((2,))
    model = tf.keras.Model(given, layers.Dense(1, kernel_initializer="ones")(given))
    model.add_metric(K.sum(model.output), name="total", aggregation="mean")
    found = fitted(model, Y, "mse", batch_size=4, metrics=["mae"], validation_data=(X, Y))
    np.testing.assert_allclose((found["total"], found["val_total"]), [[6, 6], [6, 6]], rtol=1e-5)
    assert model.metrics_names == ["loss", "mean_absolute_error", "total"]

    class Summed(layers.Layer):
        def call(self, inputs: Any) -> Any:
            self.add_metric(K.sum(inputs), name="s", aggregation="mean")
            return inputs * 2

    model = tf.keras.Sequential([layers.Dense(1, kernel_initializer="ones", input_shape=(2,)), Summed()])
    found = fitted(model, Y, "mse", batch_size=4)
    np.testing.assert_allclose(found["s"], [5.88024, 4.771004], rtol=1e-5)
    np.testing.assert_allclose(found["loss"], [2.8162787, 1.2376651], rtol=1e-5)
    for arguments in ({"name": "a", "aggregation": "sum"}, {"aggregation": "mean"}):
        with pytest.raises(ValueError, match="metric"):
            model.add_metric(1.0, **arguments)


def test_names_and_order_of_metrics() -> None:
    given = layers.Input((2,))
    model = tf.keras.Model(given, [layers.Dense(1, name="a")(given), layers.Dense(2, name="b")(given)])
    stopping = tf.keras.callbacks.EarlyStopping("val_b_acc", patience=0, baseline=2.0)
    found = fitted(
        model,
        [Y, X],
        ["mse", "mae"],
        metrics={"a": "mae", "b": ["mse", "accuracy"]},
        validation_data=(X, [Y, X]),
        callbacks=[stopping],
        epochs=4,
    )
    names = ["loss", "a_loss", "b_loss", "a_mean_absolute_error", "b_mean_squared_error", "b_acc"]
    assert model.metrics_names == names
    assert len(found["b_acc"]) == len(found["val_a_mean_absolute_error"]) == 2  # stopped
    assert "b_acc" in found
    assert found.get("c_acc") is None
    values = dict(zip(names, model.evaluate(X, [Y, X], verbose=0), strict=True))
    for name, value in values.items():
        assert value == pytest.approx(found[f"val_{name}"][-1], rel=1e-5)


@pytest.mark.parametrize(
    ("make", "predicted", "evaluated", "losses"),
    [
        (
            layers.LSTM,
            [[0.3576, 1.403, 1.9846, 1.9994], [1.8352, 2, 2, 2]],
            [0.9244, 0.9251],
            [0.6313, 0.3315, 0.0832],
        ),
        (
            layers.GRU,
            [[0.4244, 0.8856, 1.005, 0.9992], [1.2894, 1.3219, 1.3667, 1.3219]],
            [0.1064, 0.26],
            [0.0874, 0.1173, 0.1413],
        ),
        (
            layers.SimpleRNN,
            [[1.2802, 1.9712, 1.9917, 1.9963], [1.9552, 1.9811, 1.9917, 1.9963]],
            [0.9628, 0.9628],
            [0.5894, 0.2344, 0.0573],
        ),
    ],
)
def test_states_of_layers_last_between_batches(
    make: Callable[..., Any], predicted: list[list[float]], evaluated: list[float], losses: list[float]
) -> None:
    rows, ones = np.arange(24).reshape(4, 3, 2).astype(np.float32) / 30, np.ones((4, 1), np.float32)
    settings = {"stateful": True, "kernel_initializer": "ones", "recurrent_initializer": "ones"}
    cell = make(2, batch_input_shape=(2, 3, 2), **settings)
    model = tf.keras.Sequential([cell, layers.Dense(1, kernel_initializer="ones")])
    model.compile(tf.keras.optimizers.SGD(0.05), "mse")
    for expected in (*predicted, None, predicted[0]):
        if expected is None:
            model.reset_states()
        else:
            found = model.predict(rows, batch_size=2, verbose=0).ravel()
            np.testing.assert_allclose(found, expected, atol=1e-4)
    found = [model.evaluate(rows, ones, batch_size=2, verbose=0) for _ in range(2)]
    np.testing.assert_allclose(found, evaluated, atol=1e-4)
    model.reset_states()
    found = model.fit(rows, ones, batch_size=2, epochs=3, shuffle=False, verbose=0).history["loss"]
    np.testing.assert_allclose(found, losses, atol=1e-4)
    cell.reset_states([np.ones((2, 2))] * len(cell.states))
    np.testing.assert_array_equal([K.get_value(state) for state in cell.states], np.ones((len(cell.states), 2, 2)))


def test_random_numbers_of_the_backend_differ_between_steps() -> None:
    noise = layers.Lambda(lambda t: K.random_normal(K.shape(t)) + 0 * t)
    model = tf.keras.Sequential([layers.Dense(2, input_shape=(2,)), noise])
    model.compile("sgd", "mse")
    assert len({float(model.train_on_batch(X, X)) for _ in range(3)}) == 3


def test_learning_rates_by_their_old_name() -> None:
    optimizer = tf.keras.optimizers.SGD(0.25)
    assert K.get_value(optimizer.lr) == 0.25
    K.set_value(optimizer.lr, 0.5)
    assert K.get_value(optimizer.learning_rate) == 0.5
    optimizer.lr = 0.75
    assert K.get_value(optimizer.lr) == 0.75


def test_a_step_assigns_a_state_that_keras_does_not_know() -> None:
    counter = keras.Variable(0.0, name="rnn_state")  # the name of states of recurrent layers

    class Counted(keras.Layer):
        def call(self, inputs: Any) -> Any:
            return inputs * counter.assign_add(1.0)

    model = keras.Sequential([keras.Input((2,)), Counted(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=2, epochs=3, verbose=0)
    assert float(counter.value) == 12
    model.evaluate(X, Y, batch_size=4, verbose=0)
    model.predict(X, batch_size=4, verbose=0)
    assert float(counter.value) == 16


def _noise(values: Any) -> bool:
    """Returns whether dropout was active."""
    return bool(np.mean(np.asarray(values) == 0) > 0.1)


def _dropping(**phase: bool) -> Any:
    given = tf.keras.Input((200,))
    return tf.keras.Model(given, layers.Dropout(0.5)(given, **phase))


ONES = np.ones((2, 200), np.float32)


@pytest.mark.parametrize("phase", [{}, {"training": False}, {"training": True}], ids=str)
def test_models_keep_the_phase_of_symbolic_calls(phase: dict[str, bool], tmp_path: Path) -> None:
    always, never = phase.get("training") is True, phase.get("training") is False
    model = _dropping(**phase)
    assert _noise(model.predict(ONES, verbose=0)) is always
    model.compile("sgd", "mse")
    assert (round(model.train_on_batch(ONES, 0 * ONES), 1) != 1) is not never
    assert (round(model.test_on_batch(ONES, 0 * ONES), 1) != 1) is always
    model.save(tmp_path / "model.h5")
    loaded = tf.keras.models.load_model(tmp_path / "model.h5")
    assert _noise(loaded.predict(ONES, verbose=0)) is always
    assert (round(loaded.train_on_batch(ONES, 0 * ONES), 1) != 1) is not never
    given = tf.keras.Input((200,))
    outer = tf.keras.Model(given, _dropping()(given, **phase))
    assert _noise(outer.predict(ONES, verbose=0)) is always
    function = K.function([model.input, K.learning_phase()], [model.output])
    assert [_noise(function([ONES, number])[0]) for number in (0, 1)] == [always, not never]


@pytest.mark.parametrize(("number", "before"), [(0, True), (1, True), (0, False)])
def test_a_phase_set_before_a_model_is_made_is_a_part_of_it(number: int, before: bool) -> None:
    chosen = chosen_phase()
    model = _dropping()
    try:
        K.set_learning_phase(number)
        model = _dropping() if before else model
        always = number == 1
        assert _noise(model.predict(ONES, verbose=0)) is always
        model.compile("sgd", "mse")
        assert (round(model.train_on_batch(ONES, 0 * ONES), 1) != 1) is always
        assert (round(model.test_on_batch(ONES, 0 * ONES), 1) != 1) is always
    finally:
        restore_learning_phase(chosen)


@pytest.mark.parametrize("phase", [{}, {"training": False}, {"training": True}], ids=str)
def test_graphs_keep_the_phase_of_symbolic_calls(phase: dict[str, bool]) -> None:
    always, never = phase.get("training") is True, phase.get("training") is False
    with tf.Graph().as_default(), tf.Session() as session:
        model = _dropping(**phase)
        outputs = [model(tf.constant(ONES)), model.output]
        for number, expected in ((0, always), (1, not never)):
            feeds = {K.learning_phase(): number, model.input: ONES}
            assert [_noise(session.run(output, feeds)) for output in outputs] == [expected] * 2


def test_fine_tuning_with_frozen_statistics() -> None:
    given = tf.keras.Input((2,))
    normalized = layers.BatchNormalization()
    model = tf.keras.Model(given, layers.Dense(1)(tf.keras.Sequential([normalized])(given, training=False)))
    fitted(model, Y, "mse")
    assert not np.any(K.get_value(normalized.moving_mean))


@pytest.mark.parametrize("name", ["mse", "MAE", "mape", "msle", "kld"])
def test_models_with_short_names_of_losses_are_loaded_from_hdf5(name: str, tmp_path: Path) -> None:
    model = tf.keras.Sequential([layers.Dense(1, input_shape=(2,), activation="sigmoid")])
    fitted(model, Y, name, metrics=[name])
    model.save(tmp_path / "model.h5")
    loaded = tf.keras.models.load_model(tmp_path / "model.h5")
    np.testing.assert_allclose(loaded.evaluate(X, Y, verbose=0), model.evaluate(X, Y, verbose=0), rtol=1e-6)
