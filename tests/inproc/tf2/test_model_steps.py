"""Models with their own ``train_step(self, data)``, trained by ``fit``.

The expected numbers are those of TensorFlow 2.21 with Keras 3.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from headwater.tf2.namespace import tf

_random = np.random.RandomState(0)
X = _random.randn(64, 4).astype("float32")
Y = (X @ _random.randn(4, 2)).astype("float32")
LOSSES = [4.4314, 2.6532]
ERRORS = [1.6988, 1.3134]
CRITIC = [0.59646, 0.79515]
COST = [-0.48095, -0.58329]


def constant(value: float) -> keras.initializers.Initializer:
    return keras.initializers.Constant(value)


def dense() -> keras.layers.Layer:
    return keras.layers.Dense(2, kernel_initializer=constant(0.1), kernel_regularizer="l2")


class Own(keras.Model):
    """Computes and applies gradients, and updates its metrics."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = dense()

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            predicted = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=predicted)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, predicted)
        return {metric.name: metric.result() for metric in self.metrics}


class AsInKeras2(Own):
    @tf.function
    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            predicted = self(x, training=True)
            loss = self.compiled_loss(y, predicted, regularization_losses=self.losses)
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        self.compiled_metrics.update_state(y, predicted)
        return {metric.name: metric.result() for metric in self.metrics}


class Inherited(Own):
    def train_step(self, data: Any) -> Any:
        return keras.Model.train_step(self, data)

    def test_step(self, data: Any) -> Any:
        x, y = data
        return {"error": tf.reduce_mean(tf.abs(self(x) - y)), **super().test_step(data)}

    def predict_step(self, data: Any) -> Any:
        return super().predict_step(data) + 1.0


def fitted(model: Any, **settings: Any) -> dict[str, list[float]]:
    model.compile(keras.optimizers.SGD(0.05), "mse", metrics=["mae"], **settings)
    return model.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0).history


@pytest.mark.parametrize("kind", [Own, AsInKeras2, Inherited])
@pytest.mark.parametrize("settings", [{}, {"run_eagerly": True}], ids=["compiled", "eager"])
def test_fit_runs_a_step_of_the_program(kind: Any, settings: dict[str, Any]) -> None:
    history = fitted(kind(), **settings)
    assert history["loss"] == pytest.approx(LOSSES, abs=1e-4)
    assert history["mae"] == pytest.approx(ERRORS, abs=1e-4)


def test_a_functional_model_may_have_its_own_step() -> None:
    class Functional(keras.Model):
        train_step = Own.train_step

    inputs = keras.Input((4,))
    assert fitted(Functional(inputs, dense()(inputs)))["loss"] == pytest.approx(LOSSES, abs=1e-4)


def test_evaluation_and_prediction_run_steps_of_the_program() -> None:
    model = Inherited()
    fitted(model)
    found = model.evaluate(X, Y, verbose=0, batch_size=64, return_dict=True)
    assert found["error"] == pytest.approx(1.1171, abs=1e-4)
    assert found["mae"] == pytest.approx(1.1171, abs=1e-4)
    np.testing.assert_allclose(model.predict(X[:2], verbose=0), [[-0.4490, 0.0524], [0.6922, -0.4023]], atol=1e-4)


class Adversaries(keras.Model):
    """A generator, and a critic with a penalty of gradients: two optimizers, and no ``call``."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = keras.Sequential(
            [
                keras.layers.Dense(5, activation="tanh", kernel_initializer=constant(0.2)),
                keras.layers.Dense(1, kernel_initializer=constant(0.3)),
            ]
        )
        self.generator = keras.layers.Dense(4, kernel_initializer=constant(0.1))
        self.steps = tf.Variable(0, trainable=False)

    def compile(self, of_critic: Any, of_generator: Any) -> None:
        super().compile()
        self.of_critic, self.of_generator = of_critic, of_generator
        self.critic_loss = keras.metrics.Mean(name="critic")

    @property
    def metrics(self) -> list[Any]:
        return [self.critic_loss]

    def train_step(self, real: Any) -> Any:
        noise = tf.random.normal([tf.shape(real)[0], 3]) * 0.0 + 1.0
        with tf.GradientTape() as tape:
            made = self.generator(noise)
            with tf.GradientTape() as inner:
                inner.watch(made)
                judged = self.critic(made)
            slopes = tf.sqrt(tf.reduce_sum(tf.square(inner.gradient(judged, made)), axis=1))
            loss = tf.reduce_mean(judged) - tf.reduce_mean(self.critic(real)) + tf.reduce_mean((slopes - 1.0) ** 2)
        variables = self.critic.trainable_variables
        self.of_critic.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        with tf.GradientTape() as tape:
            cost = -tf.reduce_mean(self.critic(self.generator(noise)))
        variables = self.generator.trainable_variables
        self.of_generator.apply_gradients(zip(tape.gradient(cost, variables), variables, strict=True))
        self.critic_loss.update_state(loss)
        self.steps.assign_add(1)
        return {"critic": self.critic_loss.result(), "cost": cost}


def adversaries() -> Any:
    model = Adversaries()
    model.compile(keras.optimizers.SGD(0.05), keras.optimizers.Adam(0.01))
    return model


def test_a_step_may_use_several_optimizers_without_a_call() -> None:
    model = adversaries()
    history = model.fit(X, batch_size=16, epochs=2, shuffle=False, verbose=0).history
    assert history["critic"] == pytest.approx(CRITIC, abs=1e-4)
    assert history["cost"] == pytest.approx(COST, abs=1e-4)
    assert int(model.steps.numpy()) == int(model.of_generator.iterations) == 8


def test_random_numbers_differ_between_steps() -> None:
    class Draws(keras.Model):
        def train_step(self, data: Any) -> Any:
            return {"own": tf.random.uniform([]), "of_keras": tf.keras.backend.random_uniform(())}

    model = Draws()
    model.compile("sgd")
    history = model.fit(X, batch_size=64, epochs=3, verbose=0).history
    assert len(set(history["own"])) == len(set(history["of_keras"])) == 3


def test_a_strategy_in_one_process_runs_a_step_with_several_optimizers() -> None:
    with tf.distribute.MirroredStrategy().scope():
        model = adversaries()
    history = model.fit(X, batch_size=16, epochs=2, shuffle=False, verbose=0).history
    assert history["critic"] == pytest.approx(CRITIC, abs=1e-4)
