"""A chief that restarts while the parameter servers run: training continues with their state."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from headwater.tf1.compat import tf
from headwater.tf1.training import seals, session_manager
from tests.inproc.conftest import StartCluster


@pytest.fixture(autouse=True)
def graph() -> Generator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


class Chief:
    """An incarnation of the chief, which saves a checkpoint only at its beginning.

    Args:
      target: the target of its session.
      folder: the folder of its checkpoints.
      incarnation: the name of its process.
    """

    def __init__(self, target: str, folder: Path, incarnation: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(session_manager, "THIS_PROCESS", incarnation)
        self.graph = tf.Graph()
        with self.graph.as_default():
            with tf.device(tf.train.replica_device_setter(2, worker_device="/job:worker/task:0")):
                self.step = tf.train.get_or_create_global_step()
                self.v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
                self.train = tf.group(tf.assign_add(self.step, 1), tf.assign_add(self.v, 1.0))
            self.session = tf.train.MonitoredSession(
                tf.train.ChiefSessionCreator(master=target, checkpoint_dir=str(folder)),
                [tf.train.CheckpointSaverHook(str(folder), save_secs=3600)],
            )

    def trains(self, steps: int) -> list[float]:
        """Makes ``steps`` steps; returns the global step after them."""
        for _ in range(steps):
            self.session.run(self.train)
        return [float(value) for value in self.session.run([self.step, self.v])]

    def dies(self) -> None:
        """Ends without another checkpoint."""
        self.session._sess.close()


def test_a_new_chief_continues_with_the_live_state(
    start_cluster: StartCluster, tmp_path: Path, monkeypatch: Any, caplog: Any
) -> None:
    target = start_cluster(ps=2, worker=1).targets["worker:0"]
    first = Chief(target, tmp_path, "first", monkeypatch)
    assert first.trains(5) == [5, 5]
    first.dies()
    second = Chief(target, tmp_path, "second", monkeypatch)
    assert second.trains(1) == [6, 6]
    assert "still have the state of this training, at step 5" in caplog.text
    second.dies()
    assert Chief(target, tmp_path, "third", monkeypatch).trains(0) == [6, 6]


def test_a_lost_ps_restores_the_checkpoint_for_all(
    start_cluster: StartCluster, tmp_path: Path, monkeypatch: Any, caplog: Any
) -> None:
    cluster = start_cluster(ps=2, worker=1)
    first = Chief(cluster.targets["worker:0"], tmp_path, "first", monkeypatch)
    first.trains(5)
    first.dies()
    cluster.restart("ps:1")
    assert Chief(cluster.targets["worker:0"], tmp_path, "second", monkeypatch).trains(1) == [1, 1]
    assert "/job:ps/task:1 has lost the state of the training" in caplog.text


def test_a_restore_that_was_left_half_done_is_done_again(
    start_cluster: StartCluster, tmp_path: Path, monkeypatch: Any
) -> None:
    target = start_cluster(ps=2, worker=1).targets["worker:0"]
    first = Chief(target, tmp_path, "first", monkeypatch)
    first.trains(5)
    first.dies()
    # The next incarnation was about to restore for some reason, and was killed after it had restored one of two
    # variables.
    seals.Seals(target, first.graph, None).write(None)
    with tf.Session(target, graph=first.graph) as sess:
        sess.run(first.v.initializer)
    assert Chief(target, tmp_path, "third", monkeypatch).trains(1) == [1, 1]


def test_the_switch_restores(start_cluster: StartCluster, tmp_path: Path, monkeypatch: Any, caplog: Any) -> None:
    target = start_cluster(ps=2, worker=1).targets["worker:0"]
    first = Chief(target, tmp_path, "first", monkeypatch)
    first.trains(5)
    first.dies()
    monkeypatch.setenv("HEADWATER_RESTORE", "always")
    assert Chief(target, tmp_path, "second", monkeypatch).trains(0) == [0, 0]
    assert "were at step 5: 5 steps are lost" in caplog.text


def test_a_program_that_trains_twice_begins_twice(
    start_cluster: StartCluster, tmp_path: Path, monkeypatch: Any
) -> None:
    target = start_cluster(ps=2, worker=1).targets["worker:0"]
    for _ in range(2):
        chief = Chief(target, tmp_path, "one", monkeypatch)
        assert chief.trains(5) == [5, 5]
        chief.dies()


def test_the_same_chief_continues_after_a_loss(start_cluster: StartCluster, tmp_path: Path, monkeypatch: Any) -> None:
    target = start_cluster(ps=2, worker=1).targets["worker:0"]
    chief = Chief(target, tmp_path, "one", monkeypatch)
    chief.trains(5)
    fails = iter([tf.errors.UnavailableError(None, None, "a connection is lost")])

    def step(step_context: Any) -> Any:
        for error in fails:
            raise error
        return step_context.session.run([chief.step, chief.v])

    assert [float(value) for value in chief.session.run_step_fn(step)] == [5, 5]


@pytest.mark.parametrize("replicas", ["1", "2"])
def test_a_model_is_not_ready_before_its_chief_has_prepared_all_of_it(
    start_cluster: StartCluster, replicas: str, monkeypatch: Any
) -> None:
    """Each variable has a value, but the chief or its next incarnation might initialise all of them again."""
    monkeypatch.setenv("HEADWATER_REPLICAS", replicas)
    targets = start_cluster(ps=2, worker=2).targets
    with tf.device(tf.train.replica_device_setter(2)):
        step = tf.train.get_or_create_global_step()
        other = tf.get_variable("other", [], initializer=tf.zeros_initializer())
    ready = tf.report_uninitialized_variables()
    manager = tf.train.SessionManager(ready_op=ready)

    def dies(session: Any) -> None:
        assert session.run([step, other]) == [0, 0]
        with pytest.raises(tf.errors.DeadlineExceededError, match=r"preparing .* on /job:ps/task:0, /job:ps/task:1"):
            manager.wait_for_session(targets["worker:1"], max_wait_secs=0)
        assert manager.rejoin_session(targets["worker:1"]) is None
        raise EOFError

    init = tf.global_variables_initializer()
    with pytest.raises(EOFError):
        tf.train.SessionManager(ready_op=ready).prepare_session(targets["worker:0"], init, init_fn=dies)
    with pytest.raises(tf.errors.DeadlineExceededError, match="is preparing the variables"):
        manager.wait_for_session(targets["worker:1"], max_wait_secs=0)
    tf.train.SessionManager(ready_op=ready).prepare_session(targets["worker:0"], init).close()
    manager.wait_for_session(targets["worker:1"], max_wait_secs=0).close()
