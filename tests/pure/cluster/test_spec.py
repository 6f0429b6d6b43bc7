"""`ClusterSpec`, compared with results of TensorFlow 1.15."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec

SPEC = ClusterSpec({"ps": ["p0:1", "p1:2"], "worker": {3: "w3:3", 1: "w1:1"}})


def test_questions() -> None:
    assert SPEC.jobs == ["ps", "worker"]
    assert SPEC.num_tasks("worker") == 2
    assert SPEC.task_indices("worker") == [1, 3]
    assert SPEC.task_address("worker", 3) == "w3:3"
    assert SPEC.job_tasks("worker") == [None, "w1:1", None, "w3:3"]
    assert list(SPEC.tasks())[1:3] == [(TaskName("ps", 1), "p1:2"), (TaskName("worker", 1), "w1:1")]


def test_as_dict() -> None:
    assert SPEC.as_dict() == {"ps": ["p0:1", "p1:2"], "worker": {1: "w1:1", 3: "w3:3"}}
    assert ClusterSpec({"w": {0: "a:1", 1: "b:2"}}).as_dict() == {"w": ["a:1", "b:2"]}
    assert ClusterSpec({"w": ("a:1",)}).as_dict() == {"w": ["a:1"]}
    assert ClusterSpec({"w": []}).as_dict() == {"w": {}}
    SPEC.as_dict()["worker"][5] = "changed:1"
    assert SPEC.num_tasks("worker") == 2


@pytest.mark.parametrize(
    "question",
    [
        lambda: SPEC.num_tasks("x"),
        lambda: SPEC.task_indices("x"),
        lambda: SPEC.job_tasks("x"),
        lambda: SPEC.task_address("x", 0),
        lambda: SPEC.task_address("worker", 0),
        lambda: SPEC.task_address("ps", "0"),  # type: ignore[arg-type]
        lambda: ClusterSpec({"a": {-1: "b:1"}}),
    ],
)
def test_value_errors(question: Any) -> None:
    with pytest.raises(ValueError, match=r"no job 'x'|no task|negative"):
        question()


@pytest.mark.parametrize(
    "cluster",
    [
        None,
        ["a"],
        "a",
        3,
        {1: ["a:1"]},
        {"a": [1]},
        {"a": "b:1"},
        {"a": 3},
        {"a": None},
        {"a": {"0": "b:1"}},
        {"a": {1.0: "b:1"}},
        {"a": (x for x in ["h:1"])},
    ],
)
def test_type_errors(cluster: Any) -> None:
    with pytest.raises(TypeError):
        ClusterSpec(cluster)


def test_made_from_others() -> None:
    assert ClusterSpec(SPEC) == SPEC
    assert ClusterSpec(SPEC.as_dict()) == SPEC
    assert ClusterSpec(SPEC.as_cluster_def()) == SPEC
    assert hash(ClusterSpec(SPEC.as_dict())) == hash(SPEC)
    assert ClusterSpec({b"a": [b"b:1"]}).as_dict() == {"a": ["b:1"]}


def test_cluster_def_has_the_tasks_by_index() -> None:
    message = SPEC.as_cluster_def()
    assert [(job.name, dict(job.tasks)) for job in message.job] == [
        ("ps", {0: "p0:1", 1: "p1:2"}),
        ("worker", {1: "w1:1", 3: "w3:3"}),
    ]


def test_equality_and_truth() -> None:
    assert ClusterSpec({"ps": ["p0:1"]}) != SPEC
    assert SPEC.as_dict() != SPEC
    assert SPEC.as_cluster_def() != SPEC
    assert SPEC != 3
    assert not ClusterSpec({})
    assert ClusterSpec({"a": []})
    assert repr(SPEC) == "ClusterSpec({'ps': ['p0:1', 'p1:2'], 'worker': {1: 'w1:1', 3: 'w3:3'}})"


def test_stray_blanks_are_dropped() -> None:
    spec = ClusterSpec({"ps": ["localhost: 2223", " [::1] :2222 "], "worker": {0: "\thost\n:1"}})
    assert spec.as_dict() == {"ps": ["localhost:2223", "[::1]:2222"], "worker": ["host:1"]}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:2222", Address("localhost", 2222)),
        ("10.0.0.1:0", Address("10.0.0.1", 0)),
        ("[::1]:65535", Address("::1", 65535)),
        ("localhost: 2223", Address("localhost", 2223)),
        ("grpc://host:1", Address("host", 1)),
        ("grpc+local://[fe80::1%eth0]:1", Address("fe80::1%eth0", 1)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text",
    ["", "host", ":1", "host:", "host:x", "host:-1", "host:65536", "host:٣", "::1:2222", "[::1]", "[a]:1", "host:1:2"],
)
def test_addresses_that_are_wrong(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        parse_address(text)


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_a_value_error(text: str) -> None:
    try:
        address = parse_address(text)
    except ValueError:
        return
    assert parse_address(str(address)) == address


job_names = st.text(min_size=1, max_size=8)
tasks = st.lists(st.text(max_size=8), max_size=4) | st.dictionaries(
    st.integers(0, 2**31 - 1), st.text(max_size=8), max_size=4
)


@given(st.dictionaries(job_names, tasks, max_size=4))
def test_any_spec_survives_its_dict(cluster: dict[str, Any]) -> None:
    spec = ClusterSpec(cluster)
    assert ClusterSpec(spec.as_dict()) == spec
    assert ClusterSpec(spec) == spec


def test_task_names() -> None:
    name = TaskName("ps", 1)
    assert str(name) == "/job:ps/task:1"
    assert name.device_prefix == "/job:ps/replica:0/task:1"
    assert TaskName.parse(str(name)) == TaskName.parse(name.device_prefix) == name
    for text in ("", "/job:ps", "/task:0", "/job:/task:0", "/job:a/task:-1", "/job:a/replica:1/task:0", "ps:0"):
        with pytest.raises(ValueError, match="name"):
            TaskName.parse(text)
