"""Feeds of replicas. A *feed* is the stream from a primary to another replica: first a snapshot of the primary's state,
then every change, in order.

The frames of a feed's channel::

    BACKUP  (name, view, resumes)  the first frame: the shard, and the primary's view. ``resumes`` is true after a
                                handoff: the other replica was the primary before and still has the state, so the
                                primary sends no snapshot, only changes. The other replica answers DONE (accepted, ps,
                                incarnation, view, has_state): whether it accepts the feed, its ``ps`` number, its
                                incarnation, the view it knows, and whether it still has the state that it handed off
    NEW_VIEW (number, view, aim)  a new view, and the requested placement (None if none was requested). If the view
                                makes the other replica the primary, that replica closes this channel and opens one in
                                the other direction
    ...     (number, ...)       the snapshot and changes, in frames whose format depends on the replicated state

    RESIGNS ()                  from the other replica: its task shuts down, and therefore it can never serve

The other replica confirms each frame after BACKUP with DONE (number) as soon as it has received the whole frame. It
then applies the change, and only after that reads the next frame. The last frame of the snapshot is applied before it
is confirmed. Applying it can take long, because the replica may first compile the function that applies updates, but no
worker waits for this replica yet.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.waiting import CHECK_INTERVAL_S
from headwater.cluster.transport.frames import Array, Frame
from headwater.errors import CancelledError, DeadlineExceededError, UnavailableError
from headwater.state.views import Copy, View, as_words

Tensors = Sequence[Array]

#: Limit on the changes queued for a replica that is still receiving the snapshot, in bytes. When the queue reaches the
#: limit, the primary delays its answers to workers until the queue is shorter.
MAX_WAITING_BYTES = 256 << 20
#: Number of the last frame of the snapshot. The frames before it have number 0, and changes have higher numbers.
END_OF_SNAPSHOT = 1


class FeedChannel(Protocol):
    """The methods of a channel that a feed uses; see `headwater.cluster.transport.channel.Channel`."""

    @property
    def peer(self) -> str: ...

    def send(self, frame: Frame) -> None: ...

    def recv(self, timeout_s: float | None = None) -> Frame: ...

    def close(self) -> None: ...


class Feed:
    """The stream of state to another replica. `fill` sends the snapshot first; changes are queued until it is sent.

    Callers must serialize calls of `send` and `send_view`; frames are sent in the order of the calls.

    Args:
      channel: the channel to the other replica, which has accepted the feed.
      target: the other replica.
      snapshot: the frames of the snapshot, in order, as (kind, header without the number, tensors). To save memory, a
        frame is taken from this iterator only after the other replica has confirmed the previous one.
      on_filled: called by `fill` when the snapshot has been sent, or when sending it has failed.
    """

    def __init__(
        self,
        channel: FeedChannel,
        target: Copy,
        snapshot: Iterable[tuple[int, Sequence[object], Tensors]],
        on_filled: Callable[[], None] = lambda: None,
    ) -> None:
        self._channel = channel
        self.target: Copy = target
        #: The number of the last frame sent or queued.
        self.last_number: int = END_OF_SNAPSHOT
        #: The number of the last frame that the other replica has confirmed. Before each frame of the snapshot, `fill`
        #: sets it to one less than the frame's number, because all but the last of these frames have number 0.
        self.confirmed: int = 0
        #: Whether the other replica has announced that it shuts down, and therefore can never serve.
        self.resigned: bool = False
        #: The feed of a third replica that will replace `target` as the backup. `send` sends it the same changes.
        self.replacement: Feed | None = None
        #: The number of the last frame sent before `target` replaced another backup. Once `target` has confirmed this
        #: frame, `target` has every earlier change, and workers that still wait for the previous backup's confirmation
        #: can be answered.
        self.last_before_replacement: int = END_OF_SNAPSHOT
        self._lock = threading.Lock()
        self._snapshot = snapshot
        self._on_filled = on_filled
        self._at_end: Callable[[], object] = lambda: None
        self._queue: deque[Frame] | None = deque()
        self._waiting_bytes = 0  # of the changes in the queue
        self._receiving = threading.Lock()
        self._progress = threading.Condition()
        self.ended: threading.Event = threading.Event()

    # Changes ----------------------------------------------------------------------------------------------------------

    def send_view(self, view: View, aim: Sequence[object] | None = None) -> None:
        """Sends a new view."""
        self._send(kinds.NEW_VIEW, (as_words(view), aim), ())

    def send(self, kind: int, header: Sequence[object], tensors: Tensors) -> None:
        """Sends a change, or queues it until the snapshot has been sent."""
        # Send each change to the third replica, too. The witness may have made it the backup already, while the answer
        # to the primary was delayed or lost.
        if self.replacement is not None:
            self.replacement.send(kind, header, tensors)
        self._send(kind, header, tensors)

    def _send(self, kind: int, header: Sequence[object], tensors: Tensors) -> None:
        with self._lock:
            if self.ended.is_set():
                return
            self.last_number += 1
            frame = Frame(kind, (self.last_number, *header), tensors)
            if self._queue is not None:
                self._queue.append(frame)
                self._waiting_bytes += _nbytes(frame)
                return
            self._send_now(frame)

    def _send_now(self, frame: Frame) -> None:
        """Sends a frame.

        If sending fails, the feed ends: the other replica must not receive later changes without this frame.
        """
        try:
            self._channel.send(frame)
        except (UnavailableError, CancelledError):
            self.end()
        except BaseException:
            self.end()
            raise

    # Snapshot ---------------------------------------------------------------------------------------------------------

    @property
    def filling(self) -> bool:
        """Whether parts of the snapshot, or changes queued meanwhile, are still to be sent."""
        return self._queue is not None

    @property
    def has_room(self) -> bool:
        """Whether the queue is short enough; otherwise workers have to wait for the other replica."""
        return self._waiting_bytes < MAX_WAITING_BYTES or self.ended.is_set()

    def fill(self, continues: Callable[[], bool] = lambda: True) -> None:
        """Sends the snapshot, then the queued changes. Later calls of `send` send their change immediately.

        Args:
          continues: called regularly; if it returns False, the feed ends.
        """
        try:
            self._fill(continues)
        except BaseException:
            self.end()
            raise

    def _fill(self, continues: Callable[[], bool]) -> None:
        try:
            for frame in self._snapshot_frames():
                # All frames of the snapshot except the last have number 0. Lower `confirmed` below the frame's number
                # before sending the frame: otherwise `wait` would take the confirmation of the previous frame, which
                # has the same number, for the confirmation of this one.
                self.confirmed = frame.header[0] - 1
                self._send_confirmed(frame, continues)
                if self.ended.is_set():
                    return
        finally:
            self._on_filled()
        while not self.ended.is_set():
            # `send` holds this lock, too. So a concurrent change is either in the queue already, or is sent directly
            # after this thread has set the queue to None; none is lost in between.
            with self._lock:
                if not self._queue:
                    self._queue = None
                    return
                frame = self._queue.popleft()
            self._send_confirmed(frame, continues)
            with self._lock:
                self._waiting_bytes -= _nbytes(frame)

    def _snapshot_frames(self) -> Iterator[Frame]:
        """Yields the frames of the snapshot with their numbers: 0, and `END_OF_SNAPSHOT` for the last."""
        last: Frame | None = None  # one frame is held back, to know which is the last
        for kind, header, tensors in self._snapshot:
            if last is not None:
                yield last
            last = Frame(kind, (0, *header), tensors)
        assert last is not None
        yield Frame(last.kind, (END_OF_SNAPSHOT, *last.header[1:]), last.tensors)

    def _send_confirmed(self, frame: Frame, continues: Callable[[], bool]) -> None:
        """Sends a frame and waits for its confirmation.

        At most one frame is therefore unsent in the channel; later frames wait in the queue, whose size is limited.
        """
        self._send_now(frame)
        if not self.wait(frame.header[0], continues):
            self.end()

    def wait(self, number: int, continues: Callable[[], bool]) -> bool:
        """Waits until the other replica has confirmed frame ``number``; returns False if the feed ends first.

        Args:
          number: the number of the frame.
          continues: called regularly; if it returns False, this method returns False.
        """
        while self.confirmed < number:
            if self.ended.is_set() or not continues():
                return False
            if not self._receiving.acquire(blocking=False):
                # Another thread is receiving, and notifies this thread when it releases `_receiving`. It may acquire
                # `_receiving` again before this thread runs. So test the confirmed number, too: if this wait ended only
                # when `_receiving` is free, `fill` could miss the confirmation and delay its next frame.
                with self._progress:
                    self._progress.wait_for(
                        lambda: self.confirmed >= number or not self._receiving.locked(), CHECK_INTERVAL_S
                    )
                continue
            try:
                if self.confirmed < number and not self.ended.is_set():
                    self._receive(CHECK_INTERVAL_S)
            finally:
                self._stop_receiving()
        return True

    def _stop_receiving(self) -> None:
        self._receiving.release()
        with self._progress:
            self._progress.notify_all()

    def _receive(self, timeout_s: float) -> None:
        try:
            answer = self._channel.recv(timeout_s)
        except DeadlineExceededError:
            return
        except (UnavailableError, CancelledError):
            self.end()
            return
        match answer.kind, answer.header:
            case kinds.DONE, (int(number),):
                self.confirmed = number
            case kinds.RESIGNS, ():
                self.resigned = True
                self.end()
            case _:
                self.end()
                raise bad_header(answer, self._channel.peer)

    def check_channel(self) -> None:
        """Ends the feed if the channel is lost. Does nothing while another thread receives, because that thread detects
        the loss."""
        if self._receiving.acquire(blocking=False):
            try:
                self._receive(0)
            finally:
                self._stop_receiving()

    def end(self) -> None:
        """Ends the feed: closes the channel, and drops later changes."""
        self.ended.set()
        self._channel.close()
        self._at_end()

    def at_end(self, call: Callable[[], object]) -> None:
        """Registers ``call`` as the callback for the end of the feed. The callback may be called more than once.

        If the feed has already ended, ``call`` is called immediately.
        """
        self._at_end = call
        if self.ended.is_set():
            call()


def _nbytes(frame: Frame) -> int:
    return sum(tensor.nbytes for tensor in frame.tensors)
