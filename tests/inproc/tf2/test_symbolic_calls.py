"""Functions of ``tf`` in functional Keras models: on symbolic tensors, and in layers that use unknown sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater.tf2.namespace import tf

X = np.array([[1.0, -2.0, 3.0, 0.5], [0.0, 4.0, -1.0, 2.0]], np.float32)
IDS = np.array([[1, 0, 2], [3, 4, 0]], np.int32)


def outputs(call: Callable[[Any, Any], Any]) -> tuple[list[Any], list[Any]]:
    """Returns the shapes and the values of a function of two inputs of a model."""
    inputs = [keras.Input((4,)), keras.Input((3,), dtype="int32")]
    found = call(*inputs)
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    values = keras.Model(inputs, found)([X, IDS])
    values = values if isinstance(values, list) else [values]
    return [tuple(one.shape) for one in found], [np.asarray(value) for value in values]


# The shapes are those of TensorFlow 2.21 with Keras 2.
@pytest.mark.parametrize(
    ("call", "shapes"),
    [
        (lambda x, ids: tf.reduce_mean(x, axis=1, keepdims=True), [(None, 1)]),
        (lambda x, ids: tf.reduce_max(x, 1), [(None,)]),
        (lambda x, ids: tf.concat(values=[x, tf.square(x)], axis=-1), [(None, 8)]),
        (lambda x, ids: tf.cast(ids, tf.float32, name="cast"), [(None, 3)]),
        (lambda x, ids: tf.split(x, 2, axis=1), [(None, 2), (None, 2)]),
        (lambda x, ids: tf.math.top_k(x, 2), [(None, 2), (None, 2)]),
        (lambda x, ids: tf.nn.embedding_lookup(tf.constant(np.eye(5, dtype=np.float32)), ids), [(None, 3, 5)]),
        (lambda x, ids: tf.where(x > 0, x, tf.zeros_like(x)), [(None, 4)]),
        (lambda x, ids: tf.nn.softmax(x * tf.constant([1.0, 2.0, 3.0, 4.0])), [(None, 4)]),
        (lambda x, ids: tf.convert_to_tensor(x), [(None, 4)]),
        (lambda x, ids: tf.tensordot(x, tf.ones([4, 2]), axes=1), [(None, 2)]),
        # Results that depend on sizes:
        (lambda x, ids: tf.shape(x)[0], [()]),
        (lambda x, ids: tf.reshape(x, [tf.shape(x)[0], 4, 1]), [(None, 4, 1)]),
        (lambda x, ids: tf.zeros([tf.shape(x)[0], 2]), [(None, 2)]),
        (lambda x, ids: tf.fill(tf.shape(x), 1.0), [(None, 4)]),
        (lambda x, ids: tf.broadcast_to(tf.ones([4]), tf.shape(x)), [(None, 4)]),
    ],
)
def test_a_function_of_symbolic_tensors_is_an_operation_of_the_model(
    call: Callable[[Any, Any], Any], shapes: list[tuple[int | None, ...]]
) -> None:
    found, values = outputs(call)
    assert found == shapes
    direct = call(tf.constant(X), tf.constant(IDS))
    direct = direct if isinstance(direct, (list, tuple)) else [direct]
    for value, expected in zip(values, direct, strict=True):
        np.testing.assert_allclose(value, np.asarray(expected), rtol=1e-6)


class ReshapeBySize(keras.layers.Layer):
    """Uses an unknown size as a number."""

    def call(self, x: Any) -> Any:
        batch = tf.shape(x)[0]
        noise = tf.zeros((batch, tf.shape(x)[1]))
        return tf.reshape(x + noise, [batch, -1, 2])


def test_a_layer_uses_unknown_sizes_as_numbers() -> None:
    inputs = keras.Input((4,))
    model = keras.Model(inputs, ReshapeBySize()(inputs))
    assert model.output_shape == (None, 2, 2)
    np.testing.assert_array_equal(model.predict(X, verbose=0), X.reshape(2, 2, 2))
    model.compile("sgd", "mse")
    model.fit(X, X.reshape(2, 2, 2), verbose=0)


def test_an_error_of_a_layer_is_raised_as_it_is() -> None:
    class Wrong(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return tf.matmul(x, x)

    with pytest.raises(TypeError, match="contracting dimensions to have the same shape"):
        Wrong()(keras.Input((4,)))


def test_a_saved_model_contains_the_functions(tmp_path: Path) -> None:
    inputs = keras.Input((4,))
    model = keras.Model(inputs, tf.math.reduce_sum(tf.cast(inputs, tf.float64), axis=1))
    model.save(tmp_path / "model.keras")
    loaded: Any = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(X, verbose=0), X.sum(1))


class Noise(keras.layers.Layer):
    """Returns random numbers of a function of ``tf``, and of Keras without a seed."""

    def call(self, x: Any) -> Any:
        return tf.concat([tf.random.normal(tf.shape(x)), keras.random.normal(tuple(x.shape))], 1)


def test_each_compiled_step_draws_other_random_numbers() -> None:
    inputs = keras.Input((1,))
    model = keras.Model(inputs, Noise()(inputs))
    weights = len(model.weights)
    drawn = np.concatenate([model.predict(np.ones((4, 1)), batch_size=1, verbose=0) for _ in range(2)])
    assert len(np.unique(drawn)) == 16
    model.compile(keras.optimizers.SGD(0.0), lambda true, found: tf.reduce_mean(found))
    losses = [model.train_on_batch(np.ones((2, 1)), np.ones((2, 2))) for _ in range(3)]
    assert len({float(loss) for loss in losses}) == 3
    assert len(model.weights) == weights


def test_sizes_that_are_joined_stay_known_in_a_layer() -> None:
    class Causal(keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            batch, length = tf.shape(inputs)[0], tf.shape(inputs)[1]
            earlier = tf.range(length)[:, None] >= tf.range(length)
            mask = tf.reshape(tf.cast(earlier, tf.float32), (1, length, length))
            return tf.tile(mask, tf.concat([tf.expand_dims(batch, -1), tf.constant([1, 1])], 0))

    inputs = keras.Input((None, 4))
    outputs = Causal()(inputs)
    assert tuple(outputs.shape) == (None, None, None)
    found = keras.Model(inputs, outputs).predict(np.ones((2, 3, 4)), verbose=0)
    assert found.tolist() == [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]] * 2


def test_positions_of_booleans() -> None:
    assert tf.argmax(tf.constant([False, True])).numpy() == 1
    assert tf.math.argmin(tf.constant([[True, False], [False, True]]), axis=1).numpy().tolist() == [1, 0]
