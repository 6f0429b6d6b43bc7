"""A ``ps`` of a graph without a folder for saves that shuts down deposits its state with the chief until it is back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from headwater.graph.server import deposited_state
from headwater.tf1.compat import tf
from tests.inproc.conftest import Cluster, StartCluster
from tests.inproc.tf1.training.test_own_state import Program, trains_in_rounds


@pytest.fixture(autouse=True)
def graph() -> Generator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def send_sigterm(cluster: Cluster, name: str) -> None:
    """Acts on a task like SIGTERM."""
    server = cluster._servers[name]
    program = threading.Thread(target=server.join)
    program.start()
    server._running.shell.end()
    program.join()


def test_nothing_is_lost_while_steps_continue(
    start_cluster: StartCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = start_cluster(ps=2, worker=1)
    program = Program(cluster, tmp_path)
    assert program.trains(3) == [3, 3]
    done, made = threading.Event(), 3

    def train() -> None:
        nonlocal made
        while not done.is_set():
            program.trains(1)
            made += 1

    worker = threading.Thread(target=train)
    worker.start()
    caplog.set_level(logging.WARNING)
    for index in (0, 1, 0, 1):
        send_sigterm(cluster, f"ps:{index}")
        cluster._start(f"ps:{index}")
    done.set()
    worker.join()
    assert program.trains(1) == [made + 1, made + 1]
    assert caplog.text.count("which was deposited with /job:worker/task:0") == 4
    assert "Restored" not in caplog.text
    assert "was restarted" not in caplog.text


def test_a_deposited_state_is_used_once(start_cluster: StartCluster, tmp_path: Path) -> None:
    """An incarnation that was not shut down gracefully has deposited nothing: an earlier deposited state would be
    outdated.
    """
    cluster = start_cluster(ps=2, worker=1)
    program = Program(cluster, tmp_path)
    program.trains(3)
    send_sigterm(cluster, "ps:1")
    cluster._start("ps:1")
    assert program.trains(2) == [5, 5]
    cluster.restart("ps:1")
    assert program.trains(1) == [1, 1]


def test_no_later_incarnation_uses_a_state_that_the_next_one_lacked(
    start_cluster: StartCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = start_cluster(ps=2, worker=1)
    program = Program(cluster, tmp_path)
    program.trains(3)
    send_sigterm(cluster, "ps:1")
    with monkeypatch.context() as patched:
        patched.setattr(deposited_state, "fetch", lambda *_, **__: None)  # the chief has not answered
        cluster._start("ps:1")
    assert program.trains(2) == [2, 2]
    cluster.restart("ps:1")
    assert program.trains(1) == [1, 1]


def test_resources_that_cannot_be_deposited_are_new(
    start_cluster: StartCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = start_cluster(ps=2, worker=1)
    program = Program(cluster, tmp_path)
    with tf.device("/job:ps/task:1"):
        numbers = tf.data.Dataset.range(10).make_initializable_iterator("numbers")
        number = numbers.get_next()
    with tf.Session(cluster.targets["worker:0"]) as session:
        session.run(numbers.initializer)
        assert session.run(number) == 0
    assert program.trains(3) == [3, 3]
    caplog.set_level(logging.WARNING)
    send_sigterm(cluster, "ps:1")
    cluster._start("ps:1")
    assert program.trains(1) == [4, 4]
    assert "still have the state of this training" in caplog.text
    assert "Restored" not in caplog.text
    with tf.Session(cluster.targets["worker:0"]) as session, pytest.raises(tf.errors.FailedPreconditionError):
        session.run(number)


def test_a_plain_session_continues(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        count = tf.get_variable("count", initializer=0)
        step = tf.assign_add(count, 1)
    with tf.Session(cluster.targets["worker:0"]) as session:
        session.run(count.initializer)
        assert session.run(step) == 1
        send_sigterm(cluster, "ps:0")
        with pytest.raises(tf.errors.UnavailableError):
            session.run(step)
        cluster._start("ps:0")
        assert session.run(step) == 2


def test_rounds_of_gathered_gradients_continue(
    start_cluster: StartCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = start_cluster(ps=1, worker=1)
    with trains_in_rounds(cluster.targets["worker:0"], 1, tmp_path) as (session, train):
        send_sigterm(cluster, "ps:0")
        cluster._start("ps:0")
        session.run(train)
        assert session.run(tf.train.get_global_step()) == 6
    assert "Restored" not in caplog.text
    assert "was restarted" not in caplog.text


def test_an_incomplete_state_of_rounds_is_not_deposited(
    start_cluster: StartCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = start_cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        numbers = tf.data.Dataset.range(10).make_initializable_iterator("numbers")
    with trains_in_rounds(cluster.targets["worker:0"], 1, tmp_path) as (session, train):
        session.run(numbers.initializer)
        send_sigterm(cluster, "ps:0")
        assert "/job:ps/task:0 ends without depositing its state with /job:worker/task:0: " in caplog.text
        assert "all ps have to restore together" in caplog.text
        cluster._start("ps:0")
        session.run(train)
        assert session.run(tf.train.get_global_step()) <= 2


def test_a_lost_chief_is_named(start_cluster: StartCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = start_cluster(ps=1, worker=2)
    with tf.device("/job:ps/task:0"):
        count = tf.get_variable("count", initializer=0)
    with tf.Session(cluster.targets["worker:1"]) as session:
        session.run(count.initializer)
        cluster.stop_one("worker:0")
        send_sigterm(cluster, "ps:0")
    assert "/job:ps/task:0 could not deposit its state with /job:worker/task:0, so the state is lost" in caplog.text


def test_nothing_is_left_when_the_job_is_over(start_cluster: StartCluster, caplog: pytest.LogCaptureFixture) -> None:
    cluster = start_cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        count = tf.get_variable("count", initializer=0)
    with tf.Session(cluster.targets["worker:0"]) as session:
        session.run(count.initializer)
    server = cluster._servers["ps:0"]
    program = threading.Thread(target=server.join)
    program.start()
    cluster._servers["worker:0"]._running.announce_end()
    cluster.stop_one("worker:0")
    program.join()
    assert "leave" not in caplog.text.replace("waits for /job:worker/task:0 to leave", "")
