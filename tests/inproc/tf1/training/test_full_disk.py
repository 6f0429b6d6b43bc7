"""A full disk: training continues, earlier files stay complete, and failed writes are retried."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater import errors, tf
from headwater.cluster.task.metrics import metrics_of
from headwater.cluster.telemetry.snapshot import Snapshot
from headwater.cluster.telemetry.troubles import TROUBLES
from headwater.data.io.event_file import summary_iterator
from headwater.tf1.training.checkpoint_state import latest_checkpoint
from headwater.tf1.training.file_writer import FileWriterCache
from headwater.tf1.training.saving_attempts import FIRST_PAUSE_S, LONGEST_PAUSE_S, SavingAttempts
from headwater.tf1.training.supervisor_services import SVTimerCheckpointThread
from tests.support.small_disk import SmallDisk, small_disk

VALUES = 100_000
"""The number of values in the variable: 400 kB on a disk of 4 MB."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as made:
        yield made
        FileWriterCache.clear()


@pytest.fixture
def train() -> Iterator[Any]:
    """Adds one to all values and to the global step, in a graph of its own."""
    with tf.Graph().as_default():
        weights = tf.get_variable("weights", shape=[VALUES], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies([tf.assign_add(weights, tf.ones([VALUES])).op]):
            added = tf.assign_add(step, 1)
        yield added


def saved_step(folder: Path) -> int:
    """Returns the step of the newest checkpoint, after reading all of its values."""
    newest = latest_checkpoint(folder)
    assert newest is not None
    reader = tf.train.load_checkpoint(newest)
    step = int(reader.get_tensor("global_step"))
    assert (reader.get_tensor("weights") == step).all()
    return step


def test_a_monitored_session_trains_on_and_saves_again(
    disk: SmallDisk, train: Any, caplog: pytest.LogCaptureFixture
) -> None:
    now = SimpleNamespace(s=0.0)
    hook = tf.train.CheckpointSaverHook(str(disk.path), save_steps=2)
    hook._attempts = SavingAttempts(f"checkpoints in {disk.path}", clock=lambda: now.s)
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(checkpoint_dir=str(disk.path)), [hook]) as session:
        for _ in range(4):
            session.run(train)
        assert saved_step(disk.path) == 4
        disk.fill()
        for _ in range(4):
            assert session.run(train)
        assert saved_step(disk.path) == 4
        assert f"Cannot write checkpoints in {disk.path}" in caplog.text
        (trouble,) = [one for one in TROUBLES.all_failures() if one.what == f"checkpoints in {disk.path}"]
        assert trouble.failures >= 1
        assert "No space left" in trouble.message
        shown = "".join(str(metric.samples) for metric in metrics_of("worker 0", Snapshot(at=0, troubles=(trouble,))))
        assert "headwater_write_failures_total" in shown
        assert str(disk.path) in shown
        assert Snapshot.decode(Snapshot(at=0, troubles=(trouble,)).encode()).troubles == (trouble,)
        disk.free()
        now.s += LONGEST_PAUSE_S
        step = int(session.run(train))
        assert saved_step(disk.path) == step
        assert "written again" in caplog.text


def test_a_failed_save_at_the_end_is_an_error(disk: SmallDisk, train: Any) -> None:
    def run() -> None:
        with tf.train.MonitoredTrainingSession(checkpoint_dir=str(disk.path), save_checkpoint_steps=100) as session:
            session.run(train)
            disk.fill()
            session.run(train)

    with pytest.raises(errors.ResourceExhaustedError, match=str(disk.path)):
        run()
    assert saved_step(disk.path) == 0


def test_a_supervisor_trains_on(disk: SmallDisk, train: Any, caplog: pytest.LogCaptureFixture) -> None:
    supervisor = tf.train.Supervisor(logdir=str(disk.path), save_model_secs=3600)
    with supervisor.managed_session(start_standard_services=False) as session:
        session.run(train)
        supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
        disk.fill()
        saves = SVTimerCheckpointThread(supervisor, session)
        now = SimpleNamespace(s=0.0)
        failed, freed, saved = threading.Event(), threading.Event(), threading.Event()

        class Attempts(SavingAttempts):
            """Retries, with pauses that last until the test has freed the disk."""

            def attempt(self, save: Callable[[], object]) -> bool:
                done = super().attempt(save)
                if done:
                    saved.set()
                return done

            def pause_s(self, otherwise: float) -> float:
                failed.set()
                assert freed.wait(60)
                return 0.0

        saves._attempts = Attempts(f"checkpoints at {supervisor.save_path}", clock=lambda: now.s)
        saves.start()
        assert failed.wait(60)
        assert session.run(train) == 2
        assert saved_step(disk.path) == 1
        disk.free()
        freed.set()
        assert saved.wait(60)
    saves.join()
    assert saved_step(disk.path) == 2
    assert "written again" in caplog.text


def test_pauses_grow_to_a_bound() -> None:
    now = SimpleNamespace(s=0.0)
    attempts = SavingAttempts("nothing", clock=lambda: now.s)

    def refuse() -> None:
        raise OSError(28, "No space left on device")

    pauses: list[float] = []
    for _ in range(9):
        assert not attempts.attempt(refuse)
        assert not attempts.due
        pauses.append(attempts.pause_s(1e9))
        now.s += pauses[-1]
        assert attempts.due
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S
    assert attempts.attempt(lambda: None)
    assert (attempts.failing, attempts.due, attempts.pause_s(7.0)) == (False, False, 7.0)
    with pytest.raises(ValueError, match="other"):
        attempts.attempt(lambda: (_ for _ in ()).throw(ValueError("other")))


def test_events_wait_for_room(disk: SmallDisk) -> None:
    def summary(step: int) -> Any:
        return tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=step)])

    writer = tf.summary.FileWriter(str(disk.path / "events"))
    for step in range(3):
        writer.add_summary(summary(step), step)
    writer.flush()
    disk.fill()
    for step in range(3, 300):
        writer.add_summary(summary(step), step)
    writer.flush()
    disk.free()
    writer.add_summary(summary(300), 300)
    writer.close()
    found = [event for path in sorted((disk.path / "events").iterdir()) for event in summary_iterator(path)]
    steps = [event.step for event in found if event.HasField("summary")]
    assert steps == list(range(301))
