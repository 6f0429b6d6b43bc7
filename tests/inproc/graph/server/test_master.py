"""A master and the tasks with which it runs steps: state, errors, tasks that end, and resources after a step."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.cluster.task.kinds import HOLD
from headwater.cluster.transport.channel import memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.graph.master.conversation import ChannelConversation
from headwater.graph.master.master import MasterStep, SessionOptions
from headwater.graph.server.master_service import MasterService
from tests.support import host_ops
from tests.support.cluster import MemoryCluster, memory_cluster

PS = [f"/job:ps/task:{index}" for index in range(2)]
WORKER = "/job:worker/task:0"


@pytest.fixture
def cluster() -> Iterator[MemoryCluster]:
    with memory_cluster(ps=2, worker=2) as found, tf.Graph().as_default():
        yield found
    assert not [thread for thread in threading.enumerate() if " serves " in thread.name]


@pytest.fixture
def gate() -> Iterator[host_ops.Gate]:
    found = host_ops.gates["gate"] = host_ops.Gate()
    yield found
    found.open()
    del host_ops.gates["gate"]


def _op(op_type: str, inputs: Any = (), device: str = "", **attrs: Any) -> Any:
    return tf.get_default_graph().create_op(op_type, list(inputs), attrs, device=device)


def _variable(value: Any, device: str, name: str = "v") -> Any:
    with tf.device(device):
        return tf.Variable(value, name=name)


def test_masters_share_the_state_of_tasks(cluster: MemoryCluster) -> None:
    v = _variable(1.0, PS[0])
    up = v.assign_add(1.0)
    with tf.Session(cluster.target("worker")) as first, tf.Session(cluster.target("worker", 1)) as second:
        first.run(v.initializer)
        assert second.run(v) == 1.0
        assert [float(session.run(up)) for session in (first, second, first)] == [2.0, 3.0, 4.0]
        assert second.run(v) == 4.0
    with tf.Session(cluster.target("ps", 1)) as third:
        assert third.run(v) == 4.0


def test_containers(cluster: MemoryCluster) -> None:
    with tf.container("mine"):
        v = _variable(1.0, PS[0])
    w = _variable(2.0, PS[0], name="w")
    with tf.Session(cluster.target("worker")) as session:
        session.run([v.initializer, w.initializer])
    tf.Session.reset(cluster.target("worker"), ["mine"])
    with tf.Session(cluster.target("worker")) as session:
        assert session.run(w) == 2.0
        with pytest.raises(tf.errors.FailedPreconditionError, match="value v"):
            session.run(v)
    tf.Session.reset(cluster.target("worker"))
    with tf.Session(cluster.target("worker")) as session, pytest.raises(tf.errors.FailedPreconditionError):
        session.run(w)


def test_reset_ends_sessions(cluster: MemoryCluster) -> None:
    v = _variable(1.0, PS[0])
    with tf.Session(cluster.target("worker")) as session:
        session.run(v.initializer)
        tf.Session.reset(cluster.target("worker"))
        with pytest.raises(tf.errors.AbortedError, match="/job:ps/replica:0/task:0 does not know plan"):
            session.run(v.initializer)


def test_feeds_may_be_changed_after_a_shared_step(cluster: MemoryCluster) -> None:
    size = 1 << 20
    here, there = _variable(np.zeros(size, np.float32), WORKER), _variable(np.zeros(size, np.float32), PS[0])
    fed = tf.placeholder(tf.float32, [size])
    with tf.device(WORKER):
        value = tf.sin(tf.sin(fed) + fed)
    both = tf.group(here.assign(value), there.assign(fed))
    room = np.zeros(size * 4 + 64, np.uint8)  # memory that JAX could use without a copy
    array = room[-room.ctypes.data % 64 :][: size * 4].view(np.float32)
    with tf.Session(cluster.target("worker")) as session:
        session.run([here.initializer, there.initializer])
        array[:] = 1.0
        session.run(both, {fed: array})
        array[:] = 0.0
        found_here, found_there = session.run([here, there])
    assert (found_here == found_here[0]).all()
    assert found_here[0] != 0
    assert (found_there == 1.0).all()


def test_transfers_between_two_tasks_other_than_the_master(cluster: MemoryCluster) -> None:
    first, second = _variable([1.0, 2.0], PS[0], "first"), _variable([0.0, 0.0], PS[1], "second")
    with tf.device(PS[1]):
        copy = second.assign(first * 3.0)
    with tf.Session(cluster.target("worker")) as session:
        session.run([first.initializer, second.initializer])
        for _ in range(3):
            session.run(copy.op)
        assert session.run(second).tolist() == [3.0, 6.0]


def test_large_transfers_both_ways_at_once(cluster: MemoryCluster) -> None:
    size = 1 << 18
    variables = [_variable(np.full(size, 1.0, np.float32), device, name="big") for device in PS]
    with tf.device(WORKER):
        updates = [v.assign_sub(v * 0.5) for v in variables]
    with tf.Session(cluster.target("worker")) as session:
        session.run([v.initializer for v in variables])
        session.run(updates)
        for value in session.run(variables):
            assert (value == 0.5).all()


# Errors ---------------------------------------------------------------------------------------------------------


def test_a_variable_without_a_value_elsewhere(cluster: MemoryCluster) -> None:
    v = _variable(1.0, PS[1], name="weight")
    with tf.Session(cluster.target("worker")) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"value weight.*\[on /job:ps/replica:0/task:1\]"):
            session.run(v)
        session.run(v.initializer)
        assert session.run(v) == 1.0


def test_an_error_elsewhere_names_task_and_operation(cluster: MemoryCluster) -> None:
    op = _op("TestFails", device=PS[1])
    v = _variable(1.0, PS[0])
    with tf.Session(cluster.target("worker")) as session:
        session.run(v.initializer)
        for _ in range(3):
            with pytest.raises(tf.errors.UnavailableError, match=r"always fails.*\[on /job:ps/replica:0/task:1\]"):
                session.run([op, v])
            assert session.run(v) == 1.0


def test_an_error_on_one_task_ends_the_wait_for_another(cluster: MemoryCluster, gate: host_ops.Gate) -> None:
    """The master waits for one task while another one fails."""
    waiting = _op("TestWait", device=PS[0], gate="gate").outputs[0]
    with tf.device(WORKER):
        later = tf.identity(waiting)
    with tf.control_dependencies([_op("TestFails", device=PS[1])]), tf.device(PS[1]):
        failed = tf.constant(1.0) + 1.0
    with (
        tf.Session(cluster.target("worker")) as session,
        pytest.raises(tf.errors.UnavailableError, match=r"always fails"),
    ):
        session.run([later, failed])


def test_an_error_elsewhere_ends_a_wait_of_the_master_itself(cluster: MemoryCluster, gate: host_ops.Gate) -> None:
    waiting = _op("TestWait", device=WORKER, gate="gate")
    failing = _op("TestFails", device=PS[1])
    with (
        tf.Session(cluster.target("worker")) as session,
        pytest.raises(tf.errors.UnavailableError, match=r"always fails"),
    ):
        session.run([waiting, failing])


def test_a_master_that_was_replaced_is_refused(cluster: MemoryCluster) -> None:
    """During a network partition, another process takes the worker's place; then the partition ends."""
    with tf.device(PS[0]):
        v = tf.Variable(1.0)
        add = tf.assign_add(v, 1.0)
    former = tf.Session(cluster.target("worker"))
    former.run(v.initializer)
    cluster.restart("worker")
    with tf.Session(cluster.target("worker")) as session:
        assert session.run(add) == 2.0
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"refuses generation 3 of .* by generation 3eb"):
            former.run(add)
        assert session.run(v) == 2.0


def test_an_error_of_the_master_itself_ends_the_wait_elsewhere(cluster: MemoryCluster, gate: host_ops.Gate) -> None:
    waiting = _op("TestWait", device=PS[0], gate="gate")
    failing = _op("TestFails", device=WORKER)
    with tf.Session(cluster.target("worker")) as session, pytest.raises(tf.errors.UnavailableError, match="fails"):
        session.run([waiting, failing])


def test_a_device_that_no_task_has(cluster: MemoryCluster) -> None:
    for device in ("/job:ps/task:7", "/job:nobody", "/job:ps/task:0/gpu:0"):
        with tf.device(device):
            x = tf.constant(1.0) + 1.0
        refused = pytest.raises(tf.errors.InvalidArgumentError, match="available devices are")
        with tf.Session(cluster.target("worker")) as session, refused:
            session.run(x)


def test_device_filters(cluster: MemoryCluster) -> None:
    config = tf.ConfigProto(device_filters=["/job:ps/task:0", "/job:worker/task:0"])
    with tf.Session(cluster.target("worker"), config=config) as session:
        names = {device.name for device in session.list_devices()}
        assert names == {f"/job:{task}/device:CPU:0" for task in ("ps/replica:0/task:0", "worker/replica:0/task:0")}
        v = _variable(1.0, PS[1])
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(v.initializer)


# Tasks that end -------------------------------------------------------------------------------------------------


def test_a_restarted_task(cluster: MemoryCluster) -> None:
    v, w = _variable(1.0, PS[0]), _variable(2.0, PS[1], "w")
    with tf.Session(cluster.target("worker")) as session:
        session.run([v.initializer, w.initializer])
        cluster.restart("ps", 0)
        with pytest.raises(tf.errors.AbortedError, match="/task:0 was restarted"):
            session.run(v)
        assert session.run(w) == 2.0
    with tf.Session(cluster.target("worker")) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="value v"):
            session.run(v)
        session.run(v.initializer)
        assert session.run([v, w]) == [1.0, 2.0]


def test_a_task_that_ends_during_a_step(cluster: MemoryCluster, gate: host_ops.Gate) -> None:
    waiting = _op("TestWait", device=PS[0], gate="gate").outputs[0]
    with tf.device(WORKER):
        later = tf.identity(waiting)
    with tf.Session(cluster.target("worker")) as session, ThreadPoolExecutor(1) as pool:
        step = pool.submit(session.run, later)
        gate.reached.wait()
        cluster.restart("ps", 0)
        with pytest.raises(tf.errors.UnavailableError, match="/job:ps/replica:0/task:0 was lost during step"):
            step.result()


def test_closing_a_session_ends_its_steps_elsewhere(cluster: MemoryCluster, gate: host_ops.Gate) -> None:
    waiting = _op("TestWait", device=PS[0], gate="gate").outputs[0]
    session = tf.Session(cluster.target("worker"))
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(session.run, waiting)
        gate.reached.wait()
        session.close()
        with pytest.raises(tf.errors.CancelledError, match="closed"):
            step.result()
    gate.open()
    with tf.Session(cluster.target("worker")) as another:
        assert another.run(waiting) == 1


def test_a_step_elsewhere_waits_only_so_long(cluster: MemoryCluster, gate: host_ops.Gate) -> None:
    waiting = _op("TestWait", device=PS[0], gate="gate").outputs[0]
    with tf.Session(cluster.target("worker")) as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(waiting, options=tf.RunOptions(timeout_in_ms=300))
        gate.open()
        assert session.run(waiting) == 1


def test_sessions_leave_no_plans_behind(cluster: MemoryCluster) -> None:
    variables = [_variable(1.0, device) for device in (*PS, WORKER)]
    for _ in range(5):
        with tf.Session(cluster.target("worker")) as session:
            session.run([v.initializer for v in variables])
            assert all(task.runtime.session_count() == 1 for task in cluster.tasks.values() if task.name.index == 0)
    assert [task.runtime.session_count() for task in cluster.tasks.values()] == [0, 0, 0, 0]


def test_a_session_that_is_dropped_leaves_no_plans_behind(cluster: MemoryCluster) -> None:
    v = _variable(1.0, PS[0])
    session = tf.Session(cluster.target("worker"))
    session.run(v.initializer)
    assert cluster.task("ps").runtime.session_count() == 1
    del session
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "closes a session":
            thread.join()
    assert cluster.task("ps").runtime.session_count() == 0


def _steps_in_memory() -> set[int]:
    return {id(found) for found in gc.get_objects() if isinstance(found, MasterStep | ChannelConversation)}


def test_a_step_leaves_nothing_to_the_garbage_collector(cluster: MemoryCluster) -> None:
    variables = [_variable(1.0, device) for device in PS]
    with tf.Session(cluster.target("worker")) as session:
        session.run([v.initializer for v in variables])
        gc.collect()
        gc.disable()
        try:
            others = _steps_in_memory()  # objects of earlier tests that are still referenced
            for _ in range(3):
                session.run(variables)
            left = _steps_in_memory() - others
        finally:
            gc.enable()
    assert not left


def test_a_restarted_master_leaves_no_plans_behind(cluster: MemoryCluster) -> None:
    v = _variable(1.0, PS[0])
    session = tf.Session(cluster.target("worker"))
    session.run(v.initializer)
    cluster.restart("worker", 0)  # its sessions are gone, and the ps was not notified
    with tf.Session(cluster.target("worker")) as another:
        assert another.run(v) == 1.0
        assert cluster.task("ps").runtime.session_count() == 1


def test_many_steps_at_once(cluster: MemoryCluster) -> None:
    counters = [_variable(0, device) for device in PS]
    with tf.device(WORKER):
        ups = tf.group(*[counter.assign_add(tf.identity(1)) for counter in counters])
    with tf.Session(cluster.target("worker")) as first, tf.Session(cluster.target("worker", 1)) as second:
        first.run([counter.initializer for counter in counters])
        with ThreadPoolExecutor(4) as pool:
            steps = [pool.submit(session.run, ups) for _ in range(50) for session in (first, second)]
        for step in steps:
            step.result()
        assert second.run(counters) == [100, 100]


def test_sessions_that_their_client_never_held_end(cluster: MemoryCluster) -> None:
    now = 0.0
    task = cluster.task("ps")
    service = MasterService(task.runtime, task.peers, clock=lambda: now)
    graph = tf.Graph()
    with graph.as_default():
        tf.constant(1.0)
    data = graph.as_graph_def().SerializeToString()
    held, forgotten = (service.create_session(SessionOptions().encode(), data) for _ in range(2))
    ours, _ = memory_pair()
    service.attach_session(ours, Frame(HOLD, (held,), ()))
    now = 61.0
    service.create_session(SessionOptions().encode(), data)
    assert service.session_devices(held)
    with pytest.raises(tf.errors.NotFoundError, match="has no session"):
        service.session_devices(forgotten)
    service.close()
