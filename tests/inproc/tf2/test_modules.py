"""`tf.Module`, iterators of NumPy values and image functions of TensorFlow 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.tf2.namespace import tf


class Affine(tf.Module):
    def __init__(self, name: str | None = None) -> None:
        super().__init__(name=name)
        self.factor = tf.Variable(2.0)
        self.offset = tf.Variable(1.0, trainable=False)

    def __call__(self, x: Any) -> Any:
        return self.factor * x + self.offset


class Outer(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = [Affine(), Affine("second")]
        self.dense = tf.keras.layers.Dense(2)


def test_a_module_has_the_variables_of_its_modules_and_layers() -> None:
    module = Outer()
    assert len(module.variables) == 4
    module.dense(tf.ones([1, 3]))
    assert len(module.variables) == 6
    assert len(module.trainable_variables) == 4
    assert len(module.non_trainable_variables) == 2
    assert [part.name for part in module.submodules][:2] == ["affine", "second"]


def test_checkpoints_hold_the_variables_of_modules(tmp_path: Path) -> None:
    module, other = Affine(), Affine()
    module.factor.assign(7.0)
    path = tf.train.Checkpoint(model=module).write(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(model=other).restore(path)
    assert other(tf.constant(2.0)).numpy() == 15.0


def test_an_iterator_of_numpy_values_has_next() -> None:
    iterator = tf.data.Dataset.range(2).as_numpy_iterator()
    assert [iterator.next(), next(iterator)] == [0, 1]
    assert tf.data.Dataset.range(2).cardinality().numpy() == 2
    with pytest.raises(StopIteration):
        iterator.next()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("brightness", (0.5,)),
        ("contrast", (0.2, 0.9)),
        ("saturation", (0.2, 0.9)),
        ("hue", (0.3,)),
        ("crop", ([2, 3, 3],)),
        ("flip_left_right", ()),
        ("flip_up_down", ()),
    ],
)
def test_stateless_image_functions_depend_on_the_seed_only(name: str, args: Any) -> None:
    image = tf.constant(np.random.RandomState(0).rand(8, 8, 3), tf.float32)
    function = getattr(tf.image, f"stateless_random_{name}")
    results = [np.asarray(function(image, *args, seed=(seed, 2))) for seed in range(8)]
    np.testing.assert_array_equal(function(image, *args, seed=(3, 2)), results[3])
    assert len({result.tobytes() for result in results}) >= 2
    assert {result.shape for result in results} == {(2, 3, 3) if name == "crop" else (8, 8, 3)}


def test_a_generator_draws_other_numbers_in_each_call_of_a_function() -> None:
    generator = tf.random.Generator.from_seed(3)
    step = tf.function(lambda: generator.normal([2]))
    first, second = np.asarray(step()), np.asarray(step())
    assert (first != second).all()
    generator.reset_from_seed(3)
    np.testing.assert_array_equal(step(), first)
    assert generator.make_seeds(4).shape == (2, 4)
    whole = np.asarray(generator.uniform([50], 2, 5, dtype=tf.int32))
    assert set(whole.tolist()) == {2, 3, 4}
    parts = [np.asarray(part.truncated_normal([3])) for part in generator.split(2)]
    assert (parts[0] != parts[1]).all()
    drawn = [float(x) for x in tf.data.Dataset.range(3).map(lambda _: generator.normal([]))]
    assert len(set(drawn)) == 3


def test_a_concrete_function_has_the_signature() -> None:
    square = tf.function(lambda x: x**2).get_concrete_function(tf.TensorSpec([], tf.float32))
    assert square(tf.constant(3.0)).numpy() == 9.0
    with pytest.raises(ValueError, match="does not fit"):
        square(tf.constant([3.0]))


def test_functions_of_datasets_call_python() -> None:
    numbers = tf.data.Dataset.range(3)
    twice = numbers.map(lambda x: tf.py_function(lambda v: v.numpy() * 2, [x], tf.int64))
    assert [int(x) for x in twice] == [0, 2, 4]
    both = numbers.map(lambda x: tf.numpy_function(lambda v: [v + 1, v * 2], [x], [tf.int64, tf.int64]))
    assert [[int(v) for v in pair] for pair in both] == [[1, 0], [2, 2], [3, 4]]


def test_a_function_applies_gradients_of_a_scaled_loss() -> None:
    variable = tf.Variable(2.0)
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(
        tf.keras.optimizers.SGD(0.1), initial_scale=8.0, dynamic_growth_steps=2
    )

    @tf.function
    def step(factor: Any) -> None:
        with tf.GradientTape() as tape:
            scaled = optimizer.scale_loss(variable * factor)
        optimizer.apply_gradients([(tape.gradient(scaled, variable), variable)])

    optimizer.build([variable])
    found = []
    for factor in (1.0, 1.0, np.inf, 1.0):
        step(tf.constant(factor))
        found.append((round(float(variable.numpy()), 4), float(optimizer.dynamic_scale)))
    assert found == [(1.9, 8.0), (1.8, 16.0), (1.8, 8.0), (1.7, 8.0)]


def test_a_metric_may_return_its_variable() -> None:
    class Count(tf.keras.metrics.Metric):
        def __init__(self) -> None:
            super().__init__(name="count")
            self.total = self.add_weight(name="total", initializer="zeros")

        def update_state(self, y: Any, predicted: Any, sample_weight: Any = None) -> None:
            self.total.assign_add(tf.reduce_sum(tf.ones_like(predicted)))

        def result(self) -> Any:
            return self.total

    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Count()])
    assert model.fit(np.ones((6, 2)), np.ones((6, 1)), batch_size=2, epochs=2, verbose=0).history["count"] == [6, 6]
