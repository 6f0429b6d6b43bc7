"""Checkpoints of objects: cases beyond `tests/conformance/cases/objects.py`."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from headwater import tf


@pytest.fixture(autouse=True)
def _graph() -> Generator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def test_a_checkpoint_of_a_saver_is_restored_by_names(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        saved = tf.get_variable("v", [2], initializer=tf.ones_initializer())
        session.run(saved.initializer)
        path = tf.train.Saver().save(session, str(tmp_path / "by-names"))
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    with tf.Session() as session:
        status = tf.train.Checkpoint(x=v, y=w).restore(path).assert_nontrivial_match()
        with pytest.raises(AssertionError, match="w:0"):
            status.assert_existing_objects_matched()
        status.initialize_or_restore(session)
        assert [value.tolist() for value in session.run([v, w])] == [[1.0, 1.0], 1.0]


def test_a_checkpoint_kept_forever_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1e9]
    monkeypatch.setattr("headwater.tf1.training.object_checkpoints.time.time", lambda: now[0])
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), str(tmp_path), 1, keep_checkpoint_every_n_hours=2)
    with tf.Session() as session:
        session.run(v.initializer)
        for _ in range(4):
            now[0] += 3600
            manager.save()
    kept = sorted(path.name for path in tmp_path.glob("*.index"))
    assert kept == ["ckpt-2.index", "ckpt-4.index"]
    assert [Path(path).name for path in manager.checkpoints] == ["ckpt-4"]


def test_without_a_session() -> None:
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    with pytest.raises(ValueError, match="no default session"):
        tf.train.Checkpoint(v=v).save("nowhere")
