"""Each state of the page, wide and narrow, light and dark: kept as a picture, and looked through by axe.

The pictures stay in ``build/browser``, or in the folder that ``HEADWATER_ARTIFACTS`` names: ``make screenshots``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_platform import CHROMIUM, PATIENCE_MS, PROGRAM, Watched, expect, overflow, sync_api
from tests.support.platform import Server, server

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")]

AXE = Path(__file__).resolve().parents[1] / "support" / "axe.min.js"
FAILS = "print('reads the data')\nraise ValueError('the labels have 11 classes, the model has 10')\n"
DONE = "for step in range(0, 101, 10):\n    print(f'Step: {step}, loss: {1 / (step + 1):.4f}')\n"
# Trains two tables on 2 ps, in one of which rows come and go, until it is stopped.
TABLES = """
import signal, threading
import numpy as np, optax
from headwater import ParameterServer
from headwater.tables import LeastRecent

ended = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ended.set())
server = ParameterServer({"bias": np.zeros((), np.float32)}, optax.sgd(0.05))
users = server.table("users", dim=16)
items = server.table("items", dim=16, max_rows=1000, eviction=LeastRecent())
rng, step = np.random.default_rng(1), 0
while not ended.is_set():
    keys = rng.zipf(1.2, 256) % 10**7, rng.integers(0, 500 + 20 * step, 256)
    users.push(keys[0], 0.01 * users.lookup(keys[0]))
    items.push(keys[1], 0.01 * items.lookup(keys[1]))
    server.push({"bias": np.zeros((), np.float32)})
    step += 1
    ended.wait(0.05)
"""
SIZES = {"wide": {"viewport": {"width": 1280, "height": 900}}, "narrow": {"viewport": {"width": 390, "height": 844}}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    expect.set_options(timeout=PATIENCE_MS)
    with server(tmp_path_factory.mktemp("platform")) as started:
        yield started


def run(running: Server, folder: Path, name: str, program: str, **fields: Any) -> str:
    path = folder / f"{name}.py"
    path.write_text(program)
    job = {"name": name, "command": [sys.executable, "-u", str(path)], "deadlines": {"grace": 5}, **fields}
    return str(running.client.post("/jobs", job)["id"])


def check(watched: Watched, name: str) -> None:
    """Keeps a picture; nothing sticks out, and nothing is out of reach for somebody who cannot see or point."""
    page = watched.page
    watched.keep(name)
    assert overflow(page) <= 0, name
    if "narrow" in name:  # a table is a list of cards there
        wide = "table => table.scrollWidth > table.clientWidth && table.getAttribute('aria-label')"
        assert not any(page.locator(".table").evaluate_all(f"tables => tables.map({wide})")), name
    assert watched.complaints == [], name
    # What a debugger evaluates is not a script of the page's, so that its policy lets it. Of axe's styles it complains.
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in found["violations"]] == [], name
    watched.complaints.clear()


def test_every_state_can_be_read_and_reached(browser: Any, running: Server, tmp_path: Path) -> None:
    looks = [(size, scheme) for size in SIZES for scheme in ("light", "dark")]
    views = {look: Watched(browser, running.address, color_scheme=look[1], **SIZES[look[0]]) for look in looks}
    for (size, scheme), watched in views.items():
        watched.page.goto("/sign-in")
        check(watched, f"state-sign-in-{size}-{scheme}")
        watched.sign_in(running.token)
        expect(watched.page.get_by_text("There are no jobs yet.")).to_be_visible()
        check(watched, f"state-empty-{size}-{scheme}")
    failed = run(running, tmp_path, "fails", FAILS, restart={"policy": "never"})
    done = run(running, tmp_path, "done", DONE)
    for job_id in (failed, done):
        running.over(job_id)
    trains = run(running, tmp_path, "trains", PROGRAM, ps=1, workers="2:4")
    running.until(trains, lambda job: (job["step"] or 0) > 100)
    recommends = run(running, tmp_path, "recommends", TABLES, ps=2)
    for (size, scheme), watched in views.items():
        page = watched.page
        page.goto("/")
        expect(page.locator("main").get_by_text(trains)).to_be_visible()
        check(watched, f"state-jobs-{size}-{scheme}")
        page.goto(f"/jobs/{failed}")
        cause = page.locator(".cause")
        expect(cause).to_contain_text("the labels have 11 classes, the model has 10")
        expect(cause).to_contain_text("Traceback (most recent call last)")
        # Once in the job's history, too.
        expect(page.locator("#events li").filter(has_text="the labels have 11 classes")).to_have_count(1)
        check(watched, f"state-failed-{size}-{scheme}")
        page.goto(f"/jobs/{trains}")
        expect(page.get_by_role("img", name=re.compile("^Loss: worker-0"))).to_be_visible()
        expect(page.get_by_role("log")).to_contain_text("step 40")
        check(watched, f"state-running-{size}-{scheme}")
        page.get_by_role("button", name="Logs", exact=True).click()
        page.get_by_label("Search").fill("STEP 60 OF")
        expect(page.locator("#log-count")).to_contain_text("with “STEP 60 OF”")
        check(watched, f"state-logs-{size}-{scheme}")
        page.goto(f"/compare?job={done}&job={trains}")
        expect(page.get_by_role("img", name=re.compile("^Loss"))).to_be_visible()
        check(watched, f"state-compare-{size}-{scheme}")
        page.goto("/new")
        check(watched, f"state-new-{size}-{scheme}")
    told = ("rows", "memory, MiB", "found in memory", "rows evicted", "rows looked up/s")
    for size, scheme in (("wide", "dark"), ("narrow", "light")):
        page = views[size, scheme].page
        page.goto(f"/jobs/{recommends}")
        for table in ("users", "items"):
            expect(
                page.get_by_role("img", name=re.compile(f"^table {table}: rows looked up.s: ps-0 .*, ps-1 "))
            ).to_be_visible()
        plotted = [
            caption for caption in page.locator("figcaption").all_text_contents() if caption.startswith("table ")
        ]
        assert [caption.partition(": ")[2] for caption in plotted] == [*told, *told]
        check(views[size, scheme], f"state-tables-{size}-{scheme}")
    page = views["wide", "light"].page
    page.goto("/?q=fail&phase=failed")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_label("Name, id or owner").fill("nothing like it")
    expect(page.get_by_text("No job matches.")).to_be_visible()
    for watched in views.values():
        watched.context.close()
        assert watched.foreign == []
