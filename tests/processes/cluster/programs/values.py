"""A worker whose steps change two `ps`, so that the values reveal a step that is applied twice or not at all.

Each step takes a number from a queue on the first `ps`; changes a variable on each of the two `ps`, in a way that
depends on the order of the steps; adds to variables that all workers share; and puts its number into a queue on the
second `ps`.
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
total = args.steps * workers
with tf.device("/job:ps/task:0"):
    first = [tf.get_variable(f"first_{index}", initializer=np.int64(1)) for index in range(workers)][args.task_index]
    sums = [tf.get_variable("sums_0", initializer=np.zeros(workers, np.int64))]
    numbers = tf.FIFOQueue(total, tf.int64, [()], shared_name="numbers")
with tf.device("/job:ps/task:1"):
    second = [tf.get_variable(f"second_{index}", initializer=np.int64(2)) for index in range(workers)][args.task_index]
    sums.append(tf.get_variable("sums_1", initializer=np.zeros(workers, np.int64)))
    done = tf.FIFOQueue(total, tf.int64, [()], shared_name="done")
    finished = tf.FIFOQueue(workers, tf.int64, [()], shared_name="finished")

with tf.device(f"/job:worker/task:{args.task_index}"):
    number = numbers.dequeue()
    mine = tf.one_hot(args.task_index, workers, dtype=tf.int64)
    new_first = tf.mod(first * 3 + number, PRIME)
    new_second = tf.mod(second * 5 + first + number, PRIME)
    share = mine * number
with tf.control_dependencies([new_first, new_second]):
    updates = [first.assign(new_first), second.assign(new_second), *(each.assign_add(share) for each in sums)]
with tf.control_dependencies(updates), tf.device("/job:ps/task:1"):
    step = done.enqueue(number)
fill = numbers.enqueue_many([np.arange(total)])
finish, wait = finished.enqueue(np.int64(args.task_index)), finished.dequeue_many(workers)
everything = done.dequeue_many(total)

taken: list[int] = []
expected = [1, 2]
with tf.train.MonitoredTrainingSession(server.target, is_chief=args.task_index == 0) as session:
    if args.task_index == 0:
        session.run(fill)
    while len(taken) < args.steps:
        given = int(session.run([number, step])[0])
        taken.append(given)
        expected = [(expected[0] * 3 + given) % PRIME, (expected[1] * 5 + expected[0] + given) % PRIME]
        if len(taken) % 20 == 0:
            print("step", len(taken), flush=True)
    found = [int(value) for value in session.run([first, second])]
    assert found == expected, f"the variables are {found}, not {expected}, after the numbers {taken}"
    shares = [int(value[args.task_index]) for value in session.run(sums)]
    assert shares == [sum(taken)] * 2, f"the sums are {shares}, not {sum(taken)}, after the numbers {taken}"
    session.run(finish)
    if args.task_index == 0:
        session.run(wait)
        assert sorted(session.run(everything).tolist()) == list(range(total)), "a number was lost, or taken twice"
        assert sum(map(int, session.run(sums[1]))) == total * (total - 1) // 2
    print("right", len(taken), flush=True)
