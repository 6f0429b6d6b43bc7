"""Backups of the ledger of examples: each example counts once, at whichever frame a ``ps`` is killed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.errors import OutOfRangeError
from headwater.ps.accounting.audit import audit
from headwater.tf1.training.accounted import accounted
from headwater.tf1.training.supervised_session import SupervisedSession
from tests.support.copied_cluster import CopiedCluster, copied_cluster
from tests.support.cuts import Cuts

SIZE, BATCH, EPOCHS = 7, 2, 2
STEPS = EPOCHS * -(-SIZE // BATCH)
FRAMES = 15
"""Frames of a step below: 15. A request and an answer for each `ps`, the range from the first one, and values from and
gradients to each: 9, as without backups. Changes with their confirmations: for the range, for the first one's update
with its ledger, and for the other one's update: 6.
"""


@dataclass
class Training:
    """Two `ps`, and a program that adds 1 at the position of each example on both."""

    cluster: CopiedCluster
    session: tf.Session
    step: Any
    counts: Any

    def run(self) -> list[np.ndarray[Any, Any]]:
        """Runs all epochs; returns how often each example was applied on each ``ps``."""
        for _ in range(STEPS - 1):
            self.session.run(self.step)
        self.cluster.cuts.plan()
        with pytest.raises(OutOfRangeError):
            self.session.run(self.step)
        return self.session.run(self.counts)


@contextmanager
def training(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Training]:
    monkeypatch.setenv("HEADWATER_LOG_DIR", str(folder))
    with copied_cluster(cuts=Cuts()) as cluster, tf.Graph().as_default():
        counts: list[Any] = []
        for ps in (0, 1):
            with tf.device(f"/job:ps/task:{ps}"):
                counts.append(tf.get_variable(f"count{ps}", [SIZE], initializer=tf.zeros_initializer()))
        with tf.device("/job:worker/task:0"):
            dataset = tf.data.Dataset.range(SIZE)
            taken = accounted(dataset, batch_size=BATCH, epochs=EPOCHS, device="/job:ps/task:0")
            rows = tf.reduce_sum(tf.one_hot(taken.make_one_shot_iterator().get_next(), SIZE), 0)
            loss = -tf.add_n([tf.reduce_sum(count * rows) for count in counts])
        step = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        with SupervisedSession(cluster.target()) as session:
            session.run(tf.global_variables_initializer())
            cluster.paired()
            session.run(step)
            yield Training(cluster, session, step, counts)


def _check(found: list[np.ndarray[Any, Any]], folder: Path) -> None:
    for counts in found:
        np.testing.assert_array_equal(counts, np.full(SIZE, EPOCHS, np.float32))
    told = audit(str(folder))
    assert told.exact
    (run,) = told.runs.values()
    assert [(epoch.over, epoch.missing()) for epoch in run.epochs.values()] == [(True, [])] * EPOCHS


def test_each_ps_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with training(tmp_path, monkeypatch) as found:
        for index in (0, 1):
            found.cluster.kill(index)
            found.session.run(found.step)
            found.cluster.start(index)
            found.cluster.paired()
            found.session.run(found.step)
        for _ in range(STEPS - 5):
            found.session.run(found.step)
        with pytest.raises(OutOfRangeError):
            found.session.run(found.step)
        _check(found.session.run(found.counts), tmp_path)


def test_how_many_frames_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with training(tmp_path, monkeypatch) as found:
        found.cluster.cuts.plan()
        found.session.run(found.step)
        assert found.cluster.cuts.frames == FRAMES


@pytest.mark.slow
@pytest.mark.parametrize("ps", [0, 1])
@pytest.mark.parametrize("frame", range(FRAMES))
def test_a_ps_dies_at_every_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frame: int, ps: int) -> None:
    with training(tmp_path, monkeypatch) as found:
        found.cluster.cuts.on_cut = lambda: found.cluster.kill(ps)
        found.cluster.cuts.plan(before=[frame])
        _check(found.run(), tmp_path)
