"""Tasks that are killed, restarted or late: detection, messages, and the training afterwards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.processes import Process, processes

PROGRAMS = Path(__file__).with_name("programs")
LOGDIR = "/tmp/train_logs"

pytestmark = pytest.mark.slow


def newest_step(process: Process) -> int:
    """Returns the last step that a process has printed, or 0."""
    found = re.findall(r"^[Ss]tep:? (\d+)", process.output, re.MULTILINE)
    return int(found[-1]) if found else 0


def wait_for_step(process: Process, wanted: int) -> int:
    """Waits until a process prints a step of at least ``wanted``; returns the step."""
    at = 0
    while True:
        lines = process.line_count()
        step = int(process.wait_for(r"^[Ss]tep:? (\d+)", after=at).group(1))
        if step >= wanted:
            return step
        at = max(at + 1, lines)


def test_a_ps_that_is_lost_and_restarted(tmp_path: Path) -> None:
    with processes(ps=1, worker=1) as cluster:
        program = PROGRAMS / "loop.py"
        worker = cluster.start("worker", 0, program, f"--folder={tmp_path}")
        waiting = worker.wait_for("waits for /job:ps/task:0 at " + cluster.address("ps")).string
        assert "refused" in waiting
        assert "tries without it in" in waiting
        ps = cluster.start("ps", 0, program)
        wait_for_step(worker, 100)
        ps.kill()
        lines = worker.line_count()
        cluster.start("ps", 0, program)
        worker.wait_for(r"^step 100$", after=lines)  # the checkpoint of step 0 was restored


def test_all_shards_are_restored_to_one_step(tmp_path: Path) -> None:
    with processes(ps=2, worker=1) as cluster:
        program = PROGRAMS / "shards.py"
        stays, lost = (cluster.start("ps", index, program) for index in range(2))
        chief = cluster.start("worker", 0, program, f"--folder={tmp_path}", "--steps=10")
        chief.wait_for("devices /job:ps/task:0 /job:ps/task:1")
        wait_for_step(chief, 120)
        lost.kill()
        lines = chief.line_count()
        cluster.start("ps", 1, program)
        chief.wait_for(r"Restored step \d+ from .*model.ckpt", after=lines)
        # The program compares both values in every step.
        wait_for_step(chief, newest_step(chief) + 100)
        assert "Traceback" not in chief.output
        assert list(tmp_path.glob("model.ckpt-*.data-*-of-00002"))
        assert stays.terminate() == 0


def test_the_first_program(shared: Path, tmp_path: Path) -> None:
    text = (shared / "programs" / "linear_ps.py").read_text()
    assert text.count(LOGDIR) == 1
    logdir = tmp_path / "logs"
    program = tmp_path / "linear_ps.py"
    program.write_text(text.replace(LOGDIR, str(logdir)))  # tests write only to their own folders
    with processes(ps=1, worker=2) as cluster:
        ps = cluster.start("ps", 0, program)
        chief = cluster.start("worker", 0, program)
        worker = cluster.start("worker", 1, program)
        wait_for_step(chief, 200)
        wait_for_step(worker, 200)

        worker.kill()
        wait_for_step(chief, newest_step(chief) + 200)  # the job does not need it
        worker = cluster.start("worker", 1, program)
        wait_for_step(worker, newest_step(chief))

        chief.kill()
        before = newest_step(worker)
        wait_for_step(worker, before + 200)
        assert list(logdir.glob("model.ckpt-*.index"))
        chief = cluster.start("worker", 0, program)
        wait_for_step(chief, before)  # the variables stayed on the ps throughout
        assert (logdir / "checkpoint").exists()

        for process in (chief, worker, ps):
            process.terminate()
            assert "Traceback" not in process.output


@pytest.mark.parametrize("program", ["loop.py", "monitored.py"])
def test_a_chief_that_is_asked_to_end_saves_first(program: str, tmp_path: Path) -> None:
    with processes(ps=1, worker=1) as cluster:
        cluster.start("ps", 0, PROGRAMS / program)
        chief = cluster.start("worker", 0, PROGRAMS / program, f"--folder={tmp_path}")
        wait_for_step(chief, 200)
        assert chief.terminate() == -15
        assert "SIGTERM: saving before the end" in chief.output
        assert "Nothing could be saved" not in chief.output
        saved = max(int(path.suffixes[0].partition("-")[2]) for path in tmp_path.glob("model.ckpt-*.index"))
        assert saved >= 200


def test_a_new_chief_continues_with_the_state_of_the_ps(tmp_path: Path) -> None:
    program, folder = PROGRAMS / "monitored.py", f"--folder={tmp_path}"
    with processes(ps=2, worker=2) as cluster:
        for index in range(2):
            cluster.start("ps", index, program)
        chief = cluster.start("worker", 0, program, folder)
        worker = cluster.start("worker", 1, program, folder)
        wait_for_step(worker, 200)
        chief.kill()
        wait_for_step(worker, newest_step(worker) + 1000)
        before = newest_step(worker)
        chief = cluster.start("worker", 0, program, folder)
        kept = int(chief.wait_for(r"still have the state of this training, at step (\d+)").group(1))
        assert kept >= before
        wait_for_step(chief, kept + 200)
        assert "Restored step" not in chief.output
        assert "lost" not in worker.output  # its session continued
        chief.kill()
        lines = worker.line_count()
        chief = cluster.start("worker", 0, program, folder, HEADWATER_RESTORE="always")
        chief.wait_for(r"Restored step \d+ from .*; the parameter servers were at step \d+: \d+ steps are lost")
        wait_for_step(chief, 200)
        worker.wait_for("^step ", after=lines)
