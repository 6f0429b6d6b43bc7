"""Progress of a task parsed from its output, for programs that do not report progress."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from headwater.cluster.telemetry.progress import Progress

#: Environment variable: a regular expression for this task's lines, in place of the default.
PATTERN_VARIABLE = "HEADWATER_PROGRESS_PATTERN"

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
_STEP = re.compile(r"\b(?:global[ _]?)?step\b['\"]?\s*[:=#]?\s*(\d+)\b", re.IGNORECASE)
_LOSS = re.compile(rf"\bloss\b['\"]?\s*(?:is\b|[:=])?\s*[\[(]*\s*({_NUMBER})", re.IGNORECASE)
_GROUPS = ("step", "loss")
# Limit the searched characters of a line: an expression may take long for a long line.
_MAX_SEARCHED = 2000


@dataclass(frozen=True, slots=True)
class PrintedProgress:
    """The step and the loss in a printed line; each None if the line has none."""

    step: int | None
    loss: float | None


def read_line(line: str) -> PrintedProgress | None:
    """Finds a step, and a loss beside it, in a line such as ``Step: 100, loss: 0.25``; None if it has no step."""
    step = _STEP.search(line, 0, _MAX_SEARCHED)
    if step is None:
        return None
    loss = _LOSS.search(line, 0, _MAX_SEARCHED)
    return PrintedProgress(int(step[1]), float(loss[1]) if loss else None)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compiles the regular expression of a job, which has a group ``step``, ``loss``, or both.

    Raises:
      ValueError: the expression is invalid, or has no such group.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    if not compiled.groupindex.keys() & set(_GROUPS):
        raise ValueError("must have a group (?P<step>...) or (?P<loss>...), or both")
    return compiled


def read_with(pattern: re.Pattern[str], line: str) -> PrintedProgress | None:
    """Searches ``line`` with ``pattern``; returns None if it does not match, or its groups hold no numbers."""
    match = pattern.search(line, 0, _MAX_SEARCHED)
    if match is None:
        return None
    groups = match.groupdict()
    step, loss = _number(groups.get("step")), _number(groups.get("loss"))
    if step is None and loss is None:
        return None
    return PrintedProgress(int(step) if step is not None and math.isfinite(step) else None, loss)


class TaskProgress:
    """The progress of one task, from its reports and printed lines; reports take precedence.

    Args:
      environment: the task's environment, which may have a pattern for its lines. An invalid pattern is ignored.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._pattern: re.Pattern[str] | None = None
        pattern = environment.get(PATTERN_VARIABLE)
        if pattern:
            try:
                self._pattern = compile_pattern(pattern)
            except ValueError:
                self._pattern = None  # set by a user: patterns of job files are checked earlier
        self._steps_reported = self._losses_reported = False
        self.progress = Progress(task="")

    def report(self, datagram: bytes) -> bool:
        """Adds a report of the task; returns whether it was valid."""
        reported = Progress.decode(datagram)
        if reported is None:
            return False
        self._steps_reported = self._steps_reported or reported.step is not None
        self._losses_reported = self._losses_reported or reported.loss is not None
        self.progress = self.progress.merge_later(reported)
        return True

    def line(self, line: str) -> bool:
        """Adds a printed line of the task; returns whether the progress changed."""
        progress = read_line(line) if self._pattern is None else read_with(self._pattern, line)
        if progress is None:
            return False
        before = self.progress
        step = before.step if self._steps_reported or progress.step is None else progress.step
        loss = before.loss if self._losses_reported or progress.loss is None else progress.loss
        self.progress: Progress = replace(before, step=step, loss=loss)
        return self.progress != before


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text.replace(",", "").replace("_", ""))
    except ValueError:
        return None
