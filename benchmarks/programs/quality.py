"""One worker trains digits on two ps, as a graph; see quality.py beside this folder."""

from __future__ import annotations

import json
import os

import tensorflow as tf
from digits import RATE, Digits, Pace, parse, say

SAY = 25

args = parse("a graph")
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
server = tf.train.Server(tf.train.ClusterSpec(config["cluster"]), job_name=task["type"], task_index=task["index"])
if task["type"] == "ps":
    server.join()
digits = Digits(args.data, args.seed)
images = tf.placeholder(tf.float32, [None, digits.images.shape[1]])
labels = tf.placeholder(tf.int64, [None])
values = []
for number, value in enumerate(digits.first_values()):  # a layer on each ps
    with tf.device(f"/job:ps/task:{number // 2}"):
        values.append(tf.get_variable(f"values{number}", initializer=value))
with tf.device("/job:ps/task:0"):
    step = tf.train.get_or_create_global_step()
weights, bias, top, top_bias = values
logits = tf.matmul(tf.nn.relu(tf.matmul(images, weights) + bias), top) + top_bias
loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
train = tf.train.AdamOptimizer(RATE).minimize(loss, global_step=step)
saving = {"checkpoint_dir": args.folder, "save_checkpoint_steps": args.every} if args.keep == "checkpoint" else {}
with tf.train.MonitoredTrainingSession(
    server.target,
    is_chief=True,
    log_step_count_steps=None,
    save_summaries_steps=None,
    save_summaries_secs=None,
    **saving,
) as session:
    say(0, digits.loss(session.run(values)))
    for done in Pace(args).steps():
        chosen, answers = digits.batch()
        session.run(train, {images: chosen, labels: answers})
        if done % SAY == 0:
            say(done, digits.loss(session.run(values)))
    print("over", flush=True)
