"""The MNIST example: run by tasks, and by clients of servers that run no program."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.processes import EXEC, processes

EXAMPLE = Path(__file__).parents[3] / "examples" / "mnist_replica.py"
HEADWATER = (sys.executable, "-u", "-m", "headwater")

pytestmark = pytest.mark.slow


def accuracies(output: str) -> list[float]:
    return [float(text) for text in re.findall(r"Accuracy on 10000 test digits: (\S+)", output)]


def test_synchronous_replicas_under_the_launcher(shared: Path) -> None:
    with processes() as cluster:
        job = cluster.run(
            *HEADWATER,
            "run",
            "--ps",
            "1",
            "--workers",
            "2",
            "--flags",
            str(EXAMPLE),
            "--sync_replicas",
            "--train_steps=1000",
            HEADWATER_DATA_DIR=str(shared / "data"),
        )
        output = job.succeeds()
    first, second = accuracies(output)
    assert first == second > 0.94
    # Every update contains a gradient of each worker.
    assert output.count("training step 1000 done (global step: 1000)") == 2


def test_clients_of_existing_servers(shared: Path) -> None:
    with processes(ps=1, worker=2) as cluster:
        jobs = {job: cluster.release(job) for job in list(cluster.hosts)}
        tasks = [
            cluster.run(*HEADWATER, "server", "--cluster", json.dumps(jobs), "--job", job, "--index", str(index))
            for job, hosts in jobs.items()
            for index in range(len(hosts))
        ]
        flags = [f"--{job}_hosts={','.join(hosts)}" for job, hosts in jobs.items()]
        clients = [
            cluster.run(
                *EXEC,
                str(EXAMPLE),
                "--existing_servers",
                *flags,
                "--job_name=worker",
                f"--task_index={index}",
                "--train_steps=3000",
                HEADWATER_DATA_DIR=str(shared / "data"),
            )
            for index in range(2)
        ]
        for client in clients:
            (accuracy,) = accuracies(client.succeeds())
            assert accuracy > 0.95
        assert [task.terminate() for task in tasks] == [0, 0, 0]


def test_missing_data_are_reported(tmp_path: Path) -> None:
    # An address without a web server, in place of the network.
    nowhere = {"HEADWATER_DATA_DIR": str(tmp_path), "HOME": str(tmp_path), "https_proxy": "http://127.0.0.1:9"}
    with processes() as cluster:
        example = cluster.run(*EXEC, str(EXAMPLE), "--download_only", f"--data_dir={tmp_path}", **nowhere)
        assert example.ends() == 1
        assert re.search(r"cannot read the digits: .*HEADWATER_DATA_DIR", example.output)
        wrong = cluster.run(*HEADWATER, "server", "--cluster", "ps;127.0.0.1:1", "--job", "ps")
        assert wrong.ends() == 2
        assert re.fullmatch(r"headwater server: --cluster is 'ps;127.0.0.1:1'; write JSON, such as .*", wrong.output)
        missing = cluster.run(*HEADWATER, "server", "--cluster", "ps|127.0.0.1:1", "--job", "worker")
        assert missing.ends() == 2
        assert "--cluster task.type is 'worker', but the cluster has only ps" in missing.output
