"""``headwater doctor`` with running tasks, missing tasks, and servers of other programs."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import bound

HEADWATER = str(Path(sys.executable).with_name("headwater"))

SERVER = """
import sys
import tensorflow as tf
server = tf.train.Server({"ps": [sys.argv[1]]}, job_name="ps", task_index=0)
print("ready", flush=True)
server.join()
"""


def doctor(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HEADWATER, "doctor", *arguments], capture_output=True, text=True, check=False, env=env or None
    )


@pytest.fixture
def free_address() -> Iterator[str]:
    """Yields an address at which nothing listens."""
    with bound() as kept:
        yield "{}:{}".format(*kept.getsockname())


@pytest.fixture
def ps(free_address: str) -> Iterator[str]:
    """Yields the address of a parameter server."""
    with subprocess.Popen(
        [HEADWATER, "exec", "-c", SERVER, free_address], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield free_address
        process.terminate()
        assert process.wait() == 0


@pytest.fixture
def stranger() -> Iterator[str]:
    """Yields the address of a server that is not Headwater."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield "{}:{}".format(*listening.getsockname())
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_healthy_cluster(ps: str) -> None:
    result = doctor("--ps_hosts", ps)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[1].split()[:4] == ["ps", "0", ps, "ok"]


def test_each_task_is_reported(ps: str, stranger: str) -> None:
    result = doctor("--ps_hosts", f"{ps},{stranger}", "--worker_hosts", "127.0.0.1:1,no-such-host.invalid:2222")
    assert result.returncode == 1
    rows = {tuple(line.split()[:2]): line for line in result.stdout.splitlines()[1:]}
    assert f"{ps} " in rows["ps", "0"]
    assert " ok " in rows["ps", "0"]
    assert "not Headwater" in rows["ps", "1"]
    assert "process" in rows["ps", "1"]
    assert "refused" in rows["worker", "0"]
    assert "unknown host" in rows["worker", "1"]


def test_task_listening_at_the_address_of_another_task(ps: str) -> None:
    result = doctor("--worker_hosts", ps)
    assert result.returncode == 1
    assert "/job:ps/task:0" in result.stdout


def test_without_flags_the_cluster_is_tf_configs(ps: str) -> None:
    result = doctor(TF_CONFIG=json.dumps({"cluster": {"ps": [ps]}}))
    assert result.returncode == 0, result.stdout + result.stderr
    assert ps in result.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "--ps_hosts"),
        (["--ps_hosts", "a:1,a:1"], "--ps_hosts[1]"),
        (["--worker_hosts", "a"], "--worker_hosts[0]"),
        (["--ps_hosts", "a:1", "--worker_hosts", "a:1"], "worker[0]"),
        (["--ps_hosts", "a:1", "--timeout", "-1"], "--timeout"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments: list[str], named: str) -> None:
    result = doctor(*arguments, PATH="")
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert named in result.stderr
