"""A task that trains a network of 20, 32 and 1 units, and prints the device on which its gradients are computed."""

from __future__ import annotations

import argparse

import numpy as np

from headwater import tf
from headwater.graph.session.local_devices import list_local_devices

parser = argparse.ArgumentParser()
for name in ("ps_hosts", "worker_hosts", "job_name"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--task_index", type=int, required=True)
args = parser.parse_args()
cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
print("devices", [device.name for device in list_local_devices()], flush=True)
if args.job_name == "ps":
    server.join()
source = np.random.default_rng(0)
inputs = source.standard_normal((256, 20)).astype(np.float32)
targets = np.tanh(inputs[:, :1] + inputs[:, 1:2]).astype(np.float32)
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{args.task_index}")):
    step = tf.train.get_or_create_global_step()
    x, y = tf.placeholder(tf.float32, [None, 20]), tf.placeholder(tf.float32, [None, 1])
    loss = tf.losses.mean_squared_error(y, tf.layers.dense(tf.layers.dense(x, 32, tf.nn.tanh), 1))
    train = tf.train.AdamOptimizer(0.01).minimize(loss, step)
feeds, metadata = {x: inputs, y: targets}, tf.RunMetadata()
with tf.train.MonitoredTrainingSession(server.target, args.task_index == 0) as session:
    first = session.run(loss, feeds)
    while session.run([train, step], feeds)[1] < 300:
        pass
    session.run(train, feeds, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    for device in metadata.step_stats.dev_stats:
        if f"task:{args.task_index}" in device.device and any("MatMul" in each.node_name for each in device.node_stats):
            print("gradients on", device.device.removesuffix("/executables"), flush=True)
    print("loss", first, "to", session.run(loss, feeds), flush=True)
