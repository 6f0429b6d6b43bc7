"""Shared memory: when it is reused, and that a malicious peer can do no harm."""

from __future__ import annotations

import fcntl
import gc
import os
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from headwater.cluster.transport import frames
from headwater.cluster.transport.frames import IN_SHARED_MEMORY, Frame
from headwater.cluster.transport.shared import SHARED_FROM_BYTES, SharedMemoryChannel
from headwater.errors import InvalidArgumentError, UnavailableError
from tests.support.channel_pairs import shared_memory_pair

ELEMENTS = SHARED_FROM_BYTES
Pair = tuple[SharedMemoryChannel, SharedMemoryChannel]


@pytest.fixture
def pair() -> Iterator[Pair]:
    first, second = shared_memory_pair()
    yield first, second
    first.close()
    second.close()


def exchange(pair: Pair, size: int, value: float = 1.0) -> np.ndarray:
    pair[0].send(Frame(1, (), [np.full(size, value)]))
    return pair[1].recv().tensors[0]


def test_one_slot_serves_as_long_as_nothing_is_kept(pair: Pair) -> None:
    addresses = set()
    for number in range(10):
        tensor = exchange(pair, ELEMENTS - number, number)
        assert tensor[0] == number
        addresses.add(tensor.ctypes.data)
        assert tensor.ctypes.data % 64 == 0
        del tensor
    assert len(addresses) == 1
    assert len(pair[0]._slots) == 1


def test_kept_tensors_stay_unchanged(pair: Pair) -> None:
    # More frames than slots: the rest is sent through the socket, whose buffer is large enough.
    kept = [exchange(pair, SHARED_FROM_BYTES // 8, number)[1:][::2] for number in range(8)]
    assert len(pair[0]._slots) == 4
    for number, tensor in enumerate(kept):
        assert (tensor == number).all()
    del kept
    gc.collect()
    assert all(slot.free() for slot in pair[0]._slots.values())


def test_an_array_outlives_its_channel() -> None:
    pair = shared_memory_pair()
    tensor = exchange(pair, ELEMENTS, 7)
    for channel in pair:
        channel.close()
    del channel, pair
    gc.collect()
    assert (tensor == 7).all()
    tensor += 1


def test_slots_that_are_too_small_make_room(pair: Pair) -> None:
    for size in (1, 9, 90, 900, 9, 90, 1):
        tensor = exchange(pair, ELEMENTS * size, size)
        assert tensor.shape == (ELEMENTS * size,)
        assert (tensor == size).all()
        del tensor
    assert len(pair[0]._slots) <= 4
    assert pair[1]._peer_slots.keys() == pair[0]._slots.keys()


def test_slots_that_are_not_used_are_given_back(pair: Pair) -> None:
    exchange(pair, 100 * ELEMENTS)
    assert len(pair[0]._slots) == len(pair[1]._peer_slots) == 1
    for number in range(600):
        exchange(pair, ELEMENTS if number % 100 == 50 else 1)
    assert [len(slot.payload) for slot in pair[0]._slots.values()] == [8 * ELEMENTS]
    assert pair[0]._slots.keys() == pair[1]._peer_slots.keys()
    for _ in range(600):
        exchange(pair, 1)
    assert not pair[0]._slots
    assert not pair[1]._peer_slots


def test_descriptors_do_not_add_up(pair: Pair) -> None:
    exchange(pair, ELEMENTS)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(50):
        exchange(pair, ELEMENTS * (1 + number % 9))
    assert len(os.listdir("/proc/self/fd")) <= before + 6


def dishonest() -> tuple[socket.socket, socket.socket, SharedMemoryChannel]:
    theirs, ours = socket.socketpair()
    their_lane, our_lane = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return theirs, their_lane, SharedMemoryChannel(ours, our_lane, peer="somebody")


def announce(sock: socket.socket, slot: int, *, new: bool) -> None:
    encoded = frames.encode(Frame(1, (), [np.zeros(ELEMENTS)]))
    flags = IN_SHARED_MEMORY | (2 if new else 0)
    sock.sendall(encoded.prefix(flags, slot) + encoded.header + encoded.layout)


def memory(size: int, seals: int) -> int:
    descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


LARGE = 4096 + 8 * ELEMENTS


@pytest.mark.parametrize(
    ("slot", "new", "size", "seals"),
    [
        (0, False, None, 0),  # a slot that was never created
        (4, True, LARGE, fcntl.F_SEAL_SHRINK),  # one slot too many
        (255, True, LARGE, fcntl.F_SEAL_SHRINK),
        (0, True, LARGE - 1, fcntl.F_SEAL_SHRINK),  # shorter than announced
        (0, True, LARGE, 0),  # can be truncated later
        (0, True, None, 0),  # no descriptor
    ],
)
def test_slots_with_wrong_properties_are_refused(slot: int, new: bool, size: int | None, seals: int) -> None:
    theirs, lane, channel = dishonest()
    with theirs, lane:
        if size is not None:
            descriptor = memory(size, seals)
            socket.send_fds(lane, [b"\0"], [descriptor])
            os.close(descriptor)
        elif new:
            lane.send(b"\0")
        announce(theirs, slot, new=new)
        with pytest.raises(InvalidArgumentError):
            channel.recv()
        assert channel.closed


def test_a_descriptor_that_is_no_memory() -> None:
    theirs, lane, channel = dishonest()
    with theirs, lane, open(os.devnull) as nothing:
        socket.send_fds(lane, [b"\0"], [nothing.fileno()])
        announce(theirs, 0, new=True)
        with pytest.raises((InvalidArgumentError, UnavailableError)):
            channel.recv()


def test_a_lost_lane() -> None:
    theirs, lane, channel = dishonest()
    with theirs:
        lane.close()
        announce(theirs, 0, new=True)
        with pytest.raises((InvalidArgumentError, UnavailableError)):
            channel.recv()


def test_through_the_socket_where_there_is_no_shared_memory_left(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", no_memory)
    assert exchange(pair, SHARED_FROM_BYTES // 8, 5).tolist() == [5.0] * (SHARED_FROM_BYTES // 8)
