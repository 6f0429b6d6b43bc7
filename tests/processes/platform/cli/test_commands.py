"""The command line itself: help, versions, wrong arguments."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import headwater

HEADWATER = str(Path(sys.executable).with_name("headwater"))


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HEADWATER, *arguments], env=os.environ | environ, capture_output=True, text=True, check=False
    )


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
        (["run"], "headwater run: the program is missing"),
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
    # Without this setting, Typer would search this process's ancestors for the shell.
    script = run("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1").stdout
    assert "_HEADWATER_COMPLETE=complete_bash" in script


def test_certificates_and_how_to_use_them(tmp_path: Path) -> None:
    result = subprocess.run(
        [HEADWATER, "certs", "made here", "--hosts", "a, 10.0.0.1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    variables = dict(shlex.split(line)[1].split("=", 1) for line in result.stdout.splitlines())
    assert variables.keys() == {"HEADWATER_TLS_CA", "HEADWATER_TLS_CERT", "HEADWATER_TLS_KEY"}
    assert all(Path(file).parent == tmp_path / "made here" and Path(file).is_file() for file in variables.values())
    again = run("certs", str(tmp_path / "made here"), "--hosts", "a")
    assert again.returncode == 1
    assert again.stderr.startswith("headwater certs: ")
    assert len(again.stderr.splitlines()) == 1
