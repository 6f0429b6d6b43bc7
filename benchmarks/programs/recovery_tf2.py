"""The same as `recovery.py` in TensorFlow 2: a coordinator has a worker change a large variable on each of two ps.

A ps that is lost ends the coordinator's program, as TensorFlow documents it; who started it starts it again.
"""

import argparse
import json
import os
import time

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--mb", type=int, default=100)
parser.add_argument("--checkpoints", default="")
parser.add_argument("--every_s", type=float, default=10)
args = parser.parse_args()

cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if cluster.task_type != "chief":
    config = json.loads(os.environ["TF_CONFIG"])
    server = tf.distribute.Server(
        cluster.cluster_spec(), protocol="grpc", job_name=cluster.task_type, task_index=config["task"]["index"]
    )
    print("serves", flush=True)
    server.join()
strategy = tf.distribute.ParameterServerStrategy(cluster)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    # One after the other on the first and on the second ps.
    values = [tf.Variable(tf.ones([args.mb * 1024, 256])) for _ in range(2)]
    counts = [tf.Variable(0, dtype=tf.int64) for _ in range(2)]


@tf.function  # type: ignore[missing-attribute]
def step():
    for value, count in zip(values, counts, strict=True):
        with tf.device(value.device):
            value.assign(value * 0.999)
            count.assign_add(1)
    return [tf.identity(count) for count in counts]


manager = None
if args.checkpoints:
    checkpoint = tf.train.Checkpoint(values=values, counts=counts)
    manager = tf.train.CheckpointManager(checkpoint, args.checkpoints, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
saved = time.time()
while True:
    result = coordinator.schedule(step)
    coordinator.join()
    first, second = result.fetch()
    print("at %.3f counts %d %d" % (time.time(), first, second), flush=True)
    if manager is not None and time.time() - saved >= args.every_s:
        manager.save()
        saved = time.time()
