"""TensorFlow and Headwater read each other's checkpoints of objects; TensorFlow runs the same program in its own
process.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.tf2.namespace import tf as tf2

pytestmark = [pytest.mark.peer, pytest.mark.slow]

PROGRAM = """
def run(tf, folder, steps, path=None):
    v = tf.get_variable("anything", [2], initializer=tf.zeros_initializer())
    dense = tf.layers.Dense(2, kernel_initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(dense(tf.constant([[1.0, 2.0]])) - 1.0)) + tf.reduce_sum(tf.square(v - 1.0))
    optimizer = tf.train.AdamOptimizer(0.1)
    train = optimizer.minimize(loss)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, layer=dense)
    checkpoint.more = [v]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        if path is not None:
            checkpoint.restore(path).assert_consumed().run_restore_ops()
        for _ in range(steps):
            session.run(train)
        return checkpoint.save(folder + "/c"), [value.tolist() for value in session.run([v, dense.kernel])]
"""


def _ours(*arguments: Any) -> Any:
    names: dict[str, Any] = {}
    exec(PROGRAM, names)
    with tf.Graph().as_default():
        return names["run"](tf, *arguments)


def _theirs(python: Path, *arguments: Any, program: str = PROGRAM) -> Any:
    text = f"import json, sys\nimport tensorflow as tf\n{program}\nprint(json.dumps(run(tf, *json.loads(sys.argv[1]))))"
    answer = subprocess.run(
        [python, "-W", "ignore", "-c", text, json.dumps(arguments)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow"},
    )
    return json.loads(answer.stdout.splitlines()[-1])


def test_object_checkpoints_are_exchanged_in_both_directions(tf1_python: Path, tmp_path: Path) -> None:
    _, whole = _ours(str(tmp_path), 4)
    first, _ = _theirs(tf1_python, str(tmp_path), 1)
    second, _ = _ours(str(tmp_path), 2, first)
    _, end = _theirs(tf1_python, str(tmp_path), 1, second)
    np.testing.assert_allclose(whole[0], end[0], rtol=1e-5)
    np.testing.assert_allclose(whole[1], end[1], rtol=1e-5)


PROGRAM_OF_KERAS = """
def run(tf, folder, steps, path=None):
    import keras
    import numpy as np

    inputs = keras.Input((2,))
    hidden = keras.layers.BatchNormalization()(keras.layers.Dense(3, use_bias=False, kernel_initializer="ones")(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(hidden))
    optimizer = keras.optimizers.Adam(0.1)
    step = tf.Variable(0, dtype="int64")
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    optimizer.build(model.trainable_variables)
    if path is not None:
        checkpoint.restore(path).assert_consumed()
    model.compile(optimizer, "mse")
    for _ in range(steps):
        model.train_on_batch(np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[1.0], [2.0]]))
        step.assign_add(1)
    values = [np.asarray(variable).ravel().tolist() for variable in model.weights]
    return checkpoint.save(folder + "/c"), [sum(values, []), int(step.numpy()), int(optimizer.iterations)]
"""


@pytest.mark.long
def test_checkpoints_of_models_are_exchanged_in_both_directions(tf2_python: Path, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(PROGRAM_OF_KERAS, names)
    _, whole = names["run"](tf2, str(tmp_path), 4)
    first, _ = _theirs(tf2_python, str(tmp_path), 1, program=PROGRAM_OF_KERAS)
    second, _ = names["run"](tf2, str(tmp_path), 2, first)
    _, end = _theirs(tf2_python, str(tmp_path), 1, second, program=PROGRAM_OF_KERAS)
    np.testing.assert_allclose(whole[0], end[0], rtol=1e-4)
    assert whole[1:] == end[1:] == [4, 4]
