"""The Ray backend on a cluster of two nodes on this machine, one of which is killed.

This is a separate process, because Ray leaves files and sockets open in any process that uses it.

Usage: ray_nodes.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import Exited, NotEnough, Resources, Running, TaskRequest
from headwater.platform.backends.ray import RayBackend, RaySettings
from tests.support.tasks import WORKER, ValuePipe, order, printed, wait_for_end

SECOND = TaskName("worker", 1)
ONE_CPU = Resources(cpus=1)
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20}


def try_it(cluster: Cluster, folder: Path) -> None:
    other = cluster.add_node(**NODE)
    backend = RayBackend(
        RaySettings(state_dir=folder, address=str(cluster.address), place_s=60.0, call_timeout_s=180.0)
    )
    told = ValuePipe(folder)
    assert sum(host.total.cpus for host in backend.capacity().hosts) == 2

    # One task for each node.
    places = backend.reserve("j1", [TaskRequest(task=task, resources=ONE_CPU) for task in (WORKER, SECOND)])
    assert len({place.address for place in places}) == 2
    assert len({place.detail["node"] for place in places}) == 2
    dying, staying = sorted(places, key=lambda place: place.detail["node"] != other.node_id)

    # A task that ends by itself, and is restarted at its place.
    ends = order(backend, folder, "print('ran'); sys.exit(4)", task=staying.task, place=staying)
    handle = backend.start(ends)
    state = backend.poll(handle)
    while isinstance(state, Running):
        state = backend.poll(handle)
    assert isinstance(state, Exited), state
    assert (state.code, state.last_lines) == (4, ("ran",)), state
    assert printed(ends.log_path) == "ran\n"
    pause = "tell(os.getpid()); signal.pause()"
    again = order(backend, folder, pause, task=staying.task, place=staying, attempt=1)
    living = backend.start(again)
    living_pid = told()
    assert backend.start(again) == living
    assert backend.adopt(living)

    # No resources are left for other tasks.
    impatient = RayBackend(RaySettings(state_dir=folder, address=str(cluster.address), place_s=0.5))
    for asked, beyond in ((ONE_CPU, False), (Resources(gpus=1), True)):
        with pytest.raises(NotEnough) as refused:
            impatient.reserve("j2", [TaskRequest(task=WORKER, resources=asked)])
        # A Ray cluster may grow, so a job that is too large for it now waits, with a message.
        assert ("more than the cluster has now" in str(refused.value)) is beyond, refused.value

    # A task whose node dies counts as preempted; the other task continues until its job is released.
    lost = backend.start(order(backend, folder, pause, task=dying.task, place=dying))
    told()
    cluster.remove_node(other, allow_graceful=False)
    state = backend.poll(lost)
    while not isinstance(state, Exited):
        state = backend.poll(lost)
    assert state.preempted, state
    assert "is lost" in state.reason, state
    assert isinstance(backend.poll(living), Running)

    # The task gets another place once there is one, and other tasks can use the resources that it releases.
    backend.release("j1", [dying.task])
    cluster.add_node(**NODE)
    (anew,) = backend.reserve("j1", [TaskRequest(task=dying.task, resources=ONE_CPU)])
    assert anew.detail["node"] != dying.detail["node"]
    backend.release("j1", [dying.task])
    assert len(backend.reserve("j2", [TaskRequest(task=WORKER, resources=ONE_CPU)])) == 1
    backend.release("j2")
    assert isinstance(backend.poll(living), Running)
    backend.release("j1")
    wait_for_end(living_pid)
    told.close()
    backend.close()


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        try_it(cluster, Path(sys.argv[1]))
    finally:
        ray.shutdown()
        cluster.shutdown()
    print("all of it worked")


if __name__ == "__main__":
    main()
