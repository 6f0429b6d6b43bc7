"""Processor time of running processes, and where it goes: read from ``/proc``, divided by what ``perf`` samples.

Timings depend on what else the machine does; processor time of a step hardly does. Where there is no ``perf``, or the
kernel lets it sample nothing, there is the time in user mode and in kernel mode only, which ``/proc`` tells.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PYTHON, DISPATCH, KERNELS, COPIES, KERNEL_MODE, REST = "Python", "dispatch", "kernels", "copies", "kernel mode", "rest"
PLACES = (PYTHON, DISPATCH, KERNELS, COPIES, KERNEL_MODE, REST)
"""Python: the interpreter, NumPy and msgpack. Dispatch: jaxlib, but for its kernels: what XLA compiled, and products
and convolutions of its libraries. Copies: the C library copying, filling, and allocating. Kernel mode: system calls,
faults."""

_SAMPLES_PER_S = 499
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_COPYING = re.compile(
    r"mem(cpy|move|set)|^(_int_|c)?(malloc|free|realloc|calloc)|aligned_alloc|memalign|tcache|unlink_chunk"
)
_KERNEL = re.compile(r"Eigen|ynn_|ynnpack|dnnl|gemm|gebp|PackedMatMul|DotThunk|Convolution")
_LINE = re.compile(r"^\s*([\d.]+)%\s+(\S.*?)\s\s+\[[.k]\]\s+(.*)$")


@dataclass(frozen=True, kw_only=True)
class Times:
    """Processor time of a process since it began, in seconds.

    Attributes:
      user: in user mode.
      system: in kernel mode.
      switches: how often one of its threads has waited and was woken: context switches that it asked for.
    """

    user: float = 0.0
    system: float = 0.0
    switches: float = 0.0

    @property
    def total(self) -> float:
        return self.user + self.system

    def __sub__(self, before: Times) -> Times:
        return Times(
            user=self.user - before.user, system=self.system - before.system, switches=self.switches - before.switches
        )

    def per(self, steps: float) -> Times:
        """What one of ``steps`` took."""
        return Times(user=self.user / steps, system=self.system / steps, switches=self.switches / steps)


def sum_of(times: Iterable[Times]) -> Times:
    """What several processes used together."""
    found = list(times)
    return Times(
        user=sum(t.user for t in found),
        system=sum(t.system for t in found),
        switches=sum(t.switches for t in found),
    )


def times_of(process: int) -> Times:
    """What a process has used; nothing where this system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        switches = 0
        for thread in Path(f"/proc/{process}/task").iterdir():
            found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (thread / "status").read_text(), re.MULTILINE)
            switches += int(found[1]) if found else 0
    except OSError:
        return Times()
    return Times(user=int(fields[11]) / _TICKS_PER_S, system=int(fields[12]) / _TICKS_PER_S, switches=switches)


def peak_memory(process: int) -> int:
    """The most memory that a process has held, in bytes; 0 where this system does not tell."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return 1024 * int(found[1]) if found else 0


class Sampling:
    """Samples of ``perf`` of some processes, from its making until `shares`."""

    def __init__(self, processes: Sequence[int]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._data = Path(self._folder.name) / "samples"
        self._perf: subprocess.Popen[bytes] | None = None
        if shutil.which("perf"):
            whom = ",".join(str(process) for process in processes)
            command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(_SAMPLES_PER_S), "-p", whom, "-o"]
            self._perf = subprocess.Popen([*command, str(self._data)], stderr=subprocess.DEVNULL)

    def shares(self) -> dict[str, float] | None:
        """Ends the sampling. The share of each of `PLACES` in the processor time; None where nothing was sampled."""
        if self._perf is None:
            return None
        self._perf.terminate()
        self._perf.wait()
        command = ["perf", "report", "--stdio", "-q", "-i", str(self._data), "--sort", "dso,sym", "-w", "60,200"]
        report = subprocess.run(command, capture_output=True, text=True, check=False)
        found: defaultdict[str, float] = defaultdict(float)
        for line in report.stdout.splitlines():
            if match := _LINE.match(line):
                found[place_of(match[2], match[3])] += float(match[1])
        if keep := os.environ.get("BENCH_KEEP_PROFILE"):
            Path(keep).write_text(report.stdout)
        self._folder.cleanup()
        total = sum(found.values())
        return {place: found[place] / total for place in PLACES} if total else None


def place_of(library: str, symbol: str) -> str:
    """Which of `PLACES` a sample of ``perf`` belongs to."""
    library = library.strip()
    if library.startswith("["):
        return KERNEL_MODE if "kernel" in library or "vdso" in library else KERNELS  # "[JIT] tid 1234"
    if _COPYING.search(symbol):
        return COPIES
    if "jax" in library:
        return KERNELS if _KERNEL.search(symbol) else DISPATCH
    if library.startswith(("//anon", "anon", "perf-", "memfd", "libm.")):
        return KERNELS
    if any(name in library for name in ("python", "_multiarray", "msgpack", "libc.", "ld-linux", "libstdc")):
        return PYTHON
    return REST
