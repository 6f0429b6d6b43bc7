"""A worker that trains a graph for a given time, and checks repeatedly that acknowledged steps were applied once."""

from __future__ import annotations

import threading
import time

import numpy as np
from acknowledged import Acknowledged, Counted
from arguments import parsed

from headwater import tf

args = parsed()
cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
servers, workers, index = cluster.num_tasks("ps"), cluster.num_tasks("worker"), args.task_index

server = tf.train.Server(cluster, job_name=args.job_name, task_index=index)
if args.job_name == "ps":
    server.join()

with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
    global_step = tf.train.get_or_create_global_step()
    with tf.device(f"/job:worker/task:{index}"):
        images, labels = tf.random_uniform([64, 784]), tf.random_uniform([64], maxval=10, dtype=tf.int64)
        examples = tf.FIFOQueue(16, [tf.float32, tf.int64], [[64, 784], [64]])
        tf.train.add_queue_runner(tf.train.QueueRunner(examples, [examples.enqueue([images, labels])]))
        x, y = examples.dequeue()
    hidden = tf.layers.dense(x, 100, tf.nn.relu)
    loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(hidden, 10))
    train = tf.train.AdamOptimizer().minimize(loss, global_step=global_step)
tf.summary.scalar("loss", loss)
mine = np.arange(workers) == index
counts, added = [], []
for number in range(servers):
    with tf.device(f"/job:ps/task:{number}"):
        counts.append(tf.get_variable(f"counts_{number}", initializer=np.zeros(workers, np.int64), trainable=False))
        added.append(counts[-1].assign_add(mine.astype(np.int64)))
step = tf.group(train, *added)


def applied(worker: int) -> list[int]:
    """The number of the worker's steps that each ps has applied, by its own account."""
    return [int(value[worker]) for value in session.run(counts)]


chief, folder = index == 0, args.folder
with tf.train.MonitoredTrainingSession(
    server.target,
    is_chief=chief,
    checkpoint_dir=str(folder) if chief else None,
    save_checkpoint_secs=30,
    save_summaries_steps=500,
) as session:
    before, acknowledged, log = applied(index), 0, Acknowledged(folder, index)
    Counted(folder, index).check(before, index)
    while time.time() < args.until:
        session.run(step)
        log.add()
        acknowledged += 1
        if acknowledged % 200 == 0:
            found, expected = applied(index), [count + acknowledged for count in before]
            assert found == expected, f"the ps have applied {found} steps; {expected} were acknowledged"
            print("steps", acknowledged, flush=True)
    (folder / f"done-{index}").touch()
    if chief:
        paused = threading.Event()
        while len(list(folder.glob("done-*"))) < workers:
            paused.wait(0.1)
        for worker in range(workers):
            Counted(folder, worker).check(applied(worker), worker)
        print("counted", sum(Counted(folder, worker).applied for worker in range(workers)), flush=True)
    print("right", acknowledged, "threads", threading.active_count(), flush=True)
