"""Graphs: properties that the comparison with TensorFlow (``tests/conformance``) does not cover."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from headwater import tf
from headwater.graph.operation import Operation


def test_default_graphs_are_left_in_order() -> None:
    def leave_the_outer_one_first() -> None:
        outer, inner = tf.Graph().as_default(), tf.Graph().as_default()
        outer.__enter__()
        inner.__enter__()
        try:
            outer.__exit__(None, None, None)
        finally:
            inner.__exit__(None, None, None)

    with ThreadPoolExecutor(1) as pool, pytest.raises(AssertionError, match="Nesting of default graphs is wrong"):
        pool.submit(leave_the_outer_one_first).result()  # a thread's own stack, left as it is


def test_each_thread_has_its_own_default_graph() -> None:
    with tf.Graph().as_default() as graph, ThreadPoolExecutor(1) as pool:
        other = pool.submit(tf.get_default_graph).result()
        assert other is not graph
        assert pool.submit(tf.get_default_graph).result() is other


def test_the_default_graph_can_be_replaced() -> None:
    before = tf.get_default_graph()
    tf.reset_default_graph()
    assert tf.get_default_graph() is not before


def test_an_operation_says_where_it_was_made() -> None:
    with tf.Graph().as_default():
        op = tf.constant(1).op
    assert op.source.rpartition(":")[0] == __file__
    assert op.traceback == [op.source]


def test_errors_name_operation_and_shapes() -> None:
    with tf.Graph().as_default():
        x, y = tf.zeros([2, 3]), tf.zeros([4])
        with pytest.raises(ValueError, match=r"for 'sum' \(op: 'Add(V2)?'\) with input shapes: \[2,3\], \[4\]"):
            tf.add(x, y, name="sum")
        with pytest.raises(KeyError, match="'NoSuchType'"):
            tf.get_default_graph().create_op("NoSuchType", [])
        with pytest.raises(ValueError, match="nowhere"), tf.device("/nowhere"):
            tf.no_op()


def test_failed_operation_does_not_use_a_name() -> None:
    with tf.Graph().as_default() as graph:
        before = graph.version
        with pytest.raises(ValueError, match="must be equal"):
            graph.create_op("Add", [tf.zeros([2]), tf.zeros([3])], name="sum")
        assert [op.type for op in graph.get_operations()].count("Add") == 0
        assert graph.version > before


def test_consumers() -> None:
    with tf.Graph().as_default():
        parts = tf.split(tf.zeros([4]), 2)
        total = tf.add(parts[0], parts[0])
        twice = tf.identity(parts[0])
        assert parts[0].consumers() == [total.op, twice.op]
        assert parts[1].consumers() == []


def test_shapes_set_later_are_used_by_later_operations() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32)
        assert tf.identity(x).shape.ndims is None
        x.set_shape([None, 3])
        assert tf.identity(x).shape.as_list() == [None, 3]
        x.set_shape([2, None])
        assert tf.identity(x).shape.as_list() == [2, 3]


def test_devices_are_canonical() -> None:
    with tf.Graph().as_default():
        op = tf.no_op()
        op._set_device("/gpu:1")
        assert op.device == "/device:GPU:1"
        with pytest.raises(ValueError, match="bad"):
            op._set_device("bad")
        with tf.device(lambda op: "/cpu:0"):
            assert tf.no_op().device == "/device:CPU:0"


def test_control_inputs_added_later() -> None:
    with tf.Graph().as_default() as graph:
        first, second = tf.no_op(), tf.no_op()
        version = graph.version
        second._add_control_inputs([first, first])
        assert second.control_inputs == [first]
        assert graph.version > version
        with tf.Graph().as_default():
            foreign = tf.no_op()
        with pytest.raises(ValueError, match="same graph"):
            second._add_control_input(foreign)


def test_constants_copy_their_arrays() -> None:
    array = np.ones(3, np.float32)
    with tf.Graph().as_default():
        constant = tf.constant(array)
        array[:] = 5.0
        value = tf.get_static_value(constant)
    assert value is not None
    assert value.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 7.0


def test_building_from_several_threads() -> None:
    with tf.Graph().as_default() as graph, ThreadPoolExecutor(4) as pool:

        def build(_: int) -> list[Operation]:
            with graph.as_default():
                return [tf.no_op(name="op") for _ in range(50)]

        made = [op for ops in pool.map(build, range(4)) for op in ops]
    assert len({op.name for op in made}) == 200
    assert set(graph.get_operations()) == set(made)
    assert len({op.number for op in made}) == 200
