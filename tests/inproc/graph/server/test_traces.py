"""Traces of steps: every task records its operations with their times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from headwater import tf
from headwater.graph.runtime import mode_choice
from tests.support.cluster import MemoryCluster, memory_cluster

FULL = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


@pytest.fixture
def cluster() -> Iterator[MemoryCluster]:
    with memory_cluster(ps=2, worker=1) as found, tf.Graph().as_default():
        yield found


def devices(metadata: Any) -> dict[str, list[str]]:
    """Returns the operations of each task; executables are listed among them or, if they are separate devices, beside
    them.
    """
    found: dict[str, list[str]] = {}
    for device in metadata.step_stats.dev_stats:
        task = device.device.removesuffix("/executables").removesuffix("/device:CPU:0")
        found.setdefault(task, []).extend(node.node_name for node in device.node_stats)
    return found


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


def test_a_trace_replaces_the_previous_one() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one, other = tf.add(1.0, 1.0, name="one"), tf.add(2.0, 2.0, name="other")
        metadata = tf.RunMetadata()
        session.run(one, options=FULL, run_metadata=metadata)
        session.run(other, options=FULL, run_metadata=metadata)
        assert set(devices(metadata)["/job:localhost/replica:0/task:0"]) == {"other"}


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


def test_operations_inside_executables_have_entries_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(mode_choice.VARIABLE, "on")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [300, 300])
        with tf.name_scope("scope"):
            product = tf.matmul(x, x, name="product")
        again = tf.matmul(product, x, name="again")
        metadata = tf.RunMetadata()
        feeds = {x: np.ones([300, 300])}
        session.run([product, again], feeds, options=FULL, run_metadata=metadata)
        by_device = {device.device: device.node_stats for device in metadata.step_stats.dev_stats}
        task = "/job:localhost/replica:0/task:0/device:CPU:0"
        assert [node.node_name for node in by_device[f"{task}/executables"]] == ["again"]
        labels = {node.node_name: node.timeline_label for node in by_device[task]}
        assert labels["scope/product"].startswith("scope/product = MatMul(Placeholder:0")
        assert "again" in labels


def test_executables_alone_have_entries_beside_another_profile(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.add(tf.placeholder_with_default(1.0, []), 1.0, name="x")
        session.run(x)
        metadata = tf.RunMetadata()
        jax.profiler.start_trace(str(tmp_path))
        try:
            session.run(x, options=FULL, run_metadata=metadata)
        finally:
            jax.profiler.stop_trace()
        (device,) = metadata.step_stats.dev_stats
        assert [node.timeline_label.split("(")[0] for node in device.node_stats] == ["x = Executable"]


def test_a_traced_step_that_fails_leaves_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(mode_choice.VARIABLE, "on")
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(1.0)
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(v + 1.0, options=FULL, run_metadata=tf.RunMetadata())
        session.run(v.initializer)
        metadata = tf.RunMetadata()
        session.run(tf.matmul([[v]], [[v]], name="m"), options=FULL, run_metadata=metadata)
        assert any(device.device.endswith("/executables") for device in metadata.step_stats.dev_stats)


def test_each_task_has_a_graph_of_its_part(cluster: MemoryCluster) -> None:
    with tf.device("/job:ps/task:1"):
        v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    with tf.device("/job:worker/task:0"):
        twice = tf.multiply(v, 2.0, name="twice")
    config = tf.ConfigProto(graph_options=tf.GraphOptions(build_cost_model=1))
    with tf.Session(cluster.target("worker"), config=config) as session:
        session.run(v.initializer)
        metadata = tf.RunMetadata()
        session.run(twice, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
    parts = {node.name: node.device for graph in metadata.partition_graphs for node in graph.node}
    assert parts["v"] == "/job:ps/replica:0/task:1/device:CPU:0"
    assert parts["twice"] == "/job:worker/replica:0/task:0/device:CPU:0"
    assert len(metadata.partition_graphs) == 2
    kinds = {node.op for graph in metadata.partition_graphs for node in graph.node}
    assert {"_Send", "_Recv", "_Retval"} <= kinds
    costs = {node.name: node for node in metadata.cost_graph.node}
    assert costs["v"].persistent_memory_size == 8
    assert costs["twice"].output_info[0].size == 8
