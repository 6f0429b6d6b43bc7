"""A ``ps`` that shuts down: its answers after its state was taken, and the incarnation that uses the state."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import jax
import numpy as np
import optax
import pytest

from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task import kinds
from headwater.cluster.task.deposited_states import StateAtChief
from headwater.cluster.task.members import Members
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import UnavailableError
from headwater.keras.parameter_server.model import serve_model, served_model
from headwater.ps import state_deposits
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import Joined, from_text, without_count
from headwater.ps.host import HostedParameters
from headwater.ps.layout import Layout, make_layout
from headwater.ps.local_servers import MakeUpdater
from headwater.ps.optax_updates import OptaxUpdater, leaf_specs
from headwater.ps.process import ParameterTask
from headwater.ps.state_deposits import StateDeposit
from headwater.ps.state_saver import ParameterSaver
from headwater.state.state_saver import Saves
from tests.inproc.keras.test_parameter_server_strategy import Place, embedding
from tests.support.processes import bound

import keras  # isort: skip - the package before it chooses the backend

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

FIRST, SECOND = "/job:worker/task:0", "/job:worker/task:1"
CHIEF = FIRST
SERVER = "/job:ps/task:0"
CHOICE = without_count(from_text("sync", 2))
PARAMS = {"w": np.zeros(2, np.float32)}
LAYOUT = make_layout(leaf_specs(PARAMS), 1)


def updater(number: int = 0) -> OptaxUpdater:
    return OptaxUpdater(LAYOUT, number, jax.tree.structure(PARAMS), optax.sgd(1.0))


class WorkerConnection:
    """A worker's connection to a ``ps``; it is closed, so the service ends at its next check."""

    def __init__(self, worker: str) -> None:
        self.peer, self.peer_generation = worker, 1
        self.requests: SimpleQueue[Frame | None] = SimpleQueue()
        self.answers: SimpleQueue[Frame] = SimpleQueue()
        self.closed = True

    def recv(self, timeout_s: float | None = None) -> Frame:
        del timeout_s
        frame = self.requests.get()
        if frame is None:
            raise UnavailableError(None, None, "the worker is gone")
        return frame

    def send(self, frame: Frame) -> None:
        self.answers.put(frame)

    def peer_gone(self) -> bool:
        return False

    def close(self) -> None:
        pass


class Chief:
    """A chief that accepts deposited states and answers with ``says``."""

    def __init__(self, says: Sequence[object] = ()) -> None:
        self._says = says
        self.left: list[Frame] = []

    def open_channel_now(self) -> Channel:
        mine, theirs = memory_pair()

        def serve() -> None:
            self.left.append(theirs.recv())
            theirs.send(Frame(kinds.DONE, self._says))

        threading.Thread(target=serve).start()
        return mine

    def release_channel(self, channel: Channel, usable: bool) -> None:
        del usable
        channel.close()


def hosted() -> HostedParameters:
    """Returns the parameters of a ``ps`` in synchronous training of two workers."""
    return HostedParameters("params", SERVER, 0, LAYOUT, updater(), from_text("sync", 2))


@pytest.mark.parametrize("saves", [False, True])
@pytest.mark.parametrize("last", [Frame(kinds.REST, (None,)), Frame(kinds.FINISH, (0,)), None])
def test_no_round_that_ends_after_the_state_was_taken_is_answered(
    last: Frame | None, saves: bool, tmp_path: Path
) -> None:
    """The first worker waits for the gradient of the second, which is idle, has finished, or is lost."""
    host, chief = hosted(), Chief()
    watchdog = ProgressWatchdog(lambda _: True)
    connections = {worker: WorkerConnection(worker) for worker in (FIRST, SECOND)}

    def serve(connection: Any) -> None:
        with pytest.raises(UnavailableError):
            host.serve(connection, connection.recv(), watchdog)

    threads = [threading.Thread(target=serve, args=[connection]) for connection in connections.values()]
    for thread, (worker, connection) in zip(threads, connections.items(), strict=True):
        thread.start()
        connection.requests.put(Frame(kinds.HELLO, ("params", worker, host.signature, CHOICE, 0.0, 1, 0, 0, 0, None)))
        connection.requests.put(Frame(kinds.FILL, (0, [], None, False), [PARAMS["w"]]))
        assert [connection.answers.get(timeout=20.0).kind for _ in range(2)] == [kinds.WELCOME, kinds.DONE]
    with host.lock:
        for worker in connections:
            host.updates.event(Joined(worker))
    gradient = [np.ones(2, np.float32)]
    connections[FIRST].requests.put(Frame(kinds.PUSH, (0, 1.0, [], None, [1.0], None, None, False, 1), gradient))
    with host.lock:
        assert host.lock.wait_for(lambda: host.updates.state.gathered == 1, 20.0)

    way: Any = chief
    if saves:
        ParameterSaver(host, Saves(folder=str(tmp_path)), index=0, tasks=1).close()
    else:
        StateDeposit(host, SERVER, StateAtChief("params", 0, CHIEF, way)).deposit()
    connections[SECOND].requests.put(last)
    for connection in connections.values():
        connection.requests.put(None)  # this closes the channel of a worker that was answered
    for thread in threads:
        thread.join(20.0)
        assert not thread.is_alive()
    assert host.version == 1
    assert connections[FIRST].answers.empty()

    # The next incarnation does not have the gradient, which is sent again.
    after = hosted()
    if saves:
        assert ParameterSaver(after, Saves(folder=str(tmp_path)), index=0, tasks=1).restore()
        assert after.version == 0
    else:
        (left,) = chief.left
        assert left.kind == kinds.DEPOSIT_STATE
        assert [tensor.tolist() for tensor in left.tensors] == [[0.0, 0.0]]


@pytest.mark.parametrize("signature", ["other", None])
def test_a_chief_that_has_nothing_of_use_has_answered(signature: str | None) -> None:
    way: Any = Chief(() if signature is None else (1, signature, {}, [], False, 0))
    assert StateDeposit(hosted(), SERVER, StateAtChief("params", 0, CHIEF, way)).restore()


class Cluster:
    """A ``ps`` and a chief in this process, which connect to each other's ports.

    Args:
      layout: the layout of the ``ps``.
      make_updater: see `ParameterTask.host`.
      initial: the initial values; None for tables that are initialised on the ``ps``.
      consistency: the consistency as text.
    """

    def __init__(
        self,
        layout: Layout = LAYOUT,
        make_updater: MakeUpdater = updater,
        initial: Sequence[Any] = (PARAMS["w"],),
        consistency: str = "async",
    ) -> None:
        self._sockets = ExitStack()
        hosts = {
            job: [f"localhost:{self._sockets.enter_context(bound()).getsockname()[1]}" for _ in range(count)]
            for job, count in (("ps", 1), ("worker", 1))
        }
        self._spec = ClusterSpec(hosts)
        self._host = layout, make_updater, from_text(consistency, 2)
        self._workers = [ParameterTask(Members(self._spec, TaskName("worker", index))) for index in range(1)]
        self.clients = [worker.client("params", layout, self._host[2], initial) for worker in self._workers]
        self.server = self._begun()

    def _begun(self) -> ParameterTask:
        server = ParameterTask(Members(self._spec, TaskName("ps", 0)))
        layout, make_updater, choice = self._host
        server.host("params", layout, make_updater, choice)
        return server

    @property
    def updates(self) -> Any:
        """Returns the number of updates of the ``ps``."""
        hosted: Any = self.server._service._hosted["params"]
        return hosted.updates

    def begin(self) -> None:
        """Restarts the ``ps``."""
        self.server = self._begun()

    def terminate(self) -> None:
        """Asks the ``ps`` to shut down, and waits until it has."""
        program = threading.Thread(target=self.server.shell.wait_until_over)
        program.start()
        self.server.shell.end()
        program.join()

    def kill(self) -> None:
        """Kills the ``ps`` without notice."""
        self.server.shell.stop()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.close()
        for task in (self.server, *self._workers):
            task.shell.stop()
        self._sockets.close()


def test_no_later_incarnation_uses_a_state_that_the_next_one_lacked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gradient = [np.ones(2, np.float32)]
    with Cluster() as cluster:
        client = cluster.clients[0]
        client.connect()
        client.pull()
        for _ in range(2):
            assert client.push(gradient)[1]
        cluster.terminate()
        assert "has deposited its state of version 2 with /job:worker/task:0" in caplog.text

        def fetch(_: StateAtChief) -> None:
            raise UnavailableError(None, None, "the chief has not answered")

        with monkeypatch.context() as patched:
            patched.setattr(StateAtChief, "fetch", fetch)
            cluster.begin()
        client.pull()
        for _ in range(3):
            assert client.push(gradient)[1]
        assert client.version == 5
        cluster.kill()
        cluster.begin()
        client.pull()
        assert client.version == 5
        assert client.values()[0].tolist() == [-5.0, -5.0]
        assert "continues with its state" not in caplog.text


def of_a_table() -> tuple[Any, Layout, list[Any]]:
    """Returns the updater of a Keras model with a table, its layout, and initial values."""
    model = embedding(lambda: keras.optimizers.Adam(0.05))
    place: Any = Place(0, 1, from_text("async", 1), None, 0, False, "ps")
    serve_model(model, place)
    served: Any = served_model(model)
    served.servers = 1
    served._build_optimizer()
    layout = served.layout()
    initial = [
        None if spec.table else np.asarray(variable.value)
        for spec, variable in zip(layout.variables, served.variables, strict=True)
    ]
    return served, layout, initial


def test_rows_of_tables_are_left_in_parts(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    served, layout, initial = of_a_table()
    (table,) = served.table_numbers()
    random = np.random.default_rng(0)
    monkeypatch.setattr(state_deposits, "PART_BYTES", 7 * 3 * 4 * layout.variables[table].shape[1])

    def push(client: ParameterClient) -> None:
        dense = [None if each is None else random.normal(size=each.shape).astype(np.float32) for each in initial]
        numbers = np.sort(random.choice(layout.variables[table].shape[0], 12, replace=False))
        rows = random.normal(size=(12, layout.variables[table].shape[1])).astype(np.float32)
        assert client.push(dense, rows={table: (numbers, rows)})[1]

    def held(updater: Any) -> list[list[Any]]:
        arrays = [*updater.values(None), *updater.state().values()]
        return [array.tolist() for array in arrays + updater.tables[0].read(0, layout.variables[table].shape[0], ())]

    with Cluster(layout, partial(served._updater, layout), initial) as cluster:
        client = cluster.clients[0]
        client.connect()
        client.pull()
        for _ in range(5):
            push(client)
        before = held(cluster.updates.updater)
        cluster.terminate()
        cluster.begin()
        assert "continues with its state of version 5" in caplog.text
        assert held(cluster.updates.updater) == before
        push(client)
        assert client.version == 6


def test_gathered_gradients_are_applied_before_the_ps_shuts_down(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One worker pushes both gradients of a round."""
    gradient = [np.ones(2, np.float32)]
    with Cluster(consistency="k=2 of 1") as cluster:
        client = cluster.clients[0]
        client.connect()
        client.pull()
        assert client.push(gradient)[1]
        updates, waits = cluster.updates, threading.Event()
        look = updates.workers_to_push_again

        def workers_to_push_again() -> object:
            waits.set()
            return look()

        monkeypatch.setattr(updates, "workers_to_push_again", workers_to_push_again)
        ends = threading.Thread(target=cluster.terminate)
        ends.start()
        assert waits.wait(20.0)
        push = threading.Thread(target=client.push, args=[gradient])
        push.start()
        ends.join()
        assert "has deposited its state of version 1" in caplog.text
        cluster.begin()
        push.join()
        client.pull()
        assert client.values()[0].tolist() == [-1.0, -1.0]
        assert client.version == 1


def test_gradients_that_no_others_join_are_lost_with_a_word(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(state_deposits, "ROUND_S", 0.0)
    with Cluster(consistency="k=2 of 1") as cluster:
        client = cluster.clients[0]
        client.connect()
        client.pull()
        assert client.push([np.ones(2, np.float32)])[1]
        cluster.terminate()
        assert "loses the gradients of an incomplete round" in caplog.text
        assert "has deposited its state of version 0" in caplog.text
        cluster.begin()
