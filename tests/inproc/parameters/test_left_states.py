"""A ``ps`` that is told to end: what it answers after its state was taken, and which life goes on with that."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import jax
import numpy as np
import optax
import pytest

from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.consistency import Joined, from_text, without_count
from headwater.errors import UnavailableError
from headwater.parameters.host import HostedParameters
from headwater.parameters.layout import make_layout
from headwater.parameters.left_states import LeavingState
from headwater.parameters.optax_updates import OptaxUpdater, leaf_specs
from headwater.parameters.process import ParameterTask
from headwater.parameters.state_saver import ParameterSaver
from headwater.resources.state_saver import Saves
from headwater.task import kinds
from headwater.task.left_states import StateAtChief
from headwater.task.members import Members
from headwater.telemetry.watchdog import ProgressWatchdog
from headwater.transport.channel import Channel, memory_pair
from headwater.transport.frames import Frame
from tests.support.processes import bound

FIRST, SECOND = "/job:worker/task:0", "/job:worker/task:1"
CHIEF = FIRST
CHOICE = without_count(from_text("sync", 2))
PARAMS = {"w": np.zeros(2, np.float32)}
LAYOUT = make_layout(leaf_specs(PARAMS), 1)


def updater(number: int = 0) -> OptaxUpdater:
    return OptaxUpdater(LAYOUT, number, jax.tree.structure(PARAMS), optax.sgd(1.0))


class Talk:
    """A worker's channel to a ``ps``, at the end of that: of a task that ends as soon as it looks."""

    def __init__(self, worker: str) -> None:
        self.peer, self.peer_generation = worker, 1
        self.comes: SimpleQueue[Frame | None] = SimpleQueue()
        self.sent: SimpleQueue[Frame] = SimpleQueue()
        self.closed = True

    def recv(self, timeout_s: float | None = None) -> Frame:
        del timeout_s
        frame = self.comes.get()
        if frame is None:
            raise UnavailableError(None, None, "the worker is gone")
        return frame

    def send(self, frame: Frame) -> None:
        self.sent.put(frame)

    def peer_gone(self) -> bool:
        return False

    def close(self) -> None:
        pass


class Chief:
    """The way to a chief that takes what is left, and answers with what it ``says``."""

    def __init__(self, says: Sequence[object] = ()) -> None:
        self._says = says
        self.left: list[Frame] = []

    def take_now(self) -> Channel:
        mine, theirs = memory_pair()

        def serve() -> None:
            self.left.append(theirs.recv())
            theirs.send(Frame(kinds.DONE, self._says))

        threading.Thread(target=serve).start()
        return mine

    def give_back(self, channel: Channel, usable: bool) -> None:
        del usable
        channel.close()


def hosted() -> HostedParameters:
    """What a ``ps`` has in synchronous training of two workers."""
    return HostedParameters("params", "/job:ps/task:0", 0, LAYOUT, updater(), from_text("sync", 2))


@pytest.mark.parametrize("saves", [False, True])
@pytest.mark.parametrize("last", [Frame(kinds.REST, (None,)), Frame(kinds.FINISH, (0,)), None])
def test_no_round_that_ends_after_the_state_was_taken_is_answered(
    last: Frame | None, saves: bool, tmp_path: Path
) -> None:
    """The first worker waits for the gradient of the second, which rests, has finished, or is gone."""
    host, chief = hosted(), Chief()
    watchdog = ProgressWatchdog(lambda _: True)
    talks = {worker: Talk(worker) for worker in (FIRST, SECOND)}

    def serve(talk: Any) -> None:
        with pytest.raises(UnavailableError):
            host.serve(talk, talk.recv(), watchdog)

    threads = [threading.Thread(target=serve, args=[talk]) for talk in talks.values()]
    for thread, (worker, talk) in zip(threads, talks.items(), strict=True):
        thread.start()
        talk.comes.put(Frame(kinds.HELLO, ("params", worker, host.signature, CHOICE, 0.0, 1, 0, 0, 0)))
        talk.comes.put(Frame(kinds.FILL, (0, [], None, False), [PARAMS["w"]]))
        assert [talk.sent.get(timeout=20.0).kind for _ in range(2)] == [kinds.WELCOME, kinds.DONE]
    with host.lock:
        for worker in talks:
            host.updates.event(Joined(worker))
    gradient = [np.ones(2, np.float32)]
    talks[FIRST].comes.put(Frame(kinds.PUSH, (0, 1.0, [], None, [1.0], None, False, 1), gradient))
    with host.lock:
        assert host.lock.wait_for(lambda: host.updates.state.gathered == 1, 20.0)

    way: Any = chief
    if saves:
        ParameterSaver(host, Saves(folder=str(tmp_path)), index=0, tasks=1).close()
    else:
        LeavingState(host, index=0, task="/job:ps/task:0", chief=CHIEF, link=way).leave()
    talks[SECOND].comes.put(last)
    for talk in talks.values():
        talk.comes.put(None)  # which ends the channel of one that was answered
    for thread in threads:
        thread.join(20.0)
        assert not thread.is_alive()
    assert host.version == 1
    assert talks[FIRST].sent.empty()

    # The next life knows nothing of the gradient, which comes once more.
    after = hosted()
    if saves:
        assert ParameterSaver(after, Saves(folder=str(tmp_path)), index=0, tasks=1).restore()
        assert after.version == 0
    else:
        (left,) = chief.left
        assert left.kind == kinds.LEAVE_STATE
        assert [tensor.tolist() for tensor in left.tensors] == [[0.0, 0.0]]


@pytest.mark.parametrize("signature", ["other", None])
def test_a_chief_that_has_nothing_of_use_has_answered(signature: str | None) -> None:
    way: Any = Chief(() if signature is None else (1, signature, {}, [], False))
    assert LeavingState(hosted(), index=0, task="/job:ps/task:0", chief=CHIEF, link=way).restore()


def test_no_later_life_goes_on_with_a_state_that_the_next_one_was_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    choice, gradient = from_text("async", 1), [np.ones(2, np.float32)]
    with bound() as server, bound() as worker:
        spec = ClusterSpec(
            {"ps": [f"localhost:{server.getsockname()[1]}"], "worker": [f"localhost:{worker.getsockname()[1]}"]}
        )

        def begins() -> ParameterTask:
            task = ParameterTask(Members(spec, TaskName("ps", 0)))
            task.host("params", LAYOUT, updater, choice)
            return task

        chief = ParameterTask(Members(spec, TaskName("worker", 0)))
        client = chief.client("params", LAYOUT, choice, [PARAMS["w"]])
        life = begins()
        client.connect()
        client.pull()
        for _ in range(2):
            assert client.push(gradient)[1]
        program = threading.Thread(target=life.shell.wait_until_over)
        program.start()
        life.shell.end()
        program.join()
        assert "has left its state of version 2 with /job:worker/task:0" in caplog.text

        def fetch(_: StateAtChief) -> Frame:
            raise UnavailableError(None, None, "the chief has not answered")

        with monkeypatch.context() as patched:
            patched.setattr(StateAtChief, "fetch", fetch)
            life = begins()
        client.pull()
        for _ in range(3):
            assert client.push(gradient)[1]
        assert client.version == 5
        life.shell.stop()
        life = begins()
        client.pull()
        assert client.version == 5
        assert client.values()[0].tolist() == [-5.0, -5.0]
        assert "goes on with its state" not in caplog.text
        client.close()
        life.shell.stop()
        chief.shell.stop()
