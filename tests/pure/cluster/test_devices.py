"""Device names, compared with results of TensorFlow 1.15."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.devices import DeviceSpec, canonical_device_name, full_device_name, merge_device_names
from headwater.cluster.names import TaskName

CANONICAL = {
    "": "",
    "/": "",
    "/cpu:0": "/device:CPU:0",
    "/CPU:0": "/device:CPU:0",
    "/Gpu:1": "/device:GPU:1",
    "cpu:0": "/device:CPU:0",
    "/cpu": "/device:CPU:*",
    "/gpu": "/device:GPU:*",
    "/device:cpu:*": "/device:CPU:*",
    "/device:GPU:*": "/device:GPU:*",
    "/device:*:0": "/device:*:0",
    "/device:foo:0": "/device:foo:0",
    "/device:XLA_CPU:0": "/device:XLA_CPU:0",
    "/job:ps": "/job:ps",
    "job:ps": "/job:ps",
    "//job:ps/": "/job:ps",
    "/job:": "/job:",
    "/job:*": "/job:*",
    "/job:ps/task:01": "/job:ps/task:1",
    "/task:3": "/task:3",
    "/replica:2": "/replica:2",
    "/job:ps/job:worker": "/job:worker",
    "/gpu:2/task:1/replica:0/job:ps": "/job:ps/replica:0/task:1/device:GPU:2",
    "/job:ps/task:1/gpu:*": "/job:ps/task:1/device:GPU:*",
}

WRONG = [
    "/device:CPU",
    "/foo:1",
    "/task:x",
    "/job:ps/task:*",
    "/job:ps/cpu:0/gpu:1",
    "/device:cpu:0/device:gpu:0",
    "/tpu:0",
    "/Job:ps",
    "/device:CPU:0:1",
    "/job",
    "/job:a:b",
    "/task:",
    "/device:CPU:x",
]


@pytest.mark.parametrize(("name", "canonical"), CANONICAL.items())
def test_canonical(name: str, canonical: str) -> None:
    assert canonical_device_name(name) == canonical
    assert canonical_device_name(canonical) == canonical
    assert DeviceSpec.from_string(name).to_string() == canonical


@pytest.mark.parametrize("name", WRONG)
def test_no_device_name(name: str) -> None:
    with pytest.raises(ValueError, match="device name"):
        canonical_device_name(name)
    with pytest.raises(ValueError, match="device name"):
        merge_device_names("/job:ps", name)


@pytest.mark.parametrize(
    ("scopes", "merged"),
    [
        (["/job:ps", "/cpu:0"], "/job:ps/device:CPU:0"),
        (["/job:ps/cpu:0", "/gpu:1"], "/job:ps/device:GPU:1"),
        (["/cpu:0", "/job:ps"], "/job:ps/device:CPU:0"),
        (["/job:ps/task:1", "/job:worker"], "/job:worker/task:1"),
        (["/cpu:0", ""], "/device:CPU:0"),
        (["/gpu:0", "/device:CPU:*"], "/device:CPU:0"),
        (["/gpu:0", "/gpu"], "/device:GPU:0"),
        (["/job:a", "/task:1", "/replica:0", "/cpu:0"], "/job:a/replica:0/task:1/device:CPU:0"),
    ],
)
def test_nested_scopes(scopes: list[str], merged: str) -> None:
    assert functools.reduce(merge_device_names, scopes) == merged


def test_full_names() -> None:
    task = TaskName("worker", 2)
    assert full_device_name("", task) == "/job:worker/replica:0/task:2/device:CPU:0"
    assert full_device_name("/job:ps/gpu:1", task) == "/job:ps/replica:0/task:2/device:GPU:1"
    assert full_device_name("/task:0/cpu", task) == "/job:worker/replica:0/task:0/device:CPU:0"


def test_spec_in_parts() -> None:
    spec = DeviceSpec(job="ps", task=0, device_type="cpu", device_index=1)
    assert spec.to_string() == "/job:ps/task:0/device:CPU:1"
    assert (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index) == ("ps", None, 0, "CPU", 1)
    assert DeviceSpec(job="ps", task="0").to_string() == "/job:ps/task:0"  # type: ignore[arg-type]
    assert DeviceSpec(device_index=2).to_string() == ""
    with pytest.raises(ValueError, match="invalid literal"):
        DeviceSpec(replica="x")  # type: ignore[arg-type]


def test_spec_changes() -> None:
    spec = DeviceSpec.from_string("/job:ps/cpu:0")
    other = DeviceSpec.from_string("/task:1/gpu:1")
    assert spec.make_merged_spec(other).to_string() == "/job:ps/task:1/device:GPU:1"
    assert spec.replace(task=3).to_string() == "/job:ps/task:3/device:CPU:0"
    assert spec.to_string() == "/job:ps/device:CPU:0"
    spec.merge_from(other)
    assert spec.to_string() == "/job:ps/task:1/device:GPU:1"
    spec.job, spec.replica, spec.task, spec.device_type, spec.device_index = "w", 0, 2, "gpu", 3
    assert spec.to_string() == "/job:w/replica:0/task:2/device:GPU:3"
    spec.job = spec.replica = spec.task = spec.device_type = spec.device_index = None
    assert spec == DeviceSpec()
    assert spec.parse_from_string("/gpu:1") is spec
    assert spec.to_string() == "/device:GPU:1"


def test_equality() -> None:
    assert DeviceSpec(job="a") == DeviceSpec.from_string("/job:a")
    assert hash(DeviceSpec(job="a")) == hash(DeviceSpec.from_string("/job:a"))
    assert DeviceSpec(job="a") != "/job:a"
    assert "/job:a" in repr(DeviceSpec(job="a"))


names = st.lists(
    st.sampled_from(["/job:a", "/job:b", "/task:1", "/task:2", "/replica:0", "/cpu:0", "/gpu", "/device:GPU:3"]),
    max_size=4,
).filter(lambda parts: sum("pu" in part.lower() for part in parts) <= 1)


@given(names, names, names)
def test_merging_is_associative(outer: list[str], middle: list[str], inner: list[str]) -> None:
    a, b, c = ("".join(scope) for scope in (outer, middle, inner))
    assert merge_device_names(merge_device_names(a, b), c) == merge_device_names(a, merge_device_names(b, c))
    assert merge_device_names(a, "") == merge_device_names("", a) == canonical_device_name(a)


@given(st.text(max_size=30))
def test_any_text_is_a_name_or_a_value_error(text: str) -> None:
    try:
        canonical = canonical_device_name(text)
    except ValueError:
        return
    assert canonical_device_name(canonical) == canonical
