"""Refusals of `headwater.data.accounted`, and its elements in one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headwater.data
from headwater import tf
from headwater.tf1.training.consistency import ConsistentOptimizer


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def batch(**arguments: Any) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices(np.arange(8, dtype=np.float32))
    return headwater.data.accounted(dataset, batch_size=2, **arguments).make_one_shot_iterator().get_next()


def loss(numbers: Any) -> Any:
    return tf.reduce_sum(tf.get_variable("w", initializer=0.0) * numbers)


@pytest.mark.parametrize(
    ("change", "arguments", "error", "match"),
    [
        (lambda d: d.shuffle(3), {}, ValueError, r"has a shuffle\(\).*pass shuffle="),
        (lambda d: d.repeat(2), {}, ValueError, r"has a repeat\(\)"),
        (lambda d: d.filter(lambda x: x > 2), {}, ValueError, "Filter can only be iterated.*cache"),
        (lambda d: d.filter(lambda x: x > 2), {"shuffle": False}, ValueError, "Filter has an unknown number.*size="),
        (lambda d: d, {"epochs": 0}, ValueError, "epochs must be at least 1"),
        (lambda d: d, {"batch_size": 0}, ValueError, "batch must be at least 1"),
        (lambda d: d, {"shuffle": 1}, TypeError, "shuffle must be True or False"),
        (lambda d: [1, 2], {}, TypeError, "not list"),
    ],
)
def test_arguments_that_cannot_be_right(change: Any, arguments: Any, error: Any, match: str) -> None:
    dataset = change(tf.data.Dataset.range(9))
    given: dict[str, Any] = {"batch_size": 2, **arguments}
    with pytest.raises(error, match=match):
        headwater.data.accounted(dataset, **given)


def test_batches_that_reach_no_optimizer() -> None:
    numbers = batch()
    tf.train.GradientDescentOptimizer(0.1).minimize(loss(1.0), tf.train.get_or_create_global_step())
    assert numbers.shape.as_list() == [2]
    with pytest.raises(ValueError, match="'examples/applied' are accounted for, but no optimizer applies gradients of"):
        tf.train.MonitoredTrainingSession()
    with pytest.raises(ValueError, match="no optimizer applies gradients of"):
        tf.train.Supervisor()


@pytest.mark.parametrize("kind", ["sync", "gathered"])
def test_gathered_gradients_of_two_datasets_are_refused(kind: str) -> None:
    inner = tf.train.GradientDescentOptimizer(0.1)
    opt = tf.train.SyncReplicasOptimizer(inner, 2) if kind == "sync" else ConsistentOptimizer(inner, "sync=2")
    both = batch() + batch(name="others")
    with pytest.raises(ValueError, match="one dataset, not of examples/applied, others/applied"):
        opt.minimize(loss(both), tf.train.get_or_create_global_step())


@pytest.mark.parametrize("kind", ["SyncReplicas", "sync=1", "k=1 of 1"])
def test_rounds_of_one_worker_account(kind: str) -> None:
    table = tf.get_variable("table", initializer=np.zeros((8, 1), np.float32))
    rows = tf.nn.embedding_lookup(table, tf.to_int32(batch(epochs=2)))
    inner = tf.train.GradientDescentOptimizer(1.0)
    opt = tf.train.SyncReplicasOptimizer(inner, 1) if kind == "SyncReplicas" else ConsistentOptimizer(inner, kind)
    step = opt.minimize(-tf.reduce_sum(rows), tf.train.get_or_create_global_step())
    found: list[np.ndarray] = []

    class Last(tf.train.SessionRunHook):
        def end(self, session: Any) -> None:
            found.append(session.run(table))

    with tf.train.MonitoredTrainingSession(hooks=[opt.make_session_run_hook(True), Last()]) as session:
        while not session.should_stop():
            session.run(step)
    np.testing.assert_array_equal(found[0], np.full((8, 1), 2, np.float32))


def test_bounded_staleness_accounts() -> None:
    opt = ConsistentOptimizer(tf.train.AdamOptimizer(0.1), "staleness=3")
    step = opt.minimize(loss(batch(epochs=2)), tf.train.get_or_create_global_step())
    hook = opt.make_session_run_hook(True)
    steps = 0
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        while not session.should_stop():
            session.run(step)
            steps += 1
    assert steps == 8


def test_rows_of_a_table_are_accounted_for() -> None:
    numbers = tf.to_int32(batch())
    table = tf.get_variable("table", initializer=np.zeros((8, 1), np.float32))
    step = tf.train.GradientDescentOptimizer(1.0).minimize(-tf.reduce_sum(tf.nn.embedding_lookup(table, numbers)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                session.run(step)
        np.testing.assert_array_equal(session.run(table), np.ones((8, 1), np.float32))


def test_a_file_in_its_order(tmp_path: Any) -> None:
    path = tmp_path / "lines"
    path.write_text("".join(f"{number}\n" for number in range(7)))
    dataset = tf.data.TextLineDataset(str(path)).map(lambda line: tf.string_to_number(line))
    numbers = headwater.data.accounted(
        dataset, batch_size=3, epochs=2, shuffle=False, size=7
    ).make_initializable_iterator()
    taken = numbers.get_next()
    step = tf.train.GradientDescentOptimizer(1.0).minimize(loss(taken))
    seen: list[float] = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), numbers.initializer])
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                seen += session.run([taken, step])[0].tolist()
    assert seen == [*range(7), *range(7)]


def test_a_restarted_program_skips_applied_examples(tmp_path: Any) -> None:
    step = tf.train.GradientDescentOptimizer(1.0).minimize(loss(batch()), tf.train.get_or_create_global_step())
    steps = 0
    for last in (2, 100):
        hooks = [tf.train.StopAtStepHook(last_step=last)]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), hooks=hooks) as session:
            while not session.should_stop():
                session.run(step)
                steps += 1
    assert steps == 4


def test_sparse_components_of_batches() -> None:
    rows = tf.SparseTensor([[0, 0], [0, 1], [2, 0], [3, 2]], [1.0, 2.0, 3.0, 4.0], [4, 3])
    dataset = tf.data.Dataset.from_tensor_slices({"sparse": rows, "number": np.arange(4)})
    batches = headwater.data.accounted(dataset, batch_size=2, shuffle=False).make_one_shot_iterator()
    assert batches.output_classes == {"sparse": tf.SparseTensor, "number": tf.Tensor}
    found = batches.get_next()
    train = tf.train.GradientDescentOptimizer(0.0).minimize(
        loss(tf.sparse.reduce_sum(found["sparse"])), tf.train.get_or_create_global_step()
    )
    with tf.train.MonitoredTrainingSession() as session:
        first, _ = session.run([found, train])
        second, _ = session.run([found, train])
    assert first["sparse"].indices.tolist() == [[0, 0], [0, 1]]
    assert first["sparse"].dense_shape.tolist() == [2, 3]
    assert second["sparse"].values.tolist() == [3.0, 4.0]
    assert second["number"].tolist() == [2, 3]
