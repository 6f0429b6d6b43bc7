"""XLA's profiles: the operation and the time of each instruction."""

from __future__ import annotations

from typing import Any

from headwater.data.io.protos.xla_profile_pb2 import (
    HloComputationProto,
    HloInstructionProto,
    HloModuleProto,
    HloProto,
    OpMetadata,
    XEvent,
    XEventMetadata,
    XLine,
    XPlane,
    XSpace,
    XStat,
    XStatMetadata,
)
from headwater.graph.runtime.profile import Instruction, instructions

STATS = {1: "hlo_op", 2: "program_id", 3: "_p", 4: "_c", 5: "dot.1", 6: "cuda_graph_id"}


def hlo(scopes: dict[str, str]) -> bytes:
    found = [HloInstructionProto(name=name, metadata=OpMetadata(op_name=scope)) for name, scope in scopes.items()]
    module = HloModuleProto(name="jit_f", computations=[HloComputationProto(instructions=found)])
    return HloProto(hlo_module=module).SerializeToString()


def plane(name: str, events: dict[int, str], lines: list[XLine]) -> XPlane:
    return XPlane(
        name=name,
        lines=lines,
        event_metadata={number: XEventMetadata(name=each) for number, each in events.items()},
        stat_metadata={number: XStatMetadata(name=each) for number, each in STATS.items()},
    )


def event(number: int, offset_ps: int, duration_ps: int, *stats: XStat) -> XEvent:
    return XEvent(metadata_id=number, offset_ps=offset_ps, duration_ps=duration_ps, stats=stats)


def space(*events: XEvent, names: Any = None) -> XSpace:
    metadata = XPlane(name="/host:metadata")
    metadata.event_metadata[7].name = "jit_f(9)"
    scopes = {"dot": "jit(f)/tower/MatMul/dot_general", "fusion.1": "jit(f)/tower/Sum/reduce", "add": "", "sub": "x"}
    metadata.event_metadata[7].stats.add(bytes_value=hlo(scopes))
    line = XLine(timestamp_ns=2000, events=events)
    return XSpace(planes=[metadata, plane("/host:CPU", names or {1: "dot", 2: "end: dot", 3: "python"}, [line])])


def stat(number: int, **value: Any) -> XStat:
    return XStat(metadata_id=number, **value)


def test_instructions_have_the_scopes_of_their_operations() -> None:
    found = space(event(1, 3_000_000, 4_000_000, stat(1, str_value="dot"), stat(2, int64_value=9)))
    assert list(instructions(found, 100)) == [Instruction(scope="tower/MatMul/dot_general", start_us=105, end_us=109)]


def test_an_instruction_that_outlasts_its_call_ends_later() -> None:
    begin = event(1, 3_000_000, 10, stat(1, str_value="dot"), stat(2, int64_value=9), stat(3, uint64_value=77))
    end = event(2, 8_000_000, 10, stat(4, uint64_value=77))
    (found,) = instructions(space(begin, end), 0)
    assert (found.start_us, found.end_us) == (5, 10)


def test_a_kernel_of_a_cuda_graph_is_known_by_its_name() -> None:
    graph = stat(1, str_value="command_buffer_1"), stat(2, int64_value=9), stat(6, uint64_value=2)
    launched = space(
        event(1, 0, 2_000_000, *graph),
        event(2, 2_000_000, 1_000_000, *graph),
        event(3, 3_000_000, 1_000_000, *graph),
        names={1: "dot", 2: "fusion_1", 3: "loop_pad_fusion"},
    )
    assert [(each.scope, each.end_us - each.start_us) for each in instructions(launched, 0)] == [
        ("tower/MatMul/dot_general", 2),
        ("tower/Sum/reduce", 1),
    ]


def test_events_without_an_operation_are_skipped() -> None:
    others = [
        event(3, 0, 1),
        event(1, 0, 1, stat(1, str_value="dot"), stat(2, int64_value=8)),  # of another program
        event(1, 0, 1, stat(1, str_value="add"), stat(2, int64_value=9)),  # of XLA's own making
        event(1, 0, 1, stat(1, str_value="sub"), stat(2, int64_value=9)),  # an argument
        event(1, 0, 1, stat(1, ref_value=5), stat(2, int64_value=9)),
    ]
    assert not list(instructions(space(*others), 0))
