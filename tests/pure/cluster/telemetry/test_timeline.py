"""Traces of steps: as TensorFlow's messages, and for Chrome."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from headwater.cluster.telemetry.step_stats import EXECUTABLE, Activity, StepTrace
from headwater.cluster.telemetry.timeline import Timeline
from headwater.errors import InternalError

CPU = "/job:worker/replica:0/task:0/device:CPU:0"
GPU = "/job:worker/replica:0/task:0/device:GPU:0"
PS = "/job:ps/replica:0/task:0/device:CPU:0"


def activity(device: str, name: str, start_us: int, end_us: int, **others: Any) -> Activity:
    return Activity(device=device, name=name, type="Add", start_us=start_us, end_us=end_us, **others)


def traced() -> StepTrace:
    trace = StepTrace()
    trace.add(activity(GPU, "tower/add", 120, 150, inputs=("read:0", "gone:1"), output_bytes=8))
    trace.add(activity(CPU, "read", 100, 110, output_bytes=4))
    trace.add(activity(CPU, "beside", 105, 105))
    return trace


def test_step_stats_are_by_device_and_time() -> None:
    stats = traced().step_stats()
    assert [(device.device, [node.node_name for node in device.node_stats]) for device in stats.dev_stats] == [
        (CPU, ["read", "beside"]),
        (GPU, ["tower/add"]),
    ]
    node = stats.dev_stats[1].node_stats[0]
    assert (node.all_start_micros, node.all_end_rel_micros, node.all_end_rel_nanos) == (120, 30, 30000)
    assert node.timeline_label == "tower/add = Add(read:0, gone:1)"
    assert node.memory[0].total_bytes == 8


def test_activities_without_duration_are_shown() -> None:
    beside = traced().step_stats().dev_stats[0].node_stats[1]
    assert beside.all_end_rel_micros == 1


def test_traces_of_other_tasks_join() -> None:
    other = StepTrace()
    other.add(activity(PS, "apply", 1, 2))
    other.add(activity(CPU, "late", 200, 201))
    trace = traced()
    trace.merge(other.encode(), "/job:ps/task:0")
    assert [device.device for device in trace.step_stats().dev_stats] == [PS, CPU, GPU]
    assert [node.node_name for node in trace.step_stats().dev_stats[1].node_stats] == ["read", "beside", "late"]


def test_a_malformed_trace_is_refused() -> None:
    with pytest.raises(InternalError, match=r"ps/task:0 sent a malformed trace"):
        StepTrace().merge(np.full(7, 255, np.uint8), "/job:ps/task:0")


def events(**options: bool) -> list[dict[str, Any]]:
    return json.loads(Timeline(traced().step_stats()).generate_chrome_trace_format(**options))["traceEvents"]


def test_chrome_trace() -> None:
    found = events(show_dataflow=False)
    assert [(e["pid"], e["args"]["name"]) for e in found if e["ph"] == "M"] == [(0, CPU), (1, GPU)]
    spans = {e["args"]["name"]: e for e in found if e["ph"] == "X"}
    assert spans["tower/add"] == {
        "ph": "X",
        "cat": "Op",
        "name": "Add",
        "pid": 1,
        "tid": 0,
        "ts": 120,
        "dur": 30,
        "args": {"name": "tower/add", "op": "Add", "input0": "read:0", "input1": "gone:1"},
    }
    # What overlaps on a device stands on tracks of its own.
    assert [spans[name]["tid"] for name in ("read", "beside")] == [0, 1]
    assert {e["ph"] for e in found} == {"M", "X"}


def test_arrows_go_from_givers_to_takers() -> None:
    arrows = [e for e in events() if e["ph"] in "st"]
    assert [(e["ph"], e["pid"], e["ts"]) for e in arrows] == [("s", 0, 110), ("t", 1, 120)]


def test_memory_adds_up() -> None:
    counts = [(e["pid"], e["ts"], e["args"]["bytes"]) for e in events(show_memory=True) if e["ph"] == "C"]
    assert counts == [(0, 106, 0), (0, 110, 4), (1, 150, 8)]


def test_labels_of_others_need_not_be_like_ours() -> None:
    stats = traced().step_stats()
    stats.dev_stats[0].node_stats[0].timeline_label = "MEMCPY"
    found = json.loads(Timeline(stats).generate_chrome_trace_format())["traceEvents"]
    assert [e["args"]["name"] for e in found if e["ph"] == "X"] == ["read", "beside", "tower/add"]


def test_executables_are_called_so() -> None:
    trace = StepTrace()
    trace.add(Activity(device=CPU, name="last", type=EXECUTABLE, start_us=1, end_us=5))
    assert trace.step_stats().dev_stats[0].node_stats[0].timeline_label == "last = Executable()"
