"""Placement of operations on devices, and the errors if no device is possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.cluster.devices import parse_device
from headwater.errors import InvalidArgumentError
from headwater.graph.passes.place import Placer, place, verify_placement
from headwater.graph.passes.prune import RunRequest, prune
from tests.support import host_ops

CLUSTER = [
    "/job:worker/replica:0/task:1/device:CPU:0",
    "/job:worker/replica:0/task:0/device:GPU:1",
    "/job:worker/replica:0/task:0/device:GPU:0",
    "/job:worker/replica:0/task:0/device:CPU:0",
    "/job:ps/replica:0/task:1/device:CPU:0",
    "/job:ps/replica:0/task:0/device:CPU:0",
]
LOCAL = ["/job:localhost/replica:0/task:0/device:CPU:0"]

del host_ops  # imported for what it does: it registers operation types


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def _placed(*elements: Any, devices: list[str] = CLUSTER, soft: bool = False) -> dict[str, str]:
    """Devices, in short, by name of operation."""
    ops = tuple(getattr(element, "op", element) for element in elements)
    placement = place(prune(RunRequest((), (), ops)), [parse_device(device) for device in devices], soft_placement=soft)
    verify_placement(placement)
    return {op.name: device.name().replace("/replica:0", "") for op, device in placement.devices.items()}


def _on(device: str, name: str) -> Any:
    with tf.device(device):
        return tf.identity(tf.constant(1.0, name=f"{name}_in"), name=name)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("", "/job:worker/task:0/device:GPU:0"),
        ("/job:ps", "/job:ps/task:0/device:CPU:0"),
        ("/job:ps/task:1", "/job:ps/task:1/device:CPU:0"),
        ("/job:worker", "/job:worker/task:0/device:GPU:0"),
        ("/job:worker/task:1", "/job:worker/task:1/device:CPU:0"),
        ("/cpu:0", "/job:ps/task:0/device:CPU:0"),
        ("/gpu:1", "/job:worker/task:0/device:GPU:1"),
        ("/job:worker/cpu:0", "/job:worker/task:0/device:CPU:0"),
        ("/job:worker/replica:0/task:0/device:GPU:1", "/job:worker/task:0/device:GPU:1"),
        ("/device:GPU:*", "/job:worker/task:0/device:GPU:0"),
    ],
)
def test_a_device_asked_for_in_part(asked: str, found: str) -> None:
    assert _placed(_on(asked, "x"))["x"] == found


def test_without_a_gpu() -> None:
    assert set(_placed(_on("", "x"), _on("/cpu:0", "y"), devices=LOCAL).values()) == {
        "/job:localhost/task:0/device:CPU:0"
    }


@pytest.mark.parametrize("asked", ["/job:nobody", "/job:ps/task:7", "/job:ps/gpu:0", "/gpu:2", "/cpu:1", "/replica:1"])
def test_a_device_that_is_not_there(asked: str) -> None:
    x = _on(asked, "x")
    with pytest.raises(InvalidArgumentError, match=r"'?x(_in)?: Operation was explicitly assigned to") as caught:
        _placed(x)
    assert "available devices are [ /job:worker" in caught.value.message
    assert caught.value.op is not None


def test_soft_placement_uses_another_device_of_the_task() -> None:
    assert _placed(_on("/job:ps/gpu:0", "x"), soft=True)["x"] == "/job:ps/task:0/device:CPU:0"
    assert _placed(_on("/gpu:7", "z"), soft=True)["z"] == "/job:worker/task:0/device:GPU:0"
    with pytest.raises(InvalidArgumentError):
        _placed(_on("/job:nobody", "y"), soft=True)


def test_operations_of_a_variable_are_colocated_with_it() -> None:
    with tf.device("/job:ps/task:1"):
        v = tf.Variable(1.0, name="v")
    with tf.device("/job:worker/task:1"):
        update = v.assign_add(_on("/job:worker/task:1", "x"), name="update")
    found = _placed(update, v.initializer)
    assert found["v"] == found["v/Assign"] == found["update"] == "/job:ps/task:1/device:CPU:0"
    assert found["x"] == "/job:worker/task:1/device:CPU:0"


def test_an_update_that_asks_for_another_place_than_its_variable() -> None:
    with tf.device("/job:ps/task:1"):
        ref = tf.Variable(1.0, name="v")._ref()
    update = tf.get_default_graph().create_op("AssignAdd", [ref, tf.constant(1.0)], device="/job:ps/task:0")
    with pytest.raises(InvalidArgumentError, match="Cannot colocate nodes 'AssignAdd' and 'v'"):
        _placed(update)
    assert _placed(update, soft=True)["AssignAdd"] == "/job:ps/task:1/device:CPU:0"


def test_colocated_operations_share_a_device_without_a_request() -> None:
    x = tf.constant(1.0, name="x")
    with tf.colocate_with(x):
        y = tf.identity(tf.constant(2.0), name="y")
    with tf.colocate_with(y.op), tf.device("/job:ps/task:1"):
        z = tf.identity(tf.constant(3.0), name="z")
    found = _placed(x, y, z)
    assert found["x"] == found["y"] == found["z"] == "/job:ps/task:1/device:CPU:0"


def test_python_functions_are_placed_on_a_cpu() -> None:
    graph = tf.get_default_graph()
    host = graph.create_op("TestHostNegate", [tf.constant(1.0)], name="host")
    text = tf.identity(tf.constant("a"), name="text")
    found = _placed(host, text)
    assert found["host"] == found["text"] == "/job:ps/task:0/device:CPU:0"
    wrong = graph.create_op("TestHostNegate", [tf.constant(1.0)], name="wrong", device="/gpu:0")
    with pytest.raises(InvalidArgumentError, match=r"wrong: TestHostNegate runs on a CPU only.*allow_soft_placement"):
        _placed(wrong)
    assert _placed(wrong, soft=True)["wrong"].endswith("CPU:0")


def _placer(soft: bool = False) -> Any:
    placer = Placer([parse_device(device) for device in CLUSTER], soft_placement=soft)

    def placed(*elements: Any) -> dict[str, str]:
        ops = tuple(getattr(element, "op", element) for element in elements)
        placement = placer.place(prune(RunRequest((), (), ops)))
        verify_placement(placement)
        return {op.name: device.name().replace("/replica:0", "") for op, device in placement.devices.items()}

    return placed


def test_colocation_completes_a_device_request() -> None:
    v = tf.Variable(1.0, name="v")
    with tf.colocate_with(v.op), tf.device("/job:ps/task:1"):
        tf.constant(1.0, name="beside")
    assert _placed(v.initializer)["v"] == "/job:ps/task:1/device:CPU:0"


def test_a_variable_has_one_device_in_all_plans() -> None:
    v = tf.Variable(1.0, name="v")
    placed = _placer()
    assert placed(v.initializer)["v"] == "/job:worker/task:0/device:GPU:0"
    # What looks at it from Python does not pull it to a CPU.
    assert placed(tf.is_variable_initialized(v))["v"] == "/job:worker/task:0/device:GPU:0"


def test_later_member_follows_its_colocation_group() -> None:
    placed = _placer()
    v = tf.Variable(1.0, name="v")
    assert placed(v.initializer)["v"] == "/job:worker/task:0/device:GPU:0"
    with tf.colocate_with(v.op), tf.device("/job:ps/task:1"):
        late = tf.identity(tf.constant(3.0), name="late")
    assert placed(late)["late"] == "/job:worker/task:0/device:GPU:0"
    assert placed(v.initializer)["v"] == "/job:worker/task:0/device:GPU:0"


def test_an_unneeded_misplaced_operation_is_harmless() -> None:
    with tf.device("/job:ps/task:1"):
        ref = tf.Variable(1.0, name="v")._ref()
    wrong = tf.get_default_graph().create_op("AssignAdd", [ref, tf.constant(1.0)], device="/job:ps/task:0")
    right = tf.identity(ref, name="right")
    placed = _placer()
    assert placed(right)["v"] == "/job:ps/task:1/device:CPU:0"
    assert placed(right)["v"] == "/job:ps/task:1/device:CPU:0"
    del wrong


def test_colocation_may_name_a_later_operation() -> None:
    graph = tf.get_default_graph()
    early = graph.create_op("Const", [], {"value": np.float32(1), "_class": [b"loc:@late"]}, name="early")
    with tf.device("/job:ps/task:1"):
        late = tf.constant(1.0, name="late")
    found = _placed(early, late)
    assert found["early"] == found["late"] == "/job:ps/task:1/device:CPU:0"


def test_nothing_to_place() -> None:
    assert _placed() == {}
