"""Lanes and levels: the number of transfers before an operation can run, and operations that run together."""

from __future__ import annotations

from typing import Any

import pytest

from headwater import tf
from headwater.cluster.devices import parse_device
from headwater.graph.passes.partition import partition, verify_partition
from headwater.graph.passes.place import place
from headwater.graph.passes.plan import Compute, Host, Receive, Send, TaskPlan
from headwater.graph.passes.prune import RunRequest, prune
from headwater.graph.passes.schedule import schedule, verify_plans
from tests.support import host_ops

WORKER, PS = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"

del host_ops  # imported for what it does: it registers operation types


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def _plans(fetches: Any = (), feeds: Any = (), targets: Any = ()) -> dict[str, TaskPlan]:
    request = RunRequest(tuple(fetches), tuple(feeds), tuple(targets))
    devices = [parse_device(f"{task}/device:CPU:0") for task in (WORKER, PS)]
    part = partition(place(prune(request), devices))
    verify_partition(part)
    plans = schedule(part)
    verify_plans(plans)
    return dict(plans)


def _shape(plan: TaskPlan) -> list[str]:
    """The kinds of a plan's instructions."""
    return [type(item).__name__ for item in plan.instructions]


def _here(make: Any, device: str = WORKER) -> Any:
    with tf.device(device):
        return make()


def test_adjacent_operations_share_one_executable() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = _here(lambda: tf.reduce_sum(tf.exp(x) * 2.0 + 1.0))
    plans = _plans([y], [x])
    assert list(plans) == [WORKER]
    (compute,) = plans[WORKER].instructions
    assert isinstance(compute, Compute)
    assert compute.inputs == (x.name,)
    assert compute.outputs == (y.name,)


def test_a_round_trip_is_one_transfer_each_way() -> None:
    first, second = (_here(lambda: tf.Variable(1.0), PS) for _ in range(2))
    update = _here(lambda: [v.assign_sub(tf.exp(v.value())).op for v in (first, second)])
    plans = _plans(targets=update)
    assert _shape(plans[WORKER]) == ["Receive", "Compute", "Send"]
    assert _shape(plans[PS]) == ["Compute", "Send", "Receive", "Compute"]


def test_small_transfer_is_sent_with_a_later_awaited_transfer() -> None:
    """One transfer is saved: the receiver of both has no work between them."""
    weights, gradient, seen = (_here(lambda: tf.Variable(tf.zeros([10_000])), PS) for _ in range(3))
    count, step = _here(lambda: tf.Variable(0.0), PS), _here(lambda: tf.Variable(0.0))
    change = _here(lambda: tf.exp(weights.value()))

    def update(counter: Any, value: Any) -> dict[str, TaskPlan]:
        with tf.device(PS), tf.control_dependencies([gradient.assign(change)]):
            return _plans(targets=[counter.assign_add(value).op])

    plans = update(count, step.value())
    assert _shape(plans[WORKER]) == ["Compute", "Receive", "Compute", "Send"]
    assert _shape(plans[PS]) == ["Compute", "Send", "Receive", "Compute"]
    large = _here(lambda: tf.Variable(tf.zeros([10_000])))
    plans = update(seen, large.value())
    assert _shape(plans[WORKER]).count("Send") == 2, "what is large is on its way while the rest is computed"


def test_constants_do_not_travel() -> None:
    constant = _here(lambda: tf.constant([1.0, 2.0]), PS)
    y = _here(lambda: tf.exp(constant))
    plans = _plans([y])
    assert list(plans) == [WORKER]


def test_a_fetched_constant_is_in_the_plan_of_its_device() -> None:
    constant = _here(lambda: tf.constant([1.0, 2.0]), PS)
    plans = _plans([constant])
    assert plans[PS].constants[constant.name].tolist() == [1.0, 2.0]
    assert plans[PS].instructions == ()


def test_groups_dissolve() -> None:
    updates = [_here(lambda: tf.Variable(1.0), PS).assign_add(1.0) for _ in range(3)]
    inner = _here(lambda: tf.group(*updates[:2]))
    outer = _here(lambda: tf.group(inner, updates[2]))
    plans = _plans(targets=[outer])
    assert list(plans) == [PS]
    assert _shape(plans[PS]) == ["Compute"]


def test_a_constant_waits_as_its_user_would() -> None:
    """An operation that waits for a constant waits for its control inputs, although no task computes the constant."""
    v = _here(lambda: tf.Variable(1.0), PS)
    with tf.control_dependencies([v.assign_add(1.0)]):
        constant = _here(lambda: tf.constant(2.0))
    y = _here(lambda: constant * 3.0)
    plans = _plans([y])
    assert _shape(plans[PS]) == ["Compute", "Send"]
    assert _shape(plans[WORKER]) == ["Receive", "Compute"]


def test_order_alone_is_a_transfer_of_nothing() -> None:
    v, w = _here(lambda: tf.Variable(1.0), PS), _here(lambda: tf.Variable(1.0))
    with tf.control_dependencies([v.assign_add(1.0)]):
        update = w.assign_add(1.0)
    plans = _plans(targets=[update.op])
    sent = [item for item in plans[PS].instructions if isinstance(item, Send)]
    received = [item for item in plans[WORKER].instructions if isinstance(item, Receive)]
    assert [item.tensors for item in sent] == [item.tensors for item in received] == [()]


def test_python_between_executables() -> None:
    x = tf.placeholder(tf.float32, [2])
    graph = tf.get_default_graph()
    host = _here(lambda: graph.create_op("TestHostNegate", [tf.exp(x)]).outputs[0])
    y = _here(lambda: host + tf.exp(x))
    plan = _plans([y], [x])[WORKER]
    assert _shape(plan) == ["Compute", "Host", "Compute"]
    first, _, last = plan.instructions
    assert isinstance(first, Compute)
    assert isinstance(last, Compute)
    assert "Exp_1" in [node.name for node in last.nodes], "what only the second needs runs with it"


def test_a_value_that_a_shape_needs_is_known_when_compiling() -> None:
    x, size = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [])
    y = _here(lambda: tf.reshape(x, [size * 2, -1]))
    plan = _plans([y], [x, size])[WORKER]
    assert _shape(plan) == ["Compute", "Compute"]
    last = plan.instructions[-1]
    assert isinstance(last, Compute)
    assert len(last.static) == 1
    z = _here(lambda: tf.reshape(x, [tf.shape(x)[0] * 2, -1]))
    plan = _plans([z], [x])[WORKER]
    assert _shape(plan) == ["Compute"], "what follows from shapes is known anyway"


def test_waiting_operations_are_last() -> None:
    graph = tf.get_default_graph()
    waiting = _here(lambda: graph.create_op("TestWait", [], {"gate": "g"}))
    other = _here(lambda: graph.create_op("TestTwoOutputs", []))
    after = _here(lambda: graph.create_op("TestHostNegate", [waiting.outputs[0]]))
    plan = _plans(targets=[waiting, other, after])[WORKER]
    names = [item.node.name for item in plan.instructions if isinstance(item, Host)]
    assert names == ["TestTwoOutputs", "TestWait", "TestHostNegate"]


def test_an_update_needs_a_variable() -> None:
    update = tf.get_default_graph().create_op("AssignAdd", [tf.constant(1.0), tf.constant(2.0)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a variable"):
        _plans(targets=[update])
    ref = tf.Variable(1.0)._ref()
    update = tf.get_default_graph().create_op("AssignAdd", [ref, tf.constant(2.0)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a variable"):
        _plans(targets=[update], feeds=[ref])
