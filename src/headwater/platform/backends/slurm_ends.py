"""Interpretation of a Slurm job's end: the states of ``squeue``, as in its manual.

The batch script of `slurm_script` records how its rounds ended (``result-ATTEMPT``), and when it was asked to end
(``asked-ATTEMPT``). Slurm's state tells what happened to the job as a whole, for example that it exceeded its time
limit. If the two disagree, a recorded success takes precedence, otherwise Slurm's state.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Phase = Literal["waiting", "running", "succeeded", "failed", "lost", "preempted", "cancelled"]

_WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "SUSPENDED")
# Slurm checks twice a minute for signals that are due, and sends the signals of the next minute early.
_SIGNAL_LEAD_S = 90.0
# Slurm's reason after a script exited with a code other than 0.
_SCRIPT_FAILED = "NonZeroExitCode"
#: States in which a job has processes.
ALIVE = ("RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "RESIZING", "STOPPED")
_ENDS: dict[str, tuple[Phase, str]] = {
    "TIMEOUT": ("failed", "it ran into its time limit"),
    "DEADLINE": ("failed", "the deadline of its submission has passed"),
    "OUT_OF_MEMORY": ("lost", "it exceeded the memory that it had requested"),
    "NODE_FAIL": ("lost", "one of its nodes failed"),
    "BOOT_FAIL": ("lost", "one of its nodes did not boot"),
    "REVOKED": ("lost", "another cluster took it over"),
    "PREEMPTED": ("preempted", "it was preempted"),
    "CANCELLED": ("cancelled", "it was cancelled"),
}
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class SlurmState:
    """The state of a job in ``squeue``.

    Attributes:
      state: such as ``RUNNING``; empty if Slurm does not know the job.
      why: Slurm's reason for the state; ``None`` (text) without a reason.
      limit_s: the job's time limit, in seconds; None without a limit.
    """

    state: str
    why: str = ""
    limit_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """The time at which a batch script was asked to end.

    Attributes:
      limit_s: the job's time limit at that moment, in seconds; None without a limit.
      used_s: the job's run time at that moment, in seconds.
    """

    limit_s: float | None
    used_s: float

    @staticmethod
    def parse(text: str) -> Asked:
        """Parses the line of the script: ``LIMIT USED``, in the format of ``squeue``."""
        limit, _, used = text.strip().partition(" ")
        return Asked(limit_s=seconds(limit), used_s=seconds(used) or 0.0)


def seconds(text: str) -> float | None:
    """Parses a time of ``squeue``, such as ``1-02:03:04`` or ``2:00``; None for ``UNLIMITED`` and the like."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + rest)


def verdict(
    now: SlurmState, *, number: str, result: int | None, asked: Asked | None, grace_s: float, failure: str
) -> tuple[Phase, str]:
    """Decides the phase of a job and its reason.

    Args:
      now: Slurm's state of the job.
      number: Slurm's job id.
      result: the exit code that the script recorded; None if there is none.
      asked: when the script was asked to end; None if it was not.
      grace_s: how long before the time limit Slurm asks the script to end, in seconds.
      failure: the cause of a failure, as reported by its tasks.

    Returns:
      The phase, as in `JobReport`, and the reason, which may be empty.
    """
    if result == 0:
        return "succeeded", ""
    if now.state in ALIVE:
        # A script that has recorded a failure may still be ending: Slurm reports the end once all processes of the
        # script have ended.
        return "running", ""
    if now.state in _WAITING:
        return "waiting", f"Slurm: {now.why}"
    phase, reason = _ENDS.get(now.state, ("lost", ""))
    if now.state == "TIMEOUT":
        reason += _of(now.limit_s)
    if reason:
        # If the script has recorded a result, it has used up its restarts, and another submission does not help.
        # Without a result, a node failure may have ended the script.
        phase = "failed" if now.state == "OUT_OF_MEMORY" and result is not None else phase
        cause = f"; {failure}" if result is not None and failure else ""
        return phase, f"{reason} (Slurm: {now.state}){cause}"
    if result is not None:
        return "failed", failure or f"the job failed with exit code {result}; see slurm.log in its folder"
    if asked is not None:
        if asked.limit_s is not None and asked.limit_s - asked.used_s <= grace_s + _SIGNAL_LEAD_S:
            return "failed", f"it ran into its time limit{_of(asked.limit_s)}"
        return "preempted", "its script was asked to end by a SIGTERM that this server did not send"
    if not now.state:
        return "lost", f"Slurm knows no job {number}"
    if now.state == "COMPLETED":
        return "succeeded", ""
    why = f"{now.state}, {now.why}" if now.why not in ("", "None") else now.state
    ended = "failed" if now.why == _SCRIPT_FAILED else "lost"
    return ended, f"its batch script ended early (Slurm: {why}); see slurm.log in its folder"


def _of(limit_s: float | None) -> str:
    return f" of {limit_s / 60:g} min" if limit_s is not None else ""
