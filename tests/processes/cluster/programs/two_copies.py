"""A worker that counts its steps in variables on both ps; each ps may have a backup.

It runs steps until a file ``stop`` exists in its folder. Then it prints how many steps were acknowledged, and the chief
prints the values of the variables once all workers have finished.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
from task import args, replicas, start_server

from headwater import tf

server = start_server()
me, workers = args.task_index, len(args.worker_hosts.split(","))
folder = Path(args.folder)
with replicas():
    global_step = tf.train.get_or_create_global_step()
counts: list[tf.Variable] = []
for ps in range(2):
    with tf.device(f"/job:ps/task:{ps}"):
        counts.append(tf.get_variable(f"count{ps}", [workers], initializer=tf.zeros_initializer()))
with tf.device(f"/job:worker/task:{me}"):
    mine = tf.constant(np.arange(workers) == me, tf.float32)
    loss = -tf.add_n([tf.reduce_sum(count * mine) for count in counts])
train = tf.train.GradientDescentOptimizer(1.0).minimize(loss, global_step=global_step)
acknowledged, longest, lately, paused = 0, 0.0, 0.0, threading.Event()
with tf.train.MonitoredTrainingSession(server.target, is_chief=me == 0) as session:
    while not (folder / "stop").exists():
        began = time.monotonic()
        session.run(train)
        acknowledged, lately = acknowledged + 1, max(lately, time.monotonic() - began)
        if acknowledged % 20 == 0:
            print(f"step {acknowledged}, longest of 20: {lately:.3f} s", flush=True)
            longest, lately = max(longest, lately), 0.0
        paused.wait(0.005)  # leaves the machine to the other tests
    print(f"acknowledged {acknowledged}, longest step {max(longest, lately):.2f} s", flush=True)
    (folder / f"done{me}").touch()
    if me == 0:
        while len(list(folder.glob("done*"))) < workers:
            paused.wait(0.05)
        step, *values = session.run([global_step, *counts])
        print(f"global step {step}, counts {[value.astype(int).tolist() for value in values]}", flush=True)
