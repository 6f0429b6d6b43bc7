"""``headwater run --job``: runs a job file on this machine without a server."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import signal
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from headwater.cluster.names import TaskName
from headwater.platform.backends.local import LocalBackend, LocalSettings
from headwater.platform.cli.launcher.output import Outlet, PlainView, make_view
from headwater.platform.host.signals import handling
from headwater.platform.job_store import MemoryStore
from headwater.platform.logfiles import Follower, LogLine, in_order
from headwater.platform.manager import Manager, ManagerSettings
from headwater.platform.policy import NotPossible
from headwater.platform.records import JobRecord
from headwater.platform.spec import JobSpec
from headwater.platform.states import AskStop, JobPhase, label

_POLL_INTERVAL_S = 0.2
_PENDING_S = 5.0


class CannotRun(Exception):
    """The job cannot be run here; the message has the reason."""


class JsonView(PlainView):
    """Lines for programs, each a JSON object: ``{"task": ..., "line": ...}`` or ``{"event": ...}``."""

    def line(self, task: TaskName, stream: str, text: str) -> None:
        print(json.dumps({"task": label(task), "line": text}))

    def show_message(self, text: str) -> None:
        print(json.dumps({"event": text}))


def run_job(spec: JobSpec, *, workers: int | None = None, as_json: bool = False) -> int:
    """Runs a job to its end, shows its tasks' output, and returns the exit code of the command.

    The exit code is 0 for a successful job, the first failed task's own for a failed one, 128 + n after signal n. No
    process of the job outlives this process, even if it is killed.

    Raises:
      CannotRun: the job needs a server, or more resources than this machine has.
    """
    if spec.backend not in (None, "local"):
        raise CannotRun(f"backend: {spec.backend} needs a server: headwater serve")
    # Nothing else runs here that could free resources: a job that cannot be placed soon never can.
    deadlines = spec.deadlines.model_copy(update={"pending": _PENDING_S})
    spec = spec.model_copy(update={"backend": None, "deadlines": deadlines})
    # The platform's log messages are shown as notes instead.
    logging.getLogger("headwater.platform").addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory(prefix="headwater-job-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        backend = LocalBackend(LocalSettings(state_dir=folder / "local", outlive=False))
        manager = Manager(MemoryStore(), [backend], ManagerSettings(data_dir=folder, poll_s=_POLL_INTERVAL_S))
        manager.start()
        with closing(manager):
            archive = _archive(spec, manager.settings)
            try:
                record = manager.submit(spec, owner="headwater run", archive=archive, workers=workers)
            except NotPossible as error:
                raise CannotRun(str(error)) from error
            return _watch(manager, record, as_json=as_json)


def _archive(spec: JobSpec, settings: ManagerSettings) -> str | None:
    if spec.archive is None:
        return None
    try:
        with open(spec.archive, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        settings.archive_path(digest).parent.mkdir(parents=True)
        shutil.copyfile(spec.archive, settings.archive_path(digest))
    except OSError as error:
        raise CannotRun(f"archive: {error}") from error
    return digest


def _watch(manager: Manager, record: JobRecord, *, as_json: bool) -> int:
    """Shows output and events of the tasks until the job has ended."""
    outlet = Outlet(JsonView() if as_json else make_view(tuple(record.state.tasks)))
    followers: dict[str, Follower] = {}
    seen = change = 0
    signals: list[int] = []
    try:
        with _stop_signals(signals):
            while True:
                record = manager.job(record.id)
                if outlet.lost:
                    signals.append(signal.SIGPIPE)
                if len(signals) > 1:  # a second signal: stop waiting; the guard kills the remaining processes
                    break
                if signals and record.state.phase is not JobPhase.ENDING and not record.state.phase.over:
                    record = manager.apply_request(record.id, AskStop(signal.Signals(signals[0]).name))
                more = _show_lines(manager, record, followers, outlet)
                for event in manager.store.events(job_id=record.id, after=seen):
                    seen = event.id
                    outlet.show_message(event.note.text)
                outlet.flush()
                if record.state.phase.over and not more:
                    break
                change = manager.store.wait_change(change, 0.0 if more else _POLL_INTERVAL_S)
    finally:
        outlet.close()
    return _exit_code(record, signals)


def _show_lines(manager: Manager, record: JobRecord, followers: dict[str, Follower], outlet: Outlet) -> bool:
    labels = {task.label: name for name, task in record.state.tasks.items()}
    lines_of: dict[str, list[LogLine]] = {}
    for task in labels:
        if task not in followers:
            followers[task] = Follower(manager.settings.log_path(record.id, task))
        lines_of[task] = followers[task].lines()
        if record.state.phase.over and not lines_of[task]:
            lines_of[task] = followers[task].close()
    for task, line in in_order(lines_of):
        outlet.line(labels[task], "stdout", line.text)
    return any(lines_of.values())


def _exit_code(record: JobRecord, signals: list[int]) -> int:
    if signals:
        return 128 + signals[0]
    if record.state.phase is JobPhase.SUCCEEDED:
        return 0
    code = record.state.first.code if record.state.first is not None else None
    return (128 - code if code < 0 else code) if code else 1


@contextmanager
def _stop_signals(received: list[int]) -> Generator[None]:
    """Records signals that ask this process to end, instead of ending it."""

    def record_signal(signum: int, _frame: FrameType | None) -> None:
        received.append(signum)

    with handling(dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), record_signal)):
        yield
