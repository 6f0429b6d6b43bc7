"""A worker that fits a line, as consistently as it is told, and says the loss now and then.

With ``--pause_at N`` it stands still, for ever, before its step N: alive, and of no use.
"""

from __future__ import annotations

import signal

import numpy as np
from task import args, replicas, start_server

from headwater import tf
from headwater.consistency import from_text
from headwater.training.consistency import ConsistentOptimizer

server = start_server()
with replicas():
    global_step = tf.train.get_or_create_global_step()
    weights = tf.get_variable("weights", [8, 1], initializer=tf.zeros_initializer())
    x = tf.placeholder(tf.float32, [None, 8])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - tf.reduce_sum(x, 1, keepdims=True)))
    optimizer = ConsistentOptimizer(tf.train.GradientDescentOptimizer(0.001), from_text(args.consistency))
    train_op = optimizer.minimize(loss, global_step=global_step)

chief = args.task_index == 0
hook = optimizer.make_session_run_hook(chief)
random = np.random.RandomState(args.task_index)
with tf.train.MonitoredTrainingSession(server.target, is_chief=chief, hooks=[hook]) as session:
    own_steps = 0
    while True:
        if own_steps == args.pause_at:
            print("standing still", flush=True)
            signal.pause()
        found, step, _ = session.run([loss, global_step, train_op], {x: random.randn(32, 8)})
        own_steps += 1
        if own_steps % args.steps == 0:
            print("step", step, "loss", found, flush=True)
