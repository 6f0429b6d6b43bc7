"""Output and progress reports of a job's tasks, and access to the server's records of them."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.platform import HEADWATER, server

pytestmark = pytest.mark.slow


def test_output_and_progress_are_shown_and_private(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    program = tmp_path / "train.py"
    program.write_text(
        "import headwater, os, sys\n"
        "print('iteration 40 error 0.25')\n"
        "headwater.report(step=50, accuracy=0.75)\n"
        "open('made', 'w').close()\n"
        "print(oct(os.stat('made').st_mode & 0o777))\n"
        "print('no end', end='')\n"
    )
    with server(tmp_path) as running:
        job_id = running.client.post(
            "/jobs",
            {
                "name": "told",
                "program": "train.py",
                "workdir": str(tmp_path),
                "progress": {"pattern": r"iteration (?P<step>\d+) error (?P<loss>\S+)"},
            },
        )["id"]
        job = running.over(job_id)
        assert (job["phase"], job["step"], job["loss"]) == ("succeeded", 50, 0.25)
        assert job["tasks"][0]["metrics"] == {"accuracy": 0.75}
        made = subprocess.run(["sh", "-c", "umask"], capture_output=True, text=True, check=True).stdout
        expected = oct(0o666 & ~int(made, 8))
        assert running.log(job_id, "worker-0") == ["iteration 40 error 0.25", expected, "no end"]
        open_to_others = [
            path
            for path in [running.data_dir, *running.data_dir.rglob("*")]
            if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077
        ]
        assert open_to_others == []


def test_a_job_without_a_server_as_json(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("name: a\ncommand: [echo, hello]\n")
    done = subprocess.run([*HEADWATER, "run", "--job", str(job), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '{"task": "worker-0", "line": "hello"}' in done.stdout.splitlines()
    alone = subprocess.run([*HEADWATER, "run", "--json", sys.executable], capture_output=True, text=True)
    assert (alone.returncode, "--json: requires --job" in alone.stderr) == (2, True)


def test_an_archive_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("name: a\nprogram: b.py\narchive: none.tar\n")
    done = subprocess.run([*HEADWATER, "submit", str(job)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"headwater: archive: {tmp_path}/none.tar cannot be read: No such file or directory\n"
