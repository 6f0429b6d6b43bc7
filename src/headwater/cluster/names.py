"""The name of a task."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"/job:(?P<job>[^/]+)(?:/replica:0)?/task:(?P<index>\d+)")


@dataclass(frozen=True, order=True, slots=True)
class TaskName:
    """One task of a cluster.

    Attributes:
      job: the name of the task's job, such as ``"ps"``.
      index: the index of the task in the job, from 0.
    """

    job: str
    index: int

    def __str__(self) -> str:
        return f"/job:{self.job}/task:{self.index}"

    @property
    def device_prefix(self) -> str:
        """The start of the full name of this task's devices."""
        return f"/job:{self.job}/replica:0/task:{self.index}"

    @classmethod
    def parse(cls, name: str) -> TaskName:
        """Parses ``/job:ps/task:0``, with or without ``/replica:0``; raises ValueError for anything else."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"{name!r} is not a task's name, such as '/job:ps/task:0'")
        return cls(match["job"], int(match["index"]))
