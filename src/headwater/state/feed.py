"""What a primary sends to the other copy: all that it has, then every change, in order.

The frames of a channel from a primary to the other copy::

    SECOND  (name, view, goes on)  the first: who feeds, and whether with changes of what the other one has handed over;
                                answered by DONE (whether the other one takes it, its number, its life, its view,
                                whether it still has what it has handed over)
    NEW_VIEW (number, view, aim)  another view, and on which ``ps`` copies should be, where that was said. Where the
                                other one is the primary of it, the channel ends, and goes on the other way round
    ...     (number, ...)       what it has, and changes of that, as what is fed says

    RESIGNS ()                  from the other copy: its task ends, and it will never serve

Each from the primary but the first is answered by DONE (number) as soon as it was received whole. The other copy makes
a change before it reads another frame.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.waiting import LOOK_S
from headwater.cluster.transport.frames import Array, Frame
from headwater.errors import CancelledError, DeadlineExceededError, UnavailableError
from headwater.state.views import Copy, View, as_words

Tensors = Sequence[Array]

#: The most that may wait for a copy that is being filled up; workers wait then, in bytes.
MOST_WAITING = 256 << 20


class FeedChannel(Protocol):
    """What a feed needs of a channel; see `headwater.cluster.transport.channel.Channel`."""

    @property
    def peer(self) -> str: ...

    def send(self, frame: Frame) -> None: ...

    def recv(self, timeout_s: float | None = None) -> Frame: ...

    def close(self) -> None: ...


class Feed:
    """One channel to the other copy. It begins with everything, in `fill`; meanwhile what is sent waits.

    `send` is called by one thread at a time, which sets the order.

    Args:
      channel: on which the other copy has said that it takes what comes.
      target: the other copy.
      begins: what it begins with, in order: kinds, headers after the number, and tensors. It is asked for them one
        after the other, as the other copy takes them.
      filled: called when all of that is sent, or will not be.
    """

    def __init__(
        self,
        channel: FeedChannel,
        target: Copy,
        begins: Iterable[tuple[int, Sequence[object], Tensors]],
        filled: Callable[[], None] = lambda: None,
    ) -> None:
        self._channel = channel
        self.target: Copy = target
        #: Number of the frame that ends what it begins with: those before it have none of their own, but 0.
        self.begins: int = 1
        #: The last number that a frame was given, and that the other copy has confirmed.
        self.given: int = self.begins
        self.confirmed: int = 0
        #: Whether the other copy has said that it ends, and can never serve.
        self.resigned: bool = False
        #: Feeds a third copy, which is to take the place of the one that this feeds: it is sent all that this one is.
        self.beside: Feed | None = None
        #: Number of the frame by which the other copy has all that there was when this became the feed.
        self.secures: int = self.begins
        self._lock = threading.Lock()
        self._beginning = begins
        self._filled = filled
        self._ended: Callable[[], object] = lambda: None
        self._queue: deque[Frame] | None = deque()
        self._waiting_bytes = 0  # of what happened since
        self._receiving = threading.Lock()
        self._heard = threading.Condition()
        self.broken: threading.Event = threading.Event()

    # Under the lock of what is fed ------------------------------------------------------------------------------------

    def tell(self, view: View, aim: Sequence[object] | None = None) -> None:
        """Sends another view."""
        self._send(kinds.NEW_VIEW, (as_words(view), aim), ())

    def send(self, kind: int, header: Sequence[object], tensors: Tensors) -> None:
        """Sends a change, or has it wait while the other copy is filled up."""
        if self.beside is not None:
            self.beside.send(kind, header, tensors)
        self._send(kind, header, tensors)

    def _send(self, kind: int, header: Sequence[object], tensors: Tensors) -> None:
        with self._lock:
            if self.broken.is_set():
                return
            self.given += 1
            frame = Frame(kind, (self.given, *header), tensors)
            if self._queue is not None:
                self._queue.append(frame)
                self._waiting_bytes += _nbytes(frame)
                return
            self._put(frame)

    def _put(self, frame: Frame) -> None:
        """Sends a frame. Where that fails, the other copy lacks it: nothing after it is sent."""
        try:
            self._channel.send(frame)
        except (UnavailableError, CancelledError):
            self.end()
        except BaseException:
            self.end()
            raise

    # Filling up -------------------------------------------------------------------------------------------------------

    @property
    def filling(self) -> bool:
        """Whether the other copy has yet to get what it begins with, or what happened meanwhile."""
        return self._queue is not None

    @property
    def has_room(self) -> bool:
        """Whether no worker has to wait until the other copy has got more of what happened."""
        return self._waiting_bytes < MOST_WAITING or self.broken.is_set()

    def fill(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Sends what it begins with, then what waits, until nothing does; from then on `send` sends by itself.

        Args:
          goes_on: asked now and then; where it says no, nothing is sent any more.
        """
        try:
            self._fill(goes_on)
        except BaseException:
            self.end()
            raise

    def _fill(self, goes_on: Callable[[], bool]) -> None:
        try:
            for frame in self._first_frames():
                self.confirmed = frame.header[0] - 1
                self._send_confirmed(frame, goes_on)
                if self.broken.is_set():
                    return
        finally:
            self._filled()
        while not self.broken.is_set():
            with self._lock:
                if not self._queue:
                    self._queue = None
                    return
                frame = self._queue.popleft()
            self._send_confirmed(frame, goes_on)
            with self._lock:
                self._waiting_bytes -= _nbytes(frame)

    def _first_frames(self) -> Iterator[Frame]:
        last: Frame | None = None
        for kind, header, tensors in self._beginning:
            if last is not None:
                yield last
            last = Frame(kind, (0, *header), tensors)
        assert last is not None
        yield Frame(last.kind, (self.begins, *last.header[1:]), last.tensors)

    def _send_confirmed(self, frame: Frame, goes_on: Callable[[], bool]) -> None:
        """Sends a frame, and waits until the other copy has it: what waits is in one queue, and not on its way."""
        self._put(frame)
        if not self.wait(frame.header[0], goes_on):
            self.end()

    def wait(self, number: int, goes_on: Callable[[], bool]) -> bool:
        """Waits until the other copy has confirmed frame ``number``; False where the channel is lost before.

        Args:
          number: of the frame.
          goes_on: asked now and then; the wait ends with False where it says so.
        """
        while self.confirmed < number:
            if self.broken.is_set() or not goes_on():
                return False
            if not self._receiving.acquire(blocking=False):
                # The thread that receives says what it hears. It may begin anew at once, so this one need not have its
                # turn: `fill` sends nothing until it knows that its frame was confirmed.
                with self._heard:
                    self._heard.wait_for(lambda: self.confirmed >= number or not self._receiving.locked(), LOOK_S)
                continue
            try:
                if self.confirmed < number and not self.broken.is_set():
                    self._receive(LOOK_S)
            finally:
                self._stop_receiving()
        return True

    def _stop_receiving(self) -> None:
        self._receiving.release()
        with self._heard:
            self._heard.notify_all()

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

    def look(self) -> None:
        """Notices that the channel is lost, where no thread waits for the other copy."""
        if self._receiving.acquire(blocking=False):
            try:
                self._receive(0)
            finally:
                self._stop_receiving()

    def end(self) -> None:
        """Nothing is sent any more."""
        self.broken.set()
        self._channel.close()
        self._ended()

    def at_end(self, call: Callable[[], object]) -> None:
        """Has ``call`` called, perhaps more than once, when nothing is sent any more."""
        self._ended = call
        if self.broken.is_set():
            call()


def _nbytes(frame: Frame) -> int:
    return sum(tensor.nbytes for tensor in frame.tensors)
