"""Steps of one task: shapes that depend on values, text, errors with their origins, and steps that end early."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from headwater import tf
from tests.support import host_ops


def _op(op_type: str, inputs: Any = (), **attrs: Any) -> Any:
    return tf.get_default_graph().create_op(op_type, list(inputs), attrs)


# Shapes that depend on values -----------------------------------------------------------------------------------


def test_shapes_that_are_fed() -> None:
    with tf.Graph().as_default():
        shape, limit = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [])
        fetches = [tf.reshape(tf.range(limit), shape), tf.fill(shape, 7), tf.tile([limit], shape[:1]), tf.zeros(shape)]
        with tf.Session() as session:
            for dims in ([2, 3], [6], [3, -1], [1, 2, 3]):
                known = [abs(dim) for dim in dims]
                reshaped, filled, tiled, zeros = session.run(
                    [fetches[0], *fetches[1:]], {shape: known if -1 not in dims else [3, 2], limit: 6}
                )
                assert reshaped.tolist() == np.arange(6).reshape(known if -1 not in dims else [3, 2]).tolist()
                assert filled.shape == zeros.shape == reshaped.shape
                assert tiled.tolist() == [6] * reshaped.shape[0]
            assert session.run(fetches[0], {shape: [2, -1], limit: 6}).shape == (2, 3)


def test_shapes_that_follow_from_fed_arrays() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32)
        flat = tf.reshape(x, [tf.shape(x)[0], -1])
        by_size = tf.range(tf.size(x)) + tf.rank(x)
        with tf.Session() as session:
            for dims in ([2, 3], [4], [2, 2, 2], [0, 5]):
                value = np.ones(dims, np.float32)
                assert session.run(tf.shape(x), {x: value}).tolist() == dims
                if 0 not in dims:
                    assert session.run(flat, {x: value}).shape == (dims[0], value.size // dims[0])
                assert session.run(by_size, {x: value}).tolist() == [i + len(dims) for i in range(value.size)]


def test_a_shape_from_a_variable() -> None:
    with tf.Graph().as_default():
        v = tf.Variable([2, 3])
        zeros = tf.zeros(v + 1)
        with tf.Session() as session:
            session.run(v.initializer)
            assert session.run(zeros).shape == (3, 4)
            session.run(v.assign([4, 0]))
            assert session.run(zeros).shape == (5, 1)


def test_shape_needed_first_by_an_update_and_later_by_other_operations() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, None])
        v = tf.Variable(tf.zeros([2, 3]))
        shape = tf.shape(x)
        host = _op("TestHostNegate", [v.assign(tf.fill(shape, 1.0))])
        with tf.control_dependencies([host]):
            later = tf.identity(shape)
        reshaped = tf.reshape(tf.range(6), later)
        with tf.Session() as session:
            session.run(v.initializer)
            assert session.run(reshaped, {x: np.zeros([2, 3])}).shape == (2, 3)


# Text -----------------------------------------------------------------------------------------------------------


def test_text_runs_on_the_host() -> None:
    with tf.Graph().as_default():
        text = tf.placeholder(tf.string, [None])
        numbers = _op("TestFromText", [tf.identity(text)]).outputs[0] * 2.0
        again = _op("TestToText", [numbers]).outputs[0]
        with tf.Session() as session:
            assert session.run(numbers, {text: ["1", b"2.5"]}).tolist() == [2.0, 5.0]
            found = session.run([again, text], {text: ["1", "1.0"]})
        assert found[0].tolist() == [b"2.0", b"2.0"]
        assert found[1].tolist() == [b"1", b"1.0"]
        assert found[0].dtype == object


def test_several_outputs_on_the_host() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        number, text = _op("TestTwoOutputs").outputs
        assert session.run([text, number + 1]) == [b"seven", 8]
        assert session.run(text) == b"seven"
        session.run(text.op)


def test_variables_of_text_are_not_changed_from_outside() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(["a", "b"])
        fed = tf.placeholder(tf.string, [2])
        assign = v.assign(fed)
        session.run(v.initializer)
        for fetch, value in [(v, {}), (assign, {fed: ["c", "d"]}), (v, {})]:
            found = session.run(fetch, value)
            before = found.tolist()
            found[0] = b"changed"
            assert session.run(v).tolist() == before


def test_small_variables_are_not_changed_from_outside() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, [2])
        v = tf.Variable([0.0, 0.0])
        store = v.assign(fed).op
        session.run(tf.global_variables_initializer())
        value = np.array([1.0, 2.0], np.float32)
        for _ in range(2):  # the second time, the variables have a value of this shape
            session.run(store, {fed: value})
        value[0] = 9.0
        found = session.run(v)
        found[1] = 9.0
        assert session.run(v).tolist() == [1.0, 2.0]
        assert session.run(v.assign_add([1.0, 1.0])).tolist() == [2.0, 3.0]
        session.run(store, {fed: value})
        assert session.run(v).tolist() == [9.0, 2.0]


def test_an_operation_that_gives_too_little() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        first, second = _op("TestOneOutputTooFew").outputs
        assert session.run(first) == 7
        with pytest.raises(tf.errors.InternalError, match=r"TestOneOutputTooFew.*returned 1 values for its outputs"):
            session.run(second)


def test_an_operation_without_a_form_for_text() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        doubled = _op("Neg", [tf.constant(["a"])]).outputs[0]
        with pytest.raises((tf.errors.UnimplementedError, tf.errors.InvalidArgumentError), match="Neg"):
            session.run(doubled)


# Errors ---------------------------------------------------------------------------------------------------------


def test_an_error_names_the_operation() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
        total = tf.add(x, y, name="the_sum")
        with pytest.raises(tf.errors.InvalidArgumentError, match="the_sum") as caught:
            session.run(total, {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]})
        assert caught.value.op is total.op
        assert caught.value.node_def.op == total.op.type
        assert caught.value.error_code == 3
        assert session.run(total, {x: [1.0], y: [2.0]}).tolist() == [3.0]


def test_a_placeholder_without_a_value() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="inputs")
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"'inputs' with dtype float32 and shape \(2,\).*test_steps.py:"
        ) as caught:
            session.run(x * 2.0)
        assert caught.value.op is x.op


def test_a_variable_without_a_value() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(1.0, name="weight")
        for fetch in (v, v + 1.0, v.assign_add(1.0), [v.assign_sub(1.0), v]):
            with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value weight"):
                session.run(fetch)
        assert session.run(v.assign(2.0)) == 2.0


@pytest.mark.parametrize(
    ("how", "error"), [("unavailable", tf.errors.UnavailableError), ("value", tf.errors.InvalidArgumentError)]
)
def test_an_error_of_a_python_operation(how: str, error: type[Exception]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        op = _op("TestFails", how=how)
        with pytest.raises(error, match="this operation always fails"):
            session.run(op)


def test_a_failed_step_changes_nothing_that_it_did_not_reach() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(1.0)
        session.run(v.initializer)
        with tf.control_dependencies([_op("TestFails")]):
            update = v.assign_add(1.0)
        with pytest.raises(tf.errors.UnavailableError):
            session.run(update)
        assert session.run(v) == 1.0


def test_control_inputs_that_make_a_circle() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        first, second = tf.no_op(name="first"), tf.no_op(name="second")
        first._add_control_input(second)
        second._add_control_input(first)
        with pytest.raises(tf.errors.InvalidArgumentError, match="depends on itself"):
            session.run(first)


# Steps that end early -------------------------------------------------------------------------------------------


@pytest.fixture
def gate() -> Any:
    found = host_ops.gates["gate"] = host_ops.Gate()
    yield found
    found.open()
    del host_ops.gates["gate"]


def test_closing_a_session_ends_its_steps(gate: host_ops.Gate) -> None:
    with tf.Graph().as_default(), ThreadPoolExecutor(1) as pool:
        session, other = tf.Session(), tf.Session()
        waiting = _op("TestWait", gate="gate").outputs[0]
        step = pool.submit(session.run, waiting)
        gate.reached.wait()
        session.close()
        with pytest.raises(tf.errors.CancelledError, match="closed"):
            step.result()
        gate.open()
        assert other.run(waiting) == 1
        other.close()


def test_a_step_waits_only_so_long(gate: host_ops.Gate) -> None:
    with tf.Graph().as_default():
        waiting = _op("TestWait", gate="gate").outputs[0]
        with tf.Session() as session:
            with pytest.raises(tf.errors.DeadlineExceededError, match="gate gate"):
                session.run(waiting, options=tf.RunOptions(timeout_in_ms=1))
            gate.open()
            assert session.run(waiting, options=tf.RunOptions(timeout_in_ms=60_000)) == 1
        with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=1)) as session:
            gate.is_open = False
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(waiting)


def test_a_waiting_operation_does_not_block_others(gate: host_ops.Gate) -> None:
    """An update of the same step is applied meanwhile, because nothing orders it after the wait."""
    with tf.Graph().as_default(), tf.Session() as session, ThreadPoolExecutor(1) as pool:
        v = tf.Variable(1.0)
        session.run(v.initializer)
        with tf.control_dependencies([_op("TestWait", gate="gate")]):
            after = v.read_value()
        step = pool.submit(session.run, [v + 0.0, after])
        gate.reached.wait()
        session.run(v.assign(5.0))
        gate.open()
        assert step.result() == [1.0, 5.0]


def test_a_session_that_is_dropped_leaves_no_threads() -> None:
    before = set(threading.enumerate())  # of other tests, and may end meanwhile
    with tf.Graph().as_default():
        x = tf.constant(1)
        for _ in range(3):
            tf.Session().run(x)
    assert set(threading.enumerate()) <= before


def test_results_do_not_share_memory_with_fed_arrays() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        weight = tf.placeholder(tf.float32, [2])
        (gradient,) = tf.gradients(tf.add(x, x + 1.0), x, weight)
        branch = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x, lambda: -x)
        (same,) = tf.gradients(tf.add(x, 1.0), x, weight)
        fed = np.ones(2, np.float32)
        feeds = {x: fed, weight: fed}
        results = session.run([gradient, branch, same], feeds)
        fed[:] = 7.0
        assert [each.tolist() for each in results] == [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]
