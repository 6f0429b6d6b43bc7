"""Histories of clusters at random, and that a history can be told by its number alone.

``make simulate SEEDS=100000`` runs more of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).parents[2]

#: How many histories of each kind.
_HISTORIES = {"graphs": 30, "parameters": 80}


def _begin(kind: str, first: int, count: int, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.simulation.run", kind, str(first), str(count), *options],
        cwd=_REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _end(runs: Sequence[subprocess.Popen[str]]) -> str:
    outputs = [run.communicate()[0] for run in runs]
    assert not any(run.returncode for run in runs), "\n".join(outputs)
    return "".join(outputs)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", _HISTORIES)
def test_histories(kind: str) -> None:
    """Two processes, as a process runs one thread at a time."""
    half = _HISTORIES[kind] // 2
    _end([_begin(kind, first, half, "--step", "2") for first in (0, 1)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", _HISTORIES)
def test_a_history_is_the_same_alone_and_after_others(kind: str) -> None:
    after_others = _begin(kind, 1000, 4, "--traces")
    alone = _begin(kind, 1003, 1, "--traces")
    told = [line for line in _end([alone]).splitlines() if "trace" in line]
    assert told
    assert set(told) <= set(_end([after_others]).splitlines())
