"""A worker whose steps change one `ps` and may read values ahead.

The values reveal a step that is applied twice or not at all, or that did not see the effects of its worker's previous
steps. Each step changes a variable of its worker, in a way that depends on the order of the steps, and adds to a
variable that all workers share.
"""

from __future__ import annotations

import numpy as np
from task import args, cluster, start_server

from headwater import tf
from headwater.cluster.transport import connect

PRIME = 1_000_003

if args.job_name == "worker":
    connect.machine_id = lambda: ""  # as if on another machine: tasks are connected by the network only
server = start_server()
workers = cluster.num_tasks("worker")
with tf.device("/job:ps/task:0"):
    own = [tf.get_variable(f"own_{index}", initializer=np.int64(1)) for index in range(workers)][args.task_index]
    sums = tf.get_variable("sums", initializer=np.zeros(workers, np.int64))
number = tf.placeholder(tf.int64, ())
with tf.device(f"/job:worker/task:{args.task_index}"):
    share = tf.one_hot(args.task_index, workers, dtype=tf.int64) * number
    new_own, new_sums = tf.mod(own * 3 + number, PRIME), sums + share
    seen = [own * 1, sums * 1]
with tf.control_dependencies([new_own, new_sums]):
    alone = own.assign(new_own)  # reads one variable, which no other worker changes
    # also reads a variable that other workers change
    together = tf.group(own.assign(new_own), sums.assign_add(new_sums * 0 + share))

expected, total, least = 1, 0, 0
with tf.train.MonitoredTrainingSession(server.target, is_chief=args.task_index == 0) as session:
    for given in range(1, args.steps + 1):
        if given // 100 % 2:
            before = int(session.run([alone, seen[0]], {number: given})[1])
        else:
            _, (before, all_sums) = session.run([together, seen], {number: given})
            assert int(all_sums[args.task_index]) == total, f"step {given} saw {all_sums}, after {total} of its own"
            assert int(all_sums.sum()) >= least, f"step {given} saw {all_sums}, and one before it {least}"
            total, least = total + given, int(all_sums.sum())
        assert before == expected, f"step {given} saw {before}, not {expected}"
        expected = (expected * 3 + given) % PRIME
        if given % 20 == 0:
            print("step", given, flush=True)
    found = int(session.run(own)), int(session.run(sums)[args.task_index])
    assert found == (expected, total), f"the variables are {found}, not {(expected, total)}"
    print("right", args.steps, flush=True)
