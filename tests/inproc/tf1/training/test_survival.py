"""A parameter server is lost: training under a supervisor continues if it restarts, and fails if it does not."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import GaveUpError
from headwater.tf1.compat import tf
from tests.inproc.conftest import Cluster, StartCluster


@pytest.fixture(autouse=True)
def graph() -> Generator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


class Model:
    """Two variables on two parameter servers."""

    def __init__(self, replica: int) -> None:
        with tf.device(tf.train.replica_device_setter(2, worker_device=f"/job:worker/task:{replica}")):
            self.v = tf.Variable([1.0, 2.0], name="v")
            self.w = tf.Variable(3.0, name="w")
            self.step = tf.train.get_or_create_global_step()
            loss = tf.reduce_sum(self.v * self.v) * self.w
            self.train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=self.step)


def supervisor(model: Model, replica: int, logdir: Path) -> Any:
    return tf.train.Supervisor(
        is_chief=replica == 0,
        logdir=str(logdir),
        summary_op=None,
        save_summaries_secs=0,
        save_model_secs=0,
        recovery_wait_secs=0.05,
        global_step=model.step,
    )


def test_variables_are_restored_from_the_checkpoint(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster: Cluster = start_cluster(ps=2, worker=1)
    model = Model(0)
    sv = supervisor(model, 0, tmp_path)
    with sv.managed_session(cluster.targets["worker:0"]) as sess:
        train = sess.make_callable([model.train, model.step])
        for _ in range(3):
            train()
        sv.saver.save(sess, sv.save_path, global_step=model.step)
        saved = sess.run([model.v, model.w])
        for _ in range(2):
            train()
        cluster.restart("ps:1")
        # All values are of one checkpoint, including the values that were not lost.
        assert [value.tolist() for value in sess.run([model.v, model.w])] == [value.tolist() for value in saved]
        assert sess.run(model.step) == 3
        assert train()[1] == 3
        assert sess.run(model.step) == 4


def test_without_a_checkpoint_training_begins_again(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster: Cluster = start_cluster(ps=2, worker=1)
    model = Model(0)
    with supervisor(model, 0, tmp_path).managed_session(cluster.targets["worker:0"]) as sess:
        sess.run(model.train)
        cluster.restart("ps:0")
        assert sess.run([model.step, model.w]) == [0, 3.0]


def test_a_worker_waits_while_the_chief_restores(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster: Cluster = start_cluster(ps=2, worker=2)
    chief = Model(0)
    results: list[Any] = []
    ready, lost = threading.Event(), threading.Event()

    def work() -> None:
        with tf.Graph().as_default():
            model = Model(1)
            with supervisor(model, 1, tmp_path).managed_session(cluster.targets["worker:1"]) as sess:
                sess.run(model.train)
                ready.set()
                lost.wait()
                sess.run(model.train)
                results.append(int(sess.run(model.step)))

    worker = threading.Thread(target=work)
    sv = supervisor(chief, 0, tmp_path)
    with sv.managed_session(cluster.targets["worker:0"]) as sess:
        sv.saver.save(sess, sv.save_path, global_step=chief.step)
        worker.start()
        ready.wait()
        cluster.restart("ps:0")
        lost.set()
        while not results:
            sess.run(chief.v)
        worker.join()
    assert results == [1]


def test_threads_that_share_a_session_recover_once(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster: Cluster = start_cluster(ps=2, worker=1)
    model = Model(0)
    sv = supervisor(model, 0, tmp_path)
    with sv.managed_session(cluster.targets["worker:0"]) as sess:
        sess.run(model.train)
        sv.saver.save(sess, sv.save_path, global_step=model.step)
        cluster.restart("ps:0")
        found: list[int] = []
        threads = [threading.Thread(target=lambda: found.append(int(sess.run(model.step)))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [1] * 4


def test_a_plain_session_raises(start_cluster: StartCluster) -> None:
    cluster: Cluster = start_cluster(ps=2, worker=1)
    model = Model(0)
    init = tf.global_variables_initializer()
    with tf.Session(cluster.targets["worker:0"]) as sess:
        sess.run(init)
        cluster.restart("ps:0")
        with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)):
            sess.run(model.train)


@pytest.mark.parametrize("monitored", [False, True])
def test_a_run_that_needs_a_ps_that_has_ended_for_good_gives_up(
    start_cluster: StartCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, monitored: bool
) -> None:
    monkeypatch.setenv("HEADWATER_CONNECT_DEADLINE_S", "0.2")
    cluster = start_cluster(ps=3, worker=1)
    model = Model(0)
    with tf.device("/job:ps/task:2"):
        put = tf.FIFOQueue(1, tf.int32).enqueue(1)
    target = cluster.targets["worker:0"]
    session = (
        tf.train.MonitoredTrainingSession(target)
        if monitored
        else supervisor(model, 0, tmp_path).managed_session(target)
    )
    with pytest.raises(GaveUpError, match="gave up waiting for /job:ps/task:2"), session as sess:
        sess.run(model.train)
        cluster.stop_one("ps:2")
        sess.run(put)
