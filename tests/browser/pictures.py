"""Makes the pictures of running jobs in the documents: ``headwater status`` of a Keras and a JAX job, and a job's page.

``make pictures`` runs it. Each job has two ``ps`` and two workers, as processes. The page needs a chromium.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import threading
from contextlib import ExitStack, closing
from io import StringIO
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console

from headwater.errors import OpError
from headwater.platform.cli.status import ClusterWatch, render
from tests.browser.test_platform import CHROMIUM
from tests.support.platform import server
from tests.support.processes import Processes, processes

ROOT = Path(__file__).resolve().parents[2]
TOWERS = ("--users=80000", "--items=20000", "--width=16", "--examples=100000", "--batch=256", "--epochs=400")
#: Programs that train until they are told to stop.
JOBS = {
    "keras": ("tests/processes/keras/served.py",),
    "jax": ("tests/processes/ps/learns.py", "--consistency=staleness=4"),
}
COLUMNS = 170
#: Between the two looks of which speeds are told, in seconds.
INTERVAL_S = 2.0


def start(cluster: Processes, program: str, *options: str) -> None:
    """Starts all tasks of a cluster."""
    for job, hosts in cluster.hosts.items():
        for index in range(len(hosts)):
            config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
            cluster.start(job, index, ROOT / program, *options, TF_CONFIG=config)


def status(name: str, target: Path, updates: int) -> None:
    """Writes what ``headwater status`` shows of a job once each ``ps`` has made some updates."""
    with processes(ps=2, worker=2) as cluster, ExitStack() as stack:
        start(cluster, *JOBS[name], stack.enter_context(tempfile.TemporaryDirectory()))
        address = cluster.hosts["ps"][0]
        watch = None
        pause = threading.Event()
        while watch is None or not trains(watch, updates):
            pause.wait(INTERVAL_S)
            if watch is None:
                try:
                    watch = ClusterWatch(address)
                except (OpError, ValueError):  # it does not answer yet
                    continue
                stack.callback(watch.close)
        pause.wait(INTERVAL_S)
        console = Console(record=True, width=COLUMNS, file=StringIO(), highlight=False, force_terminal=True)
        console.print(render(watch.reports()))
        drawn = console.export_svg(title=f"headwater status {address}", unique_id=name)
        # Without the font that would be fetched from elsewhere.
        target.write_text(re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL))


def trains(watch: ClusterWatch, updates: int) -> bool:
    """Whether both workers take part and each ``ps`` has made ``updates``."""
    groups = [group for report in watch.reports() if report.snapshot for group in report.snapshot.groups]
    return len(groups) == 2 and all(len(one.workers) == 2 and one.updates >= updates for one in groups)


def page(target: Path) -> None:
    """Writes the page of the Keras job on a server of its own, while it trains."""
    if CHROMIUM is None:
        sys.exit("there is no chromium on the PATH")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = stack.enter_context(server(folder))
        stack.callback(running.end_all)
        program = str(ROOT / "examples" / "keras_two_towers.py")
        job = {"name": "two-towers", "program": program, "args": TOWERS, "ps": 2, "workers": 2}
        number = running.client.post("/jobs", job)["id"]
        running.wait_log(number, "worker-0", "Epoch 15/400")
        browser = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        stack.enter_context(closing(browser))
        shown = browser.new_page(base_url=running.address, viewport={"width": 1280, "height": 1460})
        shown.set_default_timeout(120_000)
        shown.goto("/")
        shown.get_by_label("Token").fill(running.token)
        shown.get_by_role("button", name="Sign in").click()
        shown.get_by_role("heading", name="Jobs").wait_for()
        shown.goto(f"/jobs/{number}")
        for place in ("#plots figure", "#log div", "#picture line.known"):
            shown.locator(place).first.wait_for(state="attached")  # an upright line has no width
        shown.screenshot(path=target)


def main() -> None:
    """Makes all of them, or one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where they go")
    parser.add_argument("--only", choices=[*JOBS, "page"], help="one of them")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    for name, updates in (("keras", 200), ("jax", 1000)):
        if arguments.only in (None, name):
            status(name, folder / f"status-{name}.svg", updates)
    if arguments.only in (None, "page"):
        page(folder / "page-keras.png")


if __name__ == "__main__":
    main()
