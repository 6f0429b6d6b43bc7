"""Fixtures of the tests of files that need other processes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tf1(tf1_python: Path) -> Callable[..., str]:
    """Returns a function that runs a program of this folder under TensorFlow 1.15 and returns its output: ``tf1(name,
    argument, ...)``.
    """

    def run(name: str, *arguments: object) -> str:
        program = Path(__file__).with_name(name)
        command = [str(tf1_python), "-W", "ignore", str(program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
