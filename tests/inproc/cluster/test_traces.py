"""Traces of steps: every task says what it did and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headwater import tf
from tests.support.cluster import MemoryCluster, memory_cluster

FULL = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


@pytest.fixture
def cluster() -> Iterator[MemoryCluster]:
    with memory_cluster(ps=2, worker=1) as found, tf.Graph().as_default():
        yield found


def devices(metadata: Any) -> dict[str, list[str]]:
    return {
        device.device.removesuffix("/device:CPU:0"): [node.node_name for node in device.node_stats]
        for device in metadata.step_stats.dev_stats
    }


def test_every_task_is_in_the_trace(cluster: MemoryCluster) -> None:
    variables: list[Any] = []
    for index in range(2):
        with tf.device(f"/job:ps/task:{index}"):
            variables.append(tf.get_variable(f"v{index}", [], initializer=tf.zeros_initializer()))
    with tf.device("/job:worker/task:0"):
        total = tf.add_n([v * 2.0 for v in variables], name="total")
    updates = tf.group(*[tf.assign_add(v, total, name=f"up{index}") for index, v in enumerate(variables)])
    with tf.Session(cluster.target("worker")) as session:
        session.run(tf.global_variables_initializer())
        metadata = tf.RunMetadata()
        session.run(updates, options=FULL, run_metadata=metadata)
        found = devices(metadata)
        assert set(found) == {"/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1", "/job:worker/replica:0/task:0"}
        assert "total" in found["/job:worker/replica:0/task:0"]
        assert "up0" in found["/job:ps/replica:0/task:0"]
        assert "up1" in found["/job:ps/replica:0/task:1"]
        for device in metadata.step_stats.dev_stats:
            assert all(node.all_end_rel_micros > 0 for node in device.node_stats)


def test_without_a_trace_nothing_is_filled_in(cluster: MemoryCluster) -> None:
    v = tf.constant(1.0) + 1.0
    with tf.Session(cluster.target("worker")) as session:
        metadata = tf.RunMetadata()
        session.run(v, run_metadata=metadata)
        session.run(v, options=tf.RunOptions(timeout_in_ms=60000), run_metadata=metadata)
        assert not metadata.step_stats.dev_stats
        assert session.run(v, options=FULL) == 2.0


def test_a_trace_replaces_the_one_before() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one, other = tf.add(1.0, 1.0, name="one"), tf.add(2.0, 2.0, name="other")
        metadata = tf.RunMetadata()
        session.run(one, options=FULL, run_metadata=metadata)
        session.run(other, options=FULL, run_metadata=metadata)
        assert devices(metadata) == {"/job:localhost/replica:0/task:0": ["other"]}


def test_operations_in_python_have_entries_of_their_own() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        text = tf.as_string(tf.constant([1, 2]), name="text")
        metadata = tf.RunMetadata()
        call = session.make_callable(text, accept_options=True)
        call(options=FULL, run_metadata=metadata)
        labels = [node.timeline_label for node in metadata.step_stats.dev_stats[0].node_stats]
        assert any(label.startswith("text = AsString(") for label in labels)


def test_steps_run_on_after_a_trace() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(0.0)
        up = v.assign_add(1.0)
        session.run(v.initializer)
        values = [float(session.run(up))]
        for _ in range(2):
            values.append(float(session.run(up, options=FULL, run_metadata=tf.RunMetadata())))
            values.append(float(session.run(up)))
        assert values == [1.0, 2.0, 3.0, 4.0, 5.0]
