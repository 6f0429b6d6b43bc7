"""A worker that fits a line with the given consistency, and regularly prints the loss on fixed examples of its own.

The loss decreases with every update, however long training continues.

With ``--pause_at N`` the worker stops for ever before its step N, although its process stays alive; with ``--stuck_at
N`` it stops within that step.
"""

from __future__ import annotations

import signal
import threading

import numpy as np
from task import args, replicas, start_server

from headwater import tf
from headwater.ps.consistency import from_text
from headwater.tf1.training.consistency import ConsistentOptimizer

own_steps = 0


def perhaps_stuck(batch: np.ndarray) -> np.ndarray:
    if own_steps == args.stuck_at:
        print("standing still", flush=True)
        threading.Event().wait()
    return batch


server = start_server()
with replicas():
    global_step = tf.train.get_or_create_global_step()
    weights = tf.get_variable("weights", [8, 1], initializer=tf.ones_initializer())
    x = tf.placeholder(tf.float32, [None, 8])
    fed = x
    if args.stuck_at >= 0:
        with tf.control_dependencies([weights.read_value()]):
            fed = tf.py_func(perhaps_stuck, [x], tf.float32)
        fed.set_shape(x.shape)
    # the solution is 0: updates near it are never too small to be visible
    loss = tf.reduce_mean(tf.square(tf.matmul(fed, weights)))
    held_out = tf.reduce_mean(tf.square(tf.matmul(tf.eye(8), weights)))
    optimizer = ConsistentOptimizer(tf.train.GradientDescentOptimizer(0.00005), from_text(args.consistency))
    train_op = optimizer.minimize(loss, global_step=global_step)

chief = args.task_index == 0
hook = optimizer.make_session_run_hook(chief)
random = np.random.RandomState(args.task_index)
with tf.train.MonitoredTrainingSession(
    server.target, is_chief=chief, hooks=[hook], checkpoint_dir=args.folder or None, save_checkpoint_secs=1
) as session:
    while True:
        if own_steps == args.pause_at:
            print("standing still", flush=True)
            signal.pause()
        found, step, _ = session.run([held_out, global_step, train_op], {x: random.randn(32, 8)})
        own_steps += 1
        if own_steps % args.steps == 0:
            print("step", step, "loss", found, flush=True)
