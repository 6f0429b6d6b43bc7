"""The command line itself: help, versions, wrong arguments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headwater

HEADWATER = str(Path(sys.executable).with_name("headwater"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HEADWATER, *arguments], capture_output=True, text=True, check=False)


def test_version() -> None:
    assert run("version").stdout == f"{headwater.__version__}\n"


def test_as_a_module() -> None:
    result = subprocess.run([sys.executable, "-m", "headwater", "version"], capture_output=True, text=True, check=False)
    assert result.stdout == f"{headwater.__version__}\n"


def test_help_lists_the_commands() -> None:
    result = run("--help")
    assert result.returncode == 0
    for command in ("exec", "run", "tensorboard", "version"):
        assert command in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "headwater: No such command 'fly'."),
        (["run"], "headwater run: Missing argument"),
        (["run", "--ps", "x", "program.py"], "headwater run: Invalid value for '--ps'"),
        (["version", "--loud"], "headwater version: No such option: --loud"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_completion_knows_the_commands() -> None:
    script = run("--show-completion", "bash").stdout
    assert "_HEADWATER_COMPLETE=complete_bash" in script
