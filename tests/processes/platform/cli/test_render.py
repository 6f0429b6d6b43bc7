"""``headwater render``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

HEADWATER = str(Path(sys.executable).with_name("headwater"))


def render(
    tmp_path: Path, *options: str, job: str = "name: linear\nprogram: train.py\nps: 1\nworkers: 2\n"
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "job.yaml").write_text(job)
    command = [HEADWATER, "render", str(tmp_path / "job.yaml"), *options]
    return subprocess.run(command, capture_output=True, text=True)


def test_manifests_are_printed(tmp_path: Path) -> None:
    done = render(tmp_path, "--image", "mine:1", "--namespace", "team")
    assert done.returncode == 0, done.stderr
    objects = list(yaml.safe_load_all(done.stdout))
    assert [one["kind"] for one in objects] == ["Service", "Job", "Job", "Job"]
    assert {one["metadata"]["namespace"] for one in objects} == {"team"}
    assert objects[1]["spec"]["template"]["spec"]["containers"][0]["image"] == "mine:1"


def test_a_batch_script_is_printed(tmp_path: Path) -> None:
    done = render(tmp_path, "--backend", "slurm", "--folder", "/shared/linear", "--python", "/opt/python")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("#!/bin/bash\n#SBATCH")
    assert "folder=/shared/linear\n" in done.stdout
    assert "/opt/python -P -m" in done.stdout


def test_mistakes_are_named(tmp_path: Path) -> None:
    done = render(tmp_path, job="name: linear\nprogram: train.py\nworker: 2\n")
    assert (done.returncode, "worker" in done.stderr, "line 3" in done.stderr or ":3" in done.stderr) == (2, True, True)
    done = render(tmp_path, job="name: linear\nprogram: train.py\narchive: missing.tar\n")
    assert (done.returncode, "missing.tar" in done.stderr) == (1, True)
