"""The contract of channels, for every kind of channel."""

from __future__ import annotations

import gc
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import msgpack
import numpy as np
import psutil
import pytest

from headwater.cluster.transport import frames
from headwater.cluster.transport.buffers import BufferPool
from headwater.cluster.transport.channel import Channel, ChannelStatistics, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.sockets import SocketChannel
from headwater.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
)
from tests.support.channel_pairs import shared_memory_pair, tcp_pair

Pair = tuple[Channel, Channel]


def unix_pair() -> tuple[SocketChannel, SocketChannel]:
    first, second = socket.socketpair()
    return SocketChannel(first, peer="second"), SocketChannel(second, peer="first")


KINDS: dict[str, Callable[[], Pair]] = {
    "memory": memory_pair,
    "tcp": tcp_pair,
    "unix": unix_pair,
    "shared memory": shared_memory_pair,
}


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    first, second = KINDS[request.param]()
    yield first, second
    first.close()
    second.close()


@pytest.fixture
def elsewhere() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def test_frames_arrive_in_order_and_whole(pair: Pair) -> None:
    first, second = pair
    tensor = np.arange(10.0)
    for number in range(5):
        first.send(Frame(number, (number, "x"), [tensor, np.array([b"s"], object)]))
    tensor[:] = -1
    for number in range(5):
        frame = second.recv()
        assert frame.kind == number
        assert frame.header == (number, "x")
        assert frame.tensors[0].tolist() == list(range(10))
        assert frame.tensors[1].tolist() == [b"s"]


def test_both_directions(pair: Pair) -> None:
    first, second = pair
    for number in range(3):
        first.send(Frame(1, (number,)))
        assert second.recv(timeout_s=10).header == (number,)
        second.send(Frame(2, (number,)))
        assert first.recv().header == (number,)
    assert first.statistics() == second.statistics()
    assert first.statistics().frames_sent == 3
    assert first.statistics().bytes_sent > 96


@pytest.mark.parametrize("elements", [0, 1, 8_000, 8_100, 8_192, 8_200, 16_384, 100_000, 1_000_000])
def test_sizes_around_every_limit(pair: Pair, elements: int, elsewhere: ThreadPoolExecutor) -> None:
    first, second = pair
    tensor = np.random.default_rng(0).random(elements)
    frame = Frame(1, ("x" * 1000,), [np.array(3, np.float32), tensor, tensor[:7]])
    sending = elsewhere.submit(lambda: [first.send(frame), first.send(frame)])
    for _ in range(2):
        received = second.recv()
        assert received.header == frame.header
        for got, sent in zip(received.tensors, frame.tensors, strict=True):
            np.testing.assert_array_equal(got, sent)
    sending.result()


def test_many_buffers_and_a_large_header(pair: Pair, elsewhere: ThreadPoolExecutor) -> None:
    first, second = pair
    tensors = [np.full(30, number, np.int16) for number in range(2500)]
    sending = elsewhere.submit(first.send, Frame(1, (bytes(500_000),), tensors))
    received = second.recv()
    sending.result()
    assert len(received.header[0]) == 500_000
    assert [int(tensor[29]) for tensor in received.tensors] == list(range(2500))


def test_received_arrays_stay_as_they_were(pair: Pair, elsewhere: ThreadPoolExecutor) -> None:
    first, second = pair
    kept: list[np.ndarray] = []
    for number in range(30):
        size = 5 if number % 2 else 300_000
        sending = elsewhere.submit(first.send, Frame(1, (), [np.full(size, number)]))
        tensor = second.recv().tensors[0]
        sending.result()
        # A view of a view, the array itself gone, must protect the memory as well.
        kept.append(tensor.reshape(-1, 5)[::2][:, 1:])
    for number, tensor in enumerate(kept):
        assert (tensor == number).all()
        tensor += 1


def test_a_timeout_leaves_the_channel_usable(pair: Pair) -> None:
    first, second = pair
    for timeout_s in (0, 0.001):
        with pytest.raises(DeadlineExceededError, match="nothing arrived"):
            first.recv(timeout_s=timeout_s)
    second.send(Frame(1, ("late",)))
    assert first.recv(timeout_s=10).header == ("late",)


def test_the_other_end_closes(pair: Pair) -> None:
    first, second = pair
    assert not first.peer_gone()
    first.send(Frame(9, ("last words",)))
    first.close()
    assert second.recv().header == ("last words",)
    assert second.peer_gone()
    with pytest.raises(UnavailableError, match="gone"):
        second.recv()
    assert second.closed
    with pytest.raises(CancelledError):
        second.send(Frame(1))


def send_many(channel: Channel, count: int) -> None:
    for _ in range(count):
        channel.send(Frame(1, (), [np.zeros(1000)]))


def test_sending_to_an_end_that_closed(pair: Pair) -> None:
    first, second = pair
    second.close()
    with pytest.raises(UnavailableError):
        # The system accepts the first frames before it learns that the peer has closed the connection.
        send_many(first, 100)
    assert first.closed


def test_an_end_closed_here(pair: Pair) -> None:
    first, _ = pair
    first.close()
    first.close()
    assert first.closed
    assert first.peer_gone()
    with pytest.raises(CancelledError):
        first.recv()
    with pytest.raises(CancelledError):
        first.send(Frame(1))


def test_closing_wakes_receiving_threads(pair: Pair, elsewhere: ThreadPoolExecutor) -> None:
    first, _ = pair
    started = threading.Event()

    def receive() -> None:
        started.set()
        first.recv()

    receiving = elsewhere.submit(receive)
    started.wait()
    first.close()
    with pytest.raises(CancelledError):
        receiving.result()


def test_breaking_off_wakes_receiving_threads_with_the_reason(pair: Pair, elsewhere: ThreadPoolExecutor) -> None:
    first, second = pair
    started = threading.Event()

    def receive() -> None:
        started.set()
        first.recv()

    receiving = elsewhere.submit(receive)
    started.wait()
    first.break_off("it was stopped")
    with pytest.raises(UnavailableError, match="is gone: it was stopped"):
        receiving.result()
    with pytest.raises(UnavailableError, match="it was stopped"):
        first.send(Frame(1))
    assert second.peer_gone()


def test_a_frame_that_cannot_be_leaves_the_channel_usable(pair: Pair) -> None:
    first, second = pair
    with pytest.raises(InvalidArgumentError):
        first.send(Frame(1, (), [np.array([object()])]))
    first.send(Frame(2))
    assert second.recv().kind == 2


def test_a_payload_beyond_the_bound() -> None:
    for first, second in (memory_pair(max_payload_bytes=1024), tcp_pair(max_payload_bytes=1024)):
        first.send(Frame(1, (), [np.zeros(128)]))
        second.recv()
        first.send(Frame(1, (), [np.zeros(129)]))
        with pytest.raises(InvalidArgumentError, match="1024"):
            second.recv()
        assert second.closed
        assert first.peer_gone()
        first.close()


def raw_and_channel() -> tuple[socket.socket, SocketChannel]:
    raw, sock = socket.socketpair()
    return raw, SocketChannel(sock, peer="a stranger", max_payload_bytes=1 << 62)


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", bytes(40), b"\x80\x04\x95" + bytes(40)]
)
def test_a_malformed_frame_closes_the_channel(sent: bytes) -> None:
    raw, channel = raw_and_channel()
    with raw:
        raw.sendall(sent)
        with pytest.raises(InvalidArgumentError):
            channel.recv()
        assert channel.closed
        assert raw.recv(1) == b""


def test_a_frame_cut_short() -> None:
    encoded = frames.encode(Frame(1, ("x",), [np.zeros(20_000)]))
    whole = b"".join([encoded.prefix(), encoded.header, encoded.layout, *encoded.body])
    for length in (1, 31, 32, 33, 40, 70_000, len(whole) - 1):
        raw, channel = raw_and_channel()
        with raw:
            raw.sendall(whole[:length])
        with pytest.raises(UnavailableError):
            channel.recv()


def test_a_frame_larger_than_memory_is_refused_before_its_body() -> None:
    raw, channel = raw_and_channel()
    with raw:
        raw.sendall(frames.PREFIX.pack(frames.MAGIC, frames.VERSION, 0, 0, 1, 1, 1 << 60, 0))
        with pytest.raises(ResourceExhaustedError):
            channel.recv()


def test_memory_is_allocated_as_bytes_arrive() -> None:
    layout = msgpack.packb([[1, [1 << 28]]])
    rss = psutil.Process().memory_info().rss
    channels: list[SocketChannel] = []
    for _ in range(4):
        raw, channel = raw_and_channel()
        with raw:
            lengths = 1, len(layout), 1 << 30
            raw.sendall(frames.PREFIX.pack(frames.MAGIC, frames.VERSION, 0, 0, *lengths, 0) + b"\x90" + layout)
            raw.sendall(bytes(100_000))
        with pytest.raises(UnavailableError):
            channel.recv()
        channels.append(channel)
    assert psutil.Process().memory_info().rss - rss < 64 << 20


def test_bytes_that_arrive_one_at_a_time(elsewhere: ThreadPoolExecutor) -> None:
    raw, channel = raw_and_channel()
    encoded = frames.encode(Frame(7, ("x",), [np.arange(30)]))
    whole = b"".join([encoded.prefix(), encoded.header, encoded.layout, *encoded.body])
    sending = elsewhere.submit(lambda: [raw.send(whole[at : at + 1]) for at in range(len(whole))])
    assert channel.recv().tensors[0].tolist() == list(range(30))
    sending.result()
    raw.close()
    channel.close()


def test_buffers_are_reused_once_unreferenced() -> None:
    pool = BufferPool()
    first = pool.acquire(1000)
    address = first.ctypes.data
    assert address % 64 == 0
    view = np.ndarray((10,), np.float32, first, 64)[1:][1:]
    del first
    second = pool.acquire(1000)
    assert second.ctypes.data != address
    del view
    gc.collect()
    assert pool.acquire(990).ctypes.data == address
    # A buffer that is much too large is not used for a small frame.
    assert pool.acquire(100).ctypes.data != address


def test_a_pool_does_not_grow() -> None:
    pool = BufferPool()
    kept = [pool.acquire(1 << 16) for _ in range(50)]
    assert pool.remembered_bytes() <= 8 << 16
    del kept
    for _ in range(100):
        pool.acquire(1 << 20)
    assert pool.remembered_bytes() == 1 << 20


def test_statistics_are_a_snapshot() -> None:
    first, second = memory_pair()
    before = second.statistics()
    first.send(Frame(1))
    second.recv()
    assert before == ChannelStatistics()
    assert second.statistics().frames_received == 1
