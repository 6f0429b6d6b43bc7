"""The page's TensorBoard behind a whole server: access, the requests that TensorBoard receives, and its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.platform import Server, server

pytestmark = pytest.mark.slow
PATIENCE_S = 120.0


@contextmanager
def browser(running: Server) -> Iterator[httpx.Client]:
    """Yields a client with a session, as a browser has."""
    with httpx.Client(base_url=running.address, trust_env=False, timeout=PATIENCE_S) as client:
        answer = client.post("/sign-in", data={"token": running.token, "next": "/new"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/new")
        yield client


def boards(folder: Path) -> list[psutil.Process]:
    """Returns the processes of TensorBoard that show ``folder``."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(folder) in (process.info["cmdline"] or ()) and "tensorboard.main" in process.info["cmdline"]
    ]


def test_the_tensorboard_of_a_job(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with server(tmp_path) as running:
        job_id = running.submit("true", log_dir=str(log))
        without = running.submit("true")
        path = f"/jobs/{job_id}/tensorboard"
        with httpx.Client(base_url=running.address, trust_env=False) as stranger:
            assert stranger.get(f"{path}/").headers["location"].startswith("/sign-in")
        assert boards(log) == []
        with browser(running) as client:
            assert client.get(path).headers["location"] == f"{path}/"
            page = client.get(f"{path}/")
            assert "TensorBoard" in page.text
            assert "headwater_session" not in page.text
            environment = client.get(f"{path}/data/environment").json()
            assert environment["data_location"] == str(log)
            refused = client.get(f"/jobs/{without}/tensorboard/")
            assert refused.status_code == 404
            assert "has no log_dir" in refused.text
        started = boards(log)
        assert started != []
        # The server is killed without a chance to end its TensorBoards.
        running.kill()
        assert psutil.wait_procs(started, PATIENCE_S)[1] == []
        running.start()


def test_a_form_of_another_site_cannot_sign_in(tmp_path: Path) -> None:
    with server(tmp_path) as running, httpx.Client(base_url=running.address, trust_env=False) as client:
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
            assert client.post("/sign-in", data={"token": running.token}, headers=headers).status_code == 403
        for target in ("//evil.example", "https://evil.example", "/\\evil.example", "/\n/evil"):
            answer = client.post("/sign-in", data={"token": running.token, "next": target})
            assert answer.headers["location"] == "/"
        policy = client.get("/sign-in").headers["content-security-policy"]
        assert re.search(r"default-src 'none'.*frame-ancestors 'none'", policy)
        assert "unsafe" not in policy
