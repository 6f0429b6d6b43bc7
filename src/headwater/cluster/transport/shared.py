"""Channels between processes of one machine: a Unix socket, and shared memory for large payloads.

A large payload is copied only once, into memory that both ends have mapped, and the receiving end uses it there. The
memory consists of slots, which the sending end of a frame creates (``memfd_create``). The first byte of a slot shows
whether the slot is taken: the sending end sets the byte, and the receiving end clears it when no array refers to the
payload. The payload begins at the second page. If all slots are taken, the payload is sent through the
socket.

Descriptors of slots are sent over a second socket, the lane. If they were sent over the socket of the frames, every
call that receives from it would cost more.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import socket
import weakref
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headwater.cluster.transport import frames
from headwater.cluster.transport.frames import IN_SHARED_MEMORY, Buffer, Encoded, Prefix
from headwater.cluster.transport.sockets import SocketChannel
from headwater.cluster.transport.streaming import CLEANUP_INTERVAL_FRAMES, JOIN_BYTES, as_bytes
from headwater.errors import InvalidArgumentError

#: Minimum size of a payload that is sent through shared memory, in bytes.
SHARED_FROM_BYTES = 1 << 15

#: Prefix flag: the slot is new, and its descriptor was sent over the lane.
_NEW_SLOT = 2
#: Prefix flag: if bit 8 + n of ``slot`` is set, the sending end no longer uses slot n.
_DROPS_SLOTS = 4
_MAX_SLOTS = 4
#: Maximum number of cached layouts of a slot.
_MAX_VIEWS = 16
#: A slot that was not used for this many frames is freed; this is checked at the same interval.
_IDLE_FRAMES = CLEANUP_INTERVAL_FRAMES
#: Maximum ratio of the size of a slot to the size of the payload in it.
_MAX_WASTE = 4
_PAGE = mmap.PAGESIZE
_FREE, _TAKEN = 0, 1
_DROPPED_SHIFT = 8
_LANE_TIMEOUT_S = 10.0


@dataclass(slots=True)
class _Slot:
    """Shared memory from which this end sends."""

    memory: mmap.mmap
    payload: NDArray[np.uint8]
    last_frame: int
    views: dict[bytes, tuple[frames.Array, ...]] = field(default_factory=dict[bytes, tuple[frames.Array, ...]])
    """By layout, arrays in this memory at the positions of the layout's tensors."""

    def free(self) -> bool:
        return self.memory[0] == _FREE


class SharedMemoryChannel(SocketChannel):
    """A channel over a Unix socket and shared memory.

    Args:
      sock: connected and past its handshake.
      lane: the second socket between the two ends.
      peer: see `Channel.peer`.
      peer_generation: see `Channel.peer_generation`.
      max_payload_bytes: refuse frames whose tensors take more than this.
    """

    joins_up_to = SHARED_FROM_BYTES - 1
    known_flags = IN_SHARED_MEMORY | _NEW_SLOT | _DROPS_SLOTS

    def __init__(
        self,
        sock: socket.socket,
        lane: socket.socket,
        *,
        peer: str,
        peer_generation: int = 0,
        max_payload_bytes: int = frames.DEFAULT_MAX_PAYLOAD_BYTES,
    ) -> None:
        super().__init__(sock, peer=peer, peer_generation=peer_generation, max_payload_bytes=max_payload_bytes)
        self._lane = lane
        lane.settimeout(_LANE_TIMEOUT_S)
        self._slots: dict[int, _Slot] = {}
        self._peer_slots: dict[int, mmap.mmap] = {}
        self._in_use: dict[int, weakref.ref[NDArray[np.uint8]]] = {}

    # --- sending

    def sends_at_once(self, payload_bytes: int) -> bool:
        if payload_bytes < JOIN_BYTES or len(self._slots) < _MAX_SLOTS:
            return True
        return any(slot.free() for slot in self._slots.values())

    def _send_encoded(self, encoded: Encoded, flags: int = 0, slot: int = 0) -> int:
        if self._slots and self._frames_sent % _IDLE_FRAMES == 0:
            dropped = self._drop_idle()
            if dropped:
                flags, slot = _DROPS_SLOTS, dropped << _DROPPED_SHIFT
        free_slot = self._slot_for(encoded.payload_bytes) if encoded.payload_bytes >= SHARED_FROM_BYTES else None
        if free_slot is None:
            return super()._send_encoded(encoded, flags, slot)
        number, descriptor = free_slot
        self._fill_slot(self._slots[number], encoded)
        flags |= IN_SHARED_MEMORY
        if descriptor is not None:
            flags |= _NEW_SLOT
            try:
                socket.send_fds(self._lane, [b"\0"], [descriptor])
            finally:
                os.close(descriptor)
        head = b"".join((encoded.prefix(flags, slot | number), encoded.header, encoded.layout))
        self._socket.sendall(head)
        return len(head) + encoded.payload_bytes

    def _fill_slot(self, slot: _Slot, encoded: Encoded) -> None:
        slot.last_frame = self._frames_sent
        slot.memory[0] = _TAKEN  # before the frame is sent: the receiving end may free the slot immediately
        if encoded.arrays:
            views = slot.views.get(encoded.layout)
            if views is None:
                if len(slot.views) >= _MAX_VIEWS:
                    slot.views.clear()
                views = frames.parse_layout(encoded.layout, encoded.payload_bytes).arrays(slot.payload)
                slot.views[encoded.layout] = views
            for view, tensor in zip(views, encoded.arrays, strict=True):
                view[...] = tensor
            return
        at = 0
        for part in encoded.body:
            data = np.frombuffer(as_bytes(part), np.uint8)
            slot.payload[at : at + len(data)] = data
            at += len(data)

    def _slot_for(self, nbytes: int) -> tuple[int, int | None] | None:
        """Returns a free slot's number, and its descriptor if it is new; None if no slot is available."""
        fitting = [
            (len(slot.payload), number)
            for number, slot in self._slots.items()
            if nbytes <= len(slot.payload) <= _MAX_WASTE * nbytes and slot.free()
        ]
        if fitting:
            return min(fitting)[1], None
        numbers = [number for number in range(_MAX_SLOTS) if number not in self._slots]
        # The number of slots is limited, so replace a free slot of an unsuitable size.
        numbers += [number for number, slot in self._slots.items() if slot.free()]
        if not numbers:
            return None
        try:
            descriptor, memory = _new_memory(_PAGE + nbytes)
        except OSError:  # no descriptors or no memory left: use the socket, which needs neither
            return None
        payload = np.ndarray((nbytes,), np.uint8, memory, _PAGE)
        self._slots[numbers[0]] = _Slot(memory, payload, self._frames_sent)
        return numbers[0], descriptor

    def _drop_idle(self) -> int:
        """Frees slots that were not used for long; returns them as a bit mask."""
        idle = [
            number
            for number, slot in self._slots.items()
            if self._frames_sent - slot.last_frame > _IDLE_FRAMES and slot.free()
        ]
        for number in idle:
            del self._slots[number]
        return sum(1 << number for number in idle)

    # --- receiving

    def _process_flags(self, prefix: Prefix) -> None:
        if prefix.flags & _DROPS_SLOTS:
            for number in list(self._peer_slots):
                if prefix.slot >> _DROPPED_SHIFT >> number & 1:
                    del self._peer_slots[number]

    def _payload(self, prefix: Prefix) -> Buffer:
        if not prefix.flags & IN_SHARED_MEMORY:
            return super()._payload(prefix)
        number = prefix.slot & (1 << _DROPPED_SHIFT) - 1
        if prefix.flags & _NEW_SLOT:
            self._peer_slots[number] = self._receive_slot(number, prefix.payload_bytes)
        memory = self._peer_slots.get(number)
        if memory is None or len(memory) < _PAGE + prefix.payload_bytes:
            raise InvalidArgumentError(f"a frame's tensors should be in slot {number}, but are not")
        payload = np.ndarray((prefix.payload_bytes,), np.uint8, memory, _PAGE)

        # Bind these objects as defaults: at interpreter shutdown the names of the module may be cleared before the
        # call.
        def release(_: object, memory: mmap.mmap = memory, free: int = _FREE) -> None:
            memory[0] = free

        # Every array over the payload keeps `payload` alive, so `release` runs after the last of them; NumPy would skip
        # `payload` if its base were an array (see `fresh_buffer`).
        self._in_use[number] = weakref.ref(payload, release)
        return payload

    def _receive_slot(self, number: int, payload_bytes: int) -> mmap.mmap:
        if number >= _MAX_SLOTS:
            raise InvalidArgumentError(f"the other end uses slot {number}, but there are only {_MAX_SLOTS}")
        _, descriptors, flags, _ = socket.recv_fds(self._lane, 1, 1)
        if flags & socket.MSG_CTRUNC:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        if len(descriptors) != 1:
            raise InvalidArgumentError("the other end announced shared memory and sent none")
        try:
            # Without the seal, the other end could shrink the memory, and reading it would kill this process (SIGBUS).
            sealed = fcntl.fcntl(descriptors[0], fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
            if not sealed or os.fstat(descriptors[0]).st_size < _PAGE + payload_bytes:
                raise InvalidArgumentError("the other end sent shared memory of another size or kind than announced")
            return _map(descriptors[0], _PAGE + payload_bytes)
        finally:
            os.close(descriptors[0])

    def _dispose(self) -> None:
        super()._dispose()
        self._lane.close()
        self._slots.clear()


def _new_memory(nbytes: int) -> tuple[int, mmap.mmap]:
    descriptor = os.memfd_create("headwater", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.fchmod(descriptor, 0o600)
    os.ftruncate(descriptor, nbytes)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    try:
        return descriptor, _map(descriptor, nbytes)
    except OSError:
        os.close(descriptor)
        raise


def _map(descriptor: int, nbytes: int) -> mmap.mmap:
    # Map all pages at once: page faults at first touch take several times as long as copying into them.
    return mmap.mmap(descriptor, nbytes, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))


def make_lane(sock: socket.socket) -> socket.socket:
    """Creates the lane at the dialling end, and sends the descriptor of its other end over ``sock``."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        socket.send_fds(sock, [b"\0"], [theirs.fileno()])
    return mine


def receive_lane(sock: socket.socket) -> socket.socket:
    """Receives the lane at the accepting end; raises EOFError if the other end sent none."""
    _, descriptors, _, _ = socket.recv_fds(sock, 1, 1)
    if len(descriptors) != 1:
        raise EOFError
    return socket.socket(fileno=descriptors[0])
