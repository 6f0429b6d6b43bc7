"""Performs the decisions of `headwater.platform.cli.launcher.job`: starts processes, reads pipes, forwards signals.

One thread waits on one selector for everything: output, progress, exits of processes, signals. Events are handled in
the order in which the kernel reports them, and no decision is made here.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import MAX_DATAGRAM, Progress
from headwater.platform.cli.launcher.job import (
    CannotContinueAlone,
    CouldNotStart,
    Ended,
    Event,
    Interrupted,
    JobState,
    LaunchDecision,
    LaunchTick,
    OutputLost,
    Phase,
    Renew,
    Replace,
    Signal,
    Start,
    decide,
    initial_decision,
    label,
)
from headwater.platform.cli.launcher.output import STREAMS, Outlet, TaskLog, make_view
from headwater.platform.cli.launcher.plan import (
    LaunchSettings,
    TaskPlan,
    joining_command,
    joining_environment,
    plan_tasks,
    reserve_address,
)
from headwater.platform.cli.launcher.status import StatusBoard
from headwater.platform.host import guard
from headwater.platform.host.gpus import find_gpus
from headwater.platform.host.lines import LineBuffer
from headwater.platform.host.signals import handling

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STATUS_INTERVAL_S = 0.5
_READ_SIZE = 64 * 1024
_STUCK_CHECK_S = 0.5
# How long the guard may take to kill all processes; it waits only for the kernel.
_GUARD_WAIT_S = 5.0


@dataclass(slots=True)
class _Pipe:
    """The reading end of a pipe of a task's output."""

    task: TaskName
    stream: str
    descriptor: int
    lines: LineBuffer


def launch(settings: LaunchSettings) -> int:
    """Runs the cluster to its end, and returns the exit code of the command.

    Must be called from the main thread: signals arrive there, and tasks die with the thread that started them.

    Raises:
      OSError: the log folder or a port is not available.
    """
    outlet = Outlet(make_view(settings.tasks))
    # The remaining output is shown while signals are still handled, so that a stuck reader cannot block the exit.
    with _signals(outlet) as signals, closing(outlet), ExitStack() as stack:
        if settings.log_dir is not None:
            settings.log_dir.mkdir(parents=True, exist_ok=True)
        logs = {task: stack.enter_context(closing(TaskLog(task, settings.log_dir))) for task in settings.tasks}
        with _prepare(settings, logs, outlet) as shell:
            shell.run(signals)
        # Leaving `_prepare` has killed remaining processes, so no process still holds the writing end of a pipe.
        return shell.finish()


@contextmanager
def _prepare(settings: LaunchSettings, logs: Mapping[TaskName, TaskLog], outlet: Outlet) -> Generator[_Shell]:
    """Yields a job that is ready to run. On exit, everything that belongs to the job is removed, except its output."""
    with ExitStack() as stack:
        folder = tempfile.mkdtemp(prefix="headwater-run-")
        job_id = secrets.token_hex(8)
        stack.enter_context(_guard(job_id, folder))
        status_address = str(Path(folder, "status"))
        status_socket = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        status_socket.setblocking(False)
        status_socket.bind(status_address)
        os.chmod(status_address, 0o600)
        launch_token = secrets.token_hex(32)

        def prepare_tasks() -> tuple[Sequence[TaskPlan], Mapping[TaskName, socket.socket]]:
            sockets = {task: stack.enter_context(reserve_address()) for task in settings.tasks}
            plans = plan_tasks(
                settings,
                sockets,
                job_id=job_id,
                status_address=status_address,
                launch_token=launch_token,
                base_env=os.environ,
                gpus=find_gpus(os.environ),
            )
            return plans, sockets

        shell = _Shell(settings, prepare_tasks, status_socket, logs, outlet)
        # A launcher that fails kills its tasks itself, since the guard could be killed, too.
        stack.callback(shell.kill)
        yield shell


class _Shell:
    def __init__(
        self,
        settings: LaunchSettings,
        prepare_tasks: Callable[[], tuple[Sequence[TaskPlan], Mapping[TaskName, socket.socket]]],
        status_socket: socket.socket,
        logs: Mapping[TaskName, TaskLog],
        outlet: Outlet,
    ) -> None:
        self._prepare_tasks = prepare_tasks
        self._renew()
        self._status_socket = status_socket
        self._logs = logs
        self._outlet = outlet
        self._processes: dict[TaskName, subprocess.Popen[bytes]] = {}
        self._pipes: dict[int, _Pipe] = {}
        self._selector = selectors.DefaultSelector()
        self._board = StatusBoard(tuple(self._plans), time.monotonic())
        self._events: list[Event] = []
        self._settings = settings
        self._decision: LaunchDecision = initial_decision(
            self._plans,
            grace_s=settings.grace_s,
            max_restarts=settings.restarts,
            elastic=settings.most_workers is not None,
        )

    def _renew(self) -> None:
        plans, self._sockets = self._prepare_tasks()
        self._plans = {plan.task: plan for plan in plans}

    @property
    def _state(self) -> JobState:
        return self._decision.state

    def run(self, signals: socket.socket) -> None:
        """Runs until all tasks have ended. ``signals`` receives the number of each signal as a byte."""
        self._selector.register(self._status_socket, selectors.EVENT_READ, self._read_status)
        self._selector.register(signals, selectors.EVENT_READ, partial(self._read_signals, signals))
        self._perform()
        if self._settings.most_workers is not None:
            self._outlet.show_message(f"workers may join: headwater worker --join {self._meeting_point} PROGRAM")
        next_status = time.monotonic()
        while True:
            self._handle(LaunchTick())
            if self._state.phase is Phase.OVER:
                return
            now = time.monotonic()
            if self._outlet.live and now >= next_status:
                self._outlet.status(self._board.render(now))
                next_status = now + _STATUS_INTERVAL_S
            for key, _ in self._selector.select(self._timeout(now, next_status)):
                key.data()
            self._outlet.flush()
            if self._outlet.lost:
                self._read_signals(signals)  # a hangup may be the cause of the loss, and is a more precise reason
                self._handle(OutputLost())

    def kill(self) -> None:
        """Kills the remaining processes."""
        for process in self._processes.values():
            if process.poll() is None:
                _signal_group(process, signal.SIGKILL)
                process.wait()

    def finish(self) -> int:
        """Shows the remaining output, with the first failure last, and returns the exit code."""
        for pipe in list(self._pipes.values()):
            self._drain(pipe)
            self._close_pipe(pipe)
        failure = self._state.failure
        if failure is not None:
            log = self._logs[failure.task]
            where = f" (all of them in {log.path})" if log.path is not None else ""
            last = log.last_lines()
            self._outlet.show_message(
                f"{label(failure.task)} failed: {failure.reason}" + (f"; its last lines{where}:" if last else "")
            )
            for line in last:
                self._outlet.line(failure.task, "stderr", line)
            self._outlet.flush()
        self._selector.close()
        return self._state.exit_code

    def _timeout(self, now: float, next_status: float) -> float | None:
        times = [next_status] if self._outlet.live else []
        if self._state.kill_at is not None:
            times.append(self._state.kill_at)
        return max(0.0, min(times) - now) if times else None

    def _handle(self, event: Event) -> None:
        self._events.append(event)
        while self._events:
            self._decision = decide(self._state, self._events.pop(0), time.monotonic())
            self._perform()

    def _perform(self) -> None:
        if self._decision.reason:
            self._outlet.show_message(self._decision.reason)
        for action in self._decision.actions:
            match action:
                case Start(task):
                    self._start(task)
                case Renew():
                    # All output of the old processes has been shown.
                    for pipe in list(self._pipes.values()):
                        self._close_pipe(pipe)
                    self._renew()
                case Replace(task):
                    for pipe in [pipe for pipe in self._pipes.values() if pipe.task == task]:
                        self._drain(pipe)
                        self._close_pipe(pipe)
                    plan = self._plans[task]
                    self._run(task, joining_command(self._settings, self._meeting_point), joining_environment(plan), ())
                case Signal(task, signum):
                    self._signal(task, signum)

    @property
    def _meeting_point(self) -> str:
        """The address of the first task, through which new workers join."""
        return next(iter(self._plans.values())).address

    def _start(self, task: TaskName) -> None:
        plan = self._plans[task]
        try:
            self._run(task, plan.command, plan.env, (plan.listening,))
        finally:
            # From here on, only the task holds the port, so connections are refused after the task has ended.
            self._sockets[task].close()

    def _run(self, task: TaskName, command: Sequence[str], env: Mapping[str, str], pass_fds: tuple[int, ...]) -> None:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(env),
                pass_fds=pass_fds,
                # Signals of the terminal reach only the launcher, which forwards them in order.
                start_new_session=True,
            )
        except OSError as error:
            self._events.append(CouldNotStart(task, str(error)))
            return
        self._processes[task] = process
        for stream in STREAMS:
            file = getattr(process, stream)
            os.set_blocking(file.fileno(), False)
            pipe = _Pipe(task, stream, file.fileno(), LineBuffer())
            self._pipes[pipe.descriptor] = pipe
            self._selector.register(pipe.descriptor, selectors.EVENT_READ, partial(self._read_pipe, pipe))

    def _signal(self, task: TaskName, signum: signal.Signals) -> None:
        process = self._processes.get(task)
        if process is None or process.poll() is not None:
            return
        if signum == signal.SIGKILL:
            _signal_group(process, signum)
        else:
            process.send_signal(signum)

    def _read_signals(self, signals: socket.socket) -> None:
        try:
            numbers = signals.recv(4096)
        except BlockingIOError:
            numbers = b""
        for number in numbers:
            if number in _ENDING_SIGNALS:
                self._handle(Interrupted(signal.Signals(number)))
        # SIGCHLD means that at least one process has exited, not which.
        for task, process in self._processes.items():
            if task in self._state.running:
                returncode = process.poll()
                if returncode is not None:
                    for pipe in [pipe for pipe in self._pipes.values() if pipe.task == task]:
                        self._drain(pipe)
                    self._handle(Ended(task, returncode))

    def _read_status(self) -> None:
        datagram = self._status_socket.recv(MAX_DATAGRAM)
        progress = Progress.decode(datagram)
        if progress is not None:
            self._board.report(progress, time.monotonic())
            if progress.together and not self._state.together:
                self._handle(CannotContinueAlone())

    def _drain(self, pipe: _Pipe) -> None:
        """Reads the data that an exited process left in the pipe, but no data that its descendants add meanwhile."""
        if self._pipes.get(pipe.descriptor) is not pipe:
            return
        left = fcntl.fcntl(pipe.descriptor, fcntl.F_GETPIPE_SZ)
        while left > 0 and (read := self._read_pipe(pipe)):
            left -= read

    def _read_pipe(self, pipe: _Pipe) -> int:
        """Reads once, so that a task that never pauses does not starve other tasks; returns the number of bytes."""
        if self._pipes.get(pipe.descriptor) is not pipe:  # the pipe was closed after the selector had reported it
            return 0
        try:
            data = os.read(pipe.descriptor, _READ_SIZE)
        except BlockingIOError:
            return 0
        log = self._logs[pipe.task]
        try:
            log.write(data)
        except OSError as error:
            self._outlet.show_message(
                f"the output of {label(pipe.task)} is not written to {log.path}: {error.strerror}"
            )
        self._show_lines(pipe, pipe.lines.feed(data))
        if not data:
            self._close_pipe(pipe)
        return len(data)

    def _close_pipe(self, pipe: _Pipe) -> None:
        if self._pipes.pop(pipe.descriptor, None) is None:
            return
        self._show_lines(pipe, pipe.lines.close())
        self._selector.unregister(pipe.descriptor)
        getattr(self._processes[pipe.task], pipe.stream).close()

    def _show_lines(self, pipe: _Pipe, lines: list[str]) -> None:
        for line in lines:
            self._logs[pipe.task].add(line)
            self._board.add_line(line, time.monotonic())
            self._outlet.line(pipe.task, pipe.stream, line)


def _signal_group(process: subprocess.Popen[bytes], signum: signal.Signals) -> None:
    try:
        os.killpg(process.pid, signum)
    except ProcessLookupError:  # it has just exited
        return


@contextmanager
def _signals(outlet: Outlet) -> Generator[socket.socket]:
    """Yields a socket that receives the number of each signal as a byte; replaces the signals' handlers.

    After a signal has asked the launcher to end, a timer checks that writing output is not stuck. The timer runs from
    the beginning. Otherwise, if a signal arrived just before a blocking write, Python would call its handler only after
    the write. The timer's signal interrupts the write, so that the handler is called.
    """
    ending = False

    def child_ended(_signum: int, _frame: FrameType | None) -> None:
        """Does nothing: a Python handler is required for the signal's number to be written to the socket."""

    def end(_signum: int, _frame: FrameType | None) -> None:
        nonlocal ending
        ending = True

    def check(_signum: int, _frame: FrameType | None) -> None:
        if ending:
            outlet.abort_if_stuck()

    handlers = {signal.SIGCHLD: child_ended, signal.SIGALRM: check}
    # Ignored signals stay ignored: nohup ignores SIGHUP, and shells ignore SIGINT in background jobs.
    handlers |= {signum: end for signum in _ENDING_SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN}
    reading, writing = socket.socketpair()
    with reading, writing:
        reading.setblocking(False)
        writing.setblocking(False)
        with handling(handlers):
            wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
            signal.setitimer(signal.ITIMER_REAL, _STUCK_CHECK_S, _STUCK_CHECK_S)
            try:
                yield reading
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.set_wakeup_fd(wakeup)


@contextmanager
def _guard(job_id: str, folder: str) -> Generator[None]:
    """Runs the guard beside this process (`headwater.platform.host.guard`); on exit, it kills the job's processes."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", guard.__file__, job_id, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        yield
    finally:
        process.stdin.close()
        try:
            process.wait(_GUARD_WAIT_S)
        except subprocess.TimeoutExpired:
            print("headwater run: some processes of the job have survived SIGKILL", file=sys.stderr)
