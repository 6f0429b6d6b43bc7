"""TensorFlow 1.15 and Headwater read each other's checkpoints of objects; TensorFlow runs the same program in its own
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


def _theirs(python: Path, *arguments: Any) -> Any:
    text = f"import json, sys\nimport tensorflow as tf\n{PROGRAM}\nprint(json.dumps(run(tf, *json.loads(sys.argv[1]))))"
    answer = subprocess.run(
        [python, "-W", "ignore", "-c", text, json.dumps(arguments)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    return json.loads(answer.stdout.splitlines()[-1])


def test_object_checkpoints_are_exchanged_in_both_directions(tf1_python: Path, tmp_path: Path) -> None:
    _, whole = _ours(str(tmp_path), 4)
    first, _ = _theirs(tf1_python, str(tmp_path), 1)
    second, _ = _ours(str(tmp_path), 2, first)
    _, end = _theirs(tf1_python, str(tmp_path), 1, second)
    np.testing.assert_allclose(whole[0], end[0], rtol=1e-5)
    np.testing.assert_allclose(whole[1], end[1], rtol=1e-5)
