"""Times of the operations inside executables, from XLA's profiler.

Each operation's lowering is traced in a scope with the operation's name (`headwater.graph.runtime.programs`), so that
XLA records the operation of each instruction. A fused instruction has the operation of the last instruction in it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headwater.data.io.protos.xla_profile_pb2 import HloProto, XEvent, XPlane, XSpace
from headwater.lazy_jax import jax

_jax: Any = jax

_PS_PER_US: Final = 1_000_000
# A statistic of kernels in a CUDA graph.
_CUDA_GRAPH: Final = "cuda_graph_id"
# Statistics that link the start of an asynchronous instruction to its end.
_PRODUCER: Final = "_p"
_CONSUMER: Final = "_c"


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruction:
    """One run of an XLA instruction.

    Attributes:
      scope: its operation, and scopes inside the operation, separated by ``/``.
      start_us, end_us: microseconds since the epoch.
    """

    scope: str
    start_us: int
    end_us: int


class Profile:
    """Profiles executables from `start` to `stop`. Only one profile per process can be active at a time; a second
    profile returns no instructions."""

    def __init__(self) -> None:
        self._folder = ""
        self._start_us = 0

    def start(self) -> None:
        """Starts profiling; does nothing if another profile is active."""
        options = _jax.profiler.ProfileOptions()
        # Do not record calls of Python functions: they are not used here, and recording them would slow the step down.
        options.python_tracer_level = 0
        options.host_tracer_level = 1
        folder = tempfile.mkdtemp(prefix="headwater-profile-")
        self._start_us = time.time_ns() // 1000
        try:
            _jax.profiler.start_trace(folder, profiler_options=options)
        # Another profile of this process is active, such as one that the program has started.
        except RuntimeError:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            self._folder = folder

    def stop(self) -> list[Instruction]:
        """Stops profiling; returns the instructions run since `start`."""
        if not self._folder:
            return []
        folder, self._folder = self._folder, ""
        try:
            _jax.profiler.stop_trace()
            found: list[Instruction] = []
            for path in Path(folder).rglob("*.xplane.pb"):
                found.extend(instructions(XSpace.FromString(path.read_bytes()), self._start_us))
            return found
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def instructions(space: XSpace, start_us: int) -> Iterator[Instruction]:
    """Yields the instructions in a profile that was started at ``start_us``."""
    scopes = _scopes(space.planes)
    for plane in space.planes:
        names = {number: stat.name for number, stat in plane.stat_metadata.items()}
        ends = _end_times(plane, names)
        for line in plane.lines:
            for event in line.events:
                values = _values(event, names)
                # Kernels in a CUDA graph have no ``hlo_op``; only their names identify them.
                graph = _CUDA_GRAPH in values
                operation = plane.event_metadata[event.metadata_id].name if graph else values.get("hlo_op")
                module = str(values.get("hlo_module", ""))
                # An executable from the compilation cache has another number in its metadata than in its events.
                scope = scopes.get((module, str(values.get("program_id", "")), str(operation))) or scopes.get(
                    (module, "", str(operation))
                )
                if not scope:
                    continue
                begin_ps = line.timestamp_ns * 1000 + event.offset_ps
                end_ps = max(begin_ps + event.duration_ps, ends.get(values.get(_PRODUCER), 0))
                yield Instruction(
                    scope=scope, start_us=start_us + begin_ps // _PS_PER_US, end_us=start_us + end_ps // _PS_PER_US
                )


def _end_times(plane: XPlane, names: Mapping[int, str]) -> dict[object, int]:
    """Returns the end times of asynchronous instructions, in picoseconds, by number."""
    found: dict[object, int] = {}
    for line in plane.lines:
        for event in line.events:
            if plane.event_metadata[event.metadata_id].name.startswith("end: "):
                number = _values(event, names).get(_CONSUMER)
                if number is not None:
                    found[number] = line.timestamp_ns * 1000 + event.offset_ps
    return found


def _values(event: XEvent, names: Mapping[int, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for stat in event.stats:
        kind = stat.WhichOneof("value")
        if kind is not None:
            value: Any = getattr(stat, kind)
            found[names.get(stat.metadata_id, "")] = names.get(value, "") if kind == "ref_value" else value
    return found


def _scopes(planes: Iterable[XPlane]) -> dict[tuple[str, str, str], str]:
    """Returns the scope of each instruction, without the outermost scope, by the name of its module, the number of its
    program, and its own name.

    An instruction is listed under its name, and under the name of its GPU kernel, which has ``_`` for each dot. It is
    also listed without a module, and without a number.
    """
    scopes: dict[tuple[str, str, str], str] = {}
    for plane in planes:
        if plane.name != "/host:metadata":
            continue
        for metadata in plane.event_metadata.values():
            module, _, number = metadata.name.rstrip(")").rpartition("(")  # the name is e.g. jit_train(7)
            for stat in metadata.stats:
                if not stat.bytes_value:
                    continue
                for computation in HloProto.FromString(stat.bytes_value).hlo_module.computations:
                    for each in computation.instructions:
                        scope = each.metadata.op_name.partition("/")[2]
                        if not scope:
                            continue
                        for place in ((module, number), ("", number), (module, "")):
                            scopes[*place, each.name] = scope
                            scopes.setdefault((*place, each.name.replace(".", "_")), scope)
    return scopes
