"""Optimizers with every consistency: the resulting variables, which workers wait, and the staleness of gradients."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

from headwater.ps.consistency import from_text
from headwater.tf1.compat import tf
from headwater.tf1.training.consistency import (
    Asynchronous,
    BoundedStaleness,
    Choose,
    ConsistentOptimizer,
    KOfN,
    Synchronous,
)
from tests.inproc.conftest import StartCluster
from tests.inproc.tf1.training.test_sync_replicas import PARAMETER_SERVERS, STEPS, Model, batches, of_all, together


@pytest.fixture(autouse=True)
def graph() -> Generator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def consistent(choice: Any) -> Callable[[Any], Any]:
    return lambda opt: ConsistentOptimizer(opt, choice)


def session(targets: Any, model: Model, replica: int) -> Any:
    hook = model.opt.make_session_run_hook(replica == 0)
    return tf.train.MonitoredTrainingSession(targets[f"worker:{replica}"], replica == 0, hooks=[hook])


def worker(
    targets: Any, replica: int, choice: Any, steps: int = STEPS, meet: Callable[[], object] = lambda: None
) -> Callable[[], Any]:
    """Runs a worker with its own graph and session; returns the variables at its end, and the optimizer's statistics.

    The worker calls ``meet`` after its first step.
    """

    def run() -> Any:
        with tf.Graph().as_default():
            model = Model(replica, consistent(choice))
            with session(targets, model, replica) as sess:
                for number, batch in enumerate(batches(replica)[:steps]):
                    sess.run(model.train, model.feed(batch))
                    if number == 0:
                        meet()
                return sess.run([model.weight, model.table, model.step, model.opt.statistics()])

    return run


@pytest.mark.parametrize("choice", [Synchronous(workers=3), KOfN(k=3), "sync=3"], ids=str)
def test_gathered_results_equal_one_process_with_all_batches(start_cluster: StartCluster, choice: Any) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=3).targets
    results = together(*(worker(targets, replica, choice) for replica in range(3)))
    alone = Model()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for batch in of_all(3):
            sess.run(alone.train, alone.feed(batch))
        expected = sess.run([alone.weight, alone.table])
    for weight, table, step, statistics in results:
        assert step == STEPS
        np.testing.assert_allclose(weight, expected[0], rtol=1e-5)
        np.testing.assert_allclose(table, expected[1], rtol=1e-5)
        assert statistics[str(from_text(choice))].tolist() == [STEPS, 0, 0, 0]


@pytest.mark.parametrize("choice", [Asynchronous(), BoundedStaleness(steps=1)], ids=str)
def test_every_gradient_is_an_update(start_cluster: StartCluster, choice: Any) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=2).targets
    # No worker waits for another one's first gradient: until both have pushed one, staleness is not bounded.
    both = threading.Barrier(2)
    together(*(worker(targets, replica, choice, meet=both.wait) for replica in range(2)))
    reader = Model(0, consistent(choice))
    with tf.Session(targets["worker:0"]) as sess:
        step, statistics = sess.run([reader.step, reader.opt.statistics()[str(choice)]])
    updates, latest, greatest, total = statistics.tolist()
    assert step == updates == 2 * STEPS
    # A worker that is at most 1 step ahead may begin another one. Between a read and the push of its gradient, the
    # other worker can thus advance from 1 step behind to 2 steps ahead.
    assert 0 <= latest <= greatest <= total <= updates * greatest
    assert greatest <= (3 if isinstance(choice, BoundedStaleness) else STEPS)


def test_staleness_is_that_of_the_variables(start_cluster: StartCluster) -> None:
    targets = start_cluster(ps=1, worker=2).targets
    has_read, may_go_on = threading.Event(), threading.Event()

    def wait(value: Any) -> Any:
        has_read.set()
        may_go_on.wait()
        return value

    def train_op(replica: int, waits: bool) -> tuple[Any, Any]:
        with tf.device(tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{replica}")):
            v = tf.Variable(1.0, name="v")
            opt = ConsistentOptimizer(tf.train.GradientDescentOptimizer(1.0), Asynchronous())
            factor = tf.stop_gradient(tf.py_func(wait, [v], tf.float32)) if waits else 1.0
            return opt.minimize(v * factor), opt.statistics()["asynchronous"]

    train, statistics = train_op(0, waits=True)
    with tf.Graph().as_default(), tf.Session(targets["worker:1"]) as fast:
        train_fast, _ = train_op(1, waits=False)
        fast.run(tf.global_variables_initializer())
        with tf.Session(targets["worker:0"], graph=train.graph) as slow:

            def others() -> None:
                has_read.wait()
                for _ in range(3):
                    fast.run(train_fast)
                may_go_on.set()

            together(lambda: slow.run(train), others)
            assert slow.run(statistics).tolist() == [4, 3, 3, 3]


def test_the_fastest_waits_for_the_slowest(start_cluster: StartCluster) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=2).targets
    choice = BoundedStaleness(steps=2)
    fast, slow = Model(0, consistent(choice)), None
    batch = fast.feed(batches(0)[0])
    with session(targets, fast, 0) as first, tf.Graph().as_default():
        slow = Model(1, consistent(choice))
        with session(targets, slow, 1) as second:
            second.run(slow.train, slow.feed(batches(1)[0]))  # the worker is a member from now on
            for _ in range(3):
                first.run(fast.train, batch)
            options = tf.RunOptions(timeout_in_ms=2000)  # long enough for the gradient, on any machine
            with pytest.raises(tf.errors.DeadlineExceededError, match="the other workers"):
                first.run(fast.train, batch, options=options)
            assert second.run(slow.step) == 5  # the gradient is applied; only the next step is not started
            second.run(slow.train, slow.feed(batches(1)[0]))
        first.run(fast.train, batch)  # no worker is slower any more
        first.run(fast.train, batch)


def test_synchronous_group_forms_again(start_cluster: StartCluster, caplog: pytest.LogCaptureFixture) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=2).targets
    choice = Synchronous(workers=2)
    with caplog.at_level(logging.WARNING):
        # The chief leaves after two steps; the other worker then makes updates alone.
        together(worker(targets, 0, choice, steps=2), worker(targets, 1, choice, steps=5))
    assert any("worker/task:0 left" in text and "continuing with 1 worker" in text for text in caplog.messages)


def test_different_choices_for_different_variables(start_cluster: StartCluster) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=2).targets

    def of(var: Any) -> Any:
        return Asynchronous() if var.op.name == "table" else Synchronous(workers=2)

    choose: Choose = of
    results = together(worker(targets, 0, choose), worker(targets, 1, choose))
    for _, _, step, _ in results:
        assert step == STEPS
    reader = Model(0, consistent(choose))
    assert reader.opt.get_slot_names() == ["momentum"]
    assert reader.opt.get_slot(reader.table, "momentum").name == "table/Momentum:0"
    with tf.Session(targets["worker:0"]) as sess:
        statistics = sess.run(reader.opt.statistics())
    assert {name: record[0] for name, record in statistics.items()} == {"synchronous": STEPS, "asynchronous": 2 * STEPS}


def test_summaries(start_cluster: StartCluster) -> None:
    model = Model(None, consistent(Asynchronous()))
    merged = tf.summary.merge_all()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(model.train, model.feed(batches(0)[0]))
        found = {value.tag: value.simple_value for value in tf.Summary.FromString(sess.run(merged)).value}
    assert found == {"consistent/asynchronous/staleness": 0.0, "consistent/asynchronous/staleness_max": 0.0}


def test_errors() -> None:
    v = tf.Variable(1.0)

    def wrong(_: Any) -> Any:
        return 3

    with pytest.raises(TypeError, match="the consistency of Variable:0 must be a choice or a text, not 3"):
        ConsistentOptimizer(tf.train.GradientDescentOptimizer(1.0), wrong).minimize(v * 2.0)
    with pytest.raises(ValueError, match="'often'"):
        ConsistentOptimizer(tf.train.GradientDescentOptimizer(1.0), "often")
    opt = ConsistentOptimizer(tf.train.GradientDescentOptimizer(1.0), KOfN(k=1))
    with pytest.raises(ValueError, match="before using the hook"):
        opt.make_session_run_hook(True).begin()
    with pytest.raises(ValueError, match="No variables"):
        opt.apply_gradients([])
