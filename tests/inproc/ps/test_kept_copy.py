"""Concurrent threads of a replica."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

import pytest

from headwater.cluster.task import kinds
from headwater.cluster.transport.channel import memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, UnavailableError
from headwater.state.copy import Replica
from headwater.state.feed import Feed
from headwater.state.sites import FixedProcesses, Site
from headwater.state.views import Copy, Standing, View, as_words
from tests.support.peer_link import PeerLink

KEEPER = "keeper"


class Copied(Replica):
    """A replica without contents, which records the threads that step it down."""

    def _reset(self) -> None:
        self.lock = threading.RLock()
        self.stepped: list[str] = []

    def _end(self) -> None: ...

    def _between_changes(self) -> AbstractContextManager[Any]:
        return self.lock

    def _step_down(self) -> None:
        self.stepped.append(threading.current_thread().name)
        self._stop_serving()


def _copied() -> Copied:
    processes = FixedProcesses(0, "/job:ps/task:0", {1: ("/job:ps/task:1", PeerLink())})
    site = Site(ps=0, initial=(0, 1), processes=processes, request_view=lambda *_: None)
    return Copied("set", 0, site=site, description="shard 0")


class Slow:
    """A lock that the keeper thread can acquire only when the test allows it."""

    def __init__(self) -> None:
        self.comes, self.may_come = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if threading.current_thread().name == KEEPER:
            self.comes.set()
            self.may_come.wait()
        self._lock.acquire()

    def __exit__(self, *how: object) -> None:
        self._lock.release()


def test_a_copy_that_hears_twice_of_another_primary_steps_down_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness announces the new primary, and the new primary feeds the replica before it has stepped down."""
    copy = _copied()
    me, other, taking = copy._standing.me, Copy(1, 5), Slow()
    before, after = View(4, me, other), View(5, other, me)
    monkeypatch.setattr(copy, "_standing", Standing(me=me, view=before))
    monkeypatch.setattr(copy, "_serving", True)
    monkeypatch.setattr(copy, "_state_lock", taking)
    keeper = threading.Thread(target=copy._adopt_view, args=(after,), name=KEEPER)
    keeper.start()
    taking.comes.wait()
    ours, theirs = memory_pair()

    def take() -> None:
        with pytest.raises((UnavailableError, CancelledError)):
            copy.serve_peer(theirs, Frame(kinds.BACKUP, ("set/0", as_words(after), False)))

    fed = threading.Thread(target=take, name="fed")
    fed.start()
    assert ours.recv().kind == kinds.DONE
    ours.close()
    fed.join()
    taking.may_come.set()
    keeper.join()
    assert copy.stepped == ["fed"]


def test_when_the_job_is_over_a_third_copy_that_has_ended_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the chief could report whether the third replica has become the backup, and the chief has ended, too."""
    copy = _copied()
    me, backup, third = copy._standing.me, Copy(1, 5), Copy(2, 5)
    feed, beside = (Feed(memory_pair()[0], other, ()) for other in (backup, third))
    feed.confirmed, feed.replacement = feed.last_number, beside
    beside.end()
    monkeypatch.setattr(copy, "_standing", Standing(me=me, view=View(4, me, backup), pairing=third))
    monkeypatch.setattr(copy, "_serving", True)
    monkeypatch.setattr(copy, "_feed", feed)

    def secure() -> None:
        def waits(what: str) -> None:
            raise UnavailableError(None, None, what)

        copy._await_backup(feed, feed.last_number, lambda: True, waits)

    with pytest.raises(UnavailableError, match="to confirm changes"):
        secure()
    copy.job_over()
    secure()


class Counted(PeerLink):
    """Counts attempts to connect to it."""

    def __init__(self) -> None:
        self.is_away, self.dialled = True, 0

    def is_lost(self) -> bool:
        return self.is_away

    def reach(self, deadline_s: float | None = None) -> None:
        self.dialled += 1


def test_a_process_that_is_away_is_not_dialled_for_as_long_as_another_has_the_backup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process should have the replica, and gets it once it is back."""
    away = Counted()
    processes = FixedProcesses(0, "/job:ps/task:0", {1: ("/job:ps/task:1", PeerLink()), 2: ("/job:ps/task:2", away)})
    site = Site(ps=0, initial=(0, 1), processes=processes, request_view=lambda *_: None)
    copy, backup = Copied("set", 0, site=site, description="shard 0"), Copy(1, 5)
    monkeypatch.setattr(copy, "_standing", Standing(me=copy._standing.me, view=View(4, copy._standing.me, backup)))
    copy.request_placement(0, 2)
    feed = Feed(memory_pair()[0], backup, ())
    assert copy._take_next_step(feed) is feed
    assert away.dialled == 0
    away.is_away = False
    assert copy._take_next_step(feed) is feed
    assert away.dialled == 1
