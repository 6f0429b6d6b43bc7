"""A worker that trains on two ps: the global step is on the first, the trained variables and a count are on the second.

Until a file ``stop`` exists in its folder, it prints the results of each step: ``step S count C loss L``.
"""

from __future__ import annotations

import os

import numpy as np
from task import args, replicas, start_server

from headwater import tf

server = start_server()
with replicas():
    global_step = tf.train.get_or_create_global_step()
with tf.device("/job:ps/task:1"):
    weights = tf.get_variable("weights", [8], initializer=tf.zeros_initializer())
    count = tf.get_variable("count", [], tf.int64, initializer=tf.zeros_initializer())
loss = tf.reduce_mean(tf.square(weights - np.arange(8, dtype=np.float32)))
train = tf.train.AdamOptimizer(0.01).minimize(loss)
with tf.control_dependencies([train]):
    counted = [tf.assign_add(global_step, 1), tf.assign_add(count, 1), loss]
with tf.train.MonitoredTrainingSession(
    server.target, is_chief=args.task_index == 0, checkpoint_dir=args.folder, save_checkpoint_secs=3600
) as session:
    while not os.path.exists(os.path.join(args.folder, "stop")):
        print("step {} count {} loss {:.6f}".format(*session.run(counted)), flush=True)
