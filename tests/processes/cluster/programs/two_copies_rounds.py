"""A worker with `SyncReplicasOptimizer` that counts its gradients in variables on both ps.

Once a file ``stop`` exists in its folder, the chief announces the round in which both workers end, and then prints the
values of the variables.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
from task import args, cluster, replicas, start_server

from headwater import tf

server = start_server()
me, workers = args.task_index, cluster.num_tasks("worker")
with replicas():
    global_step = tf.train.get_or_create_global_step()
    counts: list[Any] = []
    for ps in range(2):
        with tf.device(f"/job:ps/task:{ps}"):
            counts.append(tf.get_variable(f"count{ps}", [workers], initializer=tf.zeros_initializer()))
    mine = tf.constant(np.arange(workers) == me, tf.float32)
    loss = -tf.add_n([tf.reduce_sum(count * mine) for count in counts])
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(float(workers)), workers, total_num_replicas=workers
    )
    train = optimizer.minimize(loss, global_step=global_step)


hooks = [optimizer.make_session_run_hook(me == 0)]
folder, paused, rounds, last = Path(args.folder), threading.Event(), 0, sys.maxsize
with tf.train.MonitoredTrainingSession(server.target, is_chief=me == 0, hooks=hooks) as session:
    while rounds < last:
        session.run(train)
        rounds += 1
        if rounds % 20 == 0:
            print(f"step {rounds}", flush=True)
            if (folder / "last").exists():
                last = int((folder / "last").read_text())
            elif me == 0 and (folder / "stop").exists():
                # the other worker is in the same round, or in the next one
                (folder / "last.new").write_text(str(rounds + 40))
                (folder / "last.new").rename(folder / "last")
        paused.wait(0.005)  # leaves the machine to the other tests
    if me == 0:
        step, *values = session.run([global_step, *counts])
        exact = [value.tolist() for value in values] == [[rounds] * workers] * 2
        print(f"global step {step} of {rounds}, counts are {'exact' if exact else values}", flush=True)
