"""Headwater without its extras: a cluster trains, and commands that need an extra name it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLATFORM = ("alembic", "fastapi", "httpx", "jinja2", "sqlalchemy", "sse_starlette", "uvicorn", "yaml")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture
def without_extras(tmp_path: Path) -> dict[str, str]:
    """An environment in which the modules of the extras cannot be imported, in no process of a launch."""
    for name in (*PLATFORM, "keras"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('no {name}', name={name!r})\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}


def _headwater(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater", *arguments], env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_cluster_trains_without_the_extras(without_extras: dict[str, str], tmp_path: Path) -> None:
    program = [str(EXAMPLES / "linear.py"), "--logdir", str(tmp_path / "log"), "--steps=200"]
    done = _headwater(without_extras, "run", "--ps", "1", "--workers", "2", "--flags", *program)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("command", [["serve"], ["jobs"], ["submit", "job.yaml"]])
def test_a_command_of_the_platform_names_the_extra(
    command: list[str], without_extras: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text("name: linear\n")
    command = [str(tmp_path / word) if word == "job.yaml" else word for word in command]
    done = _headwater(without_extras, *command)
    assert done.returncode == 2
    assert "pip install 'headwater[platform]'" in done.stderr
    assert "Traceback" not in done.stderr
