"""Backups of the state of synchronous training: each round counts once on each ``ps``, whenever one is killed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from headwater import tf
from headwater.errors import CancelledError
from headwater.graph.resources.recording import InstructionPlace, ResourceOperation
from headwater.graph.runtime.step import Step
from headwater.graph.runtime.task import TaskRuntime
from headwater.graph.server.replicas.changes import Changes
from headwater.graph.server.replicas.resources import CopiedResources
from headwater.ps.consistency import Synchronous
from headwater.tf1.training.consistency import ConsistentOptimizer
from tests.support.copied_cluster import CopiedCluster, copied_cluster
from tests.support.cuts import Cuts
from tests.support.rounds import KINDS, WORKERS, check_rounds


def _check(cluster: CopiedCluster, kind: str, kill_at: Sequence[int] = ()) -> None:
    def begin() -> None:
        cluster.paired()
        cluster.cuts.plan(before=kill_at)

    check_rounds(kind, cluster.target, begin)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_loss(kind: str) -> None:
    with copied_cluster(WORKERS, Cuts()) as cluster:
        _check(cluster, kind)
        assert cluster.cuts.made == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ps", [0, 1])
@pytest.mark.parametrize("frame", range(0, 100, 5))
def test_a_ps_dies_anywhere(kind: str, frame: int, ps: int) -> None:
    with copied_cluster(WORKERS, Cuts()) as cluster:
        cluster.cuts.on_cut = lambda: cluster.kill(ps)
        _check(cluster, kind, [frame])
        assert cluster.cuts.made


@pytest.mark.parametrize("frame", range(30, 40))
def test_an_update_is_completed_on_all_ps_after_its_worker_and_a_ps_are_lost(frame: int) -> None:
    with copied_cluster(2, Cuts()) as cluster, tf.Graph().as_default():
        counts: list[Any] = []
        for ps in (0, 1):
            with tf.device(f"/job:ps/task:{ps}"):
                counts.append(tf.get_variable(f"count{ps}", [], initializer=tf.zeros_initializer()))
        with tf.device("/job:worker/task:0"):
            loss = -tf.add_n(counts)
        optimizer = ConsistentOptimizer(tf.train.GradientDescentOptimizer(1.0), Synchronous(workers=1))
        step, hook = optimizer.minimize(loss), optimizer.make_session_run_hook(True)
        cluster.cuts.on_cut = lambda: (cluster.kill(1), cluster.lose(0))
        with (
            contextlib.suppress(CancelledError),
            tf.train.MonitoredTrainingSession(cluster.target(), hooks=[hook], log_step_count_steps=None) as session,
        ):
            session.run(step)
            cluster.paired()
            cluster.cuts.plan(before=[frame])
            while not cluster.lost:
                session.run(step)
        assert cluster.cuts.made
        looks = threading.Event()
        with tf.Session(cluster.target(1)) as session:
            while len(set(session.run(counts))) > 1:
                looks.wait(0.01)


def test_another_copy_knows_that_a_step_has_committed_itself() -> None:
    resources = CopiedResources("/job:ps/task:0")
    changes = Changes(TaskRuntime("/job:ps/replica:0/task:0", resources=resources), resources, lambda: None)
    step, place = Step(7, "session"), InstructionPlace(2, 1)
    step.resumes = True
    changes.run_operation(
        ResourceOperation(place, lambda attempt, _: (attempt.commit(), [3])[1], stable=True), step, []
    )
    assert step.committed
    (frame,) = changes.snapshot_frames()
    header: Any = frame[1]
    over, instruction, variables, kept = header
    other = Changes(TaskRuntime("/job:ps/replica:0/task:0", resources=resources), resources, lambda: None)
    other.replace(over, instruction, variables, kept, frame[2])
    assert other.committed_steps() == [(("session", 7), 2)]
    again = Step(7, "session")
    assert other.run_operation(ResourceOperation(place, lambda *_: []), again, []) == [3]
    assert again.committed
