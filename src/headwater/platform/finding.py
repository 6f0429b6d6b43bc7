"""Search in the logs of a job's tasks, and their download as one file."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from headwater.platform.host.lines import stamp
from headwater.platform.logfiles import all_lines, in_order, search
from headwater.platform.manager import ManagerSettings
from headwater.platform.views import FoundLine, FoundView

#: The position at which a search continues: the task's index in the job, and the offset in its log.
CURSOR = r"^\d{1,6}:\d{1,18}$"
# The maximum number of bytes that one request searches; the client continues with further requests.
_BUDGET = 256 << 20
_CHARACTERS = 1 << 16


def find_lines(
    settings: ManagerSettings, job_id: str, names: Sequence[str], text: str, *, cursor: str | None, limit: int
) -> FoundView:
    """Finds the lines of a job's tasks that contain ``text``, task after task.

    Args:
      settings: the settings with the log folder.
      names: the tasks to search the logs of, e.g. ``worker-0``.
      text: part of a line, case-insensitive.
      cursor: where to continue; None to begin.
      limit: maximum number of lines.
    """
    number, start = map(int, cursor.split(":")) if cursor is not None else (0, 0)
    matches: list[FoundLine] = []
    budget = _BUDGET
    while number < len(names):
        path = settings.log_path(job_id, names[number])
        lines, following = search(path, text, start=start, limit=limit - len(matches), budget=budget)
        matches += [FoundLine(task=names[number], at=line.at, line=line.text, offset=line.offset) for line in lines]
        if following is not None:
            return FoundView(lines=matches, cursor=f"{number}:{following}")
        budget -= path.stat().st_size - start if path.exists() else 0
        number, start = number + 1, 0
        if (budget <= 0 or len(matches) == limit) and number < len(names):
            return FoundView(lines=matches, cursor=f"{number}:0")
    return FoundView(lines=matches, cursor=None)


def whole_log(settings: ManagerSettings, job_id: str, names: Sequence[str], *, times: bool) -> Generator[bytes]:
    """Yields the logs of tasks, merged by time; with several tasks, each line begins with the task."""
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
