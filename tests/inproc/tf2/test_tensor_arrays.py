"""`tf.TensorArray` and functions on the host of TensorFlow 2. The expected results are those of TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.tf2.namespace import tf


def filled(**settings: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, **settings)
    for at in range(3):
        array = array.write(at, [at * 1.0, at * 2.0])
    return array


def test_elements_are_stacked_gathered_and_concatenated() -> None:
    array = filled()
    assert array.stack().numpy().tolist() == [[0, 0], [1, 2], [2, 4]]
    assert array.gather([2, 0]).numpy().tolist() == [[2, 4], [0, 0]]
    assert array.concat().numpy().tolist() == [0, 0, 1, 2, 2, 4]
    assert array.size().numpy() == 3
    assert array.element_shape.as_list() == [2]
    assert tf.TensorArray(tf.int32, 2).unstack([5, 6]).stack().numpy().tolist() == [5, 6]
    assert tf.TensorArray(tf.int32, 3).scatter([2, 0, 1], [5, 6, 7]).stack().numpy().tolist() == [6, 7, 5]
    split = tf.TensorArray(tf.float32, 2, infer_shape=False).split([1.0, 2.0, 3.0], [1, 2])
    assert [split.read(at).numpy().tolist() for at in range(2)] == [[1], [2, 3]]
    assert tf.TensorArray(tf.float32, 2, element_shape=[2]).stack().numpy().tolist() == [[0, 0], [0, 0]]


def test_an_array_changes_in_eager_execution() -> None:
    array = tf.TensorArray(tf.int32, 2)
    array.write(0, 3)
    array.write(1, 4)
    assert array.stack().numpy().tolist() == [3, 4]


def test_errors_name_the_index() -> None:
    array = filled()
    assert array.read(1).numpy().tolist() == [1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not read index 1 twice"):
        array.read(1)
    with pytest.raises(tf.errors.OutOfRangeError, match="Tried to read from index 9 but array size is: 3"):
        array.read(9)
    with pytest.raises(tf.errors.OutOfRangeError, match="Tried to write to index 2 but array is not resizeable"):
        tf.TensorArray(tf.float32, 2).write(2, 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Op is trying to write dtype int32"):
        array.write(0, tf.constant(1))
    with pytest.raises(ValueError, match="Incompatible shape for value"):
        array.write(0, [1.0])


def test_gradients_pass_through_an_array_in_a_function() -> None:
    variable = tf.Variable(2.0)

    @tf.function
    def step(count: Any) -> Any:
        with tf.GradientTape() as tape:
            powers = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for at in tf.range(4):
                powers = powers.write(at, variable**2 * tf.cast(at, tf.float32))
            loss = tf.reduce_sum(powers.stack()) * count
        return tape.gradient(loss, variable)

    assert step(tf.constant(3.0)).numpy() == 72.0
    assert step.variables_used() is not None  # compiled


def test_a_function_with_a_loop_of_unknown_length_runs_as_python() -> None:
    def shift(value: Any) -> Any:
        return np.float32(value + 1.0)

    @tf.function
    def loop(count: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=count)
        value = tf.constant(0.0)
        for at in tf.range(count):
            value = tf.numpy_function(shift, [value], tf.float32)
            array = array.write(at, value)
            if value > 2.5:
                break
        return array.stack()

    array = tf.TensorArray(tf.float32, 1, element_shape=[])
    assert array.read(0).numpy() == 0.0
    assert loop(tf.constant(3)).numpy().tolist() == [1, 2, 3]
    assert loop(tf.constant(1)).numpy().tolist() == [1]


def test_functions_on_the_host_get_tensors_or_arrays() -> None:
    kinds: list[type] = []

    def both(value: Any, text: Any) -> Any:
        kinds.append(type(text))
        return value * 2, np.array([b"a", text if isinstance(text, bytes) else text.numpy()], object)

    for function in (tf.numpy_function, tf.py_function):
        doubled, texts = function(both, [tf.constant([1, 2]), "b"], [tf.int32, tf.string])
        assert doubled.numpy().tolist() == [2, 4]
        assert texts.numpy().tolist() == [b"a", b"b"]
    assert kinds[0] is bytes

    @tf.numpy_function(Tout=tf.float32)
    def root(value: Any) -> Any:
        return np.sqrt(value)

    assert root(tf.constant(9.0)).numpy() == 3.0


def test_graphs_of_functions_have_arrays_too() -> None:
    def twice(row: Any) -> Any:
        array = tf.TensorArray(tf.float32, 2).write(0, row).write(1, row * 2.0)
        return array.stack()

    assert tf.map_fn(twice, tf.constant([1.0, 2.0])).numpy().tolist() == [[1, 2], [2, 4]]
