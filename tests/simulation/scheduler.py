"""Deterministic threads: greenlets that run one at a time, on a simulated clock.

A *history* is a simulated run of a cluster, with faults and interleavings drawn from a seed. A `Simulation` runs a
history. Its threads belong to processes, which can be stopped, continued and killed. All simulated threads share one
thread of the operating system, so a switch costs about a microsecond, and thousands of threads are possible. Switches
happen when a thread blocks and, with a certain probability, at other scheduling points (`Simulation.pause`). A random
generator chooses the next thread. When no thread can run, the clock advances to the next event. When no event is left
either, the threads wait for each other, and the history ends with `Deadlock`. The same seed results in the same
history, to the last switch: `Simulation.trace` is a checksum to compare two histories.
"""

from __future__ import annotations

import contextlib
import heapq
import random
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from greenlet import getcurrent, greenlet


class Killed(BaseException):
    """The process of this thread was killed. Actions of the thread while it unwinds have no effect."""


class HistoryError(AssertionError):
    """A history broke a rule."""


class Deadlock(HistoryError):
    """Every thread waits, and nothing will happen that could wake one."""


class OutOfTime(HistoryError):
    """The history exceeds its limit of time or of switches: it does not end, or makes no progress."""


@dataclass(eq=False)
class Process:
    """A simulated process: threads that are stopped and killed together.

    Attributes:
      name: for messages; the same for all incarnations of a task.
      incarnation: 0 for the first process with this name, 1 for the second, and so on.
      began: its start time, in seconds of the simulation.
      stopped: whether it is stopped (as by SIGSTOP).
      dead: whether it has ended, or was killed.
      free_at: the time at which its only core has processed all frames received so far, in seconds of the simulation.
      on_end: callbacks for its end, whether it returned or was killed.
    """

    name: str
    incarnation: int = 0
    began: float = 0.0
    stopped: bool = False
    dead: bool = False
    free_at: float = 0.0
    on_end: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    threads: list[Thread] = field(default_factory=list["Thread"])

    def __str__(self) -> str:
        return f"{self.name}#{self.incarnation}"


class Thread:
    """A thread of a simulation.

    Attributes:
      process: the process that it belongs to.
      name: for messages.
      number: its number, unique in the simulation.
      waits_for: a description of the event that the thread waits for; empty while the thread can run.
      ended: whether the thread has ended.
      apart: whether the thread is in an `apart` block, in which it is not preempted (see `Simulation.apart`).
      locals: the thread's values of each `threading.local`.
      facade: the object that represents this thread to the program, with the interface of `threading.Thread`; None
        until the program first uses it.
    """

    def __init__(self, simulation: Simulation, process: Process, name: str, run: Callable[[], None]) -> None:
        self.simulation = simulation
        self.process = process
        self.name = name
        self.number = simulation.next_number()
        self.waits_for = ""
        self.ended = False
        self.apart = False
        self.on_end: list[Callable[[], None]] = []
        self.waits = 0
        self.is_ready = False
        self.timed_out = False
        self.locals: dict[Any, Any] = {}
        self.facade: Any = None
        self._run = run
        self._carrier = _Carrier(self._main, simulation.hub)

    def __str__(self) -> str:
        return f"{self.process}/{self.name}.{self.number}"

    def start(self) -> None:
        """Makes the thread ready to run."""
        self.process.threads.append(self)
        self.simulation.make_ready(self)

    @property
    def begun(self) -> bool:
        """Whether the thread has started to run."""
        return bool(self._carrier)

    def go(self) -> None:
        """Switches to this thread; returns when the simulation switches back to the caller."""
        self._carrier.switch()

    def stack(self) -> str:
        """Formats the thread's position in Headwater's code."""
        frame = self._carrier.gr_frame
        found = traceback.extract_stack(frame) if frame is not None else []
        return " < ".join(
            f"{item.filename.rpartition('/')[2]}:{item.lineno} {item.name}"
            for item in reversed(found)
            if "/headwater/" in item.filename or "/simulation/" in item.filename
        )

    def _main(self) -> None:
        try:
            if not self.process.dead:
                self._run()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - any error ends the history
            self.simulation.fail(error)
        finally:
            self.simulation.end_thread(self)


class _Carrier(greenlet):
    """The greenlet of a simulated thread."""


class Simulation:
    """Runs a history.

    Args:
      seed: seed of all random decisions.
      horizon_s: time limit of a history on its own clock, in seconds.
      preemption: probability that a thread is preempted at a scheduling point.
      max_switches: maximum number of switches between threads.

    Attributes:
      random: generator of all random decisions.
      now: the time, in seconds since the beginning.
      processes: all processes so far.
      switches: number of switches between threads.
      hub: the greenlet of `run`, which continues when a thread ends, and starts new threads.
    """

    def __init__(
        self, seed: int, *, horizon_s: float = 3600.0, preemption: float | None = None, max_switches: int = 300_000
    ) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now = 0.0
        self.horizon_s = horizon_s
        self.preemption: float = self.random.choice((0.0, 0.02, 0.2)) if preemption is None else preemption
        self.processes: list[Process] = []
        self.switches = 0
        self.trace = 0
        self.notes: list[tuple[float, str]] = []
        self._max_switches = max_switches
        self._numbers = 0
        self._order = 0
        self._ready: list[Thread] = []
        self._live: set[Thread] = set()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._current: Thread | None = None
        self._failure: BaseException | None = None
        self._ending = False
        self._in_event = False
        self._begins: Thread | None = None
        self.hub: greenlet = getcurrent()

    # For users of a simulation ----------------------------------------------------------------------------------------

    def run(self, main: Callable[[], None]) -> None:
        """Runs ``main`` in its own process until it returns; then kills all other processes.

        Raises:
          The first error of a thread of the history; Deadlock; OutOfTime.
        """
        global _active
        assert _active is None, "one history at a time"
        _active = self
        self.hub = getcurrent()

        def first() -> None:
            main()
            self._finish(None)

        try:
            self.thread(self.process("history"), "main", first).start()
            while not self._ending:
                following, self._begins = self._begins, None
                try:
                    following = following or self._choose()
                except HistoryError as error:
                    self._finish(error)
                else:
                    following.go()
            self._unwind()
        finally:
            _active = None
        if self._failure is not None:
            raise self._failure

    def note(self, what: str) -> None:
        """Adds a line to the notes that are printed with a failure."""
        self.notes.append((self.now, what))

    # Processes and threads --------------------------------------------------------------------------------------------

    def process(self, name: str) -> Process:
        """Creates a process."""
        process = Process(name, sum(other.name == name for other in self.processes), self.now)
        self.processes.append(process)
        return process

    def thread(self, process: Process, name: str, run: Callable[[], None]) -> Thread:
        """Creates a thread of ``process``, to be started."""
        return Thread(self, process, name, run)

    def kill(self, process: Process) -> None:
        """Kills a process. Each of its threads runs only once more, to raise `Killed` and unwind."""
        if process.dead:
            return
        self.note(f"{process} ends")
        process.dead = True
        process.stopped = False
        for thread in process.threads:
            if not thread.ended and thread is not self._current:
                self.make_ready(thread)
        for call in process.on_end:
            call()

    def stop(self, process: Process) -> None:
        """Stops a process, as SIGSTOP does, until `go_on` continues it."""
        if not process.dead and not process.stopped:
            self.note(f"{process} is stopped")
            process.stopped = True

    def go_on(self, process: Process) -> None:
        """Continues a stopped process, as SIGCONT does."""
        if process.stopped:
            self.note(f"{process} continues")
            process.stopped = False

    # For threads of the history ---------------------------------------------------------------------------------------

    @property
    def current(self) -> Thread:
        """The running thread."""
        assert self._current is not None
        return self._current

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Schedules ``call``, which must not block, at a time."""
        self._order += 1
        heapq.heappush(self._events, (when, self._order, call))

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Schedules ``call``, which must not block, after some seconds."""
        self.at(self.now + seconds, call)

    def wait(self, what: str, timeout_s: float | None = None) -> bool:
        """Blocks the running thread until `wake`; returns False after a timeout.

        Raises:
          Killed: the thread's process was killed.
        """
        thread = self.current
        self.check(thread)
        if timeout_s is not None and timeout_s <= 0:
            return False
        thread.waits_for = what
        thread.timed_out = False
        thread.waits += 1
        waiting = thread.waits
        if timeout_s is not None:
            # If the wait ends earlier, this event stays scheduled. Comparing the count of waits prevents the event from
            # ending a later wait of the same thread.
            def over() -> None:
                if thread.waits_for and thread.waits == waiting:
                    thread.timed_out = True
                    self.make_ready(thread)

            self.after(timeout_s, over)
        self._switch(thread)
        return not thread.timed_out

    def wake(self, thread: Thread) -> None:
        """Ends the `wait` of a thread, if the thread still waits."""
        if thread.waits_for:
            self.make_ready(thread)

    def sleep(self, seconds: float) -> None:
        """Blocks the running thread for some seconds of the simulated clock."""
        if seconds > 0:
            self.wait(f"{seconds:g} s to pass", seconds)
        else:
            self.pause(1.0)

    def pause(self, likely: float | None = None) -> None:
        """Marks a scheduling point: with some probability, another thread runs before this method returns.

        Args:
          likely: the probability; None for the probability of the simulation.

        Raises:
          Killed: the thread's process was killed.
        """
        if self._in_event:
            return
        thread = self.current
        if thread.apart:
            return
        self.check(thread)
        if (self._ready or thread.process.stopped) and self.random.random() < (
            self.preemption if likely is None else likely
        ):
            self.make_ready(thread)
            self._switch(thread)

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Returns a context manager for actions that are no part of the history, such as observations by the test.

        Scheduling points in the block have no effect, so the running thread is not preempted there.
        """
        thread = self.current
        thread.apart, before = True, thread.apart
        try:
            yield
        finally:
            thread.apart = before

    def check(self, thread: Thread) -> None:
        """Raises Killed if the thread's process was killed."""
        if thread.process.dead or self._ending:
            raise Killed

    def is_alive(self) -> bool:
        """Returns whether the running thread's process is alive."""
        return self._in_event or (not self._ending and not self.current.process.dead)

    # For threads themselves -------------------------------------------------------------------------------------------

    def next_number(self) -> int:
        """Returns a unique number for a new thread."""
        self._numbers += 1
        return self._numbers

    def make_ready(self, thread: Thread) -> None:
        """Adds a thread to the threads that can run."""
        thread.waits_for = ""
        self._live.add(thread)
        if not thread.is_ready:
            thread.is_ready = True
            self._ready.append(thread)

    def end_thread(self, thread: Thread) -> None:
        """Records the end of a thread. The hub continues when the thread's greenlet returns."""
        thread.ended = True
        self._live.discard(thread)
        for call in thread.on_end:
            call()

    def fail(self, error: BaseException) -> None:
        """Ends the history with an error."""
        if not self._ending:
            self._finish(error)

    def _finish(self, failure: BaseException | None) -> None:
        """Marks the history as ending. The running thread then unwinds first, and the others after it, one at a time.

        Args:
          failure: the error that ends the history; None without one. The first error is kept.
        """
        if self._failure is None:
            self._failure = failure
        self._ending = True

    def _switch(self, thread: Thread) -> None:
        try:
            following = self._choose()
        except HistoryError as error:
            self._finish(error)
            raise Killed from None
        if following is not thread:
            if following.begun:
                following.go()
            else:
                # Let the hub start the thread. A new greenlet inherits the recursion depth of the greenlet that starts
                # it, so threads that start each other could exceed Python's limit.
                self._begins = following
                self.hub.switch()
            self._current = thread
        self.check(thread)

    def _choose(self) -> Thread:
        """Returns the next thread to run. While no thread is ready, advances the clock and runs the next event."""
        while (thread := self._take_ready()) is None:
            if not self._events:
                raise Deadlock(self.report("no event is left"))
            when, _, call = heapq.heappop(self._events)
            if when > self.horizon_s:
                raise OutOfTime(self.report(f"the history is not over after {self.horizon_s:g} s"))
            self.now = max(self.now, when)
            self._in_event = True
            try:
                call()
            finally:
                self._in_event = False
        self._current = thread
        self.switches += 1
        if self.switches > self._max_switches:
            raise OutOfTime(self.report(f"the history has changed threads {self._max_switches} times"))
        # The checksum includes every switch, so two runs of a seed that differ anywhere have different traces.
        self.trace = hash((self.trace, self.now, thread.number))
        return thread

    def _take_ready(self) -> Thread | None:
        """Removes and returns a random thread that can run; None if none can."""
        ready = self._ready
        if not ready:
            return None
        at = self.random.randrange(len(ready)) if len(ready) > 1 else 0
        if ready[at].process.stopped:
            runs = [place for place, thread in enumerate(ready) if not thread.process.stopped]
            if not runs:
                return None
            at = self.random.choice(runs)
        # The choice is random, so the order of the list does not matter: move the last thread to the free position,
        # which is faster than to shift all threads after it.
        thread, ready[at] = ready[at], ready[-1]
        ready.pop()
        thread.is_ready = False
        return thread

    def _unwind(self) -> None:
        """Ends all threads, one at a time."""
        # Each thread runs once more, and raises Killed at once: so its `finally` blocks run, and its objects are freed.
        for process in self.processes:
            process.dead = True
        while self._live:
            for thread in sorted(self._live, key=_number):
                self._current = thread
                if not thread.ended:
                    thread.go()
                self._live.discard(thread)

    def report(self, what: str) -> str:
        """Formats a message: ``what``, the time, and for each thread its state and its stack."""
        lines = [f"{what}, at {self.now:.3f} s of history {self.seed}"]
        for thread in sorted(self._live, key=_number):
            if not thread.ended and not thread.process.dead:
                state = f"waits for {thread.waits_for}" if thread.waits_for else "can run"
                lines.append(f"  {thread} {'is stopped' if thread.process.stopped else state}\n      {thread.stack()}")
        return "\n".join(lines)


def _number(thread: Thread) -> int:
    return thread.number


_active: Simulation | None = None


def simulation() -> Simulation | None:
    """Returns the simulation that the calling thread is part of; None if there is none."""
    if _active is None:
        return None
    carrier = getcurrent()
    return _active if isinstance(carrier, _Carrier) or carrier is _active.hub else None


def running() -> Simulation:
    """Returns the simulation that the calling thread is part of."""
    found = simulation()
    assert found is not None, "only in a thread of a simulation"
    return found


def me() -> Process:
    """Returns the process of the calling thread."""
    return running().current.process


def describe(notes: Iterable[tuple[float, str]]) -> str:
    """Formats the notes of a history, one per line."""
    return "\n".join(f"  {when:9.3f}  {what}" for when, what in notes)
