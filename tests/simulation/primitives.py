"""The primitives of `threading` and `queue`, for threads of a simulation.

If a method finds no simulation, the history has ended and its objects are being destroyed: the method returns at once.
A thread that is woken but finds that another thread was faster waits again, for the whole timeout.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from queue import Empty, Full
from types import TracebackType
from typing import Any, Generic, TypeVar

from tests.simulation import scheduler
from tests.simulation.scheduler import running

T = TypeVar("T")


class Waiters:
    """Threads that wait for the same event."""

    def __init__(self) -> None:
        self._threads: list[scheduler.Thread] = []

    def __len__(self) -> int:
        return len(self._threads)

    def wait(self, what: str, timeout_s: float | None) -> bool:
        """Blocks the running thread until it is woken; returns False after a timeout."""
        with self.registered():
            return running().wait(what, timeout_s)

    @contextmanager
    def registered(self) -> Generator[None]:
        """A context in which the running thread is one of the waiters; the caller has to block the thread."""
        thread = running().current
        self._threads.append(thread)
        try:
            yield
        finally:
            if thread in self._threads:
                self._threads.remove(thread)

    def wake(self, count: int = 1) -> None:
        """Wakes some waiters, chosen at random."""
        if not self._threads:
            return
        simulation = running()
        # A random waiter, because the real primitives guarantee no order. A dead thread would lose the notification.
        living = [thread for thread in self._threads if not thread.process.dead]
        for _ in range(min(count, len(living))):
            thread = living.pop(simulation.random.randrange(len(living)) if len(living) > 1 else 0)
            self._threads.remove(thread)
            simulation.wake(thread)


class Lock:
    """A lock."""

    _reentrant = False

    def __init__(self) -> None:
        self._owner: scheduler.Thread | None = None
        self._depth = 0
        self._waiters = Waiters()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        simulation = scheduler.simulation()
        if simulation is None:  # the history has ended, and its objects are being destroyed
            return True
        simulation.pause()
        thread = simulation.current
        if self._owner is thread and self._reentrant:
            self._depth += 1
            return True
        while self._owner is not None:
            if not blocking or (timeout is not None and timeout == 0):
                return False
            limit = None if timeout is None or timeout < 0 else timeout
            if not self._waiters.wait(f"a lock that {self._owner} holds", limit):
                return False
        self._owner, self._depth = thread, 1
        return True

    def release(self) -> None:
        simulation = scheduler.simulation()
        if simulation is None or not simulation.is_alive():
            return
        if self._owner is None:
            raise RuntimeError("release unlocked lock")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._waiters.wake()

    def locked(self) -> bool:
        return self._owner is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _owned(self) -> bool:
        return self._owner is running().current

    def _release_fully(self) -> int:
        depth, self._depth, self._owner = self._depth, 0, None
        self._waiters.wake()
        return depth

    def _reacquire(self, depth: int) -> None:
        # In a loop: another thread may acquire the lock between the wake-up and the run of this thread.
        while self._owner is not None:
            self._waiters.wait(f"a lock that {self._owner} holds", None)
        self._owner, self._depth = running().current, depth


class RLock(Lock):
    """A reentrant lock."""

    _reentrant = True


class Condition:
    """A condition."""

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = RLock() if lock is None else lock
        self._waiters = Waiters()
        self.acquire = self._lock.acquire
        self.release = self._lock.release

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *ended: Any) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        if scheduler.simulation() is None:
            return False
        if not self._lock._owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        depth = self._lock._release_fully()
        try:
            return self._waiters.wait("a condition", timeout)
        finally:
            if running().is_alive():
                self._lock._reacquire(depth)

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        if scheduler.simulation() is None:
            return predicate()
        end = None if timeout is None else running().now + timeout
        while not (result := predicate()):
            left = None if end is None else end - running().now
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        simulation = scheduler.simulation()
        if simulation is None or not simulation.is_alive():
            return
        if not self._lock._owned():
            raise RuntimeError("cannot notify on un-acquired lock")
        self._waiters.wake(n)

    def notify_all(self) -> None:
        self.notify(len(self._waiters))


class Event:
    """An event."""

    def __init__(self) -> None:
        self._set = False
        self._waiters = Waiters()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        if scheduler.simulation() is not None and running().is_alive():
            self._waiters.wake(len(self._waiters))
            running().pause()

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        if scheduler.simulation() is None:
            return True
        running().pause()
        if not self._set:
            self._waiters.wait("an event", timeout)
        return self._set


class Semaphore:
    """A semaphore."""

    def __init__(self, value: int = 1) -> None:
        self._value = value
        self._waiters = Waiters()

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        running().pause()
        while not self._value:
            if not blocking or not self._waiters.wait("a semaphore", timeout):
                return False
        self._value -= 1
        return True

    def release(self, n: int = 1) -> None:
        self._value += n
        self._waiters.wake(n)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *ended: Any) -> None:
        self.release()


class Queue(Generic[T]):
    """A queue; `queue.SimpleQueue` and `queue.Queue`."""

    def __init__(self, maxsize: int = 0) -> None:
        self._limit = maxsize
        self._items: deque[T] = deque()
        self._takers = Waiters()
        self._givers = Waiters()

    def put(self, item: T, block: bool = True, timeout: float | None = None) -> None:
        if scheduler.simulation() is None:
            return
        running().pause()
        while self._limit and len(self._items) >= self._limit:
            if not block or not self._givers.wait("room in a queue", timeout):
                raise Full
        self._items.append(item)
        self._takers.wake()

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        running().pause()
        while not self._items:
            if not block or not self._takers.wait("an item of a queue", timeout):
                raise Empty
        item = self._items.popleft()
        self._givers.wake()
        return item

    def put_nowait(self, item: T) -> None:
        self.put(item, False)

    def get_nowait(self) -> T:
        return self.get(False)

    def qsize(self) -> int:
        return len(self._items)

    def empty(self) -> bool:
        return not self._items


class Thread:
    """A thread, in the same process as its creator."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self._target = target
        self._args = tuple(args)
        self._kwargs = dict(kwargs or {})
        self.daemon = bool(daemon)
        self.name = name or "thread"
        self.ident: int | None = None
        self._thread: scheduler.Thread | None = None
        self._joiners = Waiters()
        self._ended = False

    def start(self) -> None:
        simulation = running()
        simulation.check(simulation.current)
        self._thread = simulation.thread(simulation.current.process, self.name, self._main)
        self._thread.facade = self
        self.ident = self._thread.number
        self._thread.start()
        simulation.pause()

    def run(self) -> None:
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def _main(self) -> None:
        try:
            self.run()
        finally:
            self._ended = True
            simulation = running()
            if simulation.is_alive():
                self._joiners.wake(len(self._joiners))

    def join(self, timeout: float | None = None) -> None:
        if self._thread is None:
            raise RuntimeError("cannot join thread before it is started")
        if scheduler.simulation() is None:
            return
        running().pause()
        if not self._ended:
            self._joiners.wait(f"the end of {self._thread}", timeout)

    def is_alive(self) -> bool:
        return self._thread is not None and not self._ended


class MainThread(Thread):
    """Simulates the main thread, which receives signals; no thread of a simulation is the main thread."""


def current_thread() -> Any:
    """The running thread."""
    thread = running().current
    facade = thread.facade
    if facade is None:
        facade = Thread(name=thread.name)
        facade.ident = thread.number
        facade._thread = thread
        thread.facade = facade
    return facade
