"""``TF_CONFIG``: one line that names the field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.config import (
    ClusterConfigError,
    check_task,
    chief_of,
    ended_tasks,
    parse_hosts,
    parse_task_config,
    task_config_from_environment,
)
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task.members import Members
from headwater.cluster.variables import ENDED

CLUSTER = {"ps": ["a:2222"], "worker": ["b:2222", "b:2223"]}


def test_a_cluster_and_a_task() -> None:
    text = json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 1}, "environment": "cloud"})
    config = parse_task_config(text)
    assert config.cluster == ClusterSpec(CLUSTER)
    assert config.task == TaskName("worker", 1)
    assert config.rest == {"environment": "cloud"}
    assert task_config_from_environment({"TF_CONFIG": text}) == config


@pytest.mark.parametrize("environ", [{}, {"TF_CONFIG": ""}, {"TF_CONFIG": " \n"}])
def test_not_set(environ: dict[str, str]) -> None:
    assert task_config_from_environment(environ) is None


def test_parts_that_may_be_missing() -> None:
    assert parse_task_config("{}").task is None
    assert not parse_task_config("{}").cluster
    assert parse_task_config('{"task": {"type": "worker", "index": "0"}}').task == TaskName("worker", 0)
    evaluator = {"cluster": CLUSTER, "task": {"type": "evaluator", "index": 0}}
    assert parse_task_config(json.dumps(evaluator)).task == TaskName("evaluator", 0)
    sparse = {"cluster": {"worker": {"1": "b:1", "7": "c:1"}}, "task": {"type": "worker", "index": 7}}
    assert parse_task_config(json.dumps(sparse)).cluster.task_indices("worker") == [1, 7]


def config(cluster: Any = CLUSTER, **task: Any) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0} | task})


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("{'cluster'}", "TF_CONFIG", "not JSON"),
        ('{"cluster": {}', "TF_CONFIG", "not JSON"),
        ("[" * 100_000, "TF_CONFIG", "not JSON"),
        ("[]", "TF_CONFIG", "JSON object"),
        ('{"task": 1, "task": 2}', "TF_CONFIG", "twice"),
        (config(["a:1"]), "TF_CONFIG cluster", "JSON object"),
        (config({"": ["a:1"]}), "TF_CONFIG cluster", "name"),
        (config({"a/b": ["a:1"]}), "TF_CONFIG cluster", "name"),
        (config({"worker": "a:1"}), "TF_CONFIG cluster.worker", "list"),
        (config({"worker": [1]}), "TF_CONFIG cluster.worker[0]", "address"),
        (config({"worker": ["a:1", "b"]}), "TF_CONFIG cluster.worker[1]", "port"),
        (config({"worker": ["a:1", "b:99999"]}), "TF_CONFIG cluster.worker[1]", "port"),
        (config({"worker": ["a:0"]}), "TF_CONFIG cluster.worker[0]", "port 0"),
        (config({"worker": ["a:1", "b:1", "a: 1"]}), "TF_CONFIG cluster.worker[2]", "cluster.worker[0]"),
        (config({"ps": ["a:1"], "worker": ["a:1"]}), "TF_CONFIG cluster.worker[0]", "cluster.ps[0]"),
        (config({"worker": {"x": "a:1"}}), "TF_CONFIG cluster.worker[x]", "whole number"),
        (config({"worker": {"01": "a:1"}}), "TF_CONFIG cluster.worker[01]", "whole number"),
        (config(type="wroker"), "TF_CONFIG task.type", "ps, worker"),
        (config(type=None), "TF_CONFIG task.type", "name of a job"),
        (config(index=2), "TF_CONFIG task.index", "has indices 0, 1"),
        (config(index=-1), "TF_CONFIG task.index", "-1"),
        (config(index=1.5), "TF_CONFIG task.index", "1.5"),
        (config(index=True), "TF_CONFIG task.index", "true"),
        (config({"worker": []}), "TF_CONFIG task.index", "no tasks"),
        ('{"cluster": {}, "task": []}', "TF_CONFIG task", "JSON object"),
    ],
)
def test_an_error_of_the_configuration_names_the_field(text: str, field: str, words: str) -> None:
    with pytest.raises(ClusterConfigError) as caught:
        parse_task_config(text)
    assert caught.value.field == field
    assert str(caught.value).startswith(field + " ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_there_is_one_chief() -> None:
    for cluster, chief in (
        ({"worker": ["b:1"]}, TaskName("worker", 0)),
        ({"chief": ["a:1"], "worker": ["b:1"]}, TaskName("chief", 0)),
        ({"master": ["a:1"], "worker": ["b:1"]}, TaskName("master", 0)),
    ):
        spec = parse_task_config(json.dumps({"cluster": cluster})).cluster
        assert chief_of(spec) == chief
        members = Members(ClusterSpec({"ps": ["p:1"], **cluster}), chief)
        assert members.is_chief
        assert members.number == 0


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cluster": {"chief": ["a:1", "b:1"]}}, 'The "cluster" in TF_CONFIG must have only one "chief" node.'),
        ({"cluster": {"master": ["a:1", "b:1"]}}, 'The "cluster" in TF_CONFIG must have only one "master" node.'),
        (
            {"cluster": {"chief": ["a:1"], "master": ["b:1"]}},
            "If `master` node exists in `cluster`, job `chief` is not supported.",
        ),
        ({"task": {"type": "worker", "index": 1}}, 'If "cluster" is not set in TF_CONFIG, task index must be 0.'),
    ],
)
def test_several_chiefs_are_refused_in_tensorflows_words(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ClusterConfigError) as caught:
        parse_task_config(json.dumps(config))
    assert str(caught.value) == message


def test_flags() -> None:
    assert parse_hosts("a:1, b:2,", "--ps_hosts") == ["a:1", "b:2"]
    assert parse_hosts("", "--ps_hosts") == []
    for text in ("a", "a:1,a:1", "a:x"):
        with pytest.raises(ClusterConfigError, match=r"^--ps_hosts\["):
            parse_hosts(text, "--ps_hosts")
    assert check_task(ClusterSpec(CLUSTER), "ps", 0, "flags") == TaskName("ps", 0)


def test_workers_that_have_ended() -> None:
    cluster = ClusterSpec({"ps": ["a:1"], "worker": ["b:1", "c:1", "d:1"]})
    assert ended_tasks(cluster, {}) == frozenset()
    told = ended_tasks(cluster, {ENDED: "/job:worker/task:1, /job:worker/task:2,"})
    assert told == {TaskName("worker", 1), TaskName("worker", 2)}
    for text, words in (
        ("worker:1", "not a task's name"),
        ("/job:worker/task:3", "task.index is 3"),
        ("/job:worker/task:0", "other than the chief"),
        ("/job:ps/task:0", "name workers"),
    ):
        with pytest.raises(ClusterConfigError, match=f"^{ENDED}.*{words}"):
            ended_tasks(cluster, {ENDED: text})
    led = ClusterSpec({"ps": ["a:1"], "chief": ["e:1"], "worker": ["b:1"]})
    assert ended_tasks(led, {ENDED: "/job:worker/task:0"}) == {TaskName("worker", 0)}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["a:1", "b:2"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cluster", "task", "type", "index", "worker", "0", "1"]) | st.text(max_size=3), inner
        )
    ),
    max_leaves=15,
)


@given(json_values.map(json.dumps) | st.text(max_size=60))
def test_anything_is_a_config_or_an_error_of_one_line(text: str) -> None:
    problem = ""
    try:
        parse_task_config(text)
    except ClusterConfigError as error:
        problem = str(error)
    assert "\n" not in problem
