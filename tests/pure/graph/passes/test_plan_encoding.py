"""Plans as bytes: decoding returns the encoded plan, and rejects bytes that encode no plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.cluster.devices import parse_device
from headwater.errors import InvalidArgumentError
from headwater.graph.master.master import SessionOptions
from headwater.graph.passes.partition import partition
from headwater.graph.passes.place import place
from headwater.graph.passes.plan import Compute, Host, TaskPlan, decode_plan, encode_plan
from headwater.graph.passes.prune import prune
from headwater.graph.passes.schedule import schedule
from headwater.tensorboard_protos import graph_pb2, tensor_pb2
from tests.support.random_graphs import TASKS, Program, Step, build, programs

DEVICES = [parse_device(f"{task}/replica:0/device:CPU:0") for task in TASKS]
EVERYTHING = Program(
    variables=(0, 1, 2),
    steps=(
        Step("placeholder", (1, 0, 0), 0, ()),
        Step("read", (0, 0, 1), 0, ()),
        Step("add", (1, 2, 0), 0, ()),
        Step("text", (3, 1, 2), 0, ()),
        Step("reshape", (3, 0, 1), 1, ()),
        Step("assign_add", (3, 0, 1), 1, ()),
        Step("split", (4, 0, 1), 2, ()),
        Step("group", (20, 0, 0), 2, (3, 9)),
    ),
    fetches=(0, 1, 2, 3, 4, 5, 6),
    targets=(8, 20, 25),
    feeds=(),
)


FED_READ = Program(variables=(0,), steps=(Step("read", (0, 0, 0), 0, (0,)),), fetches=(0,), targets=(1,), feeds=(1,))


def _plans(program: Program) -> list[TaskPlan]:
    return list(schedule(partition(place(prune(build(program, placed=True).request), DEVICES))).values())


def _plain(plan: TaskPlan) -> Any:
    """All of a plan in a form that compares by value."""

    def node(found: Any) -> Any:
        return found.name, found.type, found.inputs, dict(found.refs), {k: _value(v) for k, v in found.attrs.items()}

    instructions = [
        (item.device, [node(n) for n in item.nodes], item.inputs, item.static, item.outputs)
        if isinstance(item, Compute)
        else node(item.node)
        if isinstance(item, Host)
        else item
        for item in plan.instructions
    ]
    constants = {name: _value(value) for name, value in plan.constants.items()}
    return plan.task, instructions, dict(plan.variables), constants, plan.feeds, plan.fetches


def _value(value: Any) -> Any:
    return (value.dtype, value.tolist()) if isinstance(value, np.ndarray) else value


@settings(max_examples=50, deadline=None)
@given(programs)
@example(FED_READ)
def test_decoded_plan_equals_the_encoded_plan(program: Program) -> None:
    for plan in _plans(program):
        assert _plain(decode_plan(encode_plan(plan))) == _plain(plan)


ENCODED = [encode_plan(plan) for plan in _plans(EVERYTHING)]


def _decodes_or_is_refused(data: bytes) -> None:
    with suppress(InvalidArgumentError):
        decode_plan(data)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_plan(data: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="not a well-formed plan"):
        decode_plan(data)


@settings(max_examples=300)
@given(st.data())
def test_damaged_bytes(data: st.DataObject) -> None:
    encoded = bytearray(data.draw(st.sampled_from(ENCODED)))
    for _ in range(data.draw(st.integers(1, 4))):
        place_ = data.draw(st.integers(0, len(encoded) - 1))
        match data.draw(st.sampled_from(["replace", "cut", "insert"])):
            case "replace":
                encoded[place_] = data.draw(st.integers(0, 255))
            case "cut":
                del encoded[place_ : place_ + data.draw(st.integers(1, 50))]
            case _:
                encoded[place_:place_] = data.draw(st.binary(min_size=1, max_size=8))
        if not encoded:
            break
    _decodes_or_is_refused(bytes(encoded))


_numbers = st.integers(-(2**63), 2**63 - 1) | st.floats() | st.booleans()
_leaves = st.none() | _numbers | st.text(max_size=5) | st.binary(max_size=5)


def _structures(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)


_anything = st.recursive(_leaves, _structures, max_leaves=8)


@settings(max_examples=300)
@given(st.data())
def test_well_packed_nonsense(data: st.DataObject) -> None:
    raw = msgpack.unpackb(data.draw(st.sampled_from(ENCODED)))
    at: Any = raw
    key = data.draw(st.sampled_from(sorted(raw)))
    while isinstance(at[key], list) and at[key] and data.draw(st.booleans()):
        at, key = at[key], data.draw(st.integers(0, len(at[key]) - 1))
    at[key] = data.draw(_anything)
    _decodes_or_is_refused(msgpack.packb(raw))


@pytest.mark.parametrize("decode", [decode_plan, SessionOptions.decode])
def test_an_infinite_level_is_refused(decode: Callable[[bytes], object]) -> None:
    raw = msgpack.unpackb(ENCODED[0] if decode is decode_plan else SessionOptions().encode())
    with pytest.raises(InvalidArgumentError, match="infinity"):
        decode(msgpack.packb({**raw, "jit_level": float("inf")}))


@pytest.mark.parametrize("key", sorted(msgpack.unpackb(ENCODED[0])))
def test_a_part_is_missing(key: str) -> None:
    raw = msgpack.unpackb(ENCODED[0])
    del raw[key]
    with pytest.raises(InvalidArgumentError, match=key):
        decode_plan(msgpack.packb(raw))


def _changed(change: Callable[[dict[str, Any], list[Any], Any], None]) -> bytes:
    """A plan with a change in it as a whole, and in each of its computes or their operations."""
    raw = msgpack.unpackb(ENCODED[0])
    for item in raw["instructions"]:
        if item[0] == "compute":
            compute = msgpack.unpackb(item[1])
            graph = graph_pb2.GraphDef.FromString(compute[1])
            change(raw, compute, graph)
            compute[1] = graph.SerializeToString()
            item[1] = msgpack.packb(compute)
    return msgpack.packb(raw)


def _unknown_type(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    graph.node[0].op = "NoSuchOperation"


def _unknown_input(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    for node in graph.node:
        node.input[:] = ["nowhere:0" for _ in node.input]


def _no_variables(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    raw["variables"] = []


def _no_references(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    compute[2] = [[] for _ in compute[2]]


def _reference_out_of_range(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    for refs in compute[2]:
        refs[:] = [[99, name] for _, name in refs]


def _a_later_format(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    raw["format"] += 1


def _unknown_fetch(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    raw["fetches"].append("nowhere:0")


def _fewer_references_than_operations(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    compute[2].pop()


def _static_that_is_no_input(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    compute[4].append("nowhere:0")


def _unknown_instruction(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    raw["instructions"].append(["eval", "1"])


def _constant_of_giant_shape(raw: dict[str, Any], compute: list[Any], graph: Any) -> None:
    proto = tensor_pb2.TensorProto(dtype=1, float_val=[1.0])
    for size in (1 << 40, 1 << 40):
        proto.tensor_shape.dim.add(size=size)
    raw["constants"].append(["giant:0", proto.SerializeToString()])


@pytest.mark.parametrize(
    "change",
    [
        _unknown_type,
        _unknown_input,
        _no_variables,
        _no_references,
        _reference_out_of_range,
        _a_later_format,
        _unknown_fetch,
        _fewer_references_than_operations,
        _static_that_is_no_input,
        _unknown_instruction,
        _constant_of_giant_shape,
    ],
)
def test_refused(change: Callable[[dict[str, Any], list[Any], Any], None]) -> None:
    with pytest.raises(InvalidArgumentError, match="not a well-formed plan"):
        decode_plan(_changed(change))


def test_variable_of_a_computation_is_read_once() -> None:
    first, second = (decode_plan(ENCODED[0]) for _ in range(2))
    computes = [[item for item in plan.instructions if isinstance(item, Compute)] for plan in (first, second)]
    assert computes[0]
    assert all(one is other and one.digest for one, other in zip(*computes, strict=True))
    # A changed copy is another one.
    assert not dataclasses.replace(computes[0][0], device="GPU:7").digest


def test_decoding_requires_variables_of_reads_ahead() -> None:
    plan = decode_plan(ENCODED[0])
    raw = msgpack.unpackb(ENCODED[0])
    raw["variables"] = []
    assert plan.variables
    with pytest.raises(InvalidArgumentError, match="needs variables that the plan lacks"):
        decode_plan(msgpack.packb(raw))
