"""Several devices in one task: the CPU stands in for four GPUs, which a process must know before JAX starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.slow

TOWERS = """
import json
import numpy as np
from headwater.compat import tf

x, y = np.arange(24, dtype=np.float32).reshape(8, 3) / 10, np.arange(8, dtype=np.float32)

def loss(xs, ys):
    w = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer(0.5))
    return tf.reduce_mean(tf.square(tf.matmul(xs, w)[:, 0] - ys)), w

def trained(towers):
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        grads = []
        for i, (xs, ys) in enumerate(zip(np.split(x, towers), np.split(y, towers))):
            with tf.device("/gpu:%d" % i), tf.variable_scope(tf.get_variable_scope(), reuse=i > 0):
                value, w = loss(tf.constant(xs), tf.constant(ys))
                grads.append(optimizer.compute_gradients(value)[0][0])
        train = optimizer.apply_gradients([(tf.add_n(grads) / towers, w)])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            return session.run(w)[:, 0].tolist()

print(json.dumps([trained(1), trained(4)]))
"""

PINNED = """
import json
from headwater.compat import tf

with tf.Session() as session:
    devices = [device.name for device in session.list_devices()]
with tf.device("/gpu:7"):
    c = tf.constant([1.0]) + 1.0
try:
    tf.Session().run(c)
except tf.errors.InvalidArgumentError as error:
    message = str(error)
value = tf.Session(config=tf.ConfigProto(allow_soft_placement=True)).run(c).tolist()
print(json.dumps([devices, message, value]))
"""


def output(program: str) -> Any:
    env = os.environ | {"HEADWATER_VIRTUAL_GPUS": "4"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_averaged_towers_equal_one_large_batch() -> None:
    one, four = output(TOWERS)
    assert four == pytest.approx(one, rel=1e-6)


def test_device_that_is_not_there() -> None:
    devices, message, value = output(PINNED)
    assert [name.rpartition("device:")[2] for name in devices] == ["CPU:0", "GPU:0", "GPU:1", "GPU:2", "GPU:3"]
    assert "GPU:7" in message
    assert all(name in message for name in devices)
    assert value == [2.0]
