"""A worker trains 200 variables while another one builds graphs, or joins the job again and again.

The first worker tells how many medians its longest step took, and the share of steps above five. The second one has
the lowest priority, so that it delays the first at the ps rather than on the cores that they share. What it does is
chosen by a number, so that what joining costs the first can be told from what a busy machine does:

0: it rests. 1: it builds graphs, and runs none. 2: it joins as every worker of a job does, by the graph that the others
have. 3: it joins by a graph that no task has seen.
"""

import itertools
import os
import threading
import time

from common import begin, report, start_server, task_arguments, tf

args = task_arguments(variables=200, second=2)
RESTS, BUILDS, JOINS, DIFFERS = range(4)
server, _ = start_server(args)
cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})


def model():
    worker = "/job:worker/task:%d" % args.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        variables = [tf.Variable(tf.fill([64], 1.0), name="v%d" % i) for i in range(args.variables)]
        loss = tf.add_n([tf.reduce_sum(tf.square(v)) for v in variables])
        return tf.train.GradientDescentOptimizer(1e-6).minimize(loss)


def steps(session, train_op, seconds):
    """Seconds of each step."""
    times, deadline = [], time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        session.run(train_op)
        times.append(time.perf_counter() - start)
    return times


def join(turn):
    """What the second worker does in a turn."""
    with tf.Graph().as_default():
        own = []
        if args.second == DIFFERS:
            with tf.device("/job:ps/task:0"):
                own = [tf.Variable(0.0, name="joined_%d" % turn)]
        train_op = model()
        if args.second == BUILDS:
            return
        with tf.Session(server.target, config=config) as session:
            session.run(tf.variables_initializer(own))
            session.run(train_op)


config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % args.task_index])
if args.task_index == 0:
    train_op = model()
    with tf.Session(server.target, config=config) as session:
        session.run(tf.global_variables_initializer())
        steps(session, train_op, 1)
        begin()
        times = steps(session, train_op, args.seconds)
    median = sorted(times)[len(times) // 2]
    late = sum(each > 5 * median for each in times)
    report(times, longest_medians=max(times) / median, late_share=late / len(times))
else:
    model()
    supervisor = tf.train.Supervisor(is_chief=False, recovery_wait_secs=1)
    supervisor.prepare_or_wait_for_session(server.target, config=config).close()
    os.nice(19)
    join(0)
    begin()
    times, deadline = [], time.perf_counter() + args.seconds
    for turn in itertools.count(1):
        start = time.perf_counter()
        if args.second == RESTS:
            threading.Event().wait(args.seconds)
        else:
            join(turn)
        times.append(time.perf_counter() - start)
        if time.perf_counter() > deadline:
            break
    report(times, turns=len(times))
