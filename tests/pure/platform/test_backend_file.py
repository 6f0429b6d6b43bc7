"""The backends of a server, from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.platform.backend_file import load_backends
from headwater.platform.backends.base import BackendError
from headwater.platform.job_file import JobSpecError


def load(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "backends.yaml"
    path.write_text(text)
    backends = load_backends(path, tmp_path)
    names = [backend.name for backend in backends]
    return names


def test_this_machine_alone(tmp_path: Path) -> None:
    (source,) = load_backends(None, tmp_path, local={"cpus": 1, "gpus": None})
    assert source.name == "local"
    backend = source.connect()
    (host,) = backend.capacity().hosts
    assert host.total.cpus == 1
    backend.close()


def test_the_default_is_first(tmp_path: Path) -> None:
    assert load(tmp_path, "local: {cpus: 1}\nssh: {hosts: [{host: a.invalid}]}\ndefault: ssh\n") == ["ssh", "local"]
    assert load(tmp_path, "local:\nssh: {hosts: [{host: a.invalid}]}\n") == ["local", "ssh"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("local: {cpus: lots}\n", "backends.yaml:1: local.cpus: "),
        ("local: {}\nssh:\n  host: a\n", "backends.yaml:3: ssh.host: is not a field of this backend"),
        ("ssh: {hosts: []}\n", "backends.yaml:1: ssh: hosts must name at least one host"),
        ("cloud: {}\n", "backends.yaml:1: cloud: is not a backend; there are local, ssh"),
        ("local: 3\n", "backends.yaml:1: local: must be a mapping"),
        ("local: {}\ndefault: ssh\n", "backends.yaml:2: default: must be one of local"),
        ("default: local\n", "backends.yaml:1: must have at least one of local"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(JobSpecError) as caught:
        load(tmp_path, text)
    assert problem in str(caught.value)


def test_an_engine_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "backends.yaml"
    path.write_text(f"slurm: {{folder: {tmp_path}}}\n")
    # The server starts all the same: it may be there later.
    (source,) = load_backends(path, tmp_path)
    with pytest.raises(BackendError, match="sbatch is not on the PATH"):
        source.connect()
