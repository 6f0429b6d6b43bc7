"""A ``ps`` of a graph that is lost restores its own saved state; the other keeps its state, and nothing else is
restored.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.data.io.state_files import numbered
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.graph.server.own_state import GraphSaver, saves_of_environment
from headwater.tf1.compat import tf
from tests.inproc.conftest import Cluster, StartCluster


@pytest.fixture(autouse=True)
def graph() -> Generator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(autouse=True)
def saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets the folder of saved states; a state is saved only when a test requests it."""
    folder = tmp_path / "saves"
    monkeypatch.setenv("HEADWATER_SAVES", str(folder))
    monkeypatch.setenv("HEADWATER_SAVE_EVERY_S", "3600")
    return folder


@contextmanager
def trains_in_rounds(target: str, ps: int, folder: Path) -> Generator[tuple[Any, Any]]:
    """Yields a chief after five steps with gathered gradients: its session, and the fetches of a step."""
    with tf.device(tf.train.replica_device_setter(ps, worker_device="/job:worker/task:0")):
        step = tf.train.get_or_create_global_step()
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(-1.0), 1, 1)
        train = optimizer.apply_gradients([(tf.constant(1.0), v)], global_step=step)
    with tf.train.MonitoredTrainingSession(
        target,
        checkpoint_dir=str(folder),
        hooks=[optimizer.make_session_run_hook(True)],
        save_checkpoint_secs=3600,
    ) as session:
        for _ in range(5):
            session.run(train)
        yield session, train


class Program:
    """A chief whose global step is on the first ``ps``, and a variable with the same count on the second.

    It saves a checkpoint only at its beginning.
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            with tf.device(tf.train.replica_device_setter(2, worker_device="/job:worker/task:0")):
                self.step = tf.train.get_or_create_global_step()
                self.v = tf.get_variable("v", [4], initializer=tf.zeros_initializer())
                optimizer = tf.train.MomentumOptimizer(-1.0, 0.0)  # its slot is beside v
                train = optimizer.apply_gradients([(tf.ones([4]), self.v)])
                self.train = tf.group(tf.assign_add(self.step, 1), train)
            self.session = tf.train.MonitoredSession(
                tf.train.ChiefSessionCreator(master=cluster.targets["worker:0"], checkpoint_dir=str(folder)),
                [tf.train.CheckpointSaverHook(str(folder), save_secs=3600)],
            )

    def trains(self, steps: int) -> list[float]:
        """Makes steps; returns both counts after them."""
        for _ in range(steps):
            self.session.run(self.train)
        step, values = self.session.run([self.step, self.v])
        assert np.all(values == values[0])
        return [float(step), float(values[0])]


def saver(cluster: Cluster, index: int) -> GraphSaver:
    found = cluster._servers[f"ps:{index}"]._running._saver
    assert isinstance(found, GraphSaver)
    return found


def lose(cluster: Cluster, index: int, saves: Path) -> None:
    """Restarts a ``ps`` that has not saved since the start of this call."""
    folder = Path(saver(cluster, index).folder)
    aside = saves.parent / "aside"
    shutil.copytree(folder, aside, ignore=shutil.ignore_patterns("counts"))
    cluster.stop_one(f"ps:{index}")
    for _, name in numbered(str(folder)):
        (folder / name).unlink()
    shutil.copytree(aside, folder, dirs_exist_ok=True)
    cluster._start(f"ps:{index}")


@pytest.mark.parametrize(("lost", "after"), [(0, [3, 6]), (1, [6, 3])])
def test_ps_restores_its_own_state_and_reports_the_loss(
    lost: int,
    after: list[int],
    start_cluster: StartCluster,
    tmp_path: Path,
    saves: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = start_cluster(ps=2, worker=1)
    program = Program(cluster, tmp_path / "checkpoints")
    assert program.trains(2) == [2, 2]
    assert all(saver(cluster, index).save() for index in range(2))
    program.trains(3)
    caplog.set_level(logging.WARNING)
    lose(cluster, lost, saves)
    assert program.trains(1) == after
    assert f"/job:ps/task:{lost} continues with its own state of" in caplog.text
    assert "still have the state of this training" in caplog.text
    assert "Restored" not in caplog.text
    # The initial value was the first update of each.
    names = "global_step" if lost == 0 else "v, v/Momentum"
    assert f"updates 4 to 6 of {names}" in caplog.text
    loss = saver(cluster, lost).loss
    assert loss is not None
    assert loss.max_lost_updates == 3
    snapshot = cluster._servers[f"ps:{lost}"]._running.shell.snapshot()
    (group,) = [group for group in snapshot.groups if group.saved]
    assert group.lost_updates == 3
    assert "updates 4 to 6" in group.saved


def test_a_loss_before_the_first_save_counts_from_the_resumed_step(
    start_cluster: StartCluster, tmp_path: Path, saves: Path
) -> None:
    cluster = start_cluster(ps=2, worker=1)
    program = Program(cluster, tmp_path / "checkpoints")
    program.trains(2)
    saver(cluster, 1).save()
    program.trains(3)
    lose(cluster, 1, saves)
    assert program.trains(1) == [6, 3]
    shutil.rmtree(saves.parent / "aside")
    lose(cluster, 1, saves)
    loss = saver(cluster, 1).loss
    assert loss is not None
    assert loss.max_lost_updates == 1
    assert program.trains(1) == [7, 3]


def test_stopped_ps_loses_nothing(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(ps=2, worker=1)
    program = Program(cluster, tmp_path / "checkpoints")
    program.trains(5)
    cluster.restart("ps:1")
    loss = saver(cluster, 1).loss
    assert loss is not None
    assert str(loss).endswith("no update is lost")
    assert program.trains(1) == [6, 6]


def test_without_a_folder_all_go_back_together(
    start_cluster: StartCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADWATER_SAVES")
    cluster = start_cluster(ps=2, worker=1)
    program = Program(cluster, tmp_path / "checkpoints")
    program.trains(5)
    cluster.restart("ps:1")
    assert program.trains(1) == [1, 1]


def test_states_older_than_a_restore_are_ignored(start_cluster: StartCluster, tmp_path: Path, saves: Path) -> None:
    """A ps that restarts without a state causes a restore on all ps, so the other ps's saved state is void."""
    cluster = start_cluster(ps=2, worker=1)
    program = Program(cluster, tmp_path / "checkpoints")
    program.trains(5)
    assert all(saver(cluster, index).save() for index in range(2))
    cluster.stop_one("ps:1")
    shutil.rmtree(saver(cluster, 1).folder)
    cluster._start("ps:1")
    assert program.trains(1) == [1, 1]
    first = saver(cluster, 0)
    first.save()
    (_, name), *_ = numbered(first.folder)
    assert name.endswith(".full")
    lose(cluster, 0, saves)
    assert program.trains(1) == [2, 2]


def test_damaged_saved_state_restores_all_ps(
    start_cluster: StartCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = start_cluster(ps=2, worker=1)
    program = Program(cluster, tmp_path / "checkpoints")
    program.trains(5)
    cluster.stop_one("ps:1")
    folder = saver(cluster, 1).folder
    for _, name in numbered(folder):
        path = Path(folder, name)
        path.write_bytes(path.read_bytes()[:-1])
    cluster._start("ps:1")
    assert program.trains(1) == [1, 1]
    assert "cannot use a state that it has saved" in caplog.text
    assert "it was cut off" in caplog.text


def test_tasks_of_a_program_with_gathered_gradients_are_restored_together(
    start_cluster: StartCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = start_cluster(ps=2, worker=1)
    with trains_in_rounds(cluster.targets["worker:0"], 2, tmp_path / "checkpoints"):
        assert not saver(cluster, 1).save()
        assert "/job:ps/task:1 saves no state of its own: " in caplog.text
        assert "all ps have to restore together" in caplog.text
        assert not numbered(saver(cluster, 1).folder)


def test_strings_and_containers_survive_encoding(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        tf.train.get_or_create_global_step()
        names = tf.get_variable("names", initializer=tf.constant([["a", ""], ["ccc", "d"]]))
        with tf.container("other"):
            apart = tf.Variable(3, name="apart")
        half = tf.Variable(tf.constant([1.5, 2.5], tf.bfloat16), name="half")
    creator = tf.train.ChiefSessionCreator(master=cluster.targets["worker:0"], checkpoint_dir=str(tmp_path / "none"))
    session = tf.train.MonitoredSession(creator)
    before = session.run([names, apart, half])
    cluster.restart("ps:0")
    after = session.run([names, apart, half])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    assert after[0][1][0] == b"ccc"


def test_another_number_of_ps_is_refused(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(ps=2, worker=1)
    Program(cluster, tmp_path / "checkpoints").trains(1)
    cluster.stop()
    with pytest.raises(FailedPreconditionError, match=r"there are 1 ps now.*HEADWATER_SAVES"):
        start_cluster(ps=1, worker=1)


def test_saves_are_configured_by_the_environment() -> None:
    assert saves_of_environment({}) is None
    found = saves_of_environment({"HEADWATER_SAVES": "/a", "HEADWATER_SAVE_EVERY_S": "0.5"})
    assert found is not None
    assert (found.folder, found.every_s) == ("/a", 0.5)
    with pytest.raises(InvalidArgumentError, match="HEADWATER_SAVE_EVERY_S"):
        saves_of_environment({"HEADWATER_SAVES": "/a", "HEADWATER_SAVE_EVERY_S": "0"})
