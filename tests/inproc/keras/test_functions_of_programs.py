"""Losses, activations and other functions of TensorFlow 1 programs in `fit`, and arguments of TensorFlow 1.15."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater import tf

ROWS = np.ones((4, 3), np.float32)
K, layers = tf.keras.backend, tf.keras.layers


def trained(loss: Any = "mse", callbacks: Any = (), epochs: int = 1, **arguments: Any) -> Any:
    """Losses of a model whose outputs are 3 at first."""
    dense = {"kernel_initializer": "ones", **arguments}
    model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(2, **dense)])
    model.compile("sgd", loss)
    return model.fit(ROWS, ROWS[:, :2], verbose=0, epochs=epochs, callbacks=list(callbacks)).history["loss"]


class Weakened(tf.keras.callbacks.Callback):
    """Sets the weight of a loss to 0 after the first epoch."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = weight

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        K.set_value(self.weight, 0.0)


def test_a_loss_reads_the_current_value_of_a_variable() -> None:
    weight = K.variable(1.0)
    losses = trained(lambda y, p: K.mean(weight * K.square(y - p), axis=-1), [Weakened(weight)], epochs=3)
    assert losses == [4.0, 0.0, 0.0]


def test_a_compiled_step_reads_the_current_value_of_a_variable_of_keras() -> None:
    weight = keras.Variable(1.0)
    losses = trained(lambda y, p: keras.ops.mean(weight * (y - p) ** 2, axis=-1), [Weakened(weight)], epochs=3)
    assert losses == [4.0, 0.0, 0.0]


def test_tensors_of_the_program_in_a_loss() -> None:
    weights, scale = tf.constant([1.0, 2.0]), tf.Variable(2.0)
    assert trained(lambda y, p: tf.reduce_mean(tf.square(y - p) * weights * scale, axis=-1)) == [12.0]
    free = tf.placeholder(tf.float32, [None])
    with pytest.raises(ValueError, match="needs its shape"):
        trained(lambda y, p: tf.reduce_mean(tf.square(y - p), axis=-1) * free)


@pytest.mark.parametrize(
    ("arguments", "loss"),
    [
        ({"kernel_initializer": lambda shape, dtype=None: tf.ones(shape)}, 4.0),
        ({"kernel_initializer": lambda shape, dtype=None: K.random_uniform(shape, 1.0, 1.0 + 1e-6)}, 4.0),
        ({"kernel_regularizer": lambda kernel: tf.reduce_sum(tf.square(kernel))}, 10.0),
        ({"kernel_constraint": lambda kernel: tf.clip_by_value(kernel, 0.0, 1.0)}, 4.0),
        ({"activation": tf.nn.relu6}, 4.0),
        ({"activation": lambda x: tf.nn.relu(x) * 2}, 25.0),
        ({"activity_regularizer": lambda x: tf.reduce_sum(x)}, 10.0),
    ],
)
def test_functions_of_tf_in_layers(arguments: dict[str, Any], loss: float) -> None:
    assert trained(**arguments) == pytest.approx([loss], abs=1e-4)


def test_functions_of_tf_in_a_lambda_layer_and_in_metrics() -> None:
    model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Lambda(lambda x: tf.reduce_sum(tf.square(x), axis=1))])
    model.compile("sgd", "mse", metrics=[lambda y, p: tf.reduce_max(p)])
    assert model.evaluate(ROWS, ROWS[:, :1], verbose=0) == [4.0, 3.0]


class Total(tf.keras.metrics.Metric):
    """The sum of all outputs."""

    def __init__(self) -> None:
        super().__init__(name="total")
        self.total: Any = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.total.assign_add(keras.ops.sum(y_pred))

    def result(self) -> Any:
        return {"total": self.total + 0.0}


def test_a_metric_of_a_program_keeps_its_state_between_batches() -> None:
    model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(2, kernel_initializer="ones")])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse", metrics=[Total()])
    assert model.fit(ROWS, ROWS[:, :2], batch_size=1, verbose=0).history["total"] == [24.0]


def test_variables_of_sessions_in_a_trained_layer_are_refused() -> None:
    class Scaled(tf.keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.scale = tf.Variable(2.0)

        def call(self, inputs: Any) -> Any:
            return inputs * self.scale

    model = tf.keras.Sequential([tf.keras.Input((3,)), Scaled(), layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(RuntimeError, match="create it with add_weight"):
        model.fit(ROWS, ROWS[:, :1], verbose=0)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [(layers.LSTM, 0.9694), (layers.GRU, 0.4503), (layers.CuDNNLSTM, 0.8997)],
)
def test_recurrent_layers_have_the_defaults_of_tensorflow_1(layer: Callable[..., Any], expected: float) -> None:
    made = layer(2, kernel_initializer="ones", recurrent_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((3, 1)), made])
    assert model.predict(np.ones((1, 3, 1)), verbose=0)[0, 0] == pytest.approx(expected, abs=1e-4)


@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")
def test_saved_models_keep_the_old_activation(tmp_path: Path) -> None:
    model = tf.keras.Sequential([tf.keras.Input((3, 1)), layers.LSTM(2), layers.Dense(1, activation="hard_sigmoid")])
    steps = np.ones((1, 3, 1), np.float32)
    for name in ("model.keras", "model.h5"):
        model.save(tmp_path / name)
        loaded = tf.keras.models.load_model(str(tmp_path / name))
        assert np.array_equal(loaded.predict(steps, verbose=0), model.predict(steps, verbose=0))


def test_arguments_of_tensorflow_1() -> None:
    optimizer = tf.keras.optimizers.SGD(lr=0.5, decay=1.0, momentum=0.9)
    assert float(optimizer.learning_rate) == 0.5
    assert optimizer.decay == 1.0
    assert tf.keras.regularizers.l1(l=0.5)(np.array([2.0, -2.0])) == 2.0
    assert tf.keras.regularizers.l1_l2()(np.array([10.0])) == pytest.approx(1.1)
    assert layers.AveragePooling2D()(np.ones((1, 4, 4, 1))).shape == (1, 2, 2, 1)
    assert layers.BatchNormalization(fused=True).momentum == 0.99
    assert tf.keras.utils.to_categorical(y=[1], num_classes=2, dtype="int32").tolist() == [[0, 1]]
    assert tf.keras.initializers.RandomNormal(0.0, 0.1, dtype=tf.float32).stddev == 0.1
    with pytest.raises(NotImplementedError, match="virtual_batch_size=2"):
        layers.BatchNormalization(virtual_batch_size=2)


def test_losses_with_another_sign_in_keras_3() -> None:
    same = np.array([[1.0, 0.0], [0.0, 2.0]], np.float32)
    assert float(tf.keras.losses.CosineSimilarity()(same, same)) == pytest.approx(1.0)
    assert float(tf.keras.losses.MeanSquaredError(reduction="auto")(same, same * 0)) == 1.25
    for function in (tf.keras.losses.get("cosine_proximity"), tf.keras.losses.cosine_similarity):
        assert np.allclose(function(same, same), 1.0)


def test_training_by_generators() -> None:
    def batches() -> Iterator[tuple[Any, Any]]:
        while True:
            yield ROWS, ROWS[:, :1]

    model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(1, activation="sigmoid")])
    model.compile(tf.keras.optimizers.Adam(lr=0.1), "mse")
    history = model.fit_generator(batches(), steps_per_epoch=3, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0]
    assert model.evaluate_generator(batches(), steps=2) < history["loss"][0]
    assert model.predict_generator(batches(), steps=2).shape == (8, 1)
    assert model.predict_classes(ROWS).tolist() == [[1]] * 4
    assert model.predict_proba(ROWS).shape == (4, 1)


@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")
def test_adapted_classes_stand_for_the_classes_of_keras(tmp_path: Path) -> None:
    keras = tf.keras
    assert issubclass(keras.losses.Huber, keras.losses.Loss)
    assert issubclass(layers.LSTM, layers.RNN)
    assert not issubclass(layers.LSTM, layers.GRU)
    model = keras.Sequential([keras.Input((3, 1)), layers.LSTM(2)])
    model.save(tmp_path / "model.keras")
    assert isinstance(keras.models.load_model(tmp_path / "model.keras").layers[0], layers.LSTM)

    class Own(layers.LSTM):
        pass

    assert isinstance(Own(2), layers.LSTM)
    assert not isinstance(layers.LSTM(2), Own)


def test_initial_values_by_names_of_functions() -> None:
    given = tf.keras.initializers
    evaluate = tf.keras.backend.eval
    assert np.array_equal(evaluate(given.constant(2.0)((2, 2))), np.full((2, 2), 2.0))
    assert np.array_equal(evaluate(given.identity()((2, 2))), np.eye(2))
    rotation = evaluate(given.orthogonal(seed=1)((3, 3)))
    assert np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-5)
    for initializer, least, greatest in (
        (given.random_uniform(1.0, 1.5), 1.0, 1.5),
        (given.truncated_normal(0.0, 0.1), -0.2, 0.2),
        (given.random_normal(5.0, 0.01), 4.9, 5.1),
    ):
        values = evaluate(initializer((50,)))
        assert len(set(values.tolist())) > 1
        assert least <= values.min() <= values.max() <= greatest
    tf.keras.backend.clear_session()
    assert not tf.get_default_graph().get_operations()
