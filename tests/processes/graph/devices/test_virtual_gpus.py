"""Several devices in one task: the CPU simulates four GPUs, which must be configured before JAX starts."""

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
from headwater.tf1.compat import tf

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
from headwater.tf1.compat import tf

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

TOGETHER = """
import json
import numpy as np
from headwater import tf

x = tf.placeholder(tf.float32, [500, 500])
results = []
for i in range(2):
    with tf.device("/gpu:%d" % i):
        y = x
        for _ in range(30):
            y = tf.matmul(y, x)
        results.append(y)
with tf.Session() as session:
    feeds = {x: np.eye(500, dtype=np.float32)}
    session.run(results, feeds)  # compiles
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    values = session.run(results, feeds, options=options, run_metadata=metadata)
spans = {}
for device in metadata.step_stats.dev_stats:
    for node in device.node_stats:
        start = node.all_start_micros
        spans.setdefault(device.device.partition("task:0/")[2], []).append([start, start + node.all_end_rel_micros])
print(json.dumps([[value.trace().tolist() for value in values], spans]))
"""

MOVES = """
import json
import numpy as np
from headwater import tf
from headwater.lazy_jax import jax

x = tf.placeholder(tf.float32, [4, 3])
with tf.device("/gpu:0"):
    w = tf.get_variable("w", initializer=np.ones((3, 1), np.float32))
    loss = tf.reduce_sum(tf.matmul(x, w))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.device("/gpu:1"):
    other = loss * 2.0
calls = []
put = jax.device_put
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    feeds = {x: np.ones((4, 3), np.float32)}
    for fetches in ([train, loss], other):
        session.run(fetches, feeds)
        session.run(fetches, feeds)
        jax.device_put = lambda *args, **more: (calls.append(len(args[0])), put(*args, **more))[1]
        for _ in range(3):
            session.run(fetches, feeds)
        jax.device_put = put
        calls.append("")
print(json.dumps(calls))
"""

COUNTED = """
import json
from headwater import tf
from headwater.graph.session.local_devices import list_local_devices

with tf.Session(config=tf.ConfigProto(device_count={"GPU": 2}, log_device_placement=True)) as session:
    session.run(tf.constant(1.0, name="one") + 1.0)
    shown = [device.name[-5:] for device in session.list_devices()]
local = [[device.name, device.device_type, device.physical_device_desc] for device in list_local_devices()]
print(json.dumps([shown, local, tf.test.gpu_device_name(), tf.test.is_gpu_available(),
                  tf.test.is_gpu_available(cuda_only=True)]))
"""


def output(program: str) -> Any:
    env = os.environ | {"HEADWATER_VIRTUAL_GPUS": "4"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_devices_of_a_task_run_at_the_same_time() -> None:
    values, spans = output(TOGETHER)
    assert values == [500.0, 500.0]
    for part in ("", "/executables"):
        first, second = (sorted(spans[f"device:GPU:{index}{part}"]) for index in range(2))
        # Each began before the other had ended.
        assert first[0][0] < second[-1][1]
        assert second[0][0] < first[-1][1]


def test_tensors_stay_on_a_gpu_and_feeds_are_sent_with_the_call() -> None:
    assert output(MOVES) == ["", 1, 1, 1, ""]  # from one GPU to the other, not back


def test_devices_that_a_session_shows() -> None:
    shown, local, first, available, cuda = output(COUNTED)
    assert shown == ["CPU:0", "GPU:0", "GPU:1"]
    assert [name for name, _, _ in local] == ["/device:CPU:0", *(f"/device:GPU:{index}" for index in range(4))]
    assert local[0][2] == ""
    assert local[4] == ["/device:GPU:3", "GPU", "device: 3, name: a stand-in made of the CPU"]
    assert (first, available, cuda) == ("/device:GPU:0", True, False)


def test_averaged_towers_equal_one_large_batch() -> None:
    one, four = output(TOWERS)
    assert four == pytest.approx(one, rel=1e-6)


def test_device_that_is_not_there() -> None:
    devices, message, value = output(PINNED)
    assert [name.rpartition("device:")[2] for name in devices] == ["CPU:0", "GPU:0", "GPU:1", "GPU:2", "GPU:3"]
    assert "GPU:7" in message
    assert all(name in message for name in devices)
    assert value == [2.0]
