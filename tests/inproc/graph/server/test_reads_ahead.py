"""Reads ahead: a run starts from values that were sent with the previous answer, without a visible difference."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.cluster.devices import parse_device
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.graph.master import ahead
from headwater.graph.passes.ahead import read_ahead_by
from headwater.graph.passes.partition import partition
from headwater.graph.passes.place import place
from headwater.graph.passes.prune import RunRequest, prune
from headwater.graph.passes.schedule import schedule
from headwater.tf1.training.supervised_session import SupervisedSession
from tests.support.cluster import MemoryCluster, memory_cluster
from tests.support.cuts import Cuts

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
#: Runs until one starts from values that it has read ahead: the first does not request them, the second does.
RUNS = 2
#: Frames of a step: a request and an answer, with or without values in between.
SHORT, LONG = 2, 4


@dataclass
class Training:
    """A cluster of one ``ps`` and two workers with a session each; a step subtracts 1/4 from ``w``."""

    cluster: MemoryCluster
    cuts: Cuts
    w: Any
    step: list[Any]
    sessions: list[tf.Session]

    def run(self, worker: int = 0) -> float:
        """Runs a step; returns the value of ``w`` before it."""
        return float(self.sessions[worker].run(self.step)[1])

    def frames(self, worker: int = 0) -> int:
        """Returns the number of frames of a step."""
        self.cuts.plan()
        self.run(worker)
        return self.cuts.frames

    def cell(self, name: str = "w") -> Any:
        """Returns the cell of a variable at the ``ps``."""
        (ps,) = [task for name, task in self.cluster.tasks.items() if name.job == "ps"]
        return ps.runtime.resources.cell("", name)


@contextlib.contextmanager
def training(session: Any = SupervisedSession) -> Iterator[Training]:
    cuts = Cuts()
    with memory_cluster(cuts, ps=1, worker=2) as cluster, tf.Graph().as_default():
        with tf.device(PS):
            w = tf.get_variable("w", initializer=np.float32(1024.0))
        with tf.device(WORKER):
            value, loss = w * 1.0, tf.square(w) / 8.0
        step = [tf.train.GradientDescentOptimizer(1.0).minimize(loss), value]
        with session(cluster.target("worker")) as one, session(cluster.target("worker", 1)) as other:
            one.run(tf.global_variables_initializer())
            yield Training(cluster, cuts, w, step, [one, other])


@pytest.fixture(params=[tf.Session, SupervisedSession], ids=["plain", "resuming"])
def trained(request: pytest.FixtureRequest) -> Iterator[Training]:
    with training(request.param) as found:
        yield found


def test_a_step_that_is_repeated_takes_one_round_trip(trained: Training) -> None:
    frames, values = [], []
    for number in range(6):
        trained.cuts.plan()
        values.append(trained.run())
        frames.append(trained.cuts.frames)
        assert values[-1] == 1024.0 * 0.75**number
    assert frames == [LONG] * RUNS + [SHORT] * 4


def test_a_worker_learns_that_an_update_without_results_has_run(trained: Training) -> None:
    """The last transfer of the ``ps`` has no tensors: only a control dependency waits for it."""
    minimize, value = trained.step
    with tf.device(WORKER), tf.control_dependencies([minimize]):
        trained.step = [minimize, tf.identity(value)]
    values = [trained.run(number % 2) for number in range(8)]
    assert values == [1024.0 * 0.75**number for number in range(8)]


def test_a_step_reads_the_latest_updates_of_others(trained: Training) -> None:
    """Two workers take turns: each always gets the other's latest values."""
    for number in range(12):
        assert trained.run(number % 2) == 1024.0 * 0.75**number


def test_values_that_others_change_are_read_ahead_less_and_less(trained: Training) -> None:
    frames = []
    for _ in range(40):
        frames.append(trained.frames(0))
        trained.run(1)
    assert frames == [LONG] * 40  # the discarded computation costs no further frame
    assert trained.sessions[0].run(trained.w) == pytest.approx(1024.0 * 0.75**80)
    for _ in range(40):
        trained.run(0)
    assert trained.frames(0) == SHORT  # one worker alone again


def test_a_step_sees_a_value_that_was_restored(trained: Training) -> None:
    for _ in range(RUNS + 1):
        trained.run()
    trained.w.load(np.float32(4096.0), trained.sessions[1])
    assert [trained.run() for _ in range(20)] == pytest.approx([4096.0 * 0.75**number for number in range(20)])
    assert trained.frames() == SHORT


def test_a_step_detects_a_deleted_value(trained: Training) -> None:
    for _ in range(RUNS + 1):
        trained.run()
    trained.cell().value = None
    with pytest.raises(FailedPreconditionError, match="uninitialized value w"):
        trained.run()


def test_an_update_stays_in_place(trained: Training) -> None:
    """Values that were sent with an answer do not share the buffer of a variable: a frame has a copy."""
    with tf.Graph().as_default():
        with tf.device(PS):
            v = tf.get_variable("large", initializer=np.zeros(1 << 16, np.float32))
        with tf.device(WORKER):
            loss = tf.reduce_sum(tf.square(v - 1.0))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with SupervisedSession(trained.cluster.target("worker")) as session:
            session.run(v.initializer)
            places = []
            for _ in range(RUNS + 6):
                session.run(train_op)
                value = trained.cell("large").value  # of a kernel, or of an executable
                places.append(value.ctypes.data if isinstance(value, np.ndarray) else value.unsafe_buffer_pointer())
                del value  # a reference to the buffer counts as a reader
    assert len(set(places[RUNS:])) == 1


def test_values_that_are_large_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "MAX_BYTES", 3)
    with training() as found:
        assert [found.frames() for _ in range(6)] == [LONG] * 6


def test_an_error_from_outdated_values_is_ignored() -> None:
    """A worker's step makes an index invalid; before its next step, another worker makes the index valid again."""
    with memory_cluster(Cuts(), ps=1, worker=2) as cluster, tf.Graph().as_default():
        with tf.device(PS):
            place = tf.get_variable("place", initializer=np.int32(0))
        with tf.device(WORKER):
            row = tf.gather(tf.constant([1, 1, 1, 1], tf.int32), place)
        on = tf.assign_add(place, row)
        with tf.Session(cluster.target("worker")) as one, tf.Session(cluster.target("worker", 1)) as other:
            one.run(place.initializer)
            for _ in range(4):
                one.run(on)
            place.load(np.int32(2), other)
            one.run(on)
            assert one.run(place) == 3
            one.run(on)
            with pytest.raises(InvalidArgumentError, match="4"):
                one.run(on)
            assert one.run(place) == 4


# Connections that are lost ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", [False, True], ids=["current", "outdated"])
@pytest.mark.parametrize("arrives", [False, True], ids=["lost", "last"])
@pytest.mark.parametrize("frame", range(LONG))
def test_a_cut_at_every_frame(frame: int, arrives: bool, between: bool) -> None:
    """Each step is applied once, to the values current at that time, whichever of its frames is lost."""
    with training() as found:
        count = 0
        for number in range(RUNS + 6):
            found.cuts.plan(**({"after" if arrives else "before": [frame]} if number >= RUNS else {}))
            assert found.run() == 1024.0 * 0.75**count
            count += 1
            if between:
                found.cuts.plan()
                assert found.run(1) == 1024.0 * 0.75**count
                count += 1
        found.cuts.plan()
        assert found.sessions[0].run(found.w) == 1024.0 * 0.75**count


@pytest.mark.parametrize("arrives", [False, True], ids=["lost", "last"])
@pytest.mark.parametrize("frame", range(SHORT + 2))
def test_a_cut_at_every_frame_of_a_step_with_two_round_trips(frame: int, arrives: bool) -> None:
    cuts = Cuts()
    with memory_cluster(cuts, ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device(PS):
            w = tf.get_variable("w", initializer=np.float32(1.0))
            v = tf.get_variable("v", initializer=np.float32(0.0))
        with tf.device(WORKER):
            doubled = w * 2.0
        with tf.device(PS):
            more = tf.assign(w, doubled) + 1.0
        with tf.device(WORKER):
            tripled = more * 3.0
        step = tf.assign(v, tripled)
        with SupervisedSession(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            for number in range(RUNS + 2):
                cuts.plan(**({"after" if arrives else "before": [frame]} if number >= RUNS else {}))
                assert session.run(step) == (2.0 ** (number + 1) + 1.0) * 3.0
                assert number < RUNS or cuts.made


# Which requests -------------------------------------------------------------------------------------------------------


def may_read_ahead(*fetches: Any) -> bool:
    """Returns whether a worker's request may read ahead."""
    names = ["/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"]
    tensors = tuple(fetch for fetch in fetches if isinstance(fetch, tf.Tensor))
    targets = tuple(fetch for fetch in fetches if not isinstance(fetch, tf.Tensor))
    devices = [parse_device(f"{name}/device:CPU:0") for name in names]
    plans = schedule(partition(place(prune(RunRequest(tensors, targets=targets)), devices)))
    return read_ahead_by(plans[names[1]], plans[names[0]]) is not None


def test_repeatable_steps_may_read_ahead() -> None:
    with tf.Graph().as_default():
        with tf.device(PS):
            w = tf.get_variable("w", initializer=np.ones(3, np.float32))
            drawn = w + tf.random_normal([3])
        with tf.device(WORKER):
            mine = tf.get_variable("mine", initializer=np.ones(3, np.float32))
            queue = tf.FIFOQueue(10, tf.float32, [[3]])
            value = w * 2.0
            dropped, taken = tf.nn.dropout(w, 0.5), w * queue.dequeue()
            printed = tf.Print(value, [value])
            called = tf.py_func(lambda x: x, [value], tf.float32)
            checked = tf.check_numerics(value, "value")
            noted = tf.assign_add(mine, value)
            from_ps = drawn * 2.0
        for good in (value, dropped, value * mine):
            assert may_read_ahead(tf.assign_add(w, good)), good
        for bad in (taken, printed, called, noted, from_ps):
            assert not may_read_ahead(tf.assign_add(w, bad)), bad
        assert not may_read_ahead(value)  # nothing is sent back
        assert not may_read_ahead(tf.assign_add(w, value), tf.assign(mine, value))
        assert may_read_ahead(tf.assign_add(w, checked)) is False  # reads values on the host
