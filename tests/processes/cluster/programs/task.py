"""The common part of these tests' programs: flags, and the task's server."""

from __future__ import annotations

import argparse
from typing import Any

from headwater import tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", default="")
parser.add_argument("--worker_hosts", default="")
parser.add_argument("--job_name", required=True)
parser.add_argument("--task_index", type=int, required=True)
parser.add_argument("--folder", default="")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--consistency", default="asynchronous")
parser.add_argument("--mode", default="")
parser.add_argument("--pause_at", type=int, default=-1)
parser.add_argument("--stuck_at", type=int, default=-1)
parser.add_argument("--last_step", type=int, default=0)
parser.add_argument("--aggregate", type=int, default=0)
parser.add_argument("--hold_at", type=int, action="append", default=[])
parser.add_argument("--save_steps", type=int, default=1000)
args = parser.parse_args()
jobs = {"ps": args.ps_hosts, "worker": args.worker_hosts}
cluster = tf.train.ClusterSpec({job: hosts.split(",") for job, hosts in jobs.items() if hosts})


def start_server() -> Any:
    """Starts and returns the task's server. Does not return on a ps."""
    server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
    print("serving", server.target, flush=True)
    if args.job_name == "ps":
        server.join()
    return server


def replicas() -> Any:
    """Places variables on the ps tasks, and all other operations on this worker."""
    return tf.device(
        tf.train.replica_device_setter(worker_device=f"/job:worker/task:{args.task_index}", cluster=cluster)
    )


def meeting() -> tuple[Any, Any]:
    """Returns two operations: one announces this worker to all workers, the other waits for an announcement of each."""
    workers = cluster.num_tasks("worker")
    with tf.device("/job:ps/task:0"):
        queues = [tf.FIFOQueue(workers, tf.bool, [()], shared_name=f"meeting {index}") for index in range(workers)]
        return tf.group(*(queue.enqueue(True) for queue in queues)), queues[args.task_index].dequeue_many(workers)
