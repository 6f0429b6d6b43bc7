"""The platform's page in a real browser: signing in, a job from the form to its end, narrow, dark, by keyboard alone.

The screenshots stay in ``build/browser``, or in the folder that ``HEADWATER_ARTIFACTS`` names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.platform import HEADWATER, Server, server

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = sync_api.expect

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
PATIENCE_MS = 90_000

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")]

# Reports steps and a loss until it is asked to end, and prints what a page must not take for markup.
PROGRAM = """
import json, math, os, signal, threading
from headwater.cluster.telemetry.progress import ProgressReporter

ended = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ended.set())
task = json.loads(os.environ["TF_CONFIG"])["task"]
reporter = ProgressReporter.from_environment(f"/job:{task['type']}/task:{task['index']}")
print("<script>document.title = 'run by a log'</script><img src=x onerror=alert(1)>")
step = 0
while not ended.is_set():
    step += 1
    if task["type"] != "ps":
        reporter.step(step, loss=5.0 * math.exp(-step / 60) + 0.2 + 0.1 * math.sin(step))
    if step % 20 == 0:
        print(f"step {step} of {task['type']}, a line that is too long for a narrow screen")
    ended.wait(0.05)
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of its own."""
    expect.set_options(timeout=PATIENCE_MS)
    with server(tmp_path_factory.mktemp("platform")) as started:
        yield started


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "train.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page of a browser that shares nothing with others; what it asks for and complains of is kept.

    Attributes:
      page: of playwright.
      complaints: errors of scripts and violations of the page's policy.
      foreign: addresses that it asked of somebody else than the server.
    """

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(base_url=address, reduced_motion="reduce", **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        self._host = urlsplit(address).netloc
        self.page.on("request", self._asked)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("dialog", lambda dialog: dialog.accept())

    def _asked(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self._host:
            self.foreign.append(request.url)

    def _said(self, message: Any) -> None:
        # What the server refuses with an error's status is expected where a test tries it.
        refused = ("the server responded with a status of", "Response Status Error Code")
        if message.type == "error" and not any(one in message.text for one in refused):
            self.complaints.append(message.text)

    def keep(self, name: str) -> None:
        """Saves what the page shows."""
        folder = Path(os.environ.get("HEADWATER_ARTIFACTS", ROOT / "build/browser"))
        folder.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=folder / f"platform-{name}.png", full_page=True)

    def sign_in(self, token: str) -> None:
        """By the form, from wherever the page sends those that it does not know."""
        self.page.goto("/")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", name="Jobs")).to_be_visible()


@pytest.fixture
def watched(browser: Any, running: Server, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """A page, wide and light unless the test says otherwise, that must ask nobody else and complain of nothing."""
    options = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light", **getattr(request, "param", {})}
    watched = Watched(browser, running.address, **options)
    yield watched
    watched.context.close()
    assert watched.foreign == []
    assert watched.complaints == []


def submit(running: Server, program: Path, **fields: Any) -> str:
    """Submits a job of `PROGRAM`, not by the page."""
    job = {"name": "train", "command": [sys.executable, str(program)], "deadlines": {"grace": 5}, **fields}
    return str(running.client.post("/jobs", job)["id"])


def overflow(page: Any) -> int:
    """By how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def test_sign_in_requires_a_token(watched: Watched, running: Server) -> None:
    page = watched.page
    page.goto("/new")
    expect(page).to_have_url(re.compile("/sign-in"))
    watched.keep("sign-in")
    page.get_by_label("Token").fill("hw_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This token is not valid.")).to_be_visible()
    page.get_by_label("Token").fill(running.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="New job")).to_be_visible()
    cookies = watched.context.cookies()
    assert {cookie["name"] for cookie in cookies} == {"headwater_session", "headwater_csrf"}
    assert all(cookie["httpOnly"] and cookie["sameSite"] == "Strict" for cookie in cookies)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    # The session has ended at the server, not just in the browser.
    watched.context.add_cookies(cookies)
    page.goto("/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_job_from_the_form_to_its_end(watched: Watched, running: Server, program: Path) -> None:
    page = watched.page
    watched.sign_in(running.token)
    page.get_by_role("link", name="New job").first.click()
    page.get_by_label("Name", exact=True).fill("Not A Name")
    expect(page.locator(".problems")).to_contain_text("name")
    page.get_by_label("Name", exact=True).fill("train")
    page.get_by_label("Run", exact=True).select_option("Any command")
    page.get_by_label("Program, module or command").fill(f"{sys.executable} '{program}'")
    page.get_by_label("Workers: number").fill("2:4")
    page.get_by_label("Parameter servers: memory each").fill("512MiB")
    yaml = page.locator("#yaml")
    expect(yaml).to_have_text(re.compile(r"ps:\s+count: 1\s+memory: 512MiB\s+workers: '2:4'"))
    expect(page.get_by_text("Ready to be submitted")).to_be_visible()
    watched.keep("form")
    page.get_by_role("button", name="Submit").click()

    page.wait_for_url(re.compile(r"/jobs/train-\w+$"))
    job_id = page.url.rpartition("/")[2]
    assert running.job(job_id)["spec"]["ps"]["memory"] == 512 << 20
    expect(page.locator("#picture g.task.running")).to_have_count(3)
    expect(page.locator("#picture line")).to_have_count(2)
    expect(page.get_by_text(re.compile(r"[\d.]+ steps/s")).first).to_be_visible()
    loss = page.get_by_role("img", name=re.compile(r"^Loss: worker-0 [\d.]+, worker-1 [\d.]+$"))
    expect(loss.locator("canvas")).to_have_count(1)
    expect(page.get_by_role("img", name=re.compile("^Memory, MiB"))).to_be_visible()

    log = page.get_by_role("log")
    expect(log).to_contain_text("<script>document.title = 'run by a log'</script><img src=x onerror=alert(1)>")
    assert log.locator("script, img").count() == 0
    expect(page).to_have_title(re.compile("^train . Headwater$"))
    expect(log.get_by_text("step 40 of worker")).to_have_count(2)  # a search finds the lines printed so far
    page.get_by_label("Search").fill("STEP 40 OF WORKER")
    expect(log.locator("div:visible")).to_have_count(2)
    expect(log.locator("mark").first).to_have_text("step 40 of worker")
    expect(page.locator("#log-count")).to_have_text("2 lines with “STEP 40 OF WORKER”")
    page.get_by_label("Search").fill("")
    # However one scrolls away from the end, nothing follows any more.
    expect(page.get_by_label("Follow")).to_be_checked()
    expect(log.get_by_text("step 200 of worker").first).to_be_attached()
    log.evaluate("box => { box.scrollTop = 0; }")
    expect(page.get_by_label("Follow")).not_to_be_checked()
    page.get_by_label("Task", exact=True).select_option("ps-0")
    expect(log.locator(".from").first).to_have_text("ps-0")
    expect(log.get_by_text("worker-0", exact=True)).to_have_count(0)
    page.get_by_label("Task", exact=True).select_option("All")
    watched.keep("job")

    page.get_by_label("Workers", exact=True).fill("3")
    page.get_by_role("button", name="Scale").click()
    expect(page.locator("#picture g.task")).to_have_count(4)
    expect(page.locator("#picture g.task.running")).to_have_count(4)
    expect(page.get_by_label("Task", exact=True).locator("option")).to_have_text(
        ["All", "ps-0", "worker-0", "worker-1", "worker-2"]
    )
    page.get_by_text("As a table").click()
    expect(page.locator("#tasks").get_by_role("rowheader", name="worker-2")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#facts > div .state")).to_have_text("stopped")
    values_zoom_and_smoothing(page)
    # It was open before the part of the page was fetched anew, again and again.
    expect(page.locator("#tasks").get_by_role("rowheader", name="worker-2")).to_be_visible()
    expect(page.locator("#events")).to_contain_text("stop")
    watched.keep("job-stopped")
    page.get_by_role("button", name="Restart").click()
    expect(page.locator("#picture g.task.running")).to_have_count(4)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#facts > div .state")).to_have_text("stopped")
    page.get_by_role("link", name="Jobs", exact=True).click()
    row = page.get_by_role("row", name=re.compile(job_id))
    expect(row).to_contain_text("stopped")
    row.get_by_role("link").click()
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/")
    expect(page.locator("main").get_by_text(job_id)).to_have_count(0)


def test_input_before_the_scripts_are_loaded_counts(watched: Watched, running: Server) -> None:
    page = watched.page
    watched.sign_in(running.token)
    held: list[Any] = []
    page.route("**/static/htmx.min.js", lambda route: held.append(route))
    with page.expect_request("**/static/htmx.min.js"):
        page.goto("/new", wait_until="commit")
    page.get_by_label("Name", exact=True).fill("Not A Name")
    held.pop().continue_()
    expect(page.locator(".problems")).to_contain_text("name")
    expect(page.locator("#yaml")).to_contain_text("name: Not A Name")


def values_zoom_and_smoothing(page: Any) -> None:
    """The plots of a job that is over: values under the pointer, dragged over for a part, smoothed."""
    loss = page.locator("figure").filter(has=page.get_by_text("Loss", exact=True))
    loss.scroll_into_view_if_needed()
    plot = loss.locator(".u-over")
    after, value = (loss.locator(".u-legend .u-value").nth(line) for line in (0, 1))
    box = plot.bounding_box()

    def point(share: float) -> None:
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)

    point(0.01)
    expect(after).to_have_text("0 s")
    expect(value).to_have_text(re.compile(r"^[\d.]+$"))
    # All plots tell of the same moment.
    step = page.locator("figure").filter(has=page.get_by_text("Step", exact=True))
    expect(step.locator(".u-legend .u-value").first).to_have_text("0 s")
    point(0.99)
    last = value.inner_text()
    page.get_by_label("Smoothing").fill("0.9")
    point(0.98)
    expect(value).not_to_have_text(last)
    assert float(value.inner_text()) > float(last)
    page.get_by_label("Smoothing").fill("0")
    point(0.3)
    page.mouse.down()
    point(0.9)
    page.mouse.up()
    point(0.01)
    expect(after).not_to_have_text("0 s")
    plot.dblclick(position={"x": 2, "y": 10})
    point(0.01)
    expect(after).to_have_text("0 s")


def test_a_task_in_the_picture_leads_to_its_log(watched: Watched, running: Server, program: Path) -> None:
    page = watched.page
    job_id = submit(running, program, ps=1, workers=1)
    watched.sign_in(running.token)
    page.goto(f"/jobs/{job_id}")
    page.locator("#picture g.task.running").filter(has_text="ps-0").click()
    expect(page.get_by_label("Task", exact=True)).to_have_value("ps-0")
    log = page.get_by_role("log")
    expect(log).to_be_focused()
    expect(log).to_contain_text("step 20 of ps")
    running.client.post(f"/jobs/{job_id}/stop")


SWEPT = "import sys\nfor step in range(0, 101, 10):\n    print(f'Step: {step}, loss: {float(sys.argv[1][7:]):g}')\n"


def test_jobs_of_a_sweep_are_compared(watched: Watched, running: Server, tmp_path: Path) -> None:
    page = watched.page
    (tmp_path / "swept.py").write_text(SWEPT)
    (tmp_path / "job.yaml").write_text(f"name: swept\ncommand: [{sys.executable}, {tmp_path}/swept.py]\n")
    environ = {**os.environ, "HEADWATER_SERVER": running.address, "HEADWATER_SERVER_TOKEN": running.token}
    command = [*HEADWATER, "submit", str(tmp_path / "job.yaml"), "--set", "rate=0.5,0.25"]
    printed = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[1:] for line in printed[:2]] == [["--rate=0.5"], ["--rate=0.25"]]
    jobs = [line.split()[0] for line in printed[:2]]
    for job_id in jobs:
        assert running.over(job_id)["phase"] == "succeeded"
    watched.sign_in(running.token)
    page.goto(printed[2])
    expect(page.get_by_role("columnheader", name="rate")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile(jobs[0]))).to_contain_text("0.5")
    expect(page.get_by_role("img", name="Loss: rate=0.5 0.5, rate=0.25 0.25")).to_be_visible()
    # The same from the list.
    page.goto("/?q=swept")
    for job_id in jobs:
        page.get_by_label(f"Compare {job_id}").check()
    page.get_by_role("button", name="Compare selected").click()
    expect(page.get_by_role("img", name="Loss: rate=0.5 0.5, rate=0.25 0.25")).to_be_visible()
    page.goto("/compare")
    expect(page.get_by_role("link", name="All jobs")).to_be_visible()


def test_the_list_of_jobs_is_updated(watched: Watched, running: Server, program: Path) -> None:
    page = watched.page
    watched.sign_in(running.token)
    job_id = submit(running, program, workers=1)
    row = page.get_by_role("row", name=re.compile(job_id))
    expect(row).to_contain_text("running")
    expect(page.locator("#announcements")).to_contain_text(job_id)
    page.get_by_label(f"Compare {job_id}").check()
    with page.expect_response(re.compile("/rows")):
        pass
    watched.keep("jobs")
    running.client.post(f"/jobs/{job_id}/stop")
    expect(row).to_contain_text("stopped")
    expect(page.get_by_label(f"Compare {job_id}")).to_be_checked()


def test_twenty_five_jobs_are_on_a_screen(watched: Watched, running: Server) -> None:
    page = watched.page
    # Each wants the whole machine: one runs, and the others wait and say why.
    cpus = running.client.get("/hosts")[0]["total"]["cpus"]
    asked = {"command": ["sleep", "600"], "workers": {"count": 1, "cpus": cpus}}
    jobs = [running.client.post("/jobs", {"name": f"many-{number}", **asked}) for number in range(25)]
    running.until(str(jobs[-1]["id"]), lambda job: bool(job["reason"]))
    watched.sign_in(running.token)
    page.goto("/?q=many")
    rows = page.locator("#jobs tbody tr")
    expect(rows).to_have_count(25)
    watched.keep("many-jobs")
    # At once: the page may put other rows in their place.
    boxes = rows.evaluate_all("rows => rows.map(row => [row.getBoundingClientRect().bottom, row.offsetHeight])")
    assert [bottom <= 900 for bottom, _ in boxes] == [True] * 25, boxes[-1]
    assert min(height for _, height in boxes) >= 24
    for job in reversed(jobs):
        running.client.post(f"/jobs/{job['id']}/stop")


def test_content_security_policy(browser: Any, running: Server) -> None:
    watched = Watched(browser, running.address)
    page = watched.page
    watched.sign_in(running.token)
    page.evaluate("""() => {
        window.violated = [];
        document.addEventListener("securitypolicyviolation", (event) => violated.push(event.effectiveDirective));
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
        const handler = document.createElement("p");
        handler.setAttribute("onclick", "window.ran = true");
        document.body.append(handler);
        handler.click();
        const image = new Image();
        image.src = "http://127.0.0.1:1/picture.png";
        return fetch("http://127.0.0.1:1/secret").catch(() => {});
    }""")
    page.wait_for_function("violated.length >= 4")
    assert set(page.evaluate("violated")) == {"script-src-elem", "script-src-attr", "img-src", "connect-src"}
    assert page.evaluate("window.ran") is None
    watched.context.close()


def test_viewer_sees_no_actions(watched: Watched, running: Server, program: Path) -> None:
    page = watched.page
    token = running.client.post("/tokens", {"name": "looker", "role": "view"})["secret"]
    job_id = submit(running, program, workers=1)
    watched.sign_in(token)
    expect(page.get_by_role("link", name="New job")).to_have_count(0)
    page.goto(f"/jobs/{job_id}")
    expect(page.locator("#picture g.task.running")).to_have_count(1)
    assert page.get_by_role("button", name=re.compile("Stop|Restart|Scale|Delete")).count() == 0
    refused = page.evaluate(
        """async (address) => {
            const headers = JSON.parse(document.body.getAttribute("hx-headers"));
            return (await fetch(address, { method: "POST", headers })).status;
        }""",
        f"/jobs/{job_id}/stop",
    )
    assert refused == 403
    assert running.job(job_id)["phase"] == "running"
    running.client.post(f"/jobs/{job_id}/stop")


def test_changes_need_the_pages_own_secret(watched: Watched, running: Server, program: Path) -> None:
    watched.sign_in(running.token)
    job_id = submit(running, program, workers=1)
    without = watched.page.evaluate(
        "async (address) => (await fetch(address, { method: 'POST', redirect: 'manual' })).type", f"/jobs/{job_id}/stop"
    )
    assert without == "opaqueredirect"
    assert running.job(job_id)["phase"] not in ("ending", "stopped")
    running.client.post(f"/jobs/{job_id}/stop")


NARROW = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
DARK = {"color_scheme": "dark"}


@pytest.mark.parametrize(
    "watched",
    [pytest.param(NARROW, id="light"), pytest.param({**NARROW, **DARK}, id="dark", marks=pytest.mark.long)],
    indirect=True,
)
def test_on_a_telephone(watched: Watched, running: Server, program: Path, request: pytest.FixtureRequest) -> None:
    page, name = watched.page, request.node.callspec.id
    job_id = submit(running, program, ps=2, workers=3)
    watched.sign_in(running.token)
    expect(page.locator("main").get_by_text(job_id)).to_be_visible()
    for address, seen in (("/", "Jobs"), ("/new", "New job"), (f"/jobs/{job_id}", "train")):
        page.goto(address)
        expect(page.get_by_role("heading", name=seen).first).to_be_visible()
        if seen == "train":
            expect(page.locator("#picture g.task.running")).to_have_count(5)
            expect(page.get_by_role("img", name=re.compile("^Loss"))).to_be_visible()
        assert overflow(page) <= 0, address
        watched.keep(f"narrow-{name}-{seen.replace(' ', '-').lower()}")
    running.client.post(f"/jobs/{job_id}/stop")


# The contrast of two colours as WCAG 2 defines it, of every text on the page against what is behind it.
CONTRASTS = """() => {
    const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map((part) => part / 255)
            .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if (!colour.startsWith("rgba(")) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const says = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const texts = [...document.querySelectorAll("body *")].filter(
        (element) => element.checkVisibility() && !element.closest("svg, option, :disabled") && says(element));
    return texts.map((element) => {
        const [one, other] = [getComputedStyle(element).color, behind(element)].map(light);
        const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        return [element.textContent.trim().slice(0, 40), Math.round(contrast * 100) / 100];
    }).filter(([, contrast]) => contrast < 4.5);
}"""


@pytest.mark.parametrize("watched", [{}, DARK], ids=["light", "dark"], indirect=True)
def test_colours_can_be_distinguished(watched: Watched, running: Server, program: Path, request: Any) -> None:
    page, name = watched.page, request.node.callspec.id
    job_id = submit(running, program, workers=2)
    watched.sign_in(running.token)
    for address in ("/", "/new", f"/jobs/{job_id}"):
        page.goto(address)
        if address.startswith("/jobs"):
            expect(page.get_by_role("img", name=re.compile("^Loss"))).to_be_visible()
            expect(page.get_by_role("log")).to_contain_text("step 40")
        assert page.evaluate(CONTRASTS) == [], address
    watched.keep(f"{name}-job")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground))) < 300) == (name == "dark"), ground
    running.client.post(f"/jobs/{job_id}/stop")


def tab_to(page: Any, what: Any) -> None:
    """Presses the key until it is there, with a frame around it that can be seen."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if what.evaluate("element => element === document.activeElement"):
            assert page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2
            return
    raise AssertionError(f"the key does not lead to {what}")


@pytest.mark.parametrize("watched", [NARROW], ids=["narrow"], indirect=True)
def test_program_is_uploaded_as_an_archive(watched: Watched, running: Server, program: Path, tmp_path: Path) -> None:
    page = watched.page
    archive = tmp_path / "program.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.write(program, "inner/train.py")
    watched.sign_in(running.token)
    page.goto("/new")
    chosen, state, yaml = (
        page.get_by_label("Archive with the program"),
        page.locator("#upload-state"),
        page.locator("#yaml"),
    )

    # The key leads to it; what the browser then asks for files with is its own, and opens when it likes.
    tab_to(page, chosen)
    chosen.set_input_files(program)
    expect(state).to_have_text("train.py was rejected: the archive is neither a tar nor a zip file")
    watched.keep("narrow-archive-refused")
    expect(yaml).not_to_contain_text("archive")
    chosen.set_input_files(archive)
    expect(state).to_have_text(re.compile(r"^program\.zip, [\d.]+ (bytes|KiB), is uploaded\.$"))
    expect(yaml).to_contain_text("archive: program.zip")
    tab_to(page, page.get_by_role("button", name="Remove the archive"))
    page.keyboard.press("Enter")
    expect(chosen).to_be_focused()
    expect(yaml).not_to_contain_text("archive")
    most = chosen.get_attribute("data-max-bytes")
    chosen.evaluate("element => { element.dataset.maxBytes = 100; }")
    chosen.set_input_files(archive)
    expect(state).to_contain_text("the maximum is 100 bytes")
    chosen.evaluate("(element, most) => { element.dataset.maxBytes = most; }", most)
    chosen.set_input_files(archive)
    expect(state).to_contain_text("is uploaded")
    for label, text in (("Name", "packed"), ("Program, module or command", f"{sys.executable} train.py")):
        tab_to(page, page.get_by_label(label, exact=True))
        page.keyboard.type(text)
    page.get_by_label("Run", exact=True).select_option("Any command")
    page.get_by_text("Folders and variables").click()
    page.get_by_label("Working folder").fill("inner")
    expect(yaml).to_contain_text("workdir: inner")
    assert overflow(page) <= 0
    watched.keep("narrow-archive")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/jobs/packed-\w+$"))
    expect(page.get_by_role("log")).to_contain_text("step 20 of worker")
    running.client.post(f"/jobs/{page.url.rpartition('/')[2]}/stop")


def test_by_keyboard_alone(watched: Watched, running: Server, program: Path) -> None:
    page = watched.page
    page.goto("/")
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.type(running.token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    watched.keep("keyboard-skip")
    page.keyboard.press("Enter")
    tab_to(page, page.locator("main").get_by_role("link", name="New job"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New job")).to_be_visible()
    for label, text in (
        ("Name", "keys"),
        ("Run", "Any"),
        ("Program, module or command", f"{sys.executable} '{program}'"),
    ):
        tab_to(page, page.get_by_label(label, exact=True))
        page.keyboard.type(text)
    watched.keep("keyboard-form")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/jobs/keys-\w+$"))
    expect(page.locator("#picture g.task.running")).to_have_count(3)
    tab_to(page, page.get_by_role("button", name="Stop"))
    page.keyboard.press("Enter")  # what it asks then is answered with yes
    expect(page.locator("#facts > div .state")).to_have_text("stopped")
    job_id = page.url.rpartition("/")[2]
    tab_to(page, page.get_by_role("button", name="Logs", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Logs", exact=True)).to_have_attribute("aria-pressed", "true")
    tab_to(page, page.get_by_label("Search"))
    page.keyboard.type("step 20 of ps")
    expect(page.locator("#log-count")).to_have_text("1 line with “step 20 of ps”")
    watched.keep("keyboard-logs")
    tab_to(page, page.get_by_role("link", name="Jobs", exact=True))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("Name, id or owner"))
    page.keyboard.type(job_id)
    expect(page.locator("#jobs tbody tr")).to_have_count(1)
    tab_to(page, page.get_by_label(f"Compare {job_id}"))
    page.keyboard.press("Space")
    expect(page.get_by_label(f"Compare {job_id}")).to_be_checked()
    tab_to(page, page.get_by_role("link", name="keys", exact=True))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("button", name="Delete"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/")
    tab_to(page, page.get_by_role("button", name="Sign out"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
