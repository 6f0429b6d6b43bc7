"""A client that is not a task: shares the variables of the cluster, overwrites them, and restores them."""

from __future__ import annotations

import sys

from headwater import tf

target, folder = sys.argv[1:]
with tf.device("/job:ps/task:0"):
    global_step = tf.train.get_or_create_global_step()
with tf.device("/job:ps/task:1"):
    weights = tf.get_variable("weights", [6, 2], initializer=tf.zeros_initializer())
    whole = tf.reduce_sum(weights)
saver = tf.train.Saver([weights, global_step])
# The workers have ended, and a session would wait a while for them.
with tf.Session(target, config=tf.ConfigProto(device_filters=["/job:ps"])) as session:
    session.run(tf.global_variables_initializer())
    assert session.run(global_step) == 0
    saver.restore(session, tf.train.latest_checkpoint(folder))
    print("step", session.run(global_step), "sum", session.run(whole))
