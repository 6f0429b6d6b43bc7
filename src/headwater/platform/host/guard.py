"""The guard: a process that kills the remaining processes of a job when its launcher has exited for any reason.

The guard is a program of its own, in a session of its own, which imports only lean modules of the standard library. It
waits on a pipe whose other end only the launcher holds. The pipe closes when the launcher ends, even by SIGKILL. Then
the guard kills every process of this user whose environment carries the job's mark (`JOB`), until none is left, and
removes the launcher's temporary folder. Grandchildren in other sessions inherit the mark, too.

Usage: guard.py JOB_ID TEMPORARY_FOLDER
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Mapping

# Processes of a nested job carry both marks, outermost first, separated by a colon.
JOB = "HEADWATER_JOB"

_POLL_MS = 2000


def job_marker(environ: Mapping[str, str], job_id: str) -> str:
    """Returns the value of `JOB` for a process of ``job_id`` whose parent has the environment ``environ``."""
    outer_jobs = environ.get(JOB)
    return f"{outer_jobs}:{job_id}" if outer_jobs else job_id


def processes_of_job(job_id: str) -> list[int]:
    """Returns the ids of all processes with the mark of ``job_id``, except this one."""
    return [
        int(entry)
        for entry in os.listdir("/proc")
        if entry.isdecimal() and int(entry) != os.getpid() and _belongs(int(entry), job_id)
    ]


def end_job(job_id: str) -> None:
    """Kills all processes of ``job_id``, including processes that they start meanwhile; returns when none is left."""
    while processes := processes_of_job(job_id):
        killed = [descriptor for process in processes if (descriptor := _kill(process, job_id)) is not None]
        for descriptor in killed:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            # A process that is stuck in the kernel must not delay killing other processes.
            poll.poll(_POLL_MS)
            os.close(descriptor)


def _belongs(process: int, job_id: str) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:  # the process has exited, or belongs to another user
        return False
    mark = f"{JOB}=".encode()
    return any(
        job_id.encode() in variable[len(mark) :].split(b":") for variable in variables if variable.startswith(mark)
    )


def _kill(process: int, job_id: str) -> int | None:
    """Kills ``process`` and returns a descriptor that becomes readable when it has ended; None if it does not exist."""
    try:
        descriptor = os.pidfd_open(process)
    except OSError:
        return None
    # Checked again: the number may have been reused by another process before the descriptor pinned it.
    if _belongs(process, job_id):
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        except ProcessLookupError:
            pass
        else:
            return descriptor
    os.close(descriptor)
    return None


def _remove(folder: str) -> None:
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError:  # the launcher has removed it
        return


def main() -> None:
    """Waits for the launcher's end, then kills its processes and removes its folder."""
    job_id, folder = sys.argv[1:]
    # Signals that end the launcher must not end the guard, which cleans up after it.
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    end_job(job_id)
    _remove(folder)


if __name__ == "__main__":
    main()
