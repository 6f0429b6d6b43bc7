"""All-reduce, broadcast and all-gather of arrays over channels between all pairs of processes.

A sum is computed by *direct exchange*: each vector is divided into one part for each process. Each process sends part j
of its vector to the process of rank j, for each j. The process of rank j adds up all parts j, and sends the sum to all
other processes. This takes two rounds for any number of processes, and no process sends or receives more than twice the
size of the vector. Vectors below `WHOLE_BELOW_BYTES` are sent whole to all processes instead, in one round. In both
cases parts are added up in the order of the ranks, so that all processes get bitwise equal sums.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.cluster.task.kinds import LOST, PART, SUM, VALUE
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.shared import SharedMemoryChannel
from headwater.errors import AbortedError, DeadlineExceededError, InternalError, OpError, UnavailableError

Array = NDArray[Any]

#: Vectors of fewer bytes are sent whole.
WHOLE_BELOW_BYTES = 1 << 15
#: Largest size of a message, in bytes, that fits into the network's buffers, so that sending it never blocks.
_BUFFERED_BYTES = 1 << 14
_ALIGNED = 16
#: Interval of the log messages of a process that waits for another process, in seconds.
REPORT_S = 15.0
_log = logging.getLogger("headwater")


class LostPeerError(UnavailableError):
    """A process of the group is lost, so that no further step is possible.

    Attributes:
      task: the lost process.
      exit_code: the exit code of a process that cannot continue; this code asks the launcher to restart the process.
    """

    exit_code = 75

    def __init__(self, task: str, message: str) -> None:
        super().__init__(message)
        self.task = task


class Collective:
    """Collective operations of a group: all processes call the same methods in the same order.

    Args:
      rank: the rank of this process.
      names: names of all processes for messages, by rank.
      channels: a channel to each other process, by rank. There is no timeout for a slow peer. If the owner of the
        channels finds that a peer is lost although its channel is still open, it has to break the channel off.
    """

    def __init__(self, rank: int, names: Sequence[str], channels: dict[int, Channel]) -> None:
        self.rank = rank
        self.size: int = len(names)
        self._names = names
        self._channels = channels
        #: Number of completed collective operations.
        self.calls: int = 0
        #: The process for which this process has waited unusually long, and the duration in seconds; None otherwise.
        self.waits_for: tuple[str, float] | None = None
        # Each process sends to the next rank first, so that not all processes send to the same one at the same time.
        self._others = [(rank + distance) % self.size for distance in range(1, self.size)]
        self._slow = [peer for peer in self._others if not isinstance(channels[peer], SharedMemoryChannel)]
        self._senders = ThreadPoolExecutor(len(self._slow), "headwater sends") if self._slow else None

    # --- for programs

    def sum(self, vector: Array, what: str) -> Array:
        """Returns the sum of all processes' vectors, which must have equal lengths.

        Args:
          vector: one-dimensional; not changed.
          what: a name of the operation; it must be the same in all processes.

        Raises:
          LostPeerError: a process is lost.
          AbortedError: another process has called a different operation.
        """
        if self.size == 1:
            return vector
        if vector.nbytes < WHOLE_BELOW_BYTES:
            return self._add(vector, self.gather([vector], what))
        bounds = self._bounds(len(vector))
        call = self._call(what, len(vector))
        low, high = bounds[self.rank]
        received = self._exchange(PART, call, lambda peer: [vector[slice(*bounds[peer])]])
        whole = np.empty_like(vector)
        self._add(vector[low:high], received, out=whole[low:high])
        received.clear()  # releases the shared memory for the next exchange
        finished = self._exchange(SUM, call, lambda _: [whole[low:high]])
        for peer, (part,) in finished.items():
            whole[slice(*bounds[peer])] = part
        return whole

    def gather(self, values: Sequence[Array], what: str) -> dict[int, Sequence[Array]]:
        """Returns the ``values`` of all other processes, by rank, without this process's own.

        Args:
          values: any number of arrays of any shapes; they may differ between processes.
          what: see `sum`.

        Raises:
          LostPeerError, AbortedError: see `sum`.
        """
        return self._exchange(VALUE, self._call(what, None), lambda _: values)

    def broadcast(self, values: Sequence[Array], what: str) -> Sequence[Array]:
        """Returns the ``values`` of rank 0; the ``values`` of other ranks are ignored.

        Raises:
          LostPeerError, AbortedError: see `sum`.
        """
        if self.size == 1:
            return values
        call = self._call(what, None)
        if self.rank == 0:
            for peer in self._others:
                self._send(peer, Frame(VALUE, call, values))
            return values
        return self._receive(0, VALUE, call)

    def barrier(self, what: str) -> None:
        """Waits until all processes have called this method.

        Raises:
          LostPeerError, AbortedError: see `sum`.
        """
        self.gather([], what)

    def close(self) -> None:
        """Closes all channels."""
        if self._senders is not None:
            self._senders.shutdown(wait=False, cancel_futures=True)
        for channel in self._channels.values():
            channel.close()

    # --- implementation

    def _bounds(self, length: int) -> list[tuple[int, int]]:
        """Returns the range of the vector, as start and stop, that each rank adds up."""
        each = -(-length // self.size)
        each += -each % _ALIGNED
        return [(min(rank * each, length), min((rank + 1) * each, length)) for rank in range(self.size)]

    def _add(self, own: Array, others: dict[int, Sequence[Array]], out: Array | None = None) -> Array:
        parts = [own if rank == self.rank else others[rank][0] for rank in range(self.size)]
        with np.errstate(over="ignore", invalid="ignore"):  # gradients of scaled losses may overflow
            total = np.add(parts[0], parts[1], out=out)
            for part in parts[2:]:
                np.add(total, part, out=total)
        return total

    def _call(self, what: str, length: int | None) -> tuple[int, str, int | None]:
        self.calls += 1
        return (self.calls, what, length)

    def _exchange(
        self, kind: int, call: tuple[Any, ...], values_for: Callable[[int], Sequence[Array]]
    ) -> dict[int, Sequence[Array]]:
        sending: list[Any] = []
        for peer in self._others:
            frame = Frame(kind, call, values_for(peer))
            if self._senders is not None and peer in self._slow and _nbytes(frame) > _BUFFERED_BYTES:
                sending.append(self._senders.submit(self._send, peer, frame))
            else:
                self._send(peer, frame)
        received = {peer: self._receive(peer, kind, call) for peer in self._others}
        for future in sending:
            future.result()
        return received

    def _send(self, peer: int, frame: Frame) -> None:
        try:
            self._channels[peer].send(frame)
        except OpError as error:
            raise self._report_loss(peer, error) from error

    def _receive(self, peer: int, kind: int, call: tuple[object, ...]) -> Sequence[Array]:
        waited = 0.0
        while True:
            try:
                frame = self._channels[peer].recv(REPORT_S)
                break
            except DeadlineExceededError:
                waited += REPORT_S
                where = f"{_call_text(call)} for {waited:.0f} s"
                self.waits_for = f"{self._names[peer]} at {where}", waited
                _log.warning("%s waits for %s", self._names[self.rank], self.waits_for[0])
            except OpError as error:
                raise self._report_loss(peer, error) from error
        self.waits_for = None
        if frame.kind == LOST:
            raise self._end_with(LostPeerError(str(frame.header[0]), str(frame.header[1])))
        if frame.kind != kind or tuple(frame.header) != call:
            raise self._end_with(
                AbortedError(
                    f"{self._names[self.rank]} is at {_call_text(call)} while {self._names[peer]} is at "
                    f"{_call_text(tuple(frame.header))}: all processes must take the same steps in the same order"
                )
            )
        return frame.tensors

    def _report_loss(self, peer: int, error: OpError) -> Exception:
        """Returns the error for a lost peer. Sends the peer's name to the other processes first, because they may
        notice the end of this process before the loss of the peer, and would report the wrong cause."""
        if isinstance(error, InternalError):
            return error
        # The peer may have ended because it has lost another process, which is the actual cause. In this case the peer
        # has sent a message that names that process, and the message can still be read.
        report = self._read_loss_report(peer)
        return self._end_with(
            report or LostPeerError(self._names[peer], f"{self._names[peer]} is lost: {error.message}")
        )

    def _read_loss_report(self, peer: int) -> LostPeerError | None:
        try:
            while True:
                frame = self._channels[peer].recv(0)
                if frame.kind == LOST:
                    return LostPeerError(str(frame.header[0]), str(frame.header[1]))
        except OpError:
            return None

    def _end_with(self, error: OpError) -> OpError:
        if isinstance(error, LostPeerError):
            for peer, channel in self._channels.items():
                if self._names[peer] != error.task:
                    try:
                        channel.send(Frame(LOST, (error.task, error.message)))
                    except OpError:
                        # This peer is lost as well.
                        continue
        self.close()
        return error


def _nbytes(frame: Frame) -> int:
    return sum(tensor.nbytes for tensor in frame.tensors)


def _call_text(call: tuple[object, ...]) -> str:
    number, what, *_ = (*call, "?", "?")
    return f"call {number} ({what})"
