"""What the benchmark programs share: the flags of a task, its server, and the measured loop.

The programs run unchanged under TensorFlow 1.15 (Python 3.7) and under ``headwater exec``.
"""

import argparse
import json
import os
import resource
import tempfile
import time

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def task_arguments(**more):
    """Parses the flags of a task; ``more`` are flags with integer defaults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--job_name", required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--together", default="", help="a folder by which workers wait for each other to be warm")
    for name, default in more.items():
        parser.add_argument("--" + name, type=int, default=default)
    return parser.parse_args()


def start_server(args):
    """Starts the task's server; does not return on a ps. Gives the server and where a worker builds its model."""
    cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
    if args.job_name == "ps":
        server.join()
    device = tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % args.task_index, cluster=cluster)
    return server, tf.device(device)


def train(args, server, global_step, train_op, feeds, epoch=100, weight=1, **results):
    """Runs steps for ``--seconds`` after two epochs to warm up, and prints one JSON line.

    Args:
      feeds: gives the feed dictionary of the i-th step of an epoch.
      epoch: steps per epoch.
      weight: what a step counts for in the rate.
      results: tensors whose values at the end are printed too.
    """
    supervisor = tf.train.Supervisor(
        is_chief=args.task_index == 0,
        logdir=tempfile.mkdtemp(),
        init_op=tf.global_variables_initializer(),
        summary_op=None,
        saver=None,
        global_step=global_step,
        recovery_wait_secs=1,
    )
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % args.task_index])
    with supervisor.managed_session(server.target, config=config) as session:

        def run(times):
            for i in range(epoch):
                feed_dict = feeds(i)
                start = time.perf_counter()
                session.run([train_op, global_step], feed_dict=feed_dict)
                times.append(time.perf_counter() - start)

        run([])
        run([])
        if args.together:
            open(os.path.join(args.together, str(args.task_index)), "w").close()
            while len(os.listdir(args.together)) < len(args.worker_hosts.split(",")):
                run([])
        times = []
        begin()
        deadline = time.perf_counter() + args.seconds
        while time.perf_counter() < deadline:
            run(times)
        report(times, weight, **{name: float(session.run(tensor)) for name, tensor in results.items()})


_began = {}


def begin():
    """Says that the program is warm, and counts its steps and its processor time from now on until `used`."""
    _began.update(at=time.time(), usage=resource.getrusage(resource.RUSAGE_SELF))
    print(json.dumps({"measuring": True}), flush=True)


def used(steps):
    """What ``steps`` steps took since `begin`: how many there were in a second, and of this process the processor time
    in user mode and in kernel mode, in seconds, and how often a thread has waited, for one of them."""
    before, now = _began["usage"], resource.getrusage(resource.RUSAGE_SELF)
    names = {"user": "ru_utime", "system": "ru_stime", "switches": "ru_nvcsw"}
    each = {name: (getattr(now, field) - getattr(before, field)) / steps for name, field in names.items()}
    return dict(steps_per_s=steps / (time.time() - _began["at"]), **each)


def report(times, weight=1, **more):
    """Prints the figures of a run as one JSON line; a step counts for ``weight`` in the rate.

    What the program does between steps is not in the rate, but in ``steps_per_s``.
    """
    times.sort()
    rate, median_us = weight * len(times) / sum(times), times[len(times) // 2] * 1e6
    print(json.dumps(dict(used(len(times)), rate=rate, median_us=median_us, **more)), flush=True)
