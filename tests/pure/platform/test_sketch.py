"""Curves of jobs, as notebooks show them."""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree

from headwater.platform.notebook import curves
from headwater.platform.sketch import Curve, sketch

SVG = "{http://www.w3.org/2000/svg}"


def sample(at: float, task: str, step: int | None, loss: Any = None) -> dict[str, Any]:
    return {"at": at, "task": task, "step": step, "loss": loss}


def test_curves_of_a_job_join_its_tasks() -> None:
    samples = [
        sample(100, "ps-0", None),
        sample(101, "worker-0", 10, 4.0),
        sample(102, "worker-1", 12, 2.0),
        sample(111, "worker-1", 22, "nan"),
        sample(125, "worker-0", 5, 1.0),  # the other one has told nothing for long
        sample(131, "worker-0", 9, 1.0),
    ]
    loss, step, workers = curves(samples)
    assert loss.points == ((1, 4.0), (2, 3.0), (25, 1.0), (31, 1.0))
    assert step.points == ((1, 10), (2, 12), (11, 22), (25, 5), (31, 9))
    assert workers.points == ((0.0, 2.0), (10.0, 1.0), (20.0, 1.0))
    assert curves([]) == []


def test_a_sketch_has_an_accessible_label() -> None:
    points = ((0.0, 4.0), (5.0, math.nan), (10.0, 2500.0))
    picture = sketch([Curve(name="loss <1>", points=points), Curve(name="none", points=((0.0, math.inf),))])
    root = ElementTree.fromstring(picture)
    assert root.get("aria-label") == "Curves of loss <1>"
    assert [text.text for text in root.iter(f"{SVG}text")] == ["loss <1> 2,500 (4 to 2,500)", "0 to 10 s"]
    (line,) = root.iter(f"{SVG}polyline")
    assert line.get("points") == "8.0,102.0 244.0,20.0"
    assert sketch([]) == ""
