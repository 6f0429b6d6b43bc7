"""Cluster resolvers."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.cluster.config import ClusterConfigError
from headwater.cluster.resolvers import (
    KubernetesClusterResolver,
    SimpleClusterResolver,
    SlurmClusterResolver,
    TFConfigClusterResolver,
    expand_counts,
    expand_nodes,
)
from headwater.cluster.spec import ClusterSpec


def test_simple() -> None:
    spec = ClusterSpec({"ps": ["a:1"], "worker": ["b:1", "c:1"]})
    resolver = SimpleClusterResolver(spec, "grpc://b:1", "worker", 1, "", {"GPU": 2}, "grpc")
    assert resolver.cluster_spec().as_dict() == spec.as_dict()
    assert resolver.master() == "grpc://b:1"
    assert resolver.master("worker", 1) == "grpc://c:1"
    assert (resolver.task_type, resolver.task_id, resolver.num_accelerators()) == ("worker", 1, {"GPU": 2})
    with pytest.raises(ClusterConfigError, match=r"task\.index is 7"):
        resolver.master("worker", 7)
    with pytest.raises(TypeError, match="ClusterSpec"):
        SimpleClusterResolver({"ps": ["a:1"]})  # pyright: ignore[reportArgumentType]


def test_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}}))
    resolver = TFConfigClusterResolver()
    assert resolver.cluster_spec().as_dict() == cluster
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert resolver.master() == "grpc://c:1"
    assert resolver.master("chief", 0, "") == "a:1"
    assert TFConfigClusterResolver(task_type="chief", task_id=0).master() == "grpc://a:1"


def test_without_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    resolver = TFConfigClusterResolver()
    assert resolver.cluster_spec().as_dict() == {}
    assert resolver.master() == ""


def test_a_bad_tf_config_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": ["b:1", "b:1"]}}))
    with pytest.raises(ClusterConfigError, match=r"^TF_CONFIG cluster\.worker\[1\] .*$"):
        TFConfigClusterResolver()


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_STEP_NODELIST", "gpu[01-02],cpu")
    monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2),1")
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return monkeypatch


def test_slurm(step: pytest.MonkeyPatch) -> None:
    import os

    resolver = SlurmClusterResolver({"ps": 1, "worker": 4}, port_base=9000, gpus_per_node=4, gpus_per_task=2)
    assert resolver.cluster_spec().as_dict() == {
        "ps": ["gpu01:9000"],
        "worker": ["gpu01:9001", "gpu02:9000", "gpu02:9001", "cpu:9000"],
    }
    assert resolver.get_task_info() == ("worker", 2)
    assert resolver.master() == "grpc://gpu02:9001"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert SlurmClusterResolver().cluster_spec().num_tasks("worker") == 5


def test_errors_of_the_slurm_resolver(step: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterConfigError, match="jobs have 2 tasks, but the step has 5"):
        SlurmClusterResolver({"worker": 2})
    with pytest.raises(ClusterConfigError, match="gpus_per_task is 3"):
        SlurmClusterResolver(gpus_per_node=4, gpus_per_task=3)
    step.delenv("SLURM_PROCID")
    with pytest.raises(ClusterConfigError, match="SLURM_PROCID is not set"):
        SlurmClusterResolver()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,12],m", ["n08", "n09", "n10", "n12", "m"]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
    ],
)
def test_node_lists(text: str, names: list[str]) -> None:
    assert expand_nodes(text) == names


@pytest.mark.parametrize("text", ["n[1-2", "n[a-b]", "n[1-]"])
def test_bad_node_lists(text: str) -> None:
    with pytest.raises(ClusterConfigError, match="node list"):
        expand_nodes(text)


def test_counts() -> None:
    assert expand_counts("2(x3),1") == [2, 2, 2, 1]
    with pytest.raises(ClusterConfigError, match="not a number"):
        expand_counts("2(y3)")


def _pod(name: str, ip: str, phase: str = "Running") -> Any:
    return SimpleNamespace(metadata=SimpleNamespace(name=name), status=SimpleNamespace(phase=phase, pod_ip=ip))


class _Pods:
    """The part of Kubernetes's client that is used."""

    def __init__(self, pods: dict[str, list[Any]]) -> None:
        self._pods = pods

    def list_pod_for_all_namespaces(self, label_selector: str) -> Any:
        return SimpleNamespace(items=self._pods[label_selector])


def test_kubernetes() -> None:
    pods = _Pods(
        {"job-name=w": [_pod("w-1", "10.0.0.2"), _pod("w-0", "10.0.0.1")], "job-name=p": [_pod("p", "10.0.0.9")]}
    )
    resolver = KubernetesClusterResolver({"worker": ["job-name=w"], "ps": ["job-name=p"]}, override_client=pods)
    assert resolver.cluster_spec().as_dict() == {"ps": ["10.0.0.9:8470"], "worker": ["10.0.0.1:8470", "10.0.0.2:8470"]}
    assert resolver.master() == "grpc://10.0.0.1:8470"
    waiting = _Pods({"job-name=tensorflow": [_pod("w-0", "10.0.0.1", "Pending")]})
    with pytest.raises(RuntimeError, match='"w-0" of job \'worker\' is not running; phase: "Pending"'):
        KubernetesClusterResolver(override_client=waiting).cluster_spec()
