"""A task that receives a status request after the last line of its program, as from another task that closes its
session then.
"""

from __future__ import annotations

import atexit
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from task import args, cluster

from headwater import tf

server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)


@atexit.register
def ask() -> None:
    with grpc.insecure_channel(server.target.removeprefix("grpc://")) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=60)
        print("asked at the end:", health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status), flush=True)


print("the last line", flush=True)
