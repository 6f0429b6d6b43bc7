"""The changes that a primary sends to the backup."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from headwater.cluster.task import kinds
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import DeadlineExceededError
from headwater.state.feed import Feed
from headwater.state.views import Copy


class Other:
    """A channel to a replica that confirms each frame, in a thread of its own, once another thread waits for the
    confirmation.

    Attributes:
      in_vain: how often a thread has waited for a confirmation until its timeout.
    """

    peer = "the other copy"

    def __init__(self) -> None:
        self._sent = queue.SimpleQueue[int]()
        self._confirmations = queue.SimpleQueue[int]()
        self._awaited = threading.Semaphore(0)
        self.in_vain = 0
        threading.Thread(target=self._confirm, daemon=True).start()

    def _confirm(self) -> None:
        while True:
            number = self._sent.get()
            self._awaited.acquire()
            self._confirmations.put(number)

    def send(self, frame: Frame) -> None:
        self._sent.put(frame.header[0])

    def recv(self, timeout_s: float | None = None) -> Frame:
        self._awaited.release()
        try:
            return Frame(kinds.DONE, (self._confirmations.get(timeout=timeout_s),))
        except queue.Empty:
            self.in_vain += 1
            raise DeadlineExceededError(None, None, "nothing was confirmed") from None

    def close(self) -> None: ...


def test_queued_changes_are_sent_while_workers_wait_for_the_last_one() -> None:
    """A worker receives each confirmation, and continues to receive before `fill` runs."""
    other, frames = Other(), 20
    feed = Feed(cast(Channel, other), Copy(1, 1), [(kinds.STATE, (), ())])
    for _ in range(frames):
        feed.send(kinds.SEAL, (), ())
    with ThreadPoolExecutor(4) as workers:
        waits = [workers.submit(feed.wait, feed.last_number, lambda: True) for _ in range(4)]
        feed.fill()
        assert all(wait.result() for wait in waits)
    assert not feed.filling
    assert other.in_vain < frames / 2
