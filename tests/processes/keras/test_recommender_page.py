"""The programs and commands of the documentation page about recommenders, on a click log."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from tests.support.pages import blocks
from tests.support.processes import processes

PAGE = "recommenders.md"
FAR = 9007199254740993

pytestmark = pytest.mark.slow


def write_clicks(path: Path) -> None:
    """Writes a click log: users with an even number click on shoes, users with an odd number on hats."""
    rng = np.random.default_rng(0)
    items = [f"{colour} {thing}" for colour in ("red", "blue", "green") for thing in ("shoes", "hat")]
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "item", "clicked"])
        for _ in range(3000):
            user, item = FAR + int(rng.integers(0, 40)), items[rng.integers(0, 6)]
            rows.writerow([user, item, int((user % 2 == 0) == item.endswith("shoes"))])


def test_the_page_leads_from_clicks_to_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train, serve = blocks(PAGE, "python")
    (run,), inspections, (start, curl) = [block.splitlines() for block in blocks(PAGE, "sh")]
    write_clicks(tmp_path / "clicks.csv")
    (tmp_path / "train.py").write_text(train)
    (tmp_path / "serve.py").write_text(serve)
    headwater, python = (sys.executable, "-m", "headwater"), (sys.executable, "-u")
    with processes() as machine:
        trained = machine.run(*headwater, *shlex.split(run)[1:]).succeeds()
        assert float(re.findall(r"accuracy (\d\.\d+)", trained)[-1]) > 0.95
        model, rows = (
            machine.run(*headwater, *shlex.split(line)[1:], COLUMNS="200").succeeds() for line in inspections
        )
        assert re.search(r"dynamic_embedding +table +40 ", model)
        assert re.search(r"clicks/items +table +\d+ +6 ", rows)
        server = machine.run(*python, *shlex.split(start)[1:2], "0")
        place = server.wait_for(r"serves at (http://\S+)")[1]
        path = shlex.split(curl)[1].partition(":8080")[2]
        with urllib.request.urlopen(place + path) as answer:
            best = json.load(answer)
        assert [one["item"].endswith("hat") for one in best] == [True] * 3, best
        with urllib.request.urlopen(f"{place}/?user={FAR + 1}") as answer:
            assert all(one["item"].endswith("shoes") for one in json.load(answer))
        with pytest.raises(urllib.error.HTTPError, match="Name a user"):
            urllib.request.urlopen(place)
