"""Trains on two ps: partitioned variables, an exact global step, a sharded checkpoint, tensors sent from ps to ps."""

from __future__ import annotations

import numpy as np
from task import args, meeting, replicas, start_server

from headwater import tf

server = start_server()
with replicas():
    global_step = tf.train.get_or_create_global_step()
    weights = tf.get_variable(
        "weights", [6, 2], initializer=tf.zeros_initializer(), partitioner=tf.fixed_size_partitioner(2)
    )
    bias = tf.get_variable("bias", [2], initializer=tf.zeros_initializer())
    whole = tf.reduce_sum(weights)
    x = tf.placeholder(tf.float32, [None, 6])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) + bias - 1.0))
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=global_step)
    announce, wait_for_all = meeting()
    saver = tf.train.Saver(sharded=True)
# Neither of these two tasks is the master of a step.
with tf.device("/job:ps/task:0"):
    here = tf.range(100_000, dtype=tf.float32) + tf.cast(args.task_index, tf.float32)
with tf.device("/job:ps/task:1"):
    there = tf.reduce_max(here * 2.0)
with tf.device("/job:ps/task:0"):
    back = there + 1.0

supervisor = tf.train.Supervisor(
    is_chief=args.task_index == 0, global_step=global_step, saver=saver, summary_op=None, recovery_wait_secs=1
)
with supervisor.managed_session(server.target) as session:
    examples = np.random.RandomState(args.task_index).randn(args.steps, 1, 6).astype(np.float32)
    for example in examples:
        session.run(train_op, {x: example})
    for _ in range(20):
        assert session.run(back) == 2 * (99_999.0 + args.task_index) + 1
    session.run(announce)
    session.run(wait_for_all)
    print("devices", sorted({part.device for part in weights}))
    print("step", session.run(global_step), "sum", session.run(whole))
    if args.task_index == 0:
        print("saved", saver.save(session, args.folder + "/model", global_step=global_step))
