"""What is said when there is no memory for a tensor."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np

from headwater.errors import ResourceExhaustedError
from headwater.passes.plan import Compute, Host, Instruction

_jax: Any = jax

#: What NumPy and XLA raise when they get no memory; XLA raises the second for other reasons, too.
NO_MEMORY: tuple[type[Exception], ...] = (MemoryError, _jax.errors.JaxRuntimeError)

_WANTED = re.compile(r"allocat\w* ([0-9]+)\s*(?:bytes|B)")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def out_of_memory(error: Exception, task: str, instruction: Instruction) -> ResourceExhaustedError | None:
    """The error that names the task, the operation, its variables, and how many bytes were wanted and are there.

    Args:
      error: one of `NO_MEMORY`.
      task: full name of this task.
      instruction: what could not be carried out.

    Returns:
      The error; None where ``error`` has another reason.
    """
    text = str(error)
    if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in text:
        return None
    there = f"{_text(available_bytes())} are free" if available_bytes() else "it is not known how many are free"
    wanted = _wanted(error, text)
    how_many = f"{_text(wanted)} are wanted" if wanted else "it is not known how many are wanted"
    return ResourceExhaustedError(None, None, f"{task} has no memory for {_what(instruction)}: {how_many}, {there}")


def available_bytes() -> int:
    """How many bytes of memory this machine can still give; 0 where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), 0)
    except OSError:
        return 0


def _what(instruction: Instruction) -> str:
    match instruction:
        case Compute(nodes=nodes) if nodes:
            name, names = nodes[-1].name, {node.refs[at] for node in nodes for at in node.definition.updates}
        case Host(node=node):
            name, names = node.name, set(node.refs.values())
        case _:
            return "a tensor on its way to another task"
    variables = ", ".join(map(repr, sorted(names)))
    return f"operation {name!r}" + (f", which was to change {variables}" if variables else "")


def _wanted(error: Exception, text: str) -> int:
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:  # as NumPy's has
        return int(np.prod(np.array(shape, dtype=object))) * np.dtype(dtype).itemsize
    found = _WANTED.search(text)
    return int(found[1]) if found else 0


def _text(nbytes: int) -> str:
    amount, unit = float(nbytes), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{nbytes} bytes"
