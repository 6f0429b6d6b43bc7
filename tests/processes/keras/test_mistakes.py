"""Programs that would otherwise compute wrong results silently: each ends with one line that names the mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import Process, Processes, processes

PROGRAM = Path(__file__).with_name("mistaken.py")

pytestmark = pytest.mark.slow


def start_all(cluster: Processes, mistake: str) -> dict[str, list[Process]]:
    return {
        job: [
            cluster.start(
                job, index, PROGRAM, mistake, TF_CONFIG=json.dumps({"cluster": cluster.hosts, "task": task(job, index)})
            )
            for index in range(len(hosts))
        ]
        for job, hosts in cluster.hosts.items()
    }


def task(job: str, index: int) -> dict[str, str | int]:
    return {"type": job, "index": index}


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        ("length", r"worker/task:\d has other data than .*number of examples is (48, not 64|64, not 48)"),
        pytest.param(
            "optimizer",
            r"worker/task:1 has other learning rate than .*: learning_rate is 0.2\d*, not 0.1\d*",
            marks=pytest.mark.long,
        ),
        pytest.param("model", "worker/task:1 has other variables", marks=pytest.mark.long),
    ],
)
def test_workers_with_another_program_end_with_one_line(mistake: str, line: str) -> None:
    with processes(ps=1, worker=2) as cluster:
        tasks = start_all(cluster, mistake)
        wrong = tasks["worker"][1]
        wrong.wait_for(line)
        assert wrong.ends() == 1
        if mistake == "length":  # no task can know which of the two is right
            assert tasks["worker"][0].ends() == 1
            assert "number of examples" in tasks["worker"][0].output
        assert "trained" not in wrong.output


@pytest.mark.long
def test_other_examples_of_the_same_number_are_named() -> None:
    with processes(ps=1, worker=2) as cluster:
        tasks = start_all(cluster, "examples")
        output = "".join(worker.succeeds() for worker in tasks["worker"])
        assert "has other examples than" in output
        tasks["ps"][0].succeeds()


def test_data_of_different_lengths_are_named_when_they_end() -> None:
    with processes(ps=1, worker=2) as cluster:
        tasks = start_all(cluster, "ends")
        (ps,) = tasks["ps"]
        ps.wait_for("workers have data of different lengths: in epoch 0 the data of one worker end after 2 batches")
        for task in (*tasks["worker"], ps):
            task.succeeds()


@pytest.mark.parametrize("jobs", [{"ps": 1, "worker": 2}, {"worker": 2}], ids=["ps", "mirrored"])
def test_a_forgotten_scope_is_an_error_on_every_task(jobs: dict[str, int]) -> None:
    with processes(**jobs) as cluster:
        for processes_of_job in start_all(cluster, "scope").values():
            for process in processes_of_job:
                assert process.ends() == 1
                assert "put 'with strategy.scope():' around both" in process.output


def test_a_ps_serves_a_program_that_trains_batch_by_batch() -> None:
    with processes(ps=2, worker=2) as cluster:
        tasks = start_all(cluster, "train_on_batch")
        for worker in tasks["worker"]:
            assert "trained" in worker.succeeds()
        for server in tasks["ps"]:
            server.succeeds()


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        ("model", "worker 1 has other variables than worker 0: .*kernel is float32.4, 5., not float32.4, 3."),
        pytest.param(
            "optimizer",
            "worker 1 has other learning rate than worker 0: learning_rate is 0.2",
            marks=pytest.mark.long,
        ),
        pytest.param("length", "worker 1 has other data than worker 0: batches is 3, not 4", marks=pytest.mark.long),
    ],
)
def test_mirrored_workers_with_another_program_all_end_with_one_line(mistake: str, line: str) -> None:
    with processes(worker=2) as cluster:
        for worker in start_all(cluster, mistake)["worker"]:
            worker.wait_for(line)
            assert worker.ends() == 1
