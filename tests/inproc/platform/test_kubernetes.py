"""The Kubernetes backend with an API server that checks every request."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress
from headwater.platform.backends.base import BackendError, Exited, JobOrder, Resources, Running
from headwater.platform.backends.kubernetes import KubernetesBackend, KubernetesSettings
from headwater.platform.backends.kubernetes_objects import LIVE_LABEL, rights, to_yaml
from headwater.platform.host.pod_task import PROGRESS_PREFIX
from headwater.platform.logfiles import all_lines
from headwater.platform.spec import job_from_data
from tests.support.kubernetes import FakeKubernetes, fake_kubernetes

pytest.importorskip("kubernetes")
validation = pytest.importorskip("kubernetes_validate")

PS, FIRST, SECOND = TaskName("ps", 0), TaskName("worker", 0), TaskName("worker", 1)


def check(one: dict[str, Any]) -> None:
    validation.validate(one, "1.25.0", strict=True)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[FakeKubernetes, KubernetesBackend]]:
    with fake_kubernetes(tmp_path, check) as (cluster, config):
        backend = KubernetesBackend(KubernetesSettings(image="headwater:1", config_file=config, namespace="team"))
        yield cluster, backend
        backend.close()


def order(tmp_path: Path, attempt: int = 0, **fields: Any) -> JobOrder:
    spec = job_from_data({"name": "linear", "program": "train.py", "ps": 1, "workers": 2, **fields})
    return JobOrder(job_id="linear-x1", attempt=attempt, spec=spec, log_dir=tmp_path / "logs")


Cluster = tuple[FakeKubernetes, KubernetesBackend]


def pods(cluster: FakeKubernetes) -> dict[str, str]:
    """Returns the latest pod of each task."""
    return {
        job.removeprefix("linear-x1-"): cluster.pods_of(job)[-1]
        for job in cluster.names("jobs")
        if cluster.pods_of(job)
    }


def test_a_job_runs_and_ends_with_its_workers(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    assert fake.names("jobs") == ["linear-x1-ps-0", "linear-x1-worker-0", "linear-x1-worker-1"]
    report = backend.poll_job(handle)
    assert report.phase == "waiting"
    fake.run(*pods(fake).values())
    report = backend.poll_job(handle)
    assert report.phase == "running"
    serving = report.tasks[PS]
    assert isinstance(serving, Running)
    assert serving.started_at > 0
    fake.end(pods(fake)["worker-0"], 0)
    assert backend.poll_job(handle).phase == "running"
    fake.end(pods(fake)["worker-1"], 0)
    assert backend.poll_job(handle).phase == "succeeded"
    assert fake.names("jobs") == ["linear-x1-worker-0", "linear-x1-worker-1"]
    assert backend.poll_job(handle).phase == "succeeded"
    backend.delete_job(handle)
    assert [fake.names(kind) for kind in ("jobs", "pods", "services", "secrets")] == [[], [], [], []]
    assert backend.poll_job(handle).phase == "lost"
    backend.delete_job(handle)


def test_the_end_of_the_chief_ends_the_job(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path, chief=True))
    fake.run(*pods(fake).values())
    fake.end(pods(fake)["chief-0"], 0)
    assert backend.poll_job(handle).phase == "succeeded"
    assert fake.names("jobs") == ["linear-x1-chief-0"]


def test_a_pending_task_has_a_reason(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    for pod in pods(fake).values():
        fake.wait(pod, "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    report = backend.poll_job(handle)
    assert (report.phase, "Insufficient nvidia.com/gpu" in report.reason) == ("waiting", True)


def test_kubernetes_restarts_a_task_until_its_limit(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path, restart={"limit": 1}))
    fake.run(*pods(fake).values())
    fake.end(pods(fake)["worker-1"], 3)
    fake.run(pods(fake)["worker-1"])
    report = backend.poll_job(handle)
    assert (report.phase, report.restarts[SECOND], report.restarts[FIRST]) == ("running", 1, 0)
    fake.log(pods(fake)["worker-1"], "reads the data", "no more memory")
    fake.end(pods(fake)["worker-1"], 137, reason="OOMKilled")
    report = backend.poll_job(handle)
    assert (report.phase, report.reason) == ("failed", "worker 1 failed: ran out of memory")
    ended = report.tasks[SECOND]
    assert isinstance(ended, Exited)
    assert (ended.code, ended.last_lines) == (137, ("reads the data", "no more memory"))
    assert fake.names("jobs") == ["linear-x1-worker-1"]


def test_a_task_that_was_taken_away_is_not_to_blame(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path, restart={"limit": 0}))
    fake.end(pods(fake)["ps-0"], 143, status_reason="Evicted")
    ended = backend.poll_job(handle).tasks[PS]
    assert isinstance(ended, Exited)
    assert ended.preempted


def test_logs_are_fetched_once(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    fake.run(*pods(fake).values())
    fake.log(pods(fake)["worker-0"], "step 1", "", "  step 2")
    backend.poll_job(handle)
    fake.log(pods(fake)["worker-0"], "step 3")
    backend.poll_job(handle)
    backend.poll_job(handle)
    fake.end(pods(fake)["worker-0"], 1)
    fake.run(pods(fake)["worker-0"])
    fake.log(pods(fake)["worker-0"], "again")
    backend.poll_job(handle)
    lines = list(all_lines(tmp_path / "logs/worker-0.log"))
    assert [line.text for line in lines] == ["step 1", "", "  step 2", "step 3", "again"]
    assert [line.at for line in lines] == sorted(line.at or 0.0 for line in lines)


def test_progress_is_sent_with_the_log_and_excluded_from_it(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    fake.run(*pods(fake).values())
    pod = pods(fake)["worker-0"]
    first = Progress(task="/job:worker/task:0", step=10, steps_per_s=2.5, loss=0.5)
    second = Progress(task="/job:worker/task:0", step=20, loss=0.25)
    fake.log(pod, "begins", PROGRESS_PREFIX + first.encode().decode())

    def progress() -> Progress | None:
        task = backend.poll_job(handle).tasks[FIRST]
        assert isinstance(task, Running)
        return task.progress

    report = backend.poll_job(handle)
    serving = report.tasks[PS]
    assert isinstance(serving, Running)
    assert (report.tasks[FIRST], report.tasks[SECOND]) == (dataclasses.replace(serving, progress=first), serving)
    fake.log(pod, PROGRESS_PREFIX + second.encode().decode(), "continues")
    for _ in range(2):  # it is the latest as long as there is no other
        assert progress() == second
    fake.end(pod, 3)
    fake.run(pods(fake)["worker-0"])
    assert progress() is None
    fake.log(pods(fake)["worker-0"], PROGRESS_PREFIX + "no progress at all")
    assert progress() is None
    assert [line.text for line in all_lines(tmp_path / "logs/worker-0.log")] == ["begins", "continues"]


def test_the_same_attempt_again_makes_nothing_new(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    made = fake.names("pods")
    assert backend.submit_job(order(tmp_path)) == handle
    assert fake.names("pods") == made


def test_a_further_attempt_waits_for_the_end_of_the_previous_one(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    backend.submit_job(order(tmp_path))
    first = set(fake.names("pods"))
    with pytest.raises(BackendError, match="earlier attempt") as refused:
        backend.submit_job(order(tmp_path, attempt=1))
    assert refused.value.temporary
    backend.submit_job(order(tmp_path, attempt=1))
    assert not first & set(fake.names("pods"))


def test_stop_gives_pods_their_time(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    fake.run(*pods(fake).values())
    backend.stop_job(handle, grace_s=7.5)
    asked = [one for one in fake.requests if one.method == "DELETE" and "/pods/" in one.path]
    assert [one.query["gracePeriodSeconds"] for one in asked] == ["8", "8"]
    # Workers may still save values that a ps holds.
    assert [name.rpartition("-")[0] for name in fake.names("pods")] == ["linear-x1-ps-0"]
    assert backend.poll_job(handle).phase == "running"
    backend.stop_job(handle, grace_s=7.5)
    assert fake.names("pods") == []
    assert backend.poll_job(handle).phase == "lost"


def test_the_last_output_of_pods_is_read(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    found = pods(fake)
    fake.run(*found.values())
    backend.poll_job(handle)
    fake.log(found["worker-1"], "is asked to end", "has saved")
    backend.stop_job(handle, grace_s=5)
    backend.stop_job(handle, grace_s=5)
    assert not fake.names("pods")
    assert backend.poll_job(handle).phase == "lost"
    assert [line.text for line in all_lines(tmp_path / "logs/worker-1.log")] == ["is asked to end", "has saved"]


def test_rejections_by_kubernetes_are_reported(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    fake.refuse = [403]
    with pytest.raises(BackendError, match=r"the test refuses this \(status 403\)") as refused:
        backend.submit_job(order(tmp_path))
    assert not refused.value.temporary
    fake.refuse = [503]
    with pytest.raises(BackendError) as refused:
        backend.submit_job(order(tmp_path))
    assert refused.value.temporary


def test_a_cluster_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with fake_kubernetes(tmp_path, check) as (_, config):
        backend = KubernetesBackend(KubernetesSettings(image="i", config_file=config))
    with pytest.raises(BackendError, match="does not answer") as refused:
        backend.poll_job('{"name": "x", "namespace": "y", "log_dir": "/z", "chief": ""}')
    assert refused.value.temporary
    backend.close()
    with pytest.raises(BackendError, match="cannot be reached"):
        KubernetesBackend(KubernetesSettings(image="i", config_file=tmp_path / "missing"))


def test_nodes_report_their_resources(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    fake.add_node("a", **{"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"})
    asking = {"count": 1, "cpus": 0.5, "memory": "1GiB", "gpus": 1}
    backend.submit_job(order(tmp_path, ps=0, workers=asking))
    fake.get("pods", pods(fake)["worker-0"])["spec"]["nodeName"] = "a"
    (host,) = backend.capacity().hosts
    assert host.total == Resources(cpus=4, memory_bytes=8 << 30, gpus=2)
    assert host.free == Resources(cpus=3.5, memory_bytes=7 << 30, gpus=1)


def test_a_submission_that_is_refused_halfway_leaves_nothing(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    fake.forbid = {"jobs"}
    with pytest.raises(BackendError, match="exceeded quota") as refused:
        backend.submit_job(order(tmp_path))
    assert not refused.value.temporary
    assert [fake.names(kind) for kind in ("jobs", "pods", "services", "secrets")] == [[], [], [], []]


def test_rest_of_a_submission_is_found_by_its_label(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    asked = order(tmp_path)
    backend.submit_job(asked)
    backend.remove(asked.job_id, asked.spec)
    assert [fake.names(kind) for kind in ("jobs", "pods", "services", "secrets")] == [[], [], [], []]


def test_the_rights_that_are_shipped_suffice(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    fake.rules = rights("team", "headwater", nodes=False)[1]["rules"]
    handle = backend.submit_job(order(tmp_path))
    fake.run(*pods(fake).values())
    fake.log(pods(fake)["worker-0"], "hello")
    fake.end(pods(fake)["worker-1"], 3)
    assert backend.poll_job(handle).phase == "running"
    for _ in range(2):
        backend.stop_job(handle, grace_s=1)
    backend.delete_job(handle)
    assert fake.names("pods") == []
    assert (tmp_path / "logs/worker-0.log").read_text().endswith(" hello\n")
    with pytest.raises(BackendError, match="does not allow it"):
        backend.capacity()
    fake.rules += rights("team", "headwater", nodes=True)[3]["rules"]
    assert backend.capacity().hosts == ()


def test_a_job_does_not_succeed_without_a_deleted_worker(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    fake.run(*pods(fake).values())
    fake._delete("jobs", "team", "linear-x1-worker-1", "Background")
    fake.end(pods(fake)["worker-0"], 0)
    report = backend.poll_job(handle)
    assert (report.phase, report.reason) == (
        "lost",
        "the Job of worker 1 does not exist: another client has deleted it",
    )


def test_job_reports_hosts_and_start_counts_of_its_tasks(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    first = pods(fake)["worker-0"]
    fake.get("pods", first)["spec"] = {**fake.get("pods", first)["spec"], "nodeName": "node-a"}
    fake.run(*pods(fake).values())
    state = backend.poll_job(handle).tasks[FIRST]
    assert isinstance(state, Running)
    assert state.host == "node-a"
    fake.end(first, 3)
    fake.run(pods(fake)["worker-0"])
    assert backend.poll_job(handle).restarts[FIRST] == 1
    # The Service no longer resolves to the address of the pod that has ended.
    assert [LIVE_LABEL in fake.get("pods", pod)["metadata"]["labels"] for pod in (first, pods(fake)["worker-0"])] == [
        False,
        True,
    ]
    # The count does not decrease when the cluster deletes ended pods.
    fake._delete("pods", "team", first, "")
    assert backend.poll_job(handle).restarts[FIRST] == 1


def test_a_program_that_cannot_be_run_is_not_tried_again(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    fake.end(pods(fake)["worker-0"], 127)
    report = backend.poll_job(handle)
    assert (report.phase, report.reason) == ("failed", "worker 0 failed: its program cannot be run (exit code 127)")


def test_mirrored_job_is_restarted_as_a_whole(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path, ps=0))
    assert {fake.get("jobs", name)["spec"]["backoffLimit"] for name in fake.names("jobs")} == {0}
    fake.run(*pods(fake).values())
    fake.end(pods(fake)["worker-0"], 3)
    report = backend.poll_job(handle)
    assert (report.phase, report.again) == ("failed", True)


def test_pauses_that_kubernetes_does_not_keep_are_refused() -> None:
    refused = {"name": "a", "program": "b", "ps": 1, "restart": {"backoff": "5s"}}
    ((field, why),) = KubernetesBackend.refusals(job_from_data(refused), has_archive=False)
    assert (field, "determines the pauses itself" in why) == ("restart.backoff", True)
    assert KubernetesBackend.refusals(job_from_data({**refused, "ps": 0}), has_archive=False) == []


def test_a_restricted_cluster_takes_the_pods(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    given = {
        "user": 1000,
        "shm": "1GiB",
        "image_pull_secrets": ["registry"],
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "priority_class": "low",
    }
    backend.submit_job(order(tmp_path, kubernetes=given))
    pod = fake.get("pods", pods(fake)["worker-0"])["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert pod["securityContext"]["runAsUser"] == 1000
    assert {"name": "shm", "mountPath": "/dev/shm"} in container["volumeMounts"]
    assert (pod["imagePullSecrets"], pod["priorityClassName"]) == ([{"name": "registry"}], "low")
    assert pod["tolerations"] == [{"key": "spot", "operator": "Exists"}]


def test_a_queue_that_lets_some_tasks_start_gets_their_places_back(tmp_path: Path) -> None:
    now = [100.0]
    with fake_kubernetes(tmp_path, check) as (fake, config):
        settings = KubernetesSettings(image="headwater:1", config_file=config, namespace="team")
        backend = KubernetesBackend(settings, clock=lambda: now[0])
        handle = backend.submit_job(order(tmp_path, kubernetes={"queue": "team", "gang": "5m"}))
        jobs = [fake.get("jobs", name) for name in fake.names("jobs")]
        assert [job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for job in jobs] == ["team"] * 3
        assert [job["spec"]["suspend"] for job in jobs] == [True] * 3
        assert fake.names("pods") == []
        now[0] += 1000  # it holds no resources, so it may wait
        report = backend.poll_job(handle)
        waits = "its Job is suspended until the queue team has free capacity"
        assert (report.phase, report.reason) == ("waiting", f"ps 0: {waits}")
        for name in ("linear-x1-ps-0", "linear-x1-worker-0"):
            fake.admit(name)
        fake.run(*pods(fake).values())
        assert backend.poll_job(handle).phase == "running"
        now[0] += 301
        report = backend.poll_job(handle)
        others = "worker-1 was not placed within 300 s, while other tasks held resources"
        assert (report.phase, report.reason) == ("crowded", f"{others}: {waits}")
        backend.delete_job(handle)
        handle = backend.submit_job(order(tmp_path, 1, kubernetes={"queue": "team"}))
        for name in fake.names("jobs"):
            fake.admit(name)
        fake.run(*pods(fake).values())
        now[0] += 1000
        assert backend.poll_job(handle).phase == "running"
        backend.close()


def test_all_of_a_job_belongs_to_its_service(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    fake.rules = rights("team", "headwater", nodes=False)[1]["rules"]
    extras = {"network_policy": True, "disruption_budget": True}
    ordered = order(tmp_path, kubernetes=extras)
    handle = backend.submit_job(ordered)
    assert backend.submit_job(ordered) == handle
    uid = fake.get("services", "linear-x1")["metadata"]["uid"]
    made = {"secrets": 1, "jobs": 3, "networkpolicies": 1, "poddisruptionbudgets": 1}
    for kind, count in made.items():
        names = fake.names(kind)
        assert len(names) == count
        for name in names:
            assert [owner["uid"] for owner in fake.get(kind, name)["metadata"]["ownerReferences"]] == [uid]
    budget = fake.get("poddisruptionbudgets", "linear-x1-0")["spec"]
    assert budget["minAvailable"] == 1
    assert budget["selector"]["matchExpressions"] == [{"key": "headwater.dev/role", "operator": "In", "values": ["ps"]}]
    assert fake.get("networkpolicies", "linear-x1-0")["spec"]["ingress"] == [
        {"from": [{"podSelector": {"matchLabels": {"headwater.dev/job": "linear-x1"}}}]}
    ]
    backend.delete_job(handle)
    assert not [name for kind in (*made, "services", "pods") for name in fake.names(kind)]


def test_places_that_do_not_suffice_are_given_back(tmp_path: Path) -> None:
    now = [100.0]
    with fake_kubernetes(tmp_path, check) as (fake, config):
        settings = KubernetesSettings(image="headwater:1", config_file=config, namespace="team")
        backend = KubernetesBackend(settings, clock=lambda: now[0])
        handle = backend.submit_job(order(tmp_path, kubernetes={"gang": "5m"}))
        found = pods(fake)
        for pod in found.values():
            fake.wait(pod, "0/3 nodes are available: 3 Insufficient nvidia.com/gpu")
        now[0] += 1000  # it holds no resources, so it may wait
        assert backend.poll_job(handle).phase == "waiting"
        fake.run(found["ps-0"], found["worker-0"])
        assert backend.poll_job(handle).phase == "running"
        now[0] += 299
        assert backend.poll_job(handle).phase == "running"
        now[0] += 2
        report = backend.poll_job(handle)
        assert (report.phase, report.reason) == (
            "crowded",
            "worker-1 was not placed within 300 s, while other tasks held resources: "
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu",
        )
        assert 60 <= report.pause_s <= 600
        backend.close()


def test_an_archive_that_cannot_be_unpacked_says_why(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(order(tmp_path))
    ended = {"exitCode": 1, "message": "Traceback\nheadwater: x.tar is damaged\n", "finishedAt": "2026-01-01T00:01:00Z"}
    fake.get("pods", pods(fake)["worker-0"])["status"] = {
        "phase": "Failed",
        "initContainerStatuses": [{"name": "unpack", "state": {"terminated": ended}}],
        "containerStatuses": [{"name": "task", "state": {"waiting": {"reason": "PodInitializing"}}}],
    }
    state = backend.poll_job(handle).tasks[FIRST]
    assert isinstance(state, Exited)
    assert state.reason == "its archive could not be unpacked: headwater: x.tar is damaged"


def preemptible(tmp_path: Path, *, attempt: int = 0, least: int) -> JobOrder:
    """A job that may have two workers, one of which exceeds its limit with the second failure."""
    ordered = order(tmp_path, attempt, preemptible=True, restart={"limit": 1}, kubernetes={"gang": "1s"})
    return dataclasses.replace(ordered, least=least)


def test_workers_of_a_preemptible_job_join_and_leave(cluster: Cluster, tmp_path: Path) -> None:
    fake, backend = cluster
    handle = backend.submit_job(preemptible(tmp_path, least=1))
    assert fake.get("jobs", "linear-x1-worker-1")["spec"]["backoffLimit"] > 1000
    assert fake.get("jobs", "linear-x1-ps-0")["spec"]["backoffLimit"] == 1
    found = pods(fake)
    fake.run(found["ps-0"], found["worker-0"])
    fake.wait(found["worker-1"], "no room")
    assert backend.poll_job(handle).phase == "running"
    fake.run(found["worker-1"])
    for _ in range(3):
        fake.end(pods(fake)["worker-1"], 137, status_reason="Evicted")
        report = backend.poll_job(handle)
        assert (report.phase, report.restarts[SECOND]) == ("running", 0)
    fake.wait(pods(fake)["worker-1"], "no room")
    for _ in range(2):
        fake.end(pods(fake)["worker-0"], 3)
    report = backend.poll_job(handle)
    assert (report.phase, report.reason) == ("failed", "worker 0 failed: it has failed repeatedly (after 1 restarts)")


@pytest.mark.parametrize(("least", "phase"), [(1, "succeeded"), (2, "running")])
def test_a_preemptible_job_succeeds_with_fewer_workers_when_there_is_no_room(
    cluster: Cluster, tmp_path: Path, least: int, phase: str
) -> None:
    fake, backend = cluster
    handle = backend.submit_job(preemptible(tmp_path, least=least))
    found = pods(fake)
    fake.run(found["ps-0"])
    fake.wait(found["worker-1"], "no room")
    fake.end(found["worker-0"], 0)
    assert backend.poll_job(handle).phase == phase


def test_manifests_have_no_anchors() -> None:
    labels = {"a": "b"}
    assert "&" not in to_yaml([{"one": labels, "two": labels}])
