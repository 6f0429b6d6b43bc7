"""Ends without a launcher, as older programs do: each ps waits for tokens of every worker in its own queue.

A worker enqueues two tokens. If a folder is given, it waits for a line in its own pipe in the folder before the second
token.
"""

from __future__ import annotations

from pathlib import Path

from task import args, cluster, replicas

from headwater import tf

server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
print("serving", server.target, flush=True)
workers = cluster.num_tasks("worker")
queues = []
for index in range(cluster.num_tasks("ps")):
    with tf.device(f"/job:ps/task:{index}"):
        queues.append(tf.FIFOQueue(2 * workers, tf.int32, shared_name=f"done_queue{index}"))
if args.job_name == "ps":
    take = queues[args.task_index].dequeue()
    with tf.Session(server.target) as session:
        for _ in range(2 * workers):
            session.run(take)
    print("all are done", flush=True)
else:
    with replicas():
        step = tf.train.get_or_create_global_step()
        increment = tf.assign_add(step, 1)
    done = tf.group(*[queue.enqueue(1) for queue in queues])
    with tf.train.MonitoredTrainingSession(server.target, is_chief=args.task_index == 0) as session:
        for _ in range(args.steps):
            session.run(increment)
        session.run(done)
        if args.folder:
            print("waits for the second token", flush=True)
            Path(args.folder, str(args.task_index)).read_text()
        session.run(done)
