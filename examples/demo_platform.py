"""Starts the platform's server, submits two jobs, kills a worker, scales from 2 to 3, and saves pictures of the page.

One job is linear.py on a parameter server and two workers, the other keras_mnist.py on two mirrored workers.
``make demo-platform`` runs it; with ``--keep`` the server runs until Ctrl-C. Pictures need playwright and chromium.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from headwater.platform import Client

HERE = Path(__file__).resolve().parent
DATA = "HEADWATER_DATA_DIR"
# With MNIST, and with the fewer digits of scikit-learn.
FEW_EPOCHS, MANY_EPOCHS = ("--epochs", "3"), ("--epochs", "40", "--report", "5")
OVER = ("succeeded", "failed", "stopped")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, str]]:
    """Starts a server on a free port, with its data in ``folder``; returns its address and an administrator's token."""
    command = [sys.executable, "-u", "-m", "headwater", "serve", "--port", "0", "--data-dir", str(folder)]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=log)
        assert process.stdout is not None
        try:
            found = next((match for line in process.stdout if (match := re.search(r"serves at (\S+)", line))), None)
            if found is None:
                sys.exit(f"the server did not start: see {folder}/server.log")
            next(line for line in process.stdout if "Its token is in" in line)
            yield found[1], (folder / "admin.token").read_text().strip()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
            process.stdout.close()


def jobs(folder: Path, steps: int) -> list[dict[str, Any]]:
    """Returns the job files of both jobs."""
    beside = HERE.parent.parent / "shared" / "data"
    digits = os.environ.get(DATA) or (str(beside) if (beside / "mnist").is_dir() else None)
    linear = {
        "name": "linear",
        "program": str(HERE / "linear.py"),
        "flags": True,
        "args": ["--logdir", "{log_dir}", "--steps", str(steps)],
        "log_dir": str(folder / "linear"),
        "ps": 1,
        "workers": "2:3",
    }
    keras = {
        "name": "keras-digits",
        "program": str(HERE / "keras_mnist.py"),
        "args": [
            "--folder",
            "{checkpoint_dir}",
            *(("--epochs", "3") if digits else ("--epochs", "40", "--report", "5")),
        ],
        "checkpoint_dir": str(folder / "keras"),
        "log_dir": str(folder / "keras"),
        "workers": 2,
        **({"data_dir": digits} if digits else {}),
    }
    return [linear, keras]


def until(client: Client, job_id: str, met: Callable[[Any], bool]) -> Any:
    """Polls a job until it is as wanted, or over; returns its last status."""
    job = None
    while job is None or not (met(job) or job["phase"] in OVER):
        with client.stream(f"/jobs/{job_id}/stream") as events:
            for kind, entry in events:
                if kind == "job":
                    job = entry
                    if met(job):
                        break
    return job


def process_of(job_id: str, task: str) -> int:
    """Returns the process of a task, which is identified by its environment."""
    role, _, index = task.rpartition("-")
    for process in psutil.process_iter():
        try:
            environ = process.environ()
            place = json.loads(environ.get("TF_CONFIG", "{}")).get("task")
            if environ.get("HEADWATER_JOB_ID") == job_id and place == {"type": role, "index": int(index)}:
                return process.pid
        except (psutil.Error, ValueError):
            continue
    raise SystemExit(f"there is no process of {task} of {job_id}")


class Pictures:
    """Takes pictures of the web page, if a browser is installed.

    Args:
      stack: closes the browser at its end.
      folder: for the pictures.
      address: of the server.
      token: to sign in with.
    """

    def __init__(self, stack: ExitStack, folder: Path, address: str, token: str) -> None:
        self._folder, self._address = folder, address
        self._pages: dict[str, Any] = {}
        self.taken: list[Path] = []
        if CHROMIUM is None or importlib.util.find_spec("playwright") is None:
            print("no pictures: they need playwright and chromium")
            return
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  only where it is installed

        browser = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        stack.callback(browser.close)
        for name, width, height in (("", 1280, 900), ("-telephone", 390, 844)):
            page = self._pages[name] = browser.new_page(
                base_url=address,
                viewport={"width": width, "height": height},
                color_scheme="dark" if name else None,
            )
            page.set_default_timeout(120_000)
            page.goto("/")
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("heading", name="Jobs").wait_for()

    def take(self, name: str, path: str = "/", *, traffic: bool = False) -> None:
        """Takes two pictures of a page: wide in light mode, and narrow, as on a phone, in dark mode.

        Args:
          name: of the picture.
          path: of the page.
          traffic: wait until it shows the traffic between tasks.
        """
        for suffix, page in self._pages.items():
            page.goto(path)
            if path.startswith("/jobs/"):
                page.locator("#plots figure").first.wait_for()
                page.locator("#log div").first.wait_for()
            if traffic:
                page.locator("#picture line.known").first.wait_for()
            target = self._folder / f"{name}{suffix}.png"
            page.screenshot(path=target, full_page=True)
            self.taken.append(target)


def main() -> None:
    """Runs the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("build/demo-platform"), help="folder for all output; emptied first"
    )
    parser.add_argument("--steps", type=int, default=80000, help="steps of linear.py, of all workers together")
    parser.add_argument("--keep", action="store_true", help="keep the server running until Ctrl-C")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    with ExitStack() as stack:
        address, token = stack.enter_context(serving(folder))
        print(f"{address}  token {token}", flush=True)
        client = stack.enter_context(closing(Client(address, token)))
        submitted = [client.post("/jobs", job)["id"] for job in jobs(folder, arguments.steps)]
        try:
            pictures = Pictures(stack, folder, address, token)
            linear = submitted[0]
            until(client, linear, lambda job: (job["step"] or 0) > 100)
            print(f"{linear} trains", flush=True)
            pictures.take("form", "/new")

            victim = process_of(linear, "worker-1")
            os.kill(victim, signal.SIGKILL)
            print(f"worker-1 of {linear}, process {victim}, was killed", flush=True)
            until(
                client,
                linear,
                lambda job: (
                    all(task["phase"] == "running" for task in job["tasks"])
                    and any(task["name"] == "worker-1" and task["attempt"] for task in job["tasks"])
                ),
            )
            print("worker-1 runs again", flush=True)

            client.post(f"/jobs/{linear}/scale", {"workers": 3})
            until(client, linear, lambda job: any(task["name"] == "worker-2" and task["step"] for task in job["tasks"]))
            print("worker-2 trains, too", flush=True)
            pictures.take("linear", f"/jobs/{linear}", traffic=True)
            pictures.take("jobs")

            ended = [until(client, job_id, lambda job: job["phase"] in OVER) for job_id in submitted]
            pictures.take("keras", f"/jobs/{submitted[1]}")
            summary(ended, pictures.taken)
            if arguments.keep:
                print(f"\n{address} continues until Ctrl-C", flush=True)
                with suppress(KeyboardInterrupt):
                    signal.pause()
        finally:
            for job_id in submitted:
                if client.get(f"/jobs/{job_id}")["phase"] not in OVER:
                    client.post(f"/jobs/{job_id}/stop")
                    until(client, job_id, lambda job: job["phase"] in OVER)
    sys.exit(any(job["phase"] != "succeeded" for job in ended))


def summary(ended: list[Any], pictures: list[Path]) -> None:
    """Prints the results of the jobs."""
    print()
    for job in ended:
        seconds = job["ended_at"] - job["started_at"]
        line = f"{job['id']:20} {job['phase']:10} step {job['step']}, {job['restarts']} restarts, {seconds:.0f} s"
        print(line, job["reason"] if job["phase"] != "succeeded" else "")
    for picture in pictures:
        print(picture)


if __name__ == "__main__":
    begun = time.monotonic()
    try:
        main()
    finally:
        print(f"{time.monotonic() - begun:.0f} s")
