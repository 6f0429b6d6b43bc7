"""Trains the network of `mlp.py` for as long as it is told to, with a pause in each step; see `precautions.py`."""

import sys
import threading
import time

import numpy as np
from common import start_server, task_arguments, tf

args = task_arguments(hidden=100)
server, on_worker = start_server(args)
random = np.random.RandomState(args.task_index)
images = random.rand(100, 784).astype("float32")
labels = np.eye(10, dtype="float32")[random.randint(0, 10, 100)]
x = tf.placeholder(tf.float32, [None, 784])
y = tf.placeholder(tf.float32, [None, 10])
with on_worker:
    hidden = tf.layers.dense(x, args.hidden, tf.nn.relu)
    loss = tf.losses.softmax_cross_entropy(y, tf.layers.dense(hidden, 10))
    step = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_or_create_global_step())
with tf.train.MonitoredTrainingSession(server.target, is_chief=args.task_index == 0) as session:
    session.run(step, {x: images, y: labels})
    paused = threading.Event()
    print("ready", flush=True)
    for line in sys.stdin:
        pause_s, until = float(line.split()[0]), time.perf_counter() + float(line.split()[1])
        began, steps = time.perf_counter(), 0
        while time.perf_counter() < until:
            session.run(step, {x: images, y: labels})
            paused.wait(pause_s)
            steps += 1
        print("rate", steps, time.perf_counter() - began, flush=True)
