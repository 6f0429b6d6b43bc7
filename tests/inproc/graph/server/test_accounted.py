"""Each example of an epoch is applied exactly once, at whichever frame connections are lost, while workers join and
leave.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwater.data
from headwater import tf
from headwater.cluster.telemetry.snapshot import Snapshot
from headwater.errors import AbortedError, DataLossError, OpError, OutOfRangeError
from headwater.graph.passes.plan import Compute, TaskPlan
from headwater.graph.server.snapshot import add_state
from headwater.ps.accounting.audit import audit
from headwater.tf1.training.supervised_session import SupervisedSession
from tests.support.cluster import MemoryCluster, memory_cluster
from tests.support.cuts import Cuts

SIZE, BATCH, EPOCHS = 10, 3, 2
STEPS = EPOCHS * -(-SIZE // BATCH)
FRAMES = 10
"""Frames of a step: a request, values, gradients and an answer for each `ps`, and two frames between the `ps` for the
global step.
"""


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWATER_LOG_DIR", str(tmp_path))
    return tmp_path


@dataclass
class Model:
    """Counts how often each example was applied, in ``first`` and ``second``, which are on two `ps`."""

    step: Any
    taken: Any
    counts: Any
    init: Any
    saver: tf.train.Saver


def model(worker: int = 0, **arguments: Any) -> Model:
    """Returns the graph of one worker."""
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device=f"/job:worker/task:{worker}")
    with tf.device(setter):
        dataset = tf.data.Dataset.range(SIZE).map(lambda number: (number, tf.one_hot(number, SIZE)))
        settings: dict[str, Any] = {"batch_size": BATCH, "epochs": EPOCHS, **arguments}
        numbers, rows = headwater.data.accounted(dataset, **settings).make_one_shot_iterator().get_next()
        first = tf.get_variable("first", initializer=np.zeros(SIZE, np.float32))
        second = tf.get_variable("second", initializer=np.zeros(SIZE, np.float32))
        third = tf.get_variable("third", initializer=np.zeros(SIZE, np.float32))
        total = -tf.reduce_sum((first + second + third) * rows)
        step = tf.train.GradientDescentOptimizer(1.0).minimize(total, tf.train.get_or_create_global_step())
    counts = [variable.value() for variable in (first, second, third)]
    return Model(step, numbers, counts, tf.global_variables_initializer(), tf.train.Saver())


@contextmanager
def training(cuts: Cuts | None = None, **arguments: Any) -> Iterator[tuple[MemoryCluster, Any, Model]]:
    with memory_cluster(cuts, ps=2, worker=1) as cluster, tf.Graph().as_default():
        made = model(**arguments)
        with SupervisedSession(cluster.target("worker")) as session:
            session.run(made.init)
            yield cluster, session, made


def train(session: Any, made: Model, seen: list[int] | None = None) -> int:
    """Trains until all examples are applied; returns the number of steps."""
    steps = 0
    while True:
        try:
            _, numbers = session.run([made.step, made.taken])
        except OutOfRangeError:
            return steps
        steps += 1
        if seen is not None:
            seen.extend(numbers.tolist())


def check(session: Any, made: Model, logs: Path, epochs: int = EPOCHS) -> None:
    for counts in session.run(made.counts):
        np.testing.assert_array_equal(counts, np.full(SIZE, epochs, np.float32))
    found = audit(str(logs))
    (run,) = found.runs.values()
    assert found.exact
    assert [epoch.over for epoch in run.epochs.values()] == [True] * epochs


def test_an_epoch_is_shuffled_and_whole(logs: Path) -> None:
    seen: list[int] = []
    with training(seed=7) as (_, session, made):
        assert train(session, made, seen) == STEPS
        check(session, made, logs)
    epochs = seen[:SIZE], seen[SIZE:]
    assert all(sorted(epoch) == list(range(SIZE)) for epoch in epochs)
    assert epochs[0] != epochs[1]
    again: list[int] = []
    with training(seed=7, name="others") as (_, session, made):
        train(session, made, again)
    assert again == seen


def test_the_update_and_its_account_are_one_executable(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[TaskPlan] = []
    from headwater.graph.runtime.task import TaskRuntime

    add_plan = TaskRuntime.add_plan

    def seen(self: TaskRuntime, session: str, number: int, plan: TaskPlan, *args: Any, **more: Any) -> Any:
        plans.append(plan)
        return add_plan(self, session, number, plan, *args, **more)

    monkeypatch.setattr(TaskRuntime, "add_plan", seen)
    with training() as (_, session, made):
        session.run(made.step)
    computes = [item for plan in plans for item in plan.instructions if isinstance(item, Compute)]
    (account,) = [item for item in computes if any(node.type == "AccountExamples" for node in item.nodes)]
    updated = {node.refs[0] for node in account.nodes if node.type == "ApplyGradientDescent"}
    assert updated == {"first", "third"} or updated == {"second"}


@pytest.mark.parametrize("where", ["before", "after", "unnoticed"])
@pytest.mark.parametrize("frame", range(FRAMES))
def test_a_cut_at_every_frame(logs: Path, frame: int, where: str) -> None:
    cuts = Cuts()
    with training(cuts) as (_, session, made):
        session.run(made.step)  # this step also registers its plans
        cuts.plan(**{where: range(frame, frame + FRAMES * STEPS, FRAMES)})
        assert train(session, made) == STEPS - 1
        cuts.plan()
        check(session, made, logs)


@settings(max_examples=10, deadline=None)
@given(*[st.sets(st.integers(0, 90), max_size=30)] * 3)
def test_cuts_anywhere(before: set[int], after: set[int], unnoticed: set[int]) -> None:
    cuts = Cuts()
    with training(cuts) as (_, session, made):
        cuts.plan(before=before, after=after, unnoticed=unnoticed)
        train(session, made)
        cuts.plan()
        for counts in session.run(made.counts):
            np.testing.assert_array_equal(counts, np.full(SIZE, EPOCHS, np.float32))


def test_an_epoch_waits_for_the_second_before_it(logs: Path) -> None:
    """One worker stops in the middle of a step; another one completes the next epoch, but does not start the one after
    it.
    """
    begun, go_on = threading.Event(), threading.Event()

    def stop(numbers: Any) -> Any:
        begun.set()
        go_on.wait()
        return numbers

    with memory_cluster(ps=2, worker=2) as cluster:
        graphs = tf.Graph(), tf.Graph()
        with graphs[0].as_default():
            made = model(epochs=4)
        with graphs[1].as_default():
            other = model(1, epochs=4)
            with tf.device("/job:worker/task:1"), tf.control_dependencies([tf.py_func(stop, [other.taken], tf.int64)]):
                held = tf.identity(other.taken)
        seen: list[int] = []
        with (
            SupervisedSession(cluster.target("worker"), graph=graphs[0]) as session,
            SupervisedSession(cluster.target("worker", 1), graph=graphs[1]) as second,
        ):
            session.run(made.init)
            stopped = threading.Thread(target=lambda: second.run([held, other.step]))
            stopped.start()
            begun.wait()
            trains = threading.Thread(target=lambda: train(session, made, seen))
            trains.start()
            waits = cluster.task("ps").runtime.waits
            while not any("that other workers have" in what for what, _ in waits()):
                trains.join(0.01)
            assert len(seen) in (17, 19)  # all examples of two epochs except those assigned to the other worker
            go_on.set()
            stopped.join()
            trains.join()
            check(session, made, logs, epochs=4)


def test_unapplied_examples_are_reassigned_and_then_set_aside(logs: Path, caplog: pytest.LogCaptureFixture) -> None:
    with training(epochs=1, shuffle=False, tries=2) as (_, session, made):
        for _ in range(2):
            assert session.run(made.taken).tolist() == [0, 1, 2]
        assert session.run(made.taken).tolist() == [3, 4, 5]
        with pytest.raises(DataLossError, match=r"\[0, 3\) of epoch 0: its step ended without an update"):
            train(session, made)
    assert "set aside after 2 tries" in caplog.text
    (run,) = audit(str(logs)).runs.values()
    assert run.epochs[0, 0].missing() == [(0, 3)]


def test_a_closed_session_gives_its_range_back(logs: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def stop(numbers: Any) -> Any:
        begun.set()
        go_on.wait()
        return numbers

    with training() as (cluster, session, made):
        with tf.device("/job:worker/task:0"), tf.control_dependencies([tf.py_func(stop, [made.taken], tf.int64)]):
            held = tf.identity(made.taken)
        other = tf.Session(cluster.target("worker"))
        failed: list[OpError] = []

        def run() -> None:
            try:
                other.run([held, made.step])
            except OpError as error:
                failed.append(error)

        stopped = threading.Thread(target=run)
        stopped.start()
        begun.wait()
        other.close()
        go_on.set()
        stopped.join()
        assert len(failed) == 1
        # If its part on the `ps` has continued, the range was still assigned to it.
        assert train(session, made) in (STEPS - 1, STEPS)
        check(session, made, logs)


def test_the_status_of_the_ps_says_how_far_it_is() -> None:
    with training(seed=1) as (cluster, session, made):
        for _ in range(2):
            session.run(made.step)
        runtime = cluster.task("ps").runtime
        blank = Snapshot(at=0.0)
        groups = {group.name: group for group in add_state(blank, runtime).groups}
    found = groups["examples/applied"]
    assert found.examples == "epoch 0: 6 of 10 examples done, 0 assigned, 4 waiting"
    assert found.updates == 2


def test_a_checkpoint_records_the_applied_examples(logs: Path, tmp_path: Path) -> None:
    with training() as (cluster, session, made):
        for _ in range(6):  # the second epoch has begun
            session.run(made.step)
        path = made.saver.save(session, str(tmp_path / "model"))
        for _ in range(2):
            session.run(made.step)
        cluster.restart("ps", 0)
        cluster.restart("ps", 1)
        with SupervisedSession(cluster.target("worker")) as after:
            made.saver.restore(after, path)
            assert train(after, made) == STEPS - 6
            check(after, made, logs)
    (run,) = audit(str(logs)).runs.values()
    assert [(rollback.update, rollback.updates) for rollback in run.rollbacks] == [(6, 2)]


def test_an_update_of_before_a_restore_is_not_made(logs: Path, tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def stop(numbers: Any) -> Any:
        begun.set()
        go_on.wait()
        return numbers

    with training() as (cluster, session, made):
        with tf.device("/job:worker/task:0"), tf.control_dependencies([tf.py_func(stop, [made.taken], tf.int64)]):
            held = tf.identity(made.taken)
        path = made.saver.save(session, str(tmp_path / "model"))
        failed: list[OpError] = []

        def run() -> None:
            try:
                with tf.Session(cluster.target("worker"), graph=held.graph) as other:
                    other.run([held, made.step])
            except OpError as error:
                failed.append(error)

        stopped = threading.Thread(target=run)
        stopped.start()
        begun.wait()
        made.saver.restore(session, path)
        session.run(made.step)
        go_on.set()
        stopped.join()
        assert isinstance(failed[0], AbortedError)
        assert "update is refused" in failed[0].message
        train(session, made)
        first = session.run(made.counts)[1]  # counts on the `ps` with the ledger
        np.testing.assert_array_equal(first, np.full(SIZE, EPOCHS, np.float32))
        assert audit(str(logs)).exact
