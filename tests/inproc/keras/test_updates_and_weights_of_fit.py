"""Updates of variables in `fit`, and arguments of `compile`, in TensorFlow 1.15's ``tf.keras``. All values are
TensorFlow 1.15's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater import tf

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")
K, layers = tf.keras.backend, tf.keras.layers
X = (np.arange(12).reshape(6, 2) / 10).astype(np.float32)
Y = X.sum(1, keepdims=True)
LOSSES = [0.41226, 0.36311]
STEPS = X[..., None]
WEIGHTS = np.arange(12).reshape(6, 2) / 5


def dense(name: str | None = None) -> Any:
    return layers.Dense(1, kernel_initializer=tf.keras.initializers.Constant(1.5), name=name)


def fit(model: Any, x: Any = X, y: Any = Y, **arguments: Any) -> Any:
    return model.fit(x, y, batch_size=3, epochs=2, shuffle=False, verbose=0, **arguments).history


class Counter(layers.Layer):
    def __init__(self, update: Callable[[Any], Any]) -> None:
        super().__init__()
        self.update = update

    def build(self, shape: Any) -> None:
        self.count = self.add_weight("count", (), initializer="zeros", trainable=False)
        super().build(shape)

    def call(self, inputs: Any) -> Any:
        self.add_update(self.update(self.count), inputs=inputs)
        return inputs


@pytest.mark.parametrize(
    "update",
    [
        lambda count: tf.assign_add(count, 1.0),
        lambda count: tf.assign(count, count + 1.0),
        lambda count: tf.assign_sub(count, -1.0),
        lambda count: K.update_add(count, 1.0),
        lambda count: [K.update(count, count + 1.0)],
        lambda count: lambda: count.assign_add(1.0),
    ],
)
def test_updates_of_layers_happen_in_training_only(update: Callable[[Any], Any]) -> None:
    counter = Counter(update)
    inputs = tf.keras.Input((2,))
    model = tf.keras.Model(inputs, dense()(counter(inputs)))
    model.compile("sgd", "mse")
    np.testing.assert_allclose(fit(model)["loss"], LOSSES, rtol=2e-5)
    assert K.get_value(counter.count) == 4
    model.evaluate(X, Y, verbose=0)
    model.predict(X, verbose=0)
    assert K.get_value(counter.count) == 4


def test_updates_that_are_refused() -> None:
    inputs = tf.keras.Input((2,))
    model = tf.keras.Model(inputs, dense()(inputs))
    graph_update = pytest.raises(NotImplementedError, match="fit does not run operations of the program's graph")
    with tf.Graph().as_default(), graph_update:
        model.add_update(K.update_add(tf.Variable(0.0), 1.0))
    averaging = Counter(lambda count: K.moving_average_update(count, 1.0, 0.9))
    with pytest.raises(NotImplementedError, match=r"moving_average_update of '.*count'"):
        averaging(inputs)


def with_layer(variable: Any) -> Any:
    class Assigning(layers.Layer):
        def call(self, inputs: Any) -> Any:
            with tf.control_dependencies([tf.assign_add(variable, 1.0)]):
                return tf.identity(inputs)

    return [Assigning()], "mse", None


def with_function(variable: Any) -> Any:
    return [layers.Lambda(lambda x: x + 0 * variable.assign_add(1.0))], "mse", None


def with_loss(variable: Any) -> Any:
    def loss(y_true: Any, y_pred: Any) -> Any:
        with tf.control_dependencies([tf.group(tf.assign_add(variable, 1.0))]):
            return tf.reduce_mean(tf.square(y_true - y_pred), -1)

    return [], loss, None


def with_metric(variable: Any) -> Any:
    def metric(y_true: Any, y_pred: Any) -> Any:
        return K.update_add(variable, 1.0)

    return [], "mse", [metric]


@pytest.mark.parametrize("make", [with_layer, with_function, with_loss, with_metric])
def test_assignments_to_variables_of_the_program(make: Callable[[Any], Any]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        K.set_session(session)
        try:
            variable = tf.Variable(1.0)
            session.run(variable.initializer)
            before, loss, metrics = make(variable)
            model = tf.keras.Sequential([*before, dense()])
            model.build((None, 2))
            model.compile("sgd", loss, metrics=metrics)
            history = fit(model)
            np.testing.assert_allclose(history["loss"], LOSSES, rtol=2e-5)
            assert session.run(variable) == 5
            if metrics:
                np.testing.assert_allclose(history["metric"], [2.5, 4.5])
        finally:
            K.clear_session()


def test_weights_of_time_steps() -> None:
    inputs = tf.keras.Input((2, 1))
    model = tf.keras.Model(inputs, layers.TimeDistributed(dense())(inputs))
    model.compile("sgd", "mse", sample_weight_mode="temporal", metrics=["mse"], weighted_metrics=["mae"])
    history = fit(model, STEPS, STEPS * 2, sample_weight=WEIGHTS)
    np.testing.assert_allclose(history["loss"], [0.17961, 0.15618], rtol=5e-5)
    np.testing.assert_allclose(history["mean_squared_error"], [0.10436, 0.08986], rtol=5e-5)
    np.testing.assert_allclose(history["weighted_mean_absolute_error"], [0.3814, 0.35378], rtol=5e-5)
    with pytest.raises(ValueError, match=r"shape \(6,\)\. In order to use timestep-wise sample weighting"):
        model.evaluate(STEPS, STEPS, sample_weight=np.ones(6), verbose=0)
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match='specify sample_weight_mode="temporal" in compile'):
        model.train_on_batch(STEPS, STEPS, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="Unknown sample_weight_mode 'spatial'"):
        model.compile("sgd", "mse", sample_weight_mode="spatial")


def test_weights_of_outputs() -> None:
    inputs = tf.keras.Input((2, 1))
    steps = layers.TimeDistributed(dense(), name="a")(inputs)
    model = tf.keras.Model(inputs, [steps, dense("b")(layers.Flatten()(inputs))])
    model.compile("sgd", "mse", sample_weight_mode={"a": "temporal", "b": None})
    weights = {"a": WEIGHTS, "b": np.arange(6.0)}
    history = fit(model, STEPS, [STEPS * 2, Y], sample_weight=weights)
    np.testing.assert_allclose(history["loss"], [1.822229, 1.152317], rtol=2e-5)
    model.compile("sgd", "mse", sample_weight_mode={"a": "temporal"})
    with pytest.raises(ValueError, match="Output b"):
        fit(model, STEPS, [STEPS * 2, Y], sample_weight=weights)


def test_tensors_of_targets() -> None:
    inputs = tf.keras.Input((2,))
    model = tf.keras.Model(inputs, dense()(inputs))
    with tf.Graph().as_default():
        model.compile("sgd", "mse", target_tensors=tf.placeholder(tf.float32, (None, 1)))
        with pytest.raises(NotImplementedError, match="pass targets to fit, for example a dataset"):
            model.compile("sgd", "mse", target_tensors=[tf.constant(Y)])
    np.testing.assert_allclose(fit(model)["loss"], LOSSES, rtol=2e-5)
