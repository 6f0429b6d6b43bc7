"""Headwater without its extras: a cluster trains, and the errors of commands that need an extra name it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLATFORM = ("alembic", "cryptography", "fastapi", "httpx", "jinja2", "sqlalchemy", "sse_starlette", "uvicorn", "yaml")
OTHERS = ("fsspec", "psutil", "psycopg", "psycopg2", "pyarrow")
EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


SITE = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {modules} else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""


def _without(folder: Path, *modules: str) -> dict[str, str]:
    """Returns an environment in which processes cannot import the modules, as if these were not installed."""
    (folder / "sitecustomize.py").write_text(SITE.replace("{modules}", repr(set(modules))))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture
def without_extras(tmp_path: Path) -> dict[str, str]:
    return _without(tmp_path, *PLATFORM, *OTHERS, "keras")


@pytest.fixture
def with_platform_only(tmp_path: Path) -> dict[str, str]:
    return _without(tmp_path, *OTHERS)


def _headwater(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater", *arguments], env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_cluster_trains_without_the_extras(without_extras: dict[str, str], tmp_path: Path) -> None:
    program = [str(EXAMPLES / "linear.py"), "--logdir", str(tmp_path / "log"), "--steps=200"]
    done = _headwater(without_extras, "run", "--ps", "1", "--workers", "2", "--flags", *program)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_job_file_runs_without_a_database_and_a_web_framework(tmp_path: Path) -> None:
    env = _without(tmp_path, *(name for name in PLATFORM if name != "yaml"), *OTHERS)
    (tmp_path / "job.yaml").write_text("name: a\ncommand: [echo, hello]\n")
    done = _headwater(env, "run", "--job", str(tmp_path / "job.yaml"))
    assert (done.returncode, done.stdout) == (0, "[worker 0] hello\n"), done.stderr


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


def test_making_certificates_names_the_extra(without_extras: dict[str, str], tmp_path: Path) -> None:
    done = _headwater(without_extras, "certs", str(tmp_path / "certificates"))
    text = "headwater certs needs cryptography, which is not installed: pip install 'headwater[tls]'\n"
    assert (done.returncode, done.stderr) == (2, text)
    done = _headwater(without_extras, "exec", "-c", "import headwater.cluster.transport.certificates")
    assert done.returncode == 1
    assert "pip install 'headwater[tls]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("module", ["from headwater.keras import ParameterServerStrategy", "headwater.tf.keras.Model"])
def test_a_program_of_keras_names_the_extra(module: str, without_extras: dict[str, str]) -> None:
    done = _headwater(without_extras, "exec", "-c", f"import headwater\n{module}")
    assert done.returncode == 1
    assert "pip install 'headwater[keras]'" in done.stderr.splitlines()[-1]


def test_the_server_names_the_extra_of_its_database(with_platform_only: dict[str, str], tmp_path: Path) -> None:
    for scheme in ("postgresql", "postgresql+psycopg"):
        arguments = ("--data-dir", str(tmp_path / "data"), "--database", f"{scheme}://localhost/jobs", "--port", "0")
        done = _headwater(with_platform_only, "serve", *arguments)
        assert done.returncode == 1
        assert "pip install 'headwater[postgresql]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_url_and_a_file_of_arrow_name_their_extras(without_extras: dict[str, str], tmp_path: Path) -> None:
    done = _headwater(without_extras, "exec", "-c", "import headwater; headwater.tf.gfile.Exists('s3://bucket/file')")
    assert "headwater[urls]" in done.stderr.splitlines()[-1]
    done = _headwater(without_extras, "export", str(tmp_path), str(tmp_path / "rows.arrow"))
    assert done.returncode == 1
    assert "pip install 'headwater[arrow]'" in done.stderr
    assert "Traceback" not in done.stderr
