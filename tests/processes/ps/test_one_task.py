"""Tasks with parameter servers offer the same status reports and elasticity as tasks of graphs. Tasks are processes."""

from __future__ import annotations

import json
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Process, Processes, bound, processes

LEARNS = Path(__file__).with_name("learns.py")
SERVED = Path(__file__).parents[1] / "keras" / "served.py"
HEADWATER = (sys.executable, "-u", "-m", "headwater")

pytestmark = pytest.mark.slow


def start(cluster: Processes, job: str, index: int, program: Path, *options: str, **env: str) -> Process:
    config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
    return cluster.start(job, index, program, *options, TF_CONFIG=config, **env)


def reports(cluster: Processes, address: str) -> dict[str, Any]:
    """Returns the reports of ``headwater status`` for each task."""
    shown = cluster.run(*HEADWATER, "status", "--json", "--interval", "0.1", address)
    return {report["task"]: report for report in json.loads(shown.succeeds().splitlines()[-1])}


def joins(cluster: Processes, program: Path, *options: str) -> Process:
    """Starts a worker that is not in the cluster spec."""
    return cluster.run(*HEADWATER, "worker", "--join", cluster.hosts["ps"][0], str(program), *options)


@pytest.mark.parametrize("program", [LEARNS, pytest.param(SERVED, marks=pytest.mark.long)], ids=["jax", "keras"])
def test_status_and_metrics(program: Path, tmp_path: Path) -> None:
    env = {"HEADWATER_METRICS": "127.0.0.1:0"}
    with processes(ps=2, worker=2) as cluster:
        ps = [start(cluster, "ps", index, program, str(tmp_path), **env) for index in range(2)]
        workers = [start(cluster, "worker", index, program, str(tmp_path), **env) for index in range(2)]
        for worker in workers:
            worker.wait_for(r"step 50 |epoch 5 ")
        found = reports(cluster, cluster.hosts["ps"][0])
        assert sorted(found) == [f"/job:{job}/task:{index}" for job in ("ps", "worker") for index in range(2)]
        servers = [found[f"/job:ps/task:{index}"]["snapshot"] for index in range(2)]
        for snapshot in servers:
            (group,) = snapshot["groups"]
            assert group["updates"] > 0
            assert group["staleness_max"] >= 1  # two workers, and neither delays the other
            assert group["workers"] == ["/job:worker/task:0", "/job:worker/task:1"]
            assert group["consistency"] == "asynchronous"
            assert "adam" in group["optimizer"].lower()
            assert {one["worker"] for one in snapshot["workers"]} == set(group["workers"])
            assert {peer["peer"] for peer in snapshot["peers"]} >= set(group["workers"])
            assert snapshot["variables_bytes"] == sum(one["nbytes"] for one in snapshot["variables"]) > 0
        assert servers[0]["global_step"] > 0
        names = " ".join(one["name"] for snapshot in servers for one in snapshot["variables"])
        assert re.search("weights|kernel", names)
        assert re.search("momentum|mu", names)
        for index in range(2):
            snapshot = found[f"/job:worker/task:{index}"]["snapshot"]
            assert snapshot["steps"] > 0
            assert {peer["peer"] for peer in snapshot["peers"]} == {"/job:ps/task:0", "/job:ps/task:1"}
        with urllib.request.urlopen(f"http://{servers[0]['metrics']}/metrics") as answer:
            metrics = answer.read().decode()
        assert re.search(r'headwater_updates\{group="\w+",task="/job:ps/task:0"\} [1-9]', metrics)
        assert re.search(r'headwater_worker_steps\{task="/job:ps/task:0",worker="/job:worker/task:1"\} [1-9]', metrics)
        assert re.search(r'headwater_staleness_max\{group="\w+",task="/job:ps/task:0"\} [1-9]', metrics)
        (tmp_path / "stop").touch()
        for task in (*workers, *ps):
            task.succeeds()


@pytest.mark.parametrize(
    "consistency",
    ["staleness=2", *(pytest.param(choice, marks=pytest.mark.long) for choice in ("async", "sync", "k=1"))],
)
def test_a_worker_joins_and_leaves(consistency: str, tmp_path: Path) -> None:
    options = (f"--consistency={consistency}", str(tmp_path))
    with processes(ps=2, worker=1) as cluster:
        ps = [start(cluster, "ps", index, LEARNS, *options) for index in range(2)]
        chief = start(cluster, "worker", 0, LEARNS, *options)
        chief.wait_for("step 50 ")
        other = joins(cluster, LEARNS, *options)
        other.wait_for("step 4 ")
        ps[0].wait_for("/job:worker/task:1 joins the cluster at")
        assert "/job:worker/task:1" in reports(cluster, cluster.hosts["ps"][0])
        lines = ps[0].line_count()
        other.kill()
        ps[0].wait_for("/job:worker/task:1 has left the cluster", after=lines)
        line = chief.line_count()
        chief.wait_for("step ", after=line)
        third = joins(cluster, LEARNS, *options)
        third.wait_for("step 4 ")
        assert "/job:worker/task:1 joins the cluster" in ps[0].output.split("has left")[1]
        (tmp_path / "stop").touch()
        for task in (chief, third, *ps):
            task.succeeds()


def late(cluster: Processes, folder: Path) -> Process:
    """A worker that has joined, and reads the current cluster."""
    with bound() as kept:
        own = f"localhost:{kept.getsockname()[1]}"
    hosts = {**cluster.hosts, "worker": [*cluster.hosts["worker"], own]}
    config = json.dumps({"cluster": hosts, "task": {"type": "worker", "index": len(hosts["worker"]) - 1}})
    env = {"TF_CONFIG": config, "HEADWATER_JOINED": cluster.hosts["ps"][0]}
    return cluster.run(*HEADWATER, "exec", str(LEARNS), str(folder), **env)


def test_a_worker_that_joins_when_all_have_ended_ends_at_once(tmp_path: Path) -> None:
    with processes(ps=2, worker=1) as cluster:
        shown = late(cluster, tmp_path)
        shown.succeeds()
        assert "/job:worker/task:1 ends, because the job is already over" in shown.output
        assert "no parameter server and no chief is running any more" in shown.output


@pytest.mark.long
def test_a_worker_of_keras_joins(tmp_path: Path) -> None:
    with processes(ps=1, worker=1) as cluster:
        ps = start(cluster, "ps", 0, SERVED, "--sync", str(tmp_path))
        chief = start(cluster, "worker", 0, SERVED, "--sync", str(tmp_path))
        chief.wait_for("epoch 3 ")
        other = joins(cluster, SERVED, "--sync", str(tmp_path))
        other.wait_for(r"epoch \d+ ")
        (tmp_path / "stop").touch()
        for task in (chief, other):
            assert "trained [0.0, 1.0, 2.0, 3.0] [1.0]" in task.succeeds().replace("-0.0", "0.0")
        ps.succeeds()


def test_a_worker_that_makes_no_steps_is_named(tmp_path: Path) -> None:
    with processes(ps=1, worker=2) as cluster:
        ps = start(cluster, "ps", 0, LEARNS, str(tmp_path), HEADWATER_BEHIND_AFTER_S="1")
        chief = start(cluster, "worker", 0, LEARNS, str(tmp_path))
        still = start(cluster, "worker", 1, LEARNS, "--still_at=60", str(tmp_path))
        still.wait_for("standing still")
        ps.wait_for(
            r"/job:worker/task:1 is behind: it has been between two steps for \d+ s, after \d+ steps, and connected"
        )
        still.kill()
        (tmp_path / "stop").touch()
        chief.succeeds()
        ps.succeeds()


def test_status_names_waiting_and_awaited_tasks(tmp_path: Path) -> None:
    options = ("--consistency=sync", str(tmp_path))
    with processes(ps=1, worker=2) as cluster:
        start(cluster, "ps", 0, LEARNS, *options)
        chief = start(cluster, "worker", 0, LEARNS, *options)
        still = start(cluster, "worker", 1, LEARNS, "--still_at=4", *options)
        still.wait_for("standing still")
        chief.wait_for("step 4 ")
        while not (waits := reports(cluster, cluster.hosts["ps"][0])["/job:ps/task:0"]["snapshot"]["waits"]):
            pass
        said = "/job:worker/task:0 (synchronous) for /job:worker/task:1, 0 s so far"
        assert re.fullmatch(re.escape(said).replace("0\\ s", r"\d+\ s"), waits[0]["what"].partition(": ")[2])


def test_an_unknown_consistency_is_named_immediately(tmp_path: Path) -> None:
    with processes(ps=1, worker=1) as cluster:
        chief = start(cluster, "worker", 0, LEARNS, "--consistency=often", str(tmp_path))
        assert chief.ends() == 1
        assert "'often' is not a choice of consistency" in chief.output


def test_a_jax_program_loads_neither_keras_nor_graphs() -> None:
    program = (
        "import sys, headwater; headwater.ParameterServer; import jax.numpy as jnp; "
        "print(sorted({'keras', 'headwater.graph.ops', 'headwater.graph', 'headwater.keras'} & set(sys.modules)), "
        "jnp.asarray(1.0).dtype)"
    )
    with processes() as cluster:
        assert "[] float32" in cluster.run(sys.executable, "-c", program).succeeds()


def test_the_shell_of_a_task_loads_no_jax() -> None:
    program = "import sys, headwater.cluster.task.shell; print('jax' in sys.modules)"
    with processes() as cluster:
        assert "False" in cluster.run(sys.executable, "-c", program).succeeds()
