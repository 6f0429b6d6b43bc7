"""TensorBoard in a real browser: the graph of a run on four towers, its devices, times and histograms.

The screenshots stay in ``build/browser``, or in the folder that ``HEADWATER_ARTIFACTS`` names.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.data.io.example import BytesList, Example, Feature, Features, Int64List
from headwater.data.io.tfrecord import TFRecordWriter
from tests.support.processes import EXEC, Process

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "examples/mnist_towers.py"
CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
TOWERS = [f"tower_{index}" for index in range(4)]
STEPS = 6
PATIENCE_MS = 120_000

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")]


def write_digits(folder: Path, count: int = 200) -> None:
    """Records as ``headwater make-records`` writes them, of squares whose place tells the digit."""
    random = np.random.default_rng(0)
    for part in ("train", "test"):
        with TFRecordWriter(folder / f"{part}.tfrecords") as writer:
            for label in random.integers(10, size=count):
                image = random.integers(60, size=(28, 28), dtype=np.uint8)
                image[2 * label : 2 * label + 6, 2 * label : 2 * label + 6] = 255
                features = {
                    "image_raw": Feature(bytes_list=BytesList(value=[image.tobytes()])),
                    "label": Feature(int64_list=Int64List(value=[int(label)])),
                }
                writer.write(Example(features=Features(feature=features)).SerializeToString())


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log folder of a short run of the example."""
    folder = tmp_path_factory.mktemp("towers")
    write_digits(folder)
    environment = os.environ | {"HEADWATER_VIRTUAL_GPUS": "4", "JAX_PLATFORMS": "cpu"}
    flags = {"data": folder, "logdir": folder / "log", "steps": STEPS, "batch": 8, "summary_every": 2}
    command = [*EXEC, str(PROGRAM), *(f"--{name}={value}" for name, value in flags.items())]
    assert "Test accuracy" in Process(command, environment).succeeds()
    return folder / "log"


@pytest.fixture(scope="module")
def tensorboard(log: Path) -> Iterator[str]:
    """The address of TensorBoard, which shows the log."""
    command = [sys.executable, "-u", "-m", "headwater", "tensorboard", str(log)]
    process = Process([*command, "--host=127.0.0.1", "--port=0", "--load_fast=false"], dict(os.environ))
    try:
        yield process.wait_for(r"http://127\.0\.0\.1:\d+/")[0]
    finally:
        process.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    page.set_default_timeout(PATIENCE_MS)
    yield page
    page.close()


def keep(page: Any, name: str) -> None:
    """Saves what the page shows."""
    folder = Path(os.environ.get("HEADWATER_ARTIFACTS", ROOT / "build/browser"))
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png")


def shape_of(page: Any, name: str) -> Any:
    return page.locator(f'g.node[data-name="{name}"] > g.nodeshape rect').first


def gradient_of(page: Any, name: str) -> list[str]:
    """Colours of a node that is coloured by device, one for each device that its operations are on."""
    stops = page.locator(f"linearGradient#device-{name} stop").evaluate_all(
        "stops => stops.map(stop => stop.getAttribute('stop-color') || stop.style.stopColor)"
    )
    return list(dict.fromkeys(stops))


@pytest.fixture
def graph(page: Any, tensorboard: str) -> Any:
    """A page with the graph, all of it drawn."""
    page.goto(f"{tensorboard}#graphs")
    for name in (*TOWERS, "average", "Adam", "input_producer", "shuffle_batch"):
        page.locator(f'g.node[data-name="{name}"]').first.wait_for(state="visible")
    return page


def test_towers_have_the_colours_of_their_devices(graph: Any) -> None:
    graph.get_by_text("Device", exact=True).click()
    for name in TOWERS:
        sync_api.expect(shape_of(graph, name)).to_have_css("fill", re.compile(f"device-{name}"))
    for device in ("CPU:0", "GPU:0", "GPU:1", "GPU:2", "GPU:3"):
        sync_api.expect(graph.get_by_text(device, exact=True).first).to_be_visible()
    colours = [gradient_of(graph, name) for name in TOWERS]
    assert all(len(found) == 1 for found in colours), colours
    assert len({found[0] for found in colours} | set(gradient_of(graph, "average"))) == 5
    keep(graph, "graph-by-device")


def test_a_tower_opens(graph: Any) -> None:
    tower = graph.locator('g.node[data-name="tower_2"]').first
    tower.dblclick()
    for name in ("conv1", "conv2", "hidden", "logits", "gradients"):
        graph.locator(f'g.node[data-name="tower_2/{name}"]').first.wait_for(state="attached")
    keep(graph, "graph-of-a-tower")


def test_times_of_the_traced_step(graph: Any) -> None:
    graph.locator("paper-dropdown-menu").nth(1).click()
    graph.locator("paper-item", has_text=f"step {STEPS}").first.click()
    graph.get_by_text("Compute time", exact=True).click()
    for name in TOWERS:
        sync_api.expect(shape_of(graph, name)).to_have_css("fill", re.compile(r"rgb\("))
    sync_api.expect(graph.get_by_text("Devices included in stats:")).to_be_visible()
    keep(graph, "graph-by-time")


def test_histograms_of_variables_and_gradients(page: Any, tensorboard: str) -> None:
    page.goto(f"{tensorboard}#histograms")
    for layer in ("conv1", "conv2"):
        for parameter in ("weights_1", "biases_1"):
            card = page.locator("tf-histogram-loader", has_text=f"{layer}/{parameter}")
            card.first.wait_for(state="visible")
            slices = card.locator("vz-histogram-timeseries svg .histogram")
            sync_api.expect(slices).to_have_count(STEPS // 2)
            assert all(
                path.count(",") > 10
                for path in slices.locator("path").evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
            )
    sync_api.expect(page.get_by_text("gradients", exact=True).first).to_be_visible()
    keep(page, "histograms")


def test_pictures_of_digits(page: Any, tensorboard: str) -> None:
    page.goto(f"{tensorboard}#images")
    picture = page.locator("tf-image-loader img").first
    picture.wait_for(state="visible")
    assert picture.evaluate("img => img.decode().then(() => [img.naturalWidth, img.naturalHeight])") == [28, 28]
    keep(page, "images")
