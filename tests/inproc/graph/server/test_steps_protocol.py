"""The protocol of a step, frame by frame: a task's answers, and its reactions to invalid frames."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.cluster.claims import Claim
from headwater.cluster.devices import parse_device
from headwater.cluster.task.kinds import DONE, ERROR, RESUME, RESUMED, RUN, TAKEN, TENSORS, TRANSFER
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import (
    ABORTED,
    CANCELLED,
    INVALID_ARGUMENT,
    AbortedError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
)
from headwater.graph.master.ahead import ReadsAhead, Values
from headwater.graph.master.conversation import ChannelConversation, Reconnect
from headwater.graph.master.peers import Confirm
from headwater.graph.passes.partition import partition
from headwater.graph.passes.place import place
from headwater.graph.passes.prune import RunRequest, prune
from headwater.graph.passes.schedule import schedule
from headwater.graph.runtime.step import Step
from headwater.graph.runtime.task import TaskRuntime
from headwater.graph.server.steps import StepService
from tests.support import host_ops

MASTER, TASK, OTHER = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1"
SESSION = "s"


def serving(service: StepService, channel: Channel, other: Callable[[Frame], bool]) -> threading.Thread:
    """Runs a thread that serves a channel, as a task does."""

    def serve() -> None:
        with contextlib.suppress(UnavailableError, InvalidArgumentError), contextlib.closing(channel):
            service.serve(channel, channel.recv(), other)

    return threading.Thread(target=serve)


class Served:
    """A task with one channel to it, and plans: 1 doubles a feed, 2 asks the master to, 3 waits, 5 has the master
    compute a variable's new value, 6 sends a feed to another task."""

    def __init__(self) -> None:
        self.runtime = TaskRuntime(TASK)
        self.pushed: list[tuple[str, Frame]] = []
        self.confirm: Callable[[], None] = lambda: None

        def push(task: str, frame: Frame, check: Callable[[], None] | None) -> Confirm:
            del check
            self.pushed.append((task, frame))
            return lambda look: self.confirm()

        self.service = StepService(self.runtime, push)
        self.connect()
        with tf.Graph().as_default():
            fed = tf.placeholder(tf.float32, [2])
            with tf.device(TASK):
                doubled = fed * 2.0
            self._add_plan(1, RunRequest((doubled,), (fed,)))
            with tf.device(TASK):
                first = fed + 1.0
            with tf.device(MASTER):
                second = first * 10.0
            with tf.device(TASK):
                third = second - 1.0
            self._add_plan(2, RunRequest((third,), (fed,)))
            with tf.device(TASK):
                waiting = tf.get_default_graph().create_op("TestWait", [], {"gate": "protocol"}).outputs[0]
                self._add_plan(3, RunRequest((waiting + 0,)))
                w = tf.get_variable("w", [2])
            with tf.device(MASTER):
                more = w * 2.0
            self._add_plan(5, RunRequest((), (), (tf.assign_add(w, more).op,)))
            with tf.device(TASK):
                doubled = fed * 2.0
            with tf.device(OTHER):
                third = doubled + 1.0
            self._add_plan(6, RunRequest((), (fed,), (third.op,)))

    def connect(self) -> None:
        """Opens a channel to the task."""
        self.channel, theirs = memory_pair()
        self.thread = serving(self.service, theirs, lambda frame: frame.kind == 99)
        self.thread.start()

    def _add_plan(self, number: int, request: RunRequest) -> None:
        devices = [parse_device(f"{task}/device:CPU:0") for task in (MASTER, TASK, OTHER)]
        plan = schedule(partition(place(prune(request), devices)))[TASK]
        self.runtime.add_plan(SESSION, number, plan, Claim(task=MASTER, generation=1))

    def send(self, kind: int, header: Any, *tensors: Any) -> None:
        self.channel.send(Frame(kind, header, [np.asarray(tensor) for tensor in tensors]))

    def run(self, plan: int, step: int, *feeds: Any) -> None:
        self.send(RUN, (SESSION, plan, step, None, False, False), *feeds)

    def recv(self) -> tuple[int, Any, list[Any]]:
        frame = self.channel.recv()
        return frame.kind, tuple(frame.header), [tensor.tolist() for tensor in frame.tensors]


@pytest.fixture
def served() -> Iterator[Served]:
    found = Served()
    yield found
    found.channel.close()
    found.thread.join()


ONES = np.ones(2, np.float32)


def test_a_step(served: Served) -> None:
    for step in (1, 2):
        served.run(1, step, ONES)
        assert served.recv() == (DONE, (step,), [[2.0, 2.0]])
    assert served.service.steps == 2


def test_a_step_that_needs_the_master(served: Served) -> None:
    served.run(2, 7, ONES)
    kind, header, tensors = served.recv()
    assert (kind, header[0], tensors) == (TENSORS, 7, [[2.0, 2.0]])
    served.send(TENSORS, (7, header[1] + 1), np.full(2, 20.0, np.float32))
    assert served.recv() == (DONE, (7,), [[19.0, 19.0]])


def test_frames_of_a_step_that_is_over_are_passed_over(served: Served) -> None:
    served.send(TENSORS, (3, 0), ONES)
    served.run(1, 4, ONES)
    assert served.recv()[0] == DONE


@pytest.mark.parametrize(
    ("header", "feeds", "code", "message"),
    [
        ((SESSION, 99, 5, None, False, False), [ONES], ABORTED, "does not know plan 99"),
        (("nobody", 1, 5, None, False, False), [ONES], ABORTED, "session nobody"),
        ((SESSION, 1, 5, None, False, False), [], INVALID_ARGUMENT, "needs 1 feeds, but 0 were received"),
        ((SESSION, 1, 5, None, False, False), [ONES, ONES], INVALID_ARGUMENT, "needs 1 feeds, but 2 were received"),
        ((SESSION, 1, 5, None, False, False, 7), [ONES, ONES], INVALID_ARGUMENT, "needs 1 feeds, but 2 were received"),
        ((SESSION, 5, 5, None, False, False, 7), [], INVALID_ARGUMENT, "sent 0 precomputed tensors with step 5;"),
        ((SESSION, 5, 5, None, False, False, -1), [ONES], INVALID_ARGUMENT, "step 5; its plan expects 0"),
    ],
)
def test_steps_that_cannot_be(served: Served, header: Any, feeds: list[Any], code: int, message: str) -> None:
    served.send(RUN, header, *feeds)
    kind, answer, _ = served.recv()
    assert (kind, answer[0], answer[1]) == (ERROR, 5, code)
    assert message in answer[2]
    served.run(1, 6, ONES)
    assert served.recv()[0] == DONE


@pytest.mark.parametrize(
    ("kind", "header"),
    [
        (RUN, ()),
        (RUN, (SESSION, 1)),
        (RUN, (SESSION, "1", 5, None, False, False)),
        (RUN, (1, 1, 5, None, False, False)),
        (RUN, (SESSION, 1, 5, "soon", False, False)),
        (RUN, (SESSION, 1, 5, None, None, False)),
        (RUN, (SESSION, 1, 5, None, False, 1)),
        (RUN, (SESSION, 1, 5, None, False, False, -2)),
        (RUN, (SESSION, 1, 5, None, False, False, "7")),
        (RUN, (SESSION, 1, 5, None, False, False, 7, 7)),
        (RESUME, (SESSION, 1, 5, None, False, True)),
        (RESUME, (SESSION, 1, 5, None, False, False, 0)),
        (RESUME, (SESSION, 1, 5, None, False, True, "0")),
        (77, (1,)),
        (DONE, (1,)),
        (TRANSFER, ()),
        (TRANSFER, (SESSION, "x", 1)),
    ],
)
def test_frames_that_make_no_sense_end_the_channel(served: Served, kind: int, header: Any) -> None:
    served.send(kind, header)
    with pytest.raises(UnavailableError):
        served.channel.recv()


def test_a_frame_of_another_service(served: Served) -> None:
    served.send(99, ())
    served.run(1, 1, ONES)
    assert served.recv()[0] == DONE


def test_a_wrong_frame_in_the_middle_of_a_step(served: Served) -> None:
    served.run(2, 7, ONES)
    assert served.recv()[0] == TENSORS
    served.run(1, 8, ONES)
    kind, header, _ = served.recv()
    assert (kind, header[:2]) == (ERROR, (7, INVALID_ARGUMENT))


@pytest.mark.parametrize("header", [(), (7,), (8, 0), (7, "0"), (7, 0, "0"), (7, 0, -1), ("7", 0)])
def test_a_wrong_transfer_in_the_middle_of_a_step(served: Served, header: Any) -> None:
    served.run(2, 7, ONES)
    assert served.recv()[0] == TENSORS
    served.send(TENSORS, header, ONES)
    kind, answer, _ = served.recv()
    assert (kind, answer[:2]) == (ERROR, (7, INVALID_ARGUMENT))


def test_a_disconnected_master_ends_the_step(served: Served) -> None:
    gate = host_ops.gates["protocol"] = host_ops.Gate()
    served.run(3, 1)
    gate.reached.wait()
    served.channel.close()
    served.thread.join()
    assert not gate.is_open
    del host_ops.gates["protocol"]


def run_and_go(served: Served, meanwhile: Callable[[], None] = lambda: None) -> None:
    """The task enqueues an element for a master that loses its channel, possibly before the answer."""
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, [2])
        with tf.device(TASK):
            served._add_plan(4, RunRequest((), (fed,), (tf.FIFOQueue(2, tf.float32, [[2]]).enqueue(fed),)))
    served.send(RUN, (SESSION, 4, 1, None, False, True), ONES)
    assert served.recv() == (DONE, (1,), [])
    meanwhile()
    served.channel.close()
    served.thread.join()


def test_shutdown_waits_for_masters_that_reconnect_for_an_answer(served: Served) -> None:
    run_and_go(served)
    assert not served.service.answer_all(60, 0.01)
    with ThreadPoolExecutor() as pool:
        all_answered = pool.submit(served.service.answer_all, 60, 60)
        served.connect()
        served.send(RESUME, (SESSION, 4, 1, None, False, True, 0), ONES)
        assert served.recv()[0] == RESUMED
        assert served.recv() == (DONE, (1,), [])
        assert all_answered.result()
    assert served.service.steps == 1


@pytest.mark.parametrize("late", [RUN, RESUME])
def test_a_frame_read_late_from_a_lost_channel_does_not_run_a_step_again(served: Served, late: int) -> None:
    run_and_go(served)
    served.connect()
    served.send(RESUME, (SESSION, 4, 1, None, False, True, 0), ONES)
    assert served.recv()[0] == RESUMED
    assert served.recv()[0] == DONE
    served.run(1, 2, ONES)  # shows that the master has the answer to step 1
    assert served.recv()[0] == DONE
    served.send(late, (SESSION, 4, 1, None, False, True, *([0] if late == RESUME else [])), ONES)
    served.run(1, 3, ONES)
    assert served.recv()[:2] == (DONE, (3,))
    assert served.service.steps == 3
    assert not served.service.resumable_count()


def test_shutdown_does_not_wait_for_masters_that_disconnected_long_ago(served: Served) -> None:
    run_and_go(served)
    assert served.service.answer_all(60, 0.0)


@pytest.mark.parametrize("resumes", [False, True])
def test_an_answer_waits_until_other_tasks_have_received_the_transfers(served: Served, resumes: bool) -> None:
    sent, taken = threading.Event(), threading.Event()

    def confirm() -> None:
        sent.set()
        taken.wait()

    served.confirm = confirm
    served.send(RUN, (SESSION, 6, 1, None, False, resumes), ONES)
    sent.wait()
    with ThreadPoolExecutor() as pool:
        try:
            assert [task for task, _ in served.pushed] == [OTHER]
            with pytest.raises(DeadlineExceededError):
                served.channel.recv(0)
            assert not served.service.answer_all(60, 0.01)  # a task that ends waits for this
            all_answered = pool.submit(served.service.answer_all, 60, 60)
        finally:
            taken.set()
        assert served.recv() == (DONE, (1,), [])
        assert all_answered.result()


def test_a_step_is_forgotten_when_its_session_ends_before_its_channel(served: Served) -> None:
    found: list[weakref.ref[Any]] = []

    def session_ends() -> None:
        found.extend(map(weakref.ref, served.service._registered.values()))
        served.runtime.release(SESSION, "its master has ended")

    run_and_go(served, session_ends)
    gc.collect()
    assert [step() for step in found] == [None]


def test_a_step_that_is_cancelled(served: Served) -> None:
    gate = host_ops.gates["protocol"] = host_ops.Gate()
    served.run(3, 1)
    gate.reached.wait()
    served.runtime.cancel(SESSION, 1, "somebody asked for it")
    kind, header, _ = served.recv()
    assert (kind, header[:2]) == (ERROR, (1, CANCELLED))
    assert "somebody asked for it" in header[2]
    gate.open()
    served.run(3, 2)
    assert served.recv() == (DONE, (2,), [1])
    del host_ops.gates["protocol"]


def commit(served: Served) -> host_ops.Gate:
    """Runs a step that commits itself and then waits at a gate."""
    with tf.Graph().as_default(), tf.device(TASK):
        attrs = {"gate": "protocol", "commits": True}
        waiting = tf.get_default_graph().create_op("TestWait", [], attrs).outputs[0]
        served._add_plan(4, RunRequest((waiting + 0,)))
    gate = host_ops.gates["protocol"] = host_ops.Gate()
    served.run(4, 1)
    gate.reached.wait()
    return gate


def test_a_session_that_ends_waits_for_a_step_that_has_committed_itself(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = commit(served)
    with ThreadPoolExecutor() as pool:
        waits = threading.Event()
        (step,) = served.runtime._steps
        monkeypatch.setattr(step, "at_end", lambda call: (Step.at_end(step, call), waits.set()))
        released = pool.submit(served.runtime.release, SESSION, "its master was restarted")
        waits.wait()
        assert served.runtime.owner(SESSION)  # transfers from other tasks are still accepted
        gate.open()
        assert served.recv() == (DONE, (1,), [1])
        released.result()
    assert not served.runtime.owner(SESSION)
    del host_ops.gates["protocol"]


def test_a_session_that_ends_does_not_wait_for_ever(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.graph.runtime.task.COMMITTED_S", 0.01)
    gate = commit(served)
    served.runtime.release(SESSION, "its master was restarted")
    kind, header, _ = served.recv()
    assert (kind, header[:2]) == (ERROR, (1, CANCELLED))
    assert not gate.is_open
    del host_ops.gates["protocol"]


def test_a_step_of_another_replica_continues_without_its_master(served: Served) -> None:
    for needs_its_master in (1, 5):
        served.service.resume_step(SESSION, 1, needs_its_master)
        assert not served.service.resumable_count()
    gate = host_ops.gates["protocol"] = host_ops.Gate()
    served.service.resume_step(SESSION, 1, 3)
    gate.reached.wait()
    served.send(RESUME, (SESSION, 3, 1, None, False, True, 0))
    assert served.recv() == (RESUMED, (1, 0, 0), [])
    gate.open()
    assert served.recv() == (DONE, (1,), [1])
    assert served.service.steps == 1
    del host_ops.gates["protocol"]


def test_shutdown_waits_for_answers_and_not_for_waiting_steps(served: Served) -> None:
    assert served.service.answer_all(60)
    served.run(2, 7, ONES)
    kind, header, _ = served.recv()
    assert kind == TENSORS
    assert not served.service.answer_all(0)  # the step is in progress
    served.send(TENSORS, (7, header[1] + 1), np.full(2, 20.0, np.float32))
    assert served.recv()[0] == DONE
    assert served.service.answer_all(60)
    gate = host_ops.gates["protocol"] = host_ops.Gate()
    served.run(3, 8)
    gate.reached.wait()
    assert served.service.answer_all(60)
    gate.open()
    assert served.recv()[0] == DONE
    del host_ops.gates["protocol"]


def test_tensors_of_a_step_that_failed_are_forgotten(served: Served) -> None:
    served.send(TRANSFER, (SESSION, 5, 0), ONES)
    assert served.recv()[:2] == (TAKEN, (SESSION, 5, 0))
    served.run(1, 5)  # its feed is missing
    assert served.recv()[0] == ERROR
    assert not served.runtime.rendezvous._arrived


def test_channels_of_one_task_are_independent(served: Served) -> None:
    other, theirs = memory_pair()
    thread = serving(served.service, theirs, lambda frame: False)
    thread.start()
    other.send(Frame(77, (), ()))
    with pytest.raises(UnavailableError):
        other.recv()
    thread.join()
    served.run(1, 1, ONES)
    assert served.recv()[0] == DONE


# The master's side ----------------------------------------------------------------------------------------------


class Conversing:
    """A conversation of step 7 with a task that the test simulates."""

    def __init__(self, reconnect: Reconnect | None = None) -> None:
        self.task, ours = memory_pair()
        self.ended: list[bool] = []
        self.conversation = ChannelConversation(
            Step(7, SESSION), 1, TASK, ours, lambda channel, usable: self.ended.append(usable), {}, reconnect
        )

    def answer(self, kind: int, header: Any, *tensors: Any) -> None:
        self.task.send(Frame(kind, header, [np.asarray(tensor) for tensor in tensors]))

    def asked(self) -> list[tuple[int, tuple[Any, ...], list[Any]]]:
        """Returns all frames that the task has received."""
        found: list[tuple[int, tuple[Any, ...], list[Any]]] = []
        with contextlib.suppress(DeadlineExceededError):
            while True:
                frame = self.task.recv(0)
                found.append((frame.kind, tuple(frame.header), [tensor.tolist() for tensor in frame.tensors]))
        return found


class Resuming(Conversing):
    """A conversation of a step that resumes; the task has already received some transfers."""

    def __init__(self, had: int) -> None:
        def reconnect(step: Step, task: str, error: OpError) -> Channel:
            del task, error
            self.task, ours = memory_pair()
            self.answer(RESUMED, (step.number, had, 0))
            return ours

        super().__init__(reconnect)


def test_frames_that_a_master_sends_and_receives() -> None:
    protocol = Conversing()
    protocol.conversation.start([ONES])
    protocol.conversation.send(3, [ONES])
    asked, sent = protocol.task.recv(), protocol.task.recv()
    assert (asked.kind, tuple(asked.header)) == (RUN, (SESSION, 1, 7, None, False, False))
    assert (sent.kind, tuple(sent.header)) == (TENSORS, (7, 3))
    protocol.answer(TENSORS, (6, 4), ONES * 0)  # of an earlier step
    protocol.answer(TENSORS, (7, 5), ONES * 5)
    protocol.answer(TENSORS, (7, 4), ONES * 4)
    protocol.answer(DONE, (6,))
    protocol.answer(DONE, (7,), ONES * 9)
    assert [tensor.tolist() for tensor in protocol.conversation.recv(4)] == [[4.0, 4.0]]
    assert [tensor.tolist() for tensor in protocol.conversation.finish()] == [[9.0, 9.0]]
    assert [tensor.tolist() for tensor in protocol.conversation.recv(5)] == [[5.0, 5.0]]
    assert protocol.ended == [True]
    protocol.conversation.abort("too late")
    assert protocol.ended == [True]


@pytest.mark.parametrize(
    ("kind", "header"),
    [
        (ERROR, ()),
        (ERROR, (7, "3", "x")),
        (ERROR, (7, 3)),
        (TENSORS, ()),
        (TENSORS, (7, "x")),
        (RUN, (7,)),
        (99, (7, 1)),
    ],
)
def test_answers_that_make_no_sense(kind: int, header: Any) -> None:
    protocol = Conversing()
    protocol.answer(kind, header)
    with pytest.raises(InvalidArgumentError, match=f"{TASK} sent a frame of kind .*\\b{kind}\\b"):
        protocol.conversation.recv(1)


def test_an_error_keeps_its_class_and_names_the_task() -> None:
    protocol = Conversing()
    protocol.answer(ERROR, (7, ABORTED, "it is gone"))
    with pytest.raises(AbortedError, match=r"it is gone \[on /job:ps/replica:0/task:0\]"):
        protocol.conversation.finish()
    assert protocol.ended == [True]


def test_a_task_that_is_lost() -> None:
    protocol = Conversing()
    protocol.task.close()
    with pytest.raises(UnavailableError, match="/job:ps/replica:0/task:0 was lost during step 7"):
        protocol.conversation.finish()
    protocol.conversation.abort("it is lost")
    assert protocol.ended == [False]


def test_a_task_that_ends_after_its_answer_is_not_awaited() -> None:
    def reconnect(step: Step, task: str, error: OpError) -> Channel:
        raise AssertionError(f"step {step.number} waits for {task}: {error}")

    protocol = Conversing(reconnect)
    protocol.conversation.start([])
    protocol.answer(DONE, (7,), ONES)
    protocol.task.close()
    for _ in range(2):  # while the master waits for another task
        protocol.conversation.handle_received()
    assert [tensor.tolist() for tensor in protocol.conversation.finish()] == [[1.0, 1.0]]
    assert protocol.ended == [True]


def test_lost_task_receives_one_request() -> None:
    """The master waits for another task first, so it notices the loss of this task only when it sends its request."""
    protocol = Resuming(had=0)
    protocol.task.close()
    protocol.conversation.handle_received()
    protocol.conversation.start([ONES])
    assert protocol.asked() == [(RESUME, (SESSION, 1, 7, None, False, True, 0), [[1.0, 1.0]])]
    protocol.answer(DONE, (7,), ONES)
    assert [tensor.tolist() for tensor in protocol.conversation.finish()] == [[1.0, 1.0]]


@pytest.mark.parametrize("had", [1, 0], ids=["the same life", "one that begins the step anew"])
def test_results_from_values_read_ahead_are_the_first_transfer(had: int) -> None:
    ahead = ReadsAhead(transfer=1)
    ahead.keep_values(Values(version=5, tensors=[ONES]))
    protocol = Resuming(had)
    protocol.conversation.start([], ahead)
    protocol.conversation.send(2, [ONES * 2])
    protocol.answer(TENSORS, (7, 3), ONES * 3)
    assert [tensor.tolist() for tensor in protocol.conversation.recv(3)] == [[3.0, 3.0]]
    protocol.task.close()
    protocol.conversation.send(4, [ONES * 4])
    resumed, *sent = protocol.asked()
    assert resumed[0] == RESUME
    assert sent == [(TENSORS, (7, 2), [[2.0, 2.0]]), (TENSORS, (7, 4, 1), [[4.0, 4.0]])][had:]
