"""Errors for exhausted memory, and a check that refuses programs before they exhaust memory."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headwater.cluster.machine_memory import machine_memory
from headwater.cluster.telemetry.sizes import size_text
from headwater.errors import ResourceExhaustedError
from headwater.lazy_jax import is_loaded, jax

_jax: Any = jax

_WANTED = re.compile(r"allocat\w* ([0-9]+)\s*(?:bytes|B)")


def memory_errors() -> tuple[type[Exception], ...]:
    """Returns the exceptions of NumPy and XLA for exhausted memory. XLA's exception may have other causes, too."""
    return (MemoryError, _jax.errors.JaxRuntimeError) if is_loaded() else (MemoryError,)


def no_memory(
    error: Exception, task: str, what: str, gpu: Mapping[str, int] | None = None
) -> ResourceExhaustedError | None:
    """Returns the error that names the task, the operation that lacks memory, and the requested and the free bytes.

    Args:
      error: one of `memory_errors`.
      task: full name of this task.
      what: the operation that failed.
      gpu: statistics of the GPU's memory if that was exhausted; see
        `headwater.graph.runtime.devices.memory_stats`.

    Returns:
      The error; None if ``error`` has another cause.
    """
    text = str(error)
    if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in text:
        return None
    wanted = _wanted(error, text)
    how_many = f"{size_text(wanted)} were requested" if wanted else "the number of requested bytes is unknown"
    where = " on its GPU" if gpu else ""
    free = size_text(gpu["bytes_limit"] - gpu["bytes_in_use"] if gpu else machine_memory("MemAvailable"))
    return ResourceExhaustedError(f"{task} has no memory{where} for {what}: {how_many}, {free} are free")


class MemoryChecked:
    """A compiled function of arrays. A call is refused if it needs more memory than the machine has.

    Args:
      function: takes arrays and None; the shape of an argument never changes.
      donated: number of leading arguments whose memory the results may take.
    """

    def __init__(self, function: Callable[..., object], donated: int) -> None:
        self._run: Any = _jax.jit(function, donate_argnums=tuple(range(donated)))
        self._checked: set[tuple[bool, ...]] = set()

    def __call__(self, *arguments: object) -> Any:
        """Calls the function.

        Raises:
          MemoryError: see `check_memory`.
        """
        present = tuple([argument is not None for argument in arguments])
        if present not in self._checked:
            compiled = self._run.lower(*arguments).compile()  # the call below uses the cached result
            if _jax.default_backend() == "cpu":
                check_memory(compiled)
            self._checked.add(present)
        return self._run(*arguments)


def check_memory(compiled: Any, gpu: Mapping[str, int] | None = None) -> None:
    """Refuses a program that needs more memory than the machine has, or more GPU memory than this process has.

    If memory is overcommitted, as on Kubernetes nodes, such a program would start, and the system would kill the
    process. On a GPU, the program would fail after it has consumed the donated values of the variables.

    Args:
      compiled: a ``jax.stages.Compiled``.
      gpu: for a program of a GPU, statistics of the GPU's memory, see `headwater.graph.runtime.devices.memory_stats`.

    Raises:
      MemoryError: the program needs more.
    """
    needs = compiled.memory_analysis()
    if needs is None:  # not every backend of JAX reports it
        return
    # Results in donated buffers take no further memory.
    wanted = needs.output_size_in_bytes + needs.temp_size_in_bytes - needs.alias_size_in_bytes
    there = gpu["bytes_limit"] - needs.argument_size_in_bytes if gpu else _memory_of_machine()
    if wanted > there:
        raise MemoryError(f"allocating {wanted} bytes")


@functools.cache
def _memory_of_machine() -> int:
    return machine_memory("MemTotal", "SwapTotal")


def _wanted(error: Exception, text: str) -> int:
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:  # as in NumPy's error
        return int(np.prod(np.array(shape, dtype=object))) * np.dtype(dtype).itemsize
    match = _WANTED.search(text)
    return int(match[1]) if match else 0
