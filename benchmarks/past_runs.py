"""What `make bench` has measured, by commit and kind of machine: one line of JSON a run, in ``past_runs.jsonl``.

Only figures of one kind of machine compare: the same processor and number of cores, Python and JAX. Where both runs had
the peer beside them, its steps in the same minutes tell how fast the machine was then, so ratios to it are compared.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

PAST_RUNS = Path(__file__).with_name("past_runs.jsonl")


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Medians of one case.

    Attributes:
      rate: steps, rows or examples per second.
      processor_us: processor time of a step in all processes, in microseconds; 0 where it was not measured.
      ratio: to the peer's rate in the same run; None without a peer.
    """

    rate: float
    processor_us: float
    ratio: float | None


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of benchmarks.

    Attributes:
      commit: its short hash, with ``+`` where the source differed from it.
      machine: its kind, see `machine_kind`.
      date: year, month and day.
      cases: what was measured, by name.
    """

    commit: str
    machine: str
    date: str
    cases: Mapping[str, Figures]


def machine_kind() -> str:
    """Processor, cores, Python and JAX of this process."""
    about = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    # Virtual machines give processors of several generations one name, so their model's number is part of it.
    found = re.findall(r"^model(?: name)?\s*:\s*(.+)$", about, re.MULTILINE)[:2]
    processor = " ".join(reversed(found)) or platform.processor() or platform.machine()
    python = ".".join(platform.python_version_tuple()[:2])
    return f"{processor}, {os.cpu_count()} cores, Python {python}, JAX {version('jax')}"


def commit() -> str:
    """The commit of this checkout, with ``+`` where the source differs from it; ``unknown`` outside of one."""
    source = Path(__file__).parent.parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=source, check=True, capture_output=True, text=True
        ).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def keep(run: Run, path: Path = PAST_RUNS) -> None:
    """Appends ``run`` to the file."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def newest(case: str, machine: str, path: Path = PAST_RUNS) -> Run | None:
    """The newest run with ``case`` on this kind of machine; None where there is none.

    Raises:
      ValueError: a line of the file is not a run; the error names it.
    """
    lines = path.read_text().splitlines() if path.exists() else []
    for number, line in reversed(list(enumerate(lines, start=1))):
        try:
            fields = json.loads(line)
            cases = {name: Figures(**figures) for name, figures in fields.pop("cases").items()}
            run = Run(**fields, cases=cases)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path}, line {number}, is not a run of benchmarks: {error!r}") from error
        if run.machine == machine and case in run.cases:
            return run
    return None


def compared(now: Figures, case: str, before: Run) -> str:
    """How ``now`` compares with the same case of ``before``."""
    then = before.cases[case]
    words = f"beside {before.commit} ({before.date}): {now.rate / then.rate:.2f} x its rate"
    if now.processor_us and then.processor_us:
        words += f", {now.processor_us / then.processor_us:.2f} x its processor time"
    if now.ratio is not None and then.ratio is not None:
        words += f", {now.ratio / then.ratio:.2f} x its ratio to the peer"
    return words
