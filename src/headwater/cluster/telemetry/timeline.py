"""A step's ``StepStats`` as a trace for Chrome (``chrome://tracing``, https://ui.perfetto.dev).

Format: "Trace Event Format", https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

_LABEL: Final = re.compile(r"(?P<name>.+?) = (?P<type>[^(]+)\((?P<inputs>.*)\)", re.DOTALL)


class Timeline:
    """One step on a time axis: a row of tracks for each device.

    Args:
      step_stats: a ``StepStats`` message, such as ``step_stats`` of a ``RunMetadata``.
      graph: accepted for programs that pass one.
    """

    def __init__(self, step_stats: Any, graph: object = None) -> None:
        del graph
        self._step_stats = step_stats

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False) -> str:
        """Returns the trace as JSON.

        Args:
          show_dataflow: add arrows from the producer of a tensor to its consumers.
          show_memory: add the accumulated size of the results of each device over the step, in bytes.
        """
        events = list(_events(self._step_stats.dev_stats))
        if show_dataflow:
            events.extend(_arrows([event for event in events if event["ph"] == "X"]))
        if show_memory:
            for pid, device in enumerate(self._step_stats.dev_stats):
                events.extend(_memory(pid, device))
        return json.dumps({"traceEvents": events}, indent=1)


def _events(devices: Sequence[Any]) -> Iterator[JsonObject]:
    for pid, device in enumerate(devices):
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": device.device}}
        tracks: list[int] = []  # for each track, the time at which it is free again
        for stats in sorted(device.node_stats, key=lambda stats: stats.all_start_micros):
            start, lasted = stats.all_start_micros, stats.all_end_rel_micros
            track = next((number for number, free in enumerate(tracks) if free <= start), len(tracks))
            tracks[track : track + 1] = [start + lasted]
            name, kind, inputs = _parts(stats)
            arguments = {"name": name, "op": kind} | {f"input{index}": each for index, each in enumerate(inputs)}
            yield {
                "ph": "X",
                "cat": "Op",
                "name": kind,
                "pid": pid,
                "tid": track,
                "ts": start,
                "dur": lasted,
                "args": arguments,
            }


def _parts(stats: Any) -> tuple[str, str, list[str]]:
    """Returns the name, type and inputs of the operation of a ``NodeExecStats``."""
    match = _LABEL.fullmatch(stats.timeline_label)
    if match is None:
        return stats.node_name, stats.node_name, []
    inputs = [each for each in match["inputs"].split(", ") if each]
    return match["name"], match["type"], inputs


def _arrows(events: Sequence[JsonObject]) -> Iterator[JsonObject]:
    givers = {event["args"]["name"]: event for event in events}
    number = 0
    for taker in events:
        names = [value for key, value in taker["args"].items() if key.startswith("input")]
        for name in dict.fromkeys(each.removeprefix("^").partition(":")[0] for each in names):
            giver = givers.get(name)
            if giver is None or giver is taker:
                continue
            ends = {"name": name, "cat": "DataFlow", "id": number}
            at = giver["ts"] + giver["dur"]
            yield ends | {"ph": "s", "pid": giver["pid"], "tid": giver["tid"], "ts": at}
            yield ends | {"ph": "t", "pid": taker["pid"], "tid": taker["tid"], "ts": max(at, taker["ts"])}
            number += 1


def _memory(pid: int, device: Any) -> Iterator[JsonObject]:
    held = 0
    ends = [(stats.all_start_micros + stats.all_end_rel_micros, stats) for stats in device.node_stats]
    for at, stats in sorted(ends, key=lambda end: end[0]):
        held += sum(memory.total_bytes for memory in stats.memory)
        yield {"ph": "C", "cat": "Memory", "name": "bytes of results", "pid": pid, "ts": at, "args": {"bytes": held}}
