"""Searches all that a job's tasks have printed, and hands it out as one file."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from headwater.platform.host.lines import stamp
from headwater.platform.logfiles import all_lines, in_order, search
from headwater.platform.manager import ManagerSettings
from headwater.platform.views import FoundLine, FoundView

#: Where a search goes on: the number of the task in its job, and how far its log was looked through.
CURSOR = r"^\d{1,6}:\d{1,18}$"
# What one request may look through; a client that wants more asks again.
_BUDGET = 256 << 20
_CHARACTERS = 1 << 16


def find_lines(
    settings: ManagerSettings, job_id: str, names: Sequence[str], text: str, *, cursor: str | None, limit: int
) -> FoundView:
    """The lines of a job's tasks that hold ``text``, task after task.

    Args:
      settings: where logs are.
      job_id: the job.
      names: its tasks that are looked through, e.g. ``worker-0``.
      text: part of a line, whatever its case.
      cursor: where to go on; None for the beginning.
      limit: maximum number of lines.
    """
    number, start = map(int, cursor.split(":")) if cursor is not None else (0, 0)
    found: list[FoundLine] = []
    budget = _BUDGET
    while number < len(names):
        path = settings.log_path(job_id, names[number])
        lines, following = search(path, text, start=start, limit=limit - len(found), budget=budget)
        found += [FoundLine(task=names[number], at=line.at, line=line.text, offset=line.offset) for line in lines]
        if following is not None:
            return FoundView(lines=found, cursor=f"{number}:{following}")
        budget -= path.stat().st_size - start if path.exists() else 0
        number, start = number + 1, 0
        if (budget <= 0 or len(found) == limit) and number < len(names):
            return FoundView(lines=found, cursor=f"{number}:0")
    return FoundView(lines=found, cursor=None)


def whole_log(settings: ManagerSettings, job_id: str, names: Sequence[str], *, times: bool) -> Generator[bytes]:
    """All that tasks have printed, in the order of time; with the task before each line where there are several."""
    lines = {name: all_lines(settings.log_path(job_id, name)) for name in names}
    pending: list[bytes] = []
    size = 0
    for name, line in in_order(lines):
        when = stamp(line.at) if times and line.at is not None else b""
        who = f"{name} | ".encode() if len(names) > 1 else b""
        pending.append(when + who + line.text.encode() + b"\n")
        size += len(pending[-1])
        if size >= _CHARACTERS:
            yield b"".join(pending)
            pending, size = [], 0
    yield b"".join(pending)
