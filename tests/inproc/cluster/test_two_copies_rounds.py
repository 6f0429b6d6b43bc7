"""A second copy of what synchronous training keeps: each round counts once on each ``ps``, wherever one dies."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.consistency import BoundedStaleness, Synchronous
from headwater.errors import CancelledError
from headwater.resources.recording import KeptOperation, Place
from headwater.runtime.step import Step
from headwater.runtime.task import TaskRuntime
from headwater.server.replicas.changes import Changes
from headwater.server.replicas.kept import CopiedResources
from headwater.training.consistency import ConsistentOptimizer
from tests.support.copied_cluster import CopiedCluster, copied_cluster
from tests.support.cuts import Cuts

WORKERS, STEPS = 2, 3


def _sync() -> Any:
    return tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), WORKERS, WORKERS)


def _consistent() -> Any:
    return ConsistentOptimizer(tf.train.GradientDescentOptimizer(1.0), Synchronous(workers=WORKERS))


def _bounded() -> Any:
    return ConsistentOptimizer(tf.train.GradientDescentOptimizer(1.0), BoundedStaleness(steps=1))


@dataclass
class Worker:
    """One worker's program: each of its steps adds 1 to what each ``ps`` has of it."""

    index: int
    cluster: CopiedCluster
    optimizer: Callable[[], Any]
    gate: threading.Barrier
    kill_at: Sequence[int]

    def run(self) -> list[Any]:
        """All steps; the chief gives what the variables are."""
        chief = self.index == 0
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                global_step = tf.train.get_or_create_global_step()
            counts: list[Any] = []
            for ps in (0, 1):
                with tf.device(f"/job:ps/task:{ps}"):
                    counts.append(tf.get_variable(f"count{ps}", [WORKERS], initializer=tf.zeros_initializer()))
            with tf.device(f"/job:worker/task:{self.index}"):
                mine = tf.constant(np.arange(WORKERS) == self.index, tf.float32)
                loss = -tf.add_n([tf.reduce_sum(count * mine) for count in counts])
            optimizer = self.optimizer()
            worker = f"/job:worker/task:{self.index}"
            with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device=worker)):
                step = optimizer.minimize(loss, global_step=global_step)
            hooks = [optimizer.make_session_run_hook(chief)]
            with tf.train.MonitoredTrainingSession(
                self.cluster.target(self.index), is_chief=chief, hooks=hooks, log_step_count_steps=None
            ) as session:
                session.run(step)
                self.gate.wait()
                if chief:
                    self.cluster.paired()
                    self.cluster.cuts.plan(before=self.kill_at)
                self.gate.wait()
                for _ in range(STEPS):
                    session.run(step)
                self.gate.wait()
                found = session.run([global_step, *counts])
        return found


def _train(cluster: CopiedCluster, optimizer: Callable[[], Any], kill_at: Sequence[int]) -> list[Any]:
    gate = threading.Barrier(WORKERS)
    results: dict[int, Any] = {}
    errors: list[BaseException] = []

    def work(index: int) -> None:
        try:
            results[index] = Worker(index, cluster, optimizer, gate, kill_at).run()
        except BaseException as error:
            errors.append(error)
            gate.abort()
            raise

    threads = [threading.Thread(target=work, args=(index,)) for index in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    return results[0]


def _values(steps: int, each: float) -> list[Any]:
    return [steps, [each] * WORKERS, [each] * WORKERS]


KINDS = {
    # A round is the mean of what both workers give: half of each.
    "sync": (_sync, _values(STEPS + 1, (STEPS + 1) / WORKERS)),
    "consistent": (_consistent, _values(STEPS + 1, (STEPS + 1) / WORKERS)),
    "bounded": (_bounded, _values(WORKERS * (STEPS + 1), STEPS + 1.0)),
}


def _check(cluster: CopiedCluster, kind: str, kill_at: Sequence[int] = ()) -> None:
    optimizer, expected = KINDS[kind]
    for value, other in zip(_train(cluster, optimizer, kill_at), expected, strict=True):
        np.testing.assert_array_equal(value, other)


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
def test_an_update_is_made_everywhere_whose_maker_is_lost_with_a_ps(frame: int) -> None:
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
    step, place = Step(7, "session"), Place(2, 1)
    step.resumes = True
    changes.carry_out(KeptOperation(place, lambda attempt, _: (attempt.commit(), [3])[1], stable=True), step, [])
    assert step.committed
    (frame,) = changes.all()
    header: Any = frame[1]
    over, instruction, variables, kept = header
    other = Changes(TaskRuntime("/job:ps/replica:0/task:0", resources=resources), resources, lambda: None)
    other.replace(over, instruction, variables, kept, frame[2])
    assert other.committed() == [(("session", 7), 2)]
    again = Step(7, "session")
    assert other.carry_out(KeptOperation(place, lambda *_: []), again, []) == [3]
    assert again.committed
