"""A ps and a worker with variables of each usual optimizer, dense and sparse; each prints whether it has loaded JAX."""

from __future__ import annotations

import sys

import numpy as np
import tensorflow.compat.v1 as tf

flags = tf.app.flags
for flag in ("ps_hosts", "worker_hosts", "job_name"):
    flags.DEFINE_string(flag, "", "")
flags.DEFINE_integer("task_index", 0, "")
OPTIMIZERS = (
    tf.train.GradientDescentOptimizer(0.1),
    tf.train.MomentumOptimizer(0.1, 0.9),
    tf.train.AdagradOptimizer(0.1),
    tf.train.AdamOptimizer(0.1),
    tf.train.RMSPropOptimizer(0.1),
)


def train(cluster: tf.train.ClusterSpec, target: str) -> None:
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        ids, x, y = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int64)
        losses, steps = [], []
        for index, optimizer in enumerate(OPTIMIZERS):
            with tf.variable_scope(f"model{index}"):
                rows = tf.nn.embedding_lookup(tf.get_variable("table", [50, 4]), ids)
                logits = tf.layers.dense(tf.layers.dense(tf.concat([x, rows], 1), 16, tf.nn.relu), 3)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
                losses.append(loss)
                steps.append(optimizer.minimize(loss))
    draw = np.random.RandomState(0)
    feed = {ids: draw.randint(0, 50, 20), x: draw.rand(20, 8).astype("f"), y: draw.randint(0, 3, 20)}
    with tf.train.MonitoredTrainingSession(target) as session:
        first = session.run(losses, feed)
        for _ in range(5):
            session.run(steps, feed)
        print("all lower:", np.all(np.less(session.run(losses, feed), first)))


def main(_: list[str]) -> None:
    given = flags.FLAGS
    cluster = tf.train.ClusterSpec({"ps": given.ps_hosts.split(","), "worker": given.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=given.job_name, task_index=given.task_index)
    try:
        if given.job_name == "ps":
            server.join()
        train(cluster, server.target)
    finally:
        print("JAX loaded:", "jax" in sys.modules)


tf.app.run(main)
