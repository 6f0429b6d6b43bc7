"""Data that an attacker sends to a training task is refused, none of it is executed, and the training continues."""

from __future__ import annotations

import os
import pickle  # noqa: TID251 - what must not be loaded is made here
import random
import struct
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import psutil
import pytest

from headwater import tf
from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.task.kinds import RUN, TENSORS, TRANSFER
from headwater.cluster.transport import frames
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.connect import connect, dial
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.frames import PREFIX, Frame
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.sockets import SocketChannel
from headwater.errors import OpError, UnavailableError
from tests.support.processes import EXEC, Process, processes

LOOP = Path(__file__).with_name("programs") / "loop.py"
MAX_GROWTH_BYTES = 256 << 20

pytestmark = pytest.mark.slow


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def __reduce__(self) -> Any:
        return os.mkdir, (self._folder,)


def open_channel(address: Address, *, local: bool = True) -> Channel:
    return connect(
        address,
        me=PeerIdentity(task="a stranger", generation=0),
        wanted=PeerIdentity(task="", generation=0),
        security=Security.from_environment(),
        options=TransportOptions(local_sockets=local),
    )


def prefix(header: int, layout: int, payload: int, *, flags: int = 0, kind: int = RUN) -> bytes:
    return PREFIX.pack(frames.MAGIC, frames.VERSION, flags, kind, header, layout, payload, 0)


def with_layout(entries: Any, payload: int) -> bytes:
    packed = msgpack.packb(entries)
    return prefix(1, len(packed), payload) + msgpack.packb([]) + packed


def wire(frame: Frame) -> bytes:
    encoded = frames.encode(frame)
    return b"".join([encoded.prefix(), encoded.header, encoded.layout, *encoded.body])


def malformed(trap: bytes) -> list[bytes]:
    """Bytes that are not a valid frame."""
    float32 = 1
    return [
        b"GET / HTTP/1.1\r\n\r\n" + bytes(64),
        prefix(len(trap), 0, 0) + trap,  # a pickle where the header is
        prefix((1 << 32) - 1, 0, 0),  # a header of 4 GiB
        prefix(1, 1, (1 << 63) - 1),  # a payload of 8 EiB
        prefix(1, 0, 0, flags=0xFF),
        with_layout([[float32, [1 << 40]]], 1 << 42),  # a shape of 4 TiB
        with_layout([[float32, [1 << 31, 1 << 31, 1 << 31]]], 64),  # whose size overflows
        with_layout([[float32, [-1]]], 64),
        with_layout([[99, [1]]], 64),  # a dtype that does not exist
        with_layout([[float32, [1] * 300]], 64),
        with_layout([[float32]] * 100, 64),
        # lengths of strings beyond the end of the data
        with_layout([[7, [2], 32]], 64) + struct.pack("<QQ", 1 << 60, 1) + bytes(48),
        prefix(2, 0, 0) + b"\xc7\x01",  # msgpack that is cut off
    ]


def wrong() -> list[Frame]:
    """Returns frames with contents that no task accepts."""
    return [
        Frame(RUN, ()),
        Frame(RUN, ("nobody's session", 1, 1, None, False, False)),
        Frame(RUN, (1, 2, 3, 4, 5, 6)),
        Frame(TENSORS, ("x",)),
        Frame(TRANSFER, ("nobody's session", 1, 1), [np.zeros(10, np.float32)]),
        Frame(TRANSFER, (None,) * 3),
        Frame(4711, (1,)),
        Frame(frames.FIRST_RESERVED_KIND, ()),
    ]


def until_closed(channel: Channel) -> None:
    """Receives frames until the task closes the channel, or sends nothing for a moment."""
    try:
        channel.recv(0.05)
    except OpError:
        pass
    finally:
        channel.close()


def fuzzed(choice: random.Random, count: int) -> list[bytes]:
    """Returns frames with some bytes changed, removed or repeated."""
    good = [wire(frame) for frame in wrong()] + [wire(Frame(RUN, ("s", 1, 2, None, False, True), [np.ones((3, 5))]))]
    result: list[bytes] = []
    for _ in range(count):
        data = bytearray(choice.choice(good))
        for _ in range(choice.randint(1, 6)):
            data[choice.randrange(len(data))] = choice.randrange(256)
        cut = choice.randrange(len(data)) if choice.random() < 0.3 else len(data)
        result.append(bytes(data[:cut]))
    return result


def steps_on(worker: Process) -> None:
    lines = worker.line_count()
    worker.wait_for("^step ", after=lines)


def test_unauthenticated_input_is_refused(tmp_path: Path) -> None:
    trap = pickle.dumps(Trap(tmp_path / "ran"))
    with processes(ps=1, worker=1) as cluster:
        ps = cluster.start("ps", 0, LOOP)
        worker = cluster.start("worker", 0, LOOP)
        worker.wait_for("^step 200$")
        address = parse_address(cluster.address("ps"))
        memory = psutil.Process(ps.pid)
        before = memory.memory_info().rss

        for data in [trap, *malformed(trap)]:  # before the peer has identified itself
            with dial(address, timeout_s=10) as sock:
                sock.sendall(data)
        for local in (True, False):
            for data in [*malformed(trap), *fuzzed(random.Random(local), 100)]:
                channel = open_channel(address, local=local)
                assert isinstance(channel, SocketChannel)
                channel._socket.sendall(data)
                until_closed(channel)
            for frame in wrong():
                channel = open_channel(address, local=local)
                channel.send(frame)
                until_closed(channel)
        steps_on(worker)

        control = ControlClient(address, peer="the ps", security=Security.from_environment())
        try:
            for send in (
                lambda: control.add_plan("session", 1, trap),
                lambda: control.create_session(trap, trap),
                lambda: control.extend_session("session", trap),
            ):
                with pytest.raises(OpError) as refused:
                    send()
                assert not isinstance(refused.value, UnavailableError)
        finally:
            control.close()
        steps_on(worker)

        ps.wait_for("closes the channel to a stranger.*")
        assert memory.memory_info().rss - before < MAX_GROWTH_BYTES
        assert not (tmp_path / "ran").exists()
        assert "Traceback" not in ps.output
        assert worker.terminate() == -15
        assert ps.terminate() == 0


def test_a_graph_cannot_bring_functions_along() -> None:
    """A ``py_func`` is the name of a function in the program that created it; other processes have no function of that
    name.
    """
    with processes(ps=1) as cluster:
        ps = cluster.run(*EXEC, str(LOOP), f"--ps_hosts={cluster.release('ps')[0]}", "--job_name=ps", "--task_index=0")
        ps.wait_for("serving")
        with tf.Graph().as_default():
            result = tf.py_func(lambda: np.float32(1), [], tf.float32)
            with tf.Session(f"grpc://{cluster.address('ps')}") as session, pytest.raises(OpError, match="function"):
                session.run(result)


@pytest.mark.parametrize("kind", ["pickle", "array of objects"])
def test_checkpoints_and_records_hold_no_code(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "ran"
    path = tmp_path / "model.ckpt"
    trap = pickle.dumps(Trap(folder))
    if kind == "array of objects":
        with (tmp_path / "array").open("wb") as file:
            np.save(file, np.array([Trap(folder)], object), allow_pickle=True)
        trap = (tmp_path / "array").read_bytes()
    for name in (".index", ".data-00000-of-00001", ".meta"):
        path.with_name(path.name + name).write_bytes(trap)
    records = tmp_path / "records"
    records.write_bytes(trap)
    with tf.Graph().as_default():
        tf.get_variable("v", [])
        with tf.Session() as session, pytest.raises(tf.errors.DataLossError, match=r"model\.ckpt\.index"):
            tf.train.Saver().restore(session, str(path))
        with pytest.raises(OSError, match="Cannot parse file"):
            tf.train.import_meta_graph(f"{path}.meta")
    with pytest.raises(tf.errors.DataLossError, match="records"):
        list(tf.python_io.tf_record_iterator(str(records)))
    assert not folder.exists()
