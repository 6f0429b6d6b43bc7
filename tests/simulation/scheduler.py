"""Deterministic threads: greenlets, of which one runs at a time, on a clock that only jumps.

A `Simulation` runs a history. Its threads belong to processes, which can be stopped, continued and killed. All of them
share one thread of the operating system, so a switch costs about a microsecond, and thousands fit. Whenever a
thread blocks, and now and then when it could, a random generator chooses who runs next; when none can run, the clock
jumps to the next event. When there is no event either, the threads wait for something that cannot come: `Deadlock`.
The same seed gives the same history, to the last switch: `Simulation.trace` shows by a sum that two are the same.
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
    """The process of this thread was killed. What the thread does as it unwinds has no effect any more."""


class HistoryError(AssertionError):
    """A history broke a rule."""


class Deadlock(HistoryError):
    """Every thread waits, and nothing will happen that could wake one."""


class OutOfTime(HistoryError):
    """The history goes on for longer than anything may take: someone waits for something that does not come."""


@dataclass(eq=False)
class Process:
    """A simulated process: threads that are stopped and killed together.

    Attributes:
      name: for people; the same for all lives of a task.
      life: how many processes of that name there were before.
      began: when it did, in seconds of the simulation.
      stopped: whether it gets no processor now.
      dead: whether it has ended, or was killed.
      free_at: when its core has done what it has begun, in seconds of the simulation.
      on_end: called when it ends, by itself or killed.
    """

    name: str
    life: int = 0
    began: float = 0.0
    stopped: bool = False
    dead: bool = False
    free_at: float = 0.0
    on_end: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    threads: list[Thread] = field(default_factory=list["Thread"])

    def __str__(self) -> str:
        return f"{self.name}#{self.life}"


class Thread:
    """A thread of a simulation.

    Attributes:
      process: where it belongs.
      name: for people.
      number: unlike that of any other thread.
      waits_for: what it waits for, in words; empty while it can run.
      ended: whether it has.
      apart: what it does just now is no part of the history.
      locals: what it has of its own of each `threading.local`, by that.
      facade: what a program sees of it; None until it looks.
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
        """Lets it run when its turn comes."""
        self.process.threads.append(self)
        self.simulation.make_ready(self)

    @property
    def begun(self) -> bool:
        """Whether it has run before."""
        return bool(self._carrier)

    def go(self) -> None:
        """The simulation goes on in this thread; returns when it goes on in the one that has called this."""
        self._carrier.switch()

    def stack(self) -> str:
        """Where it is, in Headwater's code."""
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
        except BaseException as error:  # noqa: BLE001 - whatever it is, the history ends with it
            self.simulation.fail(error)
        finally:
            self.simulation.end_thread(self)


class _Carrier(greenlet):
    """What carries a thread of a simulation."""


class Simulation:
    """A history.

    Args:
      seed: decides everything that is left open.
      horizon_s: longest time of a history on its own clock, in seconds.
      preemption: how likely a thread is to be put off at a place where another one could run.
      max_switches: most changes between threads.

    Attributes:
      random: for everything that is left open.
      now: the time, in seconds since the beginning.
      processes: all there were.
      switches: how often another thread went on.
      hub: where the history goes on when a thread has ended.
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

    # For the one who asks for a history -------------------------------------------------------------------------------

    def run(self, main: Callable[[], None]) -> None:
        """Runs ``main`` in a process of its own until it returns; all others are killed then.

        Raises:
          What a thread of the history raised; Deadlock; OutOfTime.
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
        """Adds a line to what is printed with a failure."""
        self.notes.append((self.now, what))

    # Processes and threads --------------------------------------------------------------------------------------------

    def process(self, name: str) -> Process:
        """A new process."""
        process = Process(name, sum(other.name == name for other in self.processes), self.now)
        self.processes.append(process)
        return process

    def thread(self, process: Process, name: str, run: Callable[[], None]) -> Thread:
        """A thread of ``process`` that is yet to be started."""
        return Thread(self, process, name, run)

    def kill(self, process: Process) -> None:
        """Ends a process at once. Its threads go no further."""
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
        """Gives a process no processor until `go_on`."""
        if not process.dead and not process.stopped:
            self.note(f"{process} is stopped")
            process.stopped = True

    def go_on(self, process: Process) -> None:
        """Ends `stop`."""
        if process.stopped:
            self.note(f"{process} goes on")
            process.stopped = False

    # For threads of the history ---------------------------------------------------------------------------------------

    @property
    def current(self) -> Thread:
        """The thread that runs."""
        assert self._current is not None
        return self._current

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Has ``call``, which must not block, called at a time."""
        self._order += 1
        heapq.heappush(self._events, (when, self._order, call))

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Has ``call``, which must not block, called after some seconds."""
        self.at(self.now + seconds, call)

    def wait(self, what: str, timeout_s: float | None = None) -> bool:
        """Blocks the running thread until `wake`; False where the time was over first.

        Raises:
          Killed: its process was.
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

            def over() -> None:
                if thread.waits_for and thread.waits == waiting:
                    thread.timed_out = True
                    self.make_ready(thread)

            self.after(timeout_s, over)
        self._switch(thread)
        return not thread.timed_out

    def wake(self, thread: Thread) -> None:
        """Ends a thread's `wait`, if it is still in it."""
        if thread.waits_for:
            self.make_ready(thread)

    def sleep(self, seconds: float) -> None:
        """Lets time pass."""
        if seconds > 0:
            self.wait(f"{seconds:g} s to pass", seconds)
        else:
            self.pause(1.0)

    def pause(self, likely: float | None = None) -> None:
        """A place where another thread may go first.

        Raises:
          Killed: its process was.
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
        """What the running thread does here is no part of the history: no other thread goes first."""
        thread = self.current
        thread.apart, before = True, thread.apart
        try:
            yield
        finally:
            thread.apart = before

    def check(self, thread: Thread) -> None:
        """Raises Killed in a thread whose process was."""
        if thread.process.dead or self._ending:
            raise Killed

    def lives(self) -> bool:
        """Whether the running thread's process is alive."""
        return self._in_event or (not self._ending and not self.current.process.dead)

    # For threads themselves -------------------------------------------------------------------------------------------

    def next_number(self) -> int:
        """For a new thread."""
        self._numbers += 1
        return self._numbers

    def make_ready(self, thread: Thread) -> None:
        """Lets a thread go on when its turn comes."""
        thread.waits_for = ""
        self._live.add(thread)
        if not thread.is_ready:
            thread.is_ready = True
            self._ready.append(thread)

    def end_thread(self, thread: Thread) -> None:
        """The thread has ended; the hub goes on."""
        thread.ended = True
        self._live.discard(thread)
        for call in thread.on_end:
            call()

    def fail(self, error: BaseException) -> None:
        """Ends the history with an error."""
        if not self._ending:
            self._finish(error)

    def _finish(self, failure: BaseException | None) -> None:
        """The history is over; the running thread unwinds, and only then the others."""
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
            else:  # in the hub: a greenlet begins as deep as the one that it begins in, and Python counts that
                self._begins = following
                self.hub.switch()
            self._current = thread
        self.check(thread)

    def _choose(self) -> Thread:
        """The thread that goes on, after what happens before that."""
        while (thread := self._take_ready()) is None:
            if not self._events:
                raise Deadlock(self.report("nothing will happen any more"))
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
        self.trace = hash((self.trace, self.now, thread.number))
        return thread

    def _take_ready(self) -> Thread | None:
        """A thread that can run, at random; None where none can."""
        ready = self._ready
        if not ready:
            return None
        at = self.random.randrange(len(ready)) if len(ready) > 1 else 0
        if ready[at].process.stopped:
            runs = [place for place, thread in enumerate(ready) if not thread.process.stopped]
            if not runs:
                return None
            at = self.random.choice(runs)
        thread, ready[at] = ready[at], ready[-1]
        ready.pop()
        thread.is_ready = False
        return thread

    def _unwind(self) -> None:
        """Ends all threads, one at a time."""
        for process in self.processes:
            process.dead = True
        while self._live:
            for thread in sorted(self._live, key=_number):
                self._current = thread
                if not thread.ended:
                    thread.go()
                self._live.discard(thread)

    def report(self, what: str) -> str:
        """What the threads of the history wait for."""
        lines = [f"{what}, at {self.now:.3f} s of history {self.seed}"]
        for thread in sorted(self._live, key=_number):
            if not thread.ended and not thread.process.dead:
                state = "stopped" if thread.process.stopped else thread.waits_for or "runs"
                lines.append(f"  {thread} waits for {state}\n      {thread.stack()}")
        return "\n".join(lines)


def _number(thread: Thread) -> int:
    return thread.number


_active: Simulation | None = None


def simulation() -> Simulation | None:
    """The simulation that the calling thread is part of, if any."""
    if _active is None:
        return None
    carrier = getcurrent()
    return _active if isinstance(carrier, _Carrier) or carrier is _active.hub else None


def running() -> Simulation:
    """The simulation that the calling thread is part of."""
    found = simulation()
    assert found is not None, "only in a thread of a simulation"
    return found


def me() -> Process:
    """The process of the calling thread."""
    return running().current.process


def describe(notes: Iterable[tuple[float, str]]) -> str:
    """The notes of a history, a line each."""
    return "\n".join(f"  {when:9.3f}  {what}" for when, what in notes)
