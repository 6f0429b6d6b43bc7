"""`tf.train.Checkpoint` of TensorFlow 2: objects, containers, and objects that are built after the restore."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater.tf1.training.checkpoint_reader import CheckpointReader
from headwater.tf2.namespace import tf


class Blocks(keras.Model):
    """A model with layers in a list, in a dict and as an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [keras.layers.Dense(3), keras.layers.Dropout(0.5)]
        self.table = {"out": keras.layers.Dense(1)}
        self.lstm = keras.layers.LSTM(2)

    def call(self, x: Any, training: bool = False) -> Any:
        x = self.blocks[1](self.blocks[0](x), training=training)
        return self.table["out"](self.lstm(x[:, None, :]))


class Weights(tf.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.first = tf.Variable(value)
        self._second = tf.Variable([value, value])


def _sequential() -> Any:
    dense = [keras.layers.Dense(4, activation="relu"), keras.layers.BatchNormalization(), keras.layers.Dense(2)]
    return keras.Sequential([keras.Input((3,)), *dense])


def _fill(model: Any, value: float) -> None:
    for variable in model.weights:
        if "seed" not in variable.name:
            variable.assign(np.full(variable.shape, value))


def _values(model: Any) -> list[set[float]]:
    return [set(np.asarray(variable).ravel().tolist()) for variable in model.weights if "seed" not in variable.name]


def _saved(folder: Path) -> str:
    model, blocks = _sequential(), Blocks()
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    blocks(np.ones((2, 3)))
    _fill(model, 7.0)
    _fill(blocks, 7.0)
    variables = [tf.Variable(1.0), {"a": tf.Variable(2.0)}]
    checkpoint = tf.train.Checkpoint(
        model=model, blocks=blocks, optimizer=model.optimizer, parts=variables, module=Weights(3.0)
    )
    return checkpoint.save(str(folder / "c"))


def test_values_have_the_names_of_tensorflow(tmp_path: Path) -> None:
    names = {key.partition("/.ATTRIBUTES")[0] for key in CheckpointReader(_saved(tmp_path)).get_variable_to_shape_map()}
    optimizer = {f"optimizer/_variables/{number}" for number in range(2, 14)}
    shared = {f"optimizer/_trainable_variables/{number}" for number in range(6)}
    lstm = {f"blocks/lstm/cell/{name}" for name in ("kernel", "recurrent_kernel", "bias")}
    layers = {f"blocks/{at}/{name}" for at in ("blocks/0", "table/out") for name in ("_kernel", "bias")}
    assert {name for name in names if "seed" not in name} == {
        *("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter", "parts/0", "parts/1/a", "module/first", "module/_second"),
        *("optimizer/_iterations", "optimizer/_learning_rate", *optimizer, *shared, *lstm, *layers),
        *(f"model/_functional/_operations/2/moving_{name}" for name in ("mean", "variance")),
    }


def test_built_objects_are_restored(tmp_path: Path) -> None:
    path = _saved(tmp_path)
    model, blocks, optimizer = _sequential(), Blocks(), keras.optimizers.Adam(0.01)
    blocks(np.ones((2, 3)))
    optimizer.build(model.trainable_variables)
    parts: Any = [tf.Variable(0.0), {"a": tf.Variable(0.0)}]
    module = Weights(0.0)
    checkpoint = tf.train.Checkpoint(model=model, blocks=blocks, optimizer=optimizer, parts=parts, module=module)
    checkpoint.restore(path).assert_consumed().assert_nontrivial_match()
    assert _values(model) == [{7.0}] * 8
    assert _values(blocks) == [{7.0}] * 7
    assert (int(optimizer.iterations), int(checkpoint.save_counter.numpy())) == (1, 1)
    assert [float(parts[0].numpy()), float(parts[1]["a"].numpy())] == [1.0, 2.0]
    assert module.first.numpy() == 3.0


def test_objects_that_are_built_later_get_their_values(tmp_path: Path) -> None:
    path = _saved(tmp_path)
    model, blocks, optimizer = keras.Sequential(_sequential().layers[:0]), Blocks(), keras.optimizers.Adam(0.01)
    for layer in (keras.layers.Dense(4, activation="relu"), keras.layers.BatchNormalization(), keras.layers.Dense(2)):
        model.add(layer)
    status = tf.train.Checkpoint(model=model, blocks=blocks, optimizer=optimizer).restore(path)
    with pytest.raises(AssertionError, match=r"values without a variable: .*blocks/lstm/cell/kernel"):
        status.assert_consumed()
    model(np.ones((2, 3)))
    blocks(np.ones((2, 3)))
    optimizer.build(model.trainable_variables)
    assert _values(model) == [{7.0}] * 8
    assert _values(blocks) == [{7.0}] * 7
    assert int(optimizer.iterations) == 1


def test_the_root_is_an_object_with_attributes(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(Weights(4.0), step=tf.Variable(9)).write(str(tmp_path / "c"))
    module, step = Weights(0.0), tf.Variable(0)
    tf.train.Checkpoint(module, step=step).restore(path).assert_consumed()
    assert (module.first.numpy(), step.numpy()) == (4.0, 9)
    with pytest.raises(ValueError, match="root has another object as its attribute 'first'"):
        tf.train.Checkpoint(module, first=step)


def test_variables_without_a_value_and_other_shapes_are_reported(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(v=tf.Variable(1.0)).write(str(tmp_path / "c"))
    status = tf.train.Checkpoint(v=tf.Variable(0.0), other=tf.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match="variables without a value: other"):
        status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match="no value of the checkpoint belongs to a variable"):
        tf.train.Checkpoint(w=tf.Variable(0.0)).restore(path).assert_nontrivial_match()
    with pytest.raises(ValueError, match=r"v/.ATTRIBUTES/VARIABLE_VALUE in .* has shape \(\), but the variable \(2,\)"):
        tf.train.Checkpoint(v=tf.Variable([0.0, 0.0])).restore(path)


def test_a_checkpoint_without_objects_is_refused(tmp_path: Path) -> None:
    from headwater import tf as tf1

    with tf1.Graph().as_default(), tf1.Session() as session:
        tf1.get_variable("v", [], initializer=tf1.zeros_initializer())
        session.run(tf1.global_variables_initializer())
        path = tf1.train.Saver().save(session, str(tmp_path / "c"))
    with pytest.raises(ValueError, match="has no graph of objects"):
        tf.train.Checkpoint(v=tf.Variable(0.0)).restore(path)
