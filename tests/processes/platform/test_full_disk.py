"""A full disk below the platform's server: jobs continue, and their ends are recorded once there is room."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.platform.client import ClientError
from tests.support.platform import server
from tests.support.small_disk import SmallDisk, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "16m") as made:
        yield made


def test_jobs_continue_on_a_full_disk(disk: SmallDisk, tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    with server(disk.path) as platform:
        job_id = platform.submit(f"echo begun; read line < {told}; for i in 1 2 3; do echo line $i; done")
        platform.wait_log(job_id, "worker-0", "begun")
        disk.fill()

        def submit_until_refused() -> None:
            for _ in range(1000):  # the database has some room within its file
                platform.submit("echo never")

        with pytest.raises(ClientError, match="the server's disk is full"):
            submit_until_refused()
        assert platform.job(job_id)["phase"] == "running"
        told.write_text("continue\n")
        # The end cannot be recorded yet, but the server still answers.
        assert platform.job(job_id)["phase"] == "running"
        disk.free()
        assert platform.over(job_id)["phase"] == "succeeded"
        assert platform.over(platform.submit("echo again"))["phase"] == "succeeded"
