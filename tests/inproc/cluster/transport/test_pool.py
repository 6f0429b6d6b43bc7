"""The pool of channels."""

from __future__ import annotations

import threading

import pytest

from headwater.cluster.names import TaskName
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.pool import ChannelPool, PoolStatistics
from headwater.errors import CancelledError, UnavailableError

PS0, PS1 = TaskName("ps", 0), TaskName("ps", 1)


class Peers:
    """Opens channels within the process and keeps the other ends."""

    def __init__(self) -> None:
        self.opened: list[TaskName] = []
        self.ends: list[Channel] = []

    def __call__(self, peer: TaskName) -> Channel:
        ours, theirs = memory_pair((str(peer), "us"))
        self.opened.append(peer)
        self.ends.append(theirs)
        return ours


def test_idle_channels_are_used_again() -> None:
    peers = Peers()
    pool = ChannelPool(peers)
    first = pool.acquire(PS0)
    pool.release(first)
    assert pool.acquire(PS0) is first
    second = pool.acquire(PS0)
    assert second is not first
    other = pool.acquire(PS1)
    assert peers.opened == [PS0, PS0, PS1]
    assert pool.statistics() == PoolStatistics(idle=0, taken=3, opened=3)
    for channel in (first, second, other):
        pool.release(channel)
    assert pool.statistics() == PoolStatistics(idle=3, taken=0, opened=3)
    pool.close()


def test_a_closed_channel_is_not_reused() -> None:
    peers = Peers()
    pool = ChannelPool(peers)
    first = pool.acquire(PS0)
    pool.release(first)
    peers.ends[0].close()
    second = pool.acquire(PS0)
    assert second is not first
    assert first.closed
    pool.discard(second)
    assert second.closed
    assert pool.statistics() == PoolStatistics(idle=0, taken=0, opened=2)
    pool.close()


def test_a_closed_channel_is_not_pooled() -> None:
    pool = ChannelPool(Peers())
    channel = pool.acquire(PS0)
    channel.close()
    pool.release(channel)
    assert pool.statistics().idle == 0
    pool.close()


def test_few_idle_channels_are_kept() -> None:
    pool = ChannelPool(Peers())
    channels = [pool.acquire(PS0) for _ in range(20)]
    for channel in channels:
        pool.release(channel)
    assert pool.statistics() == PoolStatistics(idle=8, taken=0, opened=20)
    assert sum(channel.closed for channel in channels) == 12
    pool.close()
    assert all(channel.closed for channel in channels)


def test_a_disconnected_peer() -> None:
    pool = ChannelPool(Peers())
    idle, taken, other = pool.acquire(PS0), pool.acquire(PS0), pool.acquire(PS1)
    pool.release(idle)
    pool.break_off(PS0, "it has not answered for 4 s")
    for channel in (idle, taken):
        with pytest.raises(UnavailableError, match="/job:ps/task:0 is gone: it has not answered for 4 s"):
            channel.recv()
    assert not other.closed
    pool.release(taken)
    assert pool.statistics() == PoolStatistics(idle=0, taken=1, opened=3)
    pool.close()


def test_frames_sent_before_the_end_of_a_peer_are_received() -> None:
    peers = Peers()
    pool = ChannelPool(peers)
    channel = pool.acquire(PS0)
    peers.ends[0].send(Frame(1, ("the answer",)))
    peers.ends[0].close()
    pool.break_off(PS0, "it no longer answers")
    assert list(channel.recv().header) == ["the answer"]
    with pytest.raises(UnavailableError):
        channel.recv()
    pool.close()


def test_closing_wakes_waiting_threads() -> None:
    pool = ChannelPool(Peers())
    channel = pool.acquire(PS0)
    caught: list[Exception] = []
    started = threading.Event()

    def receive() -> None:
        started.set()
        try:
            channel.recv()
        except (CancelledError, UnavailableError) as error:
            caught.append(error)

    thread = threading.Thread(target=receive)
    thread.start()
    started.wait()
    pool.close()
    thread.join()
    assert len(caught) == 1
    with pytest.raises(CancelledError):
        pool.acquire(PS0)
    with pytest.raises(CancelledError):
        channel.send(Frame(1))
    pool.release(channel)
    pool.close()


def test_closed_while_a_channel_is_being_opened() -> None:
    made: list[Channel] = []

    def open_channel(peer: TaskName) -> Channel:
        pool.close()
        made.append(memory_pair()[0])
        return made[0]

    pool = ChannelPool(open_channel)
    with pytest.raises(CancelledError):
        pool.acquire(PS0)
    assert made[0].closed


def test_many_threads() -> None:
    pool = ChannelPool(Peers())
    in_use: set[int] = set()
    clashes: list[int] = []

    def work() -> None:
        for _ in range(200):
            channel = pool.acquire(PS0)
            if id(channel) in in_use:
                clashes.append(id(channel))
            in_use.add(id(channel))
            in_use.discard(id(channel))
            pool.release(channel)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not clashes
    assert pool.statistics().opened <= 4
    pool.close()
