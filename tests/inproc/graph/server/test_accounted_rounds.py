"""Each example counts once if updates combine the gradients of several workers, some of which are lost or late."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headwater.data
from headwater import tf
from headwater.graph.resources.accumulators import DenseSum
from headwater.ps.accounting.audit import audit
from headwater.tf1.training.consistency import ConsistentOptimizer
from tests.support.cluster import memory_cluster
from tests.support.copied_cluster import copied_cluster
from tests.support.cuts import Cuts

SIZE, BATCH, EPOCHS = 10, 3, 2
RANGES = EPOCHS * -(-SIZE // BATCH)


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWATER_LOG_DIR", str(tmp_path))
    # Updates are sums, not means, so that variables count examples.
    reduce = DenseSum.reduce
    monkeypatch.setattr(DenseSum, "reduce", lambda self, count, mean: reduce(self, count, False))
    return tmp_path


def optimizer(mode: str, workers: int) -> Any:
    inner = tf.train.GradientDescentOptimizer(1.0)
    if mode.startswith("replicas"):
        return tf.train.SyncReplicasOptimizer(inner, int(mode.split()[1]), workers)
    return ConsistentOptimizer(inner, mode)


class Worker:
    """A worker with its own graph, as a thread.

    Args:
      target: the target of its session.
      index: its number; 0 is the chief.
      mode: how gradients become updates.
      workers: number of workers.
      before: called in each of its steps, with the step's number, while examples are assigned to it.
      alone: whether all variables except the counts of applied examples are on the second `ps`.
    """

    def __init__(
        self,
        target: str,
        index: int,
        mode: str,
        workers: int,
        before: Callable[[int], None] | None = None,
        alone: bool = False,
    ) -> None:
        self.graph = tf.Graph()
        self.steps = 0
        self._index = index
        self._target = target
        self._before = before
        with self.graph.as_default():
            setter = tf.train.replica_device_setter(ps_tasks=2, worker_device=f"/job:worker/task:{index}")
            with tf.device("/job:ps/task:1" if alone else "/job:ps/task:0"):
                self.step = tf.train.get_or_create_global_step()
            with tf.device(setter):
                dataset = tf.data.Dataset.range(SIZE)
                taken = headwater.data.accounted(dataset, batch_size=BATCH, epochs=EPOCHS)
                numbers = tf.py_func(self._hold, [taken.make_one_shot_iterator().get_next()], tf.int64)
                rows = tf.reduce_sum(tf.one_hot(numbers, SIZE), 0)
            self.counts = []
            for task in (1, 1) if alone else (0, 1):
                with tf.device(f"/job:ps/task:{task}"):
                    self.counts.append(tf.get_variable(f"w{len(self.counts)}", initializer=np.zeros(SIZE, np.float32)))
            with tf.device(setter):
                loss = -tf.reduce_sum(sum(self.counts) * rows)
                made = optimizer(mode, workers)
                self._train = made.minimize(loss, self.step)
            self._hook = made.make_session_run_hook(index == 0)
        self.values: list[np.ndarray] = []
        self.updates = -1
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _hold(self, numbers: np.ndarray) -> np.ndarray:
        self.steps += 1
        if self._before is not None:
            self._before(self.steps)
        return numbers

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            with self.graph.as_default():
                hooks = [self._hook, _Last(self)]
                with tf.train.MonitoredTrainingSession(self._target, self._index == 0, hooks=hooks) as session:
                    while not session.should_stop():
                        session.run(self._train)
        except BaseException as error:  # noqa: BLE001 - it is raised in the test's thread
            self.error = error


class _Last(tf.train.SessionRunHook):
    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def end(self, session: Any) -> None:
        self._worker.values = session.run(self._worker.counts)
        self._worker.updates = int(session.run(self._worker.step))


def check(workers: list[Worker], logs: Path, several: bool = True) -> None:
    """Checks the counts on the first `ps`, or on ``several``, and the journal."""
    for worker in workers:
        for values in worker.values if several else worker.values[:1]:
            np.testing.assert_array_equal(values, np.full(SIZE, EPOCHS, np.float32))
    found = audit(str(logs))
    (run,) = found.runs.values()
    assert found.exact, found
    assert [epoch.over for epoch in run.epochs.values()] == [True] * EPOCHS


@pytest.mark.parametrize("mode", ["replicas 2", "sync=2", "k=1 of 2", "async"])
@pytest.mark.parametrize("ps", [0, 1])
def test_a_ps_is_shut_down_while_steps_have_their_examples(logs: Path, mode: str, ps: int) -> None:
    with memory_cluster(Cuts(), ps=2, worker=2) as cluster:
        movers: list[threading.Thread] = []

        def before(steps: int) -> None:
            if steps in (1, 2):
                for mover in movers:
                    mover.join()
                movers.append(threading.Thread(target=cluster.drain_and_restart, args=("ps", ps)))
                movers[-1].start()

        workers = [
            Worker(cluster.target("worker", index), index, mode, 2, before if index else None) for index in (0, 1)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for mover in movers:
            mover.join()
    # On the other ps, another gradient may have been the late one, or the last update may still be in transit.
    check(workers, logs, several=mode in ("replicas 2", "sync=2"))


@pytest.mark.parametrize(
    ("mode", "workers", "updates"),
    [
        ("replicas 1", 1, RANGES),
        ("replicas 2", 2, RANGES // 2),
        ("replicas 3", 3, 3),  # the last of two gradients
        ("sync=2", 2, RANGES // 2),
        ("sync=3", 3, None),
        ("k=3 of 3", 3, None),
    ],
)
@pytest.mark.parametrize("alone", [False, True])
def test_workers_share_the_epochs(mode: str, workers: int, updates: int | None, alone: bool, logs: Path) -> None:
    with memory_cluster(ps=2, worker=workers) as cluster:
        made = [Worker(cluster.target("worker", index), index, mode, workers, alone=alone) for index in range(workers)]
        for worker in made:
            worker.start()
        for worker in made:
            worker.join()
    check(made, logs)
    # A worker without a gradient in the last update may end before that update is counted.
    assert updates in (None, max(worker.updates for worker in made))
    assert sum(worker.steps for worker in made) >= RANGES


@pytest.mark.parametrize("mode", ["replicas 2", "k=2 of 3"])
def test_gradients_that_are_too_late_give_their_examples_back(mode: str, logs: Path) -> None:
    with memory_cluster(ps=2, worker=3) as cluster:
        made = [Worker(cluster.target("worker", index), index, mode, 3) for index in range(3)]
        for worker in made:
            worker.start()
        for worker in made:
            worker.join()
    # On the other ps, another gradient may have been the late one.
    check(made, logs, several=False)


@pytest.mark.parametrize("mode", ["replicas 1", "sync=1", "k=1 of 1"])
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(*[st.sets(st.integers(0, 90), max_size=20)] * 3)
def test_cuts_anywhere(mode: str, before: set[int], after: set[int], unnoticed: set[int]) -> None:
    cuts = Cuts()

    def plan(step: int) -> None:
        if step == 2:
            cuts.plan(before=before, after=after, unnoticed=unnoticed)

    with memory_cluster(cuts, ps=2, worker=1) as cluster:
        worker = Worker(cluster.target("worker", 0), 0, mode, 1, plan)
        worker.start()
        worker.join()
        for values in worker.values:
            np.testing.assert_array_equal(values, np.full(SIZE, EPOCHS, np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["replicas 2", "sync=2", "k=1 of 2"])
@pytest.mark.parametrize("ps", [0, 1])
@pytest.mark.parametrize("frame", range(10, 120, 30))
def test_a_ps_that_has_a_backup_dies_anywhere(mode: str, ps: int, frame: int, logs: Path) -> None:
    with copied_cluster(2, Cuts()) as cluster:
        cluster.cuts.on_cut = lambda: cluster.kill(ps)

        def plan(step: int) -> None:
            if step == 2:
                cluster.paired()
                cluster.cuts.plan(before=[frame])

        made = [Worker(cluster.target(index), index, mode, 2, None if index else plan) for index in range(2)]
        for worker in made:
            worker.start()
        for worker in made:
            worker.join()
        assert cluster.cuts.made
    check(made, logs, several=not mode.startswith("k"))
