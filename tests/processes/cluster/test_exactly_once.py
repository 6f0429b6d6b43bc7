"""Values equal the effects of the acknowledged steps, although tasks are stopped and connections lost in the middle of
steps.
"""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from tests.processes.cluster.test_losses import newest_step, wait_for_step
from tests.support.processes import EXEC, Process, processes
from tests.support.relay import Relay, relay

PROGRAM = str(Path(__file__).with_name("programs") / "values.py")
AHEAD = str(Path(__file__).with_name("programs") / "values_ahead.py")
STEPS = 1000
#: The maximum number of steps that a worker makes during one disturbance.
_ENOUGH = 200
QUICK = ("connections lost", "all connections lost", "ps stopped", "worker stopped")

pytestmark = pytest.mark.slow


def _disturb(
    kind: str, choice: random.Random, ps: list[Process], workers: list[Process], networks: list[Relay]
) -> None:
    """Causes one disturbance in the middle of steps."""
    number = choice.randrange(len(ps))
    match kind:
        case "connections lost":
            for _ in range(choice.randint(1, 3)):
                networks[number].drop()
        case "all connections lost":
            for network in networks:
                network.drop()
        case "ps stopped" | "network silent":
            lines = workers[0].line_count()
            if kind == "ps stopped":
                ps[number].suspend()
            else:
                networks[number].cut()
            workers[0].wait_for(f"lost /job:ps/replica:0/task:{number} and waits for it", after=lines)
            if kind == "ps stopped":
                ps[number].resume()
            else:
                networks[number].heal()
        case "worker stopped":
            worker, other = choice.sample(workers, 2)
            worker.suspend()
            wait_for_step(other, newest_step(other) + 40)
            worker.resume()
        case _:
            raise AssertionError(kind)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_values_equal_the_acknowledged_steps(seed: int) -> None:
    choice = random.Random(seed)
    kinds = [*QUICK, "network silent", *choice.choices(QUICK, k=4)]
    choice.shuffle(kinds)
    with processes(ps=2, worker=2) as cluster, contextlib.ExitStack() as stack:
        places, hosts = cluster.release("ps"), ",".join(cluster.release("worker"))
        networks = [stack.enter_context(relay(place)) for place in places]

        def start(job: str, index: int, ps_hosts: list[str]) -> Process:
            flags = f"--ps_hosts={','.join(ps_hosts)}", f"--worker_hosts={hosts}", f"--steps={STEPS}"
            return cluster.run(*EXEC, PROGRAM, *flags, f"--job_name={job}", f"--task_index={index}")

        ps = [start("ps", index, places) for index in range(2)]
        workers = [start("worker", index, [network.address for network in networks]) for index in range(2)]
        for worker in workers:
            wait_for_step(worker, 20)
        for kind in kinds:
            # on a slow machine, the workers could finish during a further disturbance
            if max(map(newest_step, workers)) > STEPS - _ENOUGH:
                break
            _disturb(kind, choice, ps, workers, networks)
            for worker in workers:
                wait_for_step(worker, min(STEPS, newest_step(worker) + 20))
        for worker in workers:
            assert f"right {STEPS}" in worker.succeeds()
            assert "A new session is created" not in worker.output


def test_steps_that_read_ahead_are_done_once_and_see_those_before() -> None:
    with processes(ps=1, worker=2) as cluster, contextlib.ExitStack() as stack:
        places, hosts = cluster.release("ps"), ",".join(cluster.release("worker"))
        network = stack.enter_context(relay(places[0]))

        def start(job: str, index: int, ps_host: str) -> Process:
            flags = f"--ps_hosts={ps_host}", f"--worker_hosts={hosts}", f"--steps={STEPS}"
            return cluster.run(*EXEC, AHEAD, *flags, f"--job_name={job}", f"--task_index={index}")

        start("ps", 0, places[0])
        workers = [start("worker", index, network.address) for index in range(2)]
        for worker in workers:
            wait_for_step(worker, 20)
        while max(map(newest_step, workers)) <= STEPS - _ENOUGH:
            network.drop()
            for worker in workers:
                wait_for_step(worker, min(STEPS, newest_step(worker) + 40))
        for worker in workers:
            assert f"right {STEPS}" in worker.succeeds()
            assert "A new session is created" not in worker.output
