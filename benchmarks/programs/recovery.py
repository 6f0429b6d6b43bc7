"""One worker that changes a large variable on each of two ps in every step, and counts the steps on each.

Runs with Headwater (``headwater exec``) and with TensorFlow 1.15. Prints ``at SECONDS counts A B`` after each step.
"""

import argparse
import sys
import time

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", required=True)
parser.add_argument("--worker_hosts", required=True)
parser.add_argument("--job_name", required=True)
parser.add_argument("--task_index", type=int, required=True)
parser.add_argument("--mb", type=int, default=100)
parser.add_argument("--checkpoints", default="")
parser.add_argument("--every_s", type=float, default=10)
args = parser.parse_args()

cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
if args.job_name == "ps":
    print("serves", flush=True)
    server.join()
    sys.exit()
counts, changes = [], []
with tf.device("/job:ps/task:0"):
    step = tf.train.get_or_create_global_step()
for index in range(2):
    with tf.device("/job:ps/task:%d" % index):
        values = tf.get_variable("values%d" % index, [args.mb * 1024, 256], initializer=tf.ones_initializer())
        count = tf.get_variable("count%d" % index, [], tf.int64, initializer=tf.zeros_initializer())
        counts.append(tf.assign_add(count, 1))
        changes.append(tf.assign(values, values * 0.999).op)
with tf.device("/job:ps/task:0"):
    changes.append(tf.assign_add(step, 1).op)
saving = {"checkpoint_dir": args.checkpoints, "save_checkpoint_secs": args.every_s} if args.checkpoints else {}
with tf.train.MonitoredTrainingSession(server.target, is_chief=True, **saving) as session:
    while True:
        first, second = session.run([counts, changes])[0]
        print("at %.3f counts %d %d" % (time.time(), first, second), flush=True)
