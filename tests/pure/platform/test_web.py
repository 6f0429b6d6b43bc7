"""The form for a job and the picture of a cluster, without a browser."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.cluster.telemetry.snapshot import GroupProgress, PeerTraffic, Snapshot, Wait
from headwater.cluster.telemetry.task_activity import TaskActivity, activity_of
from headwater.platform.policy import initial_state
from headwater.platform.records import JobRecord
from headwater.platform.spec import job_from_data, parse_job
from headwater.platform.views import JobView
from headwater.platform.web.forms import DEFAULTS, draft
from headwater.platform.web.picture import BOX_HEIGHT, BOX_WIDTH, draw
from headwater.platform.web.rendering import duration, number

FORM = {**DEFAULTS, "name": "linear", "what": "/train.py"}


def test_a_form_and_its_file_are_the_same_job() -> None:
    made = draft(
        {
            **FORM,
            "args": "--name 'two words' --log {log_dir}",
            "log_dir": "/logs",
            "workers.count": "2:4",
            "workers.gpus": "1",
            "workers.memory": "4GiB",
            "chief.count": "1",
            "chief.cpus": "2.5",
            "env": "A=1\nB=x=y\n",
            "restart.policy": "never",
            "priority": "-5",
        }
    )
    assert made.problems == ()
    assert made.spec == parse_job(made.text)
    assert made.spec == job_from_data(
        {
            "name": "linear",
            "program": "/train.py",
            "args": ["--name", "two words", "--log", "{log_dir}"],
            "log_dir": "/logs",
            "ps": 1,
            "workers": {"count": "2:4", "gpus": 1, "memory": "4GiB"},
            "chief": {"cpus": 2.5},
            "env": {"A": "1", "B": "x=y"},
            "restart": {"policy": "never"},
            "priority": -5,
        }
    )


def test_a_command_is_taken_apart_as_a_shell_does() -> None:
    made = draft({**FORM, "kind": "command", "what": "sh -c 'echo a b'"})
    assert made.spec is not None
    assert made.spec.command == ["sh", "-c", "echo a b"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": "No Name"}, "name"),
        ({"args": "'open"}, "args"),
        ({"workers.count": "many"}, "workers.count"),
        ({"workers.gpus": "-1"}, "workers.gpus"),
        ({"env": "no value"}, "env"),
        ({"what": ""}, ""),
        ({"workdir": "relative\x00"}, "workdir"),
    ],
)
def test_problems_are_reported_by_field(wrong: dict[str, str], field: str) -> None:
    made = draft({**FORM, **wrong})
    assert made.spec is None
    assert field in [problem.field for problem in made.problems]


def view(**fields: Any) -> JobView:
    spec = job_from_data({"name": "a", "command": ["true"], **fields})
    return JobView.of(
        JobRecord(id="a-1", owner="eve", submitted_at=0.0, backend="local", state=initial_state(spec, 0.0))
    )


def test_boxes_do_not_overlap_and_lie_within_the_picture() -> None:
    picture = draw(view(ps=3, workers=20, chief=True, evaluator=True), {})
    assert len(picture.boxes) == 25
    corners = [(box.x, box.y) for box in picture.boxes]
    assert all(0 <= x <= picture.width - BOX_WIDTH and 0 <= y <= picture.height - BOX_HEIGHT for x, y in corners)
    for number_, (x, y) in enumerate(corners):
        assert all(abs(x - u) >= BOX_WIDTH or abs(y - v) >= BOX_HEIGHT for u, v in corners[:number_])
    rows = {box.task.role: box.y for box in picture.boxes}
    assert rows["ps"] < rows["worker"] < rows["evaluator"]


def test_expected_traffic_between_tasks() -> None:
    between = {line.between for line in draw(view(ps=1, workers=2, evaluator=True), {}).lines}
    assert between == {("ps-0", "worker-0"), ("ps-0", "worker-1")}
    mirrored = {line.between for line in draw(view(workers=3), {}).lines}
    assert mirrored == {("worker-0", "worker-1"), ("worker-0", "worker-2"), ("worker-1", "worker-2")}


def test_measured_traffic_between_tasks() -> None:
    activities = {
        "ps-0": TaskActivity(bytes_per_s={"worker-1": (10.0, 20.0)}),
        "worker-1": TaskActivity(bytes_per_s={"ps-0": (25.0, 10.0)}),
    }
    (line,) = draw(view(ps=1, workers=2), activities).lines
    assert (line.between, line.rate) == (("ps-0", "worker-1"), 35.0)


def test_report_of_two_snapshots() -> None:
    def snapshot(at: float, sent: int) -> Snapshot:
        return Snapshot(
            at=at,
            peers=(PeerTraffic(peer="/job:worker/task:1", channels=1, sent=sent, received=0),),
            groups=(
                GroupProgress(name="a", updates=30, staleness=1.0, staleness_max=3),
                GroupProgress(name="b", updates=10, staleness=3.0),
            ),
            waits=(Wait(what="for a", seconds=2.0), Wait(what="for b", seconds=0.1)),
        )

    activity = activity_of(snapshot(10.0, 1000), snapshot(12.0, 3000))
    assert activity.bytes_per_s == {"worker-1": (1000.0, 0.0)}
    assert (activity.staleness, activity.staleness_max, activity.waiting) == (1.5, 3, "for a")
    assert activity_of(None, snapshot(1.0, 5)).bytes_per_s == {}
    assert activity_of(None, Snapshot(at=0.0)).staleness is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "\N{EN DASH}"), (0.4, "0 s"), (61, "1 min 1 s"), (7260, "2 h 1 min"), (90000, "1 d 1 h")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "\N{EN DASH}"), ("nan", "nan"), (12345, "12,345"), (0.123456, "0.1235"), (123456.7, "123,457")],
)
def test_numbers(value: float | str | None, text: str) -> None:
    assert number(value) == text
