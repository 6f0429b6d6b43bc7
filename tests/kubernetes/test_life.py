"""The lives of jobs on a real Kubernetes, with the rights that are shipped and no others.

``make test-kubernetes KUBECONFIG=... IMAGE=...``: a cluster of one's own, of version 1.20 or newer, whose administrator
the file lets one be, and an image with Headwater that its nodes have or can pull. Each run has a namespace of its own.
Nothing else of the cluster is changed, but for the cluster role of ``headwater render --rbac``.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from headwater.platform.backends.kubernetes_objects import Rendering, job_objects, rights
from headwater.platform.spec import job_from_data
from tests.support.platform import HEADWATER, Server, server

CONFIG, IMAGE = os.environ.get("HEADWATER_TEST_KUBECONFIG", ""), os.environ.get("HEADWATER_TEST_IMAGE", "")
pytestmark = [
    pytest.mark.skipif(not (CONFIG and IMAGE), reason="needs a cluster: make test-kubernetes"),
    pytest.mark.long,
]
REPOSITORY = Path(__file__).resolve().parents[2]
# A parameter server waits to be ended, all others run what follows.
PS_WAITS = 'case "$TF_CONFIG" in *\'"type": "ps"\'*) trap "exit 0" TERM; while :; do sleep 1; done;; esac; '
# The image's user, so that pods fit the restricted standard.
RESTRICTED = {"user": 1000, "network_policy": True, "disruption_budget": True, "image_pull_policy": "IfNotPresent"}


class RealCluster:
    """A namespace of a cluster, and a server that may do there what the shipped role lets it."""

    def __init__(self, folder: Path) -> None:
        from kubernetes import client, config, utils

        self.namespace = f"headwater-test-{secrets.token_hex(3)}"
        self._client: Any = client
        self._api: Any = config.new_client_from_config(config_file=CONFIG)
        self.core: Any = client.CoreV1Api(self._api)
        self.batch: Any = client.BatchV1Api(self._api)
        self._network: Any = client.NetworkingV1Api(self._api)
        self._custom: Any = client.CustomObjectsApi(self._api)
        self._rbac: Any = client.RbacAuthorizationV1Api(self._api)
        self._account = self.namespace
        self.minor = int("".join(filter(str.isdigit, client.VersionApi(self._api).get_code().minor)))
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        metadata = client.V1ObjectMeta(name=self.namespace, labels=labels)
        self.core.create_namespace(client.V1Namespace(metadata=metadata))
        for one in rights(self.namespace, self._account, nodes=True):
            utils.create_from_dict(self._api, one)
        wanted = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
        granted = self.core.create_namespaced_service_account_token(self._account, self.namespace, wanted)
        assert granted.status is not None
        given = yaml.safe_load(Path(CONFIG).read_text())
        for user in given["users"]:
            user["user"] = {"token": granted.status.token}
        self.config = folder / "kubeconfig"
        self.config.write_text(yaml.safe_dump(given))
        self.backends = folder / "backends.yaml"
        settings = {"image": IMAGE, "namespace": self.namespace, "config_file": str(self.config)}
        self.backends.write_text(yaml.safe_dump({"kubernetes": settings}))

    def close(self) -> None:
        self.core.delete_namespace(self.namespace)
        self._rbac.delete_cluster_role_binding(f"{self._account}-machines")
        self._rbac.delete_cluster_role(f"{self._account}-machines")
        self._api.close()

    def names(self, job_id: str) -> dict[str, list[str]]:
        """What there is of a job, by kind."""
        select = {"label_selector": f"headwater.dev/job={job_id}"}
        budgets = self._custom.list_namespaced_custom_object(
            "policy", self._budgets(), self.namespace, "poddisruptionbudgets", **select
        )
        found = {
            "Job": self.batch.list_namespaced_job(self.namespace, **select).items,
            "Pod": self.core.list_namespaced_pod(self.namespace, **select).items,
            "Service": self.core.list_namespaced_service(self.namespace, **select).items,
            "Secret": self.core.list_namespaced_secret(self.namespace, **select).items,
            "ConfigMap": self.core.list_namespaced_config_map(self.namespace, **select).items,
            "NetworkPolicy": self._network.list_namespaced_network_policy(self.namespace, **select).items,
        }
        names = {kind: [one.metadata.name for one in items] for kind, items in found.items()}
        names["PodDisruptionBudget"] = [one["metadata"]["name"] for one in budgets["items"]]
        return {kind: sorted(names[kind]) for kind in names if names[kind]}

    def _budgets(self) -> str:
        return str(self._client.PolicyApi(self._api).get_api_group().preferred_version.version)

    def pod(self, job_id: str, task: str) -> str:
        """The pod of a task that runs now."""
        select = f"headwater.dev/job={job_id}"
        pods = self.core.list_namespaced_pod(self.namespace, label_selector=select).items
        return next(
            pod.metadata.name
            for pod in pods
            if pod.metadata.name.startswith(f"{job_id}-{task}-") and pod.status.phase == "Running"
        )

    def delete_pod(self, name: str) -> None:
        """What a node that fails does to it."""
        self.core.delete_namespaced_pod(name, self.namespace, grace_period_seconds=0)

    def evict(self, name: str) -> int:
        """What ``kubectl drain`` does to a pod; the status."""
        version = self._budgets()
        body = {"apiVersion": f"policy/{version}", "kind": "Eviction", "metadata": {"name": name}}
        try:
            self.core.create_namespaced_pod_eviction(name, self.namespace, body)
        except self._client.ApiException as error:
            return int(error.status)
        return 201

    def until(self, met: Callable[[], bool]) -> None:
        """Waits until the cluster is as wanted: each change of a Job or pod is a reason to look again."""
        from kubernetes import watch

        changes: Any = watch.Watch()
        while not met():
            for _ in changes.stream(self.core.list_namespaced_event, self.namespace, timeout_seconds=1):
                if met():
                    return


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    cluster = RealCluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def running(cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("server"), "--backends", str(cluster.backends)) as running:
        yield running


def task_of(job: Any, name: str) -> Any:
    return next(task for task in job["tasks"] if task["name"] == name)


def delete(running: Server, cluster: RealCluster, job_id: str) -> None:
    """Deletes a job, and waits until nothing of it is left."""
    running.client.delete(f"/jobs/{job_id}")
    cluster.until(lambda: not cluster.names(job_id))


def test_training_outlives_its_pods_and_scales(running: Server, cluster: RealCluster, tmp_path: Path) -> None:
    """The linear example, which comes as an archive: killed worker, killed ps, another worker, stopped; success."""
    archive = tmp_path / "program.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(REPOSITORY / "examples" / "linear.py", arcname="linear.py")
    running.client.put("/secrets/hub", {"value": "s3cret"})
    job_file: dict[str, Any] = {
        "name": "linear",
        "program": "linear.py",
        "args": ["--steps=1000000", "--logdir=/tmp/log"],
        "flags": True,
        "ps": {"count": 1, "env": {"HUB": {"secret": "hub"}}},
        "workers": "2:3",
        "restart": {"limit": 10},
        "deadlines": {"grace": 5},
        "kubernetes": RESTRICTED,
    }
    digest = running.client.upload(archive)
    job_id = running.client.post("/jobs", job_file, archive=digest)["id"]
    running.until(job_id, lambda job: (job["step"] or 0) > 100)
    made = cluster.names(job_id)
    assert [len(made[kind]) for kind in ("Job", "Service", "Secret", "ConfigMap")] == [3, 1, 1, 1]
    assert made["NetworkPolicy"] == made["PodDisruptionBudget"] == [f"{job_id}-0"]
    pods = cluster.core.list_namespaced_pod(cluster.namespace, label_selector=f"headwater.dev/job={job_id}").items
    assert all(pod.spec.containers[0].security_context.run_as_non_root for pod in pods)
    assert "s3cret" not in str([pod.to_dict() for pod in pods])
    environment = {one.name: one.value_from for pod in pods for one in pod.spec.containers[0].env}
    assert environment["HUB"].secret_key_ref.key == "secret.hub"
    # The keepers of the cluster may not take the ps away; a node that fails may.
    assert cluster.evict(cluster.pod(job_id, "ps-0")) == 429
    worker = cluster.pod(job_id, "worker-1")
    cluster.delete_pod(worker)
    cluster.until(lambda: any(name != worker for name in running_pods(cluster, job_id, "worker-1")))
    ps = cluster.pod(job_id, "ps-0")
    cluster.delete_pod(ps)
    cluster.until(lambda: any(name != ps for name in running_pods(cluster, job_id, "ps-0")))
    step = running.job(job_id)["step"]
    running.until(job_id, lambda job: job["step"] not in (None, step))
    running.client.post(f"/jobs/{job_id}/scale", {"workers": 3})
    job = running.until(job_id, lambda job: job["tasks_running"] == 4)
    assert task_of(job, "worker-2")["host"]
    assert job["loss"] is not None
    running.client.post(f"/jobs/{job_id}/stop")
    assert running.over(job_id)["phase"] == "stopped"
    delete(running, cluster, job_id)
    job_file["args"] = ["--steps=500", "--logdir=/tmp/log"]
    short = running.client.post("/jobs", job_file, archive=digest)["id"]
    job = running.over(short)
    assert job["phase"] == "succeeded", (job["reason"], running.log(short, "worker-0")[-20:])
    assert job["step"] > 0  # of the 500 the last that was reported
    assert running.log(short, "worker-0")
    delete(running, cluster, short)


def test_an_evicted_worker_of_a_preemptible_job_restarts(running: Server, cluster: RealCluster) -> None:
    script = (
        PS_WAITS + 'trap "exit 0" TERM; step=0; while :; do step=$((step + 1)); echo "Step: $step"; sleep 0.2; done'
    )
    job_id = running.submit(script, ps=1, workers="1:2", preemptible=True, kubernetes=RESTRICTED)
    running.until(job_id, lambda job: job["tasks_running"] == 3 and (job["step"] or 0) > 5)
    assert cluster.evict(cluster.pod(job_id, "worker-1")) == 201
    running.until(job_id, lambda job: job["cost"]["preemptions"] == 1)
    job = running.until(job_id, lambda job: job["tasks_running"] == 3)
    assert (job["phase"], job["restarts"], task_of(job, "worker-1")["attempt"]) == ("running", 0, 1)
    running.client.post(f"/jobs/{job_id}/stop")
    assert running.over(job_id)["phase"] == "stopped"
    delete(running, cluster, job_id)


def test_the_example_runs_as_it_is(running: Server, cluster: RealCluster) -> None:
    environ = {**os.environ, "HEADWATER_SERVER": running.address, "HEADWATER_SERVER_TOKEN": running.token}
    command = [*HEADWATER, "submit", str(REPOSITORY / "examples" / "linear.yaml"), "--upload", "--follow"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert (done.returncode, "Result: w = " in done.stdout) == (0, True), done.stdout[-2000:] + done.stderr
    delete(running, cluster, done.stdout.splitlines()[0])


def running_pods(cluster: RealCluster, job_id: str, task: str) -> list[str]:
    """The pods of a task that run and are not about to go."""
    pods = cluster.core.list_namespaced_pod(cluster.namespace, label_selector=f"headwater.dev/job={job_id}").items
    return [
        pod.metadata.name
        for pod in pods
        if pod.metadata.name.startswith(f"{job_id}-{task}-")
        and pod.status.phase == "Running"
        and pod.metadata.deletion_timestamp is None
    ]


def test_a_failed_job_is_restarted_and_tells_its_last_line(running: Server, cluster: RealCluster) -> None:
    script = PS_WAITS + 'if [ "$HEADWATER_ATTEMPT" = 0 ]; then printf "no newline"; exit 3; fi; echo again'
    job_id = running.submit(script, ps=1, workers=1, restart={"policy": "never"}, kubernetes=RESTRICTED)
    job = running.over(job_id)
    assert (job["phase"], job["reason"]) == ("failed", "worker-0 failed: exit code 3: no newline")
    assert job["first_error"]["last_lines"] == ["no newline"]
    assert running.log(job_id, "worker-0") == ["no newline"]
    running.client.post(f"/jobs/{job_id}/restart")
    job = running.over(job_id)
    assert job["phase"] == "succeeded"
    assert running.log(job_id, "worker-0")[-1] == "again"
    delete(running, cluster, job_id)


def test_a_stopped_job_is_restarted(running: Server, cluster: RealCluster) -> None:
    script = PS_WAITS + 'trap "echo asked; exit 0" TERM; echo up $HEADWATER_ATTEMPT; while :; do sleep 0.2; done'
    job_id = running.submit(script, ps=1, workers=2, kubernetes=RESTRICTED)
    for attempt in (0, 1):
        if attempt:
            running.client.post(f"/jobs/{job_id}/restart")
        # A container runs before its program has said what it does when it is asked to end.
        for worker in ("worker-0", "worker-1"):
            running.wait_log(job_id, worker, f"up {attempt}")
        running.client.post(f"/jobs/{job_id}/stop")
        assert running.over(job_id)["phase"] == "stopped"
    assert running.log(job_id, "worker-1").count("asked") == 2
    delete(running, cluster, job_id)


def test_a_quota_that_does_not_suffice_leaves_nothing(running: Server, cluster: RealCluster) -> None:
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"count/jobs.batch": "2"}}}
    cluster.core.create_namespaced_resource_quota(cluster.namespace, quota)
    cluster.until(
        lambda: bool(cluster.core.read_namespaced_resource_quota_status("few", cluster.namespace).status.hard)
    )
    try:
        job_id = running.submit("sleep 1000", ps=1, workers=4, kubernetes=RESTRICTED)
        job = running.over(job_id)
        assert (job["phase"], "exceeded quota: few" in job["reason"]) == ("failed", True)
        cluster.until(lambda: not cluster.names(job_id))
        running.client.delete(f"/jobs/{job_id}")
    finally:
        cluster.core.delete_namespaced_resource_quota("few", cluster.namespace)


def test_a_server_that_is_killed_while_it_makes_a_job_is_followed_by_one_that_makes_the_rest(
    cluster: RealCluster, tmp_path: Path
) -> None:
    """Killed after the first Job is seen; the next one makes what is missing, and nothing twice."""
    with server(tmp_path, "--backends", str(cluster.backends)) as killed:
        job_id = killed.submit("sleep 1000", ps=1, workers=11, kubernetes=RESTRICTED)
        cluster.until(lambda: bool(cluster.names(job_id).get("Job")))
        killed.kill()
        left = cluster.names(job_id)["Job"]
        killed.start()
        cluster.until(lambda: len(cluster.names(job_id)["Job"]) == 12)
        killed.until(job_id, lambda job: job["tasks_running"] == 12)
        made = cluster.names(job_id)
        assert set(left) <= set(made["Job"])
        assert [len(made[kind]) for kind in ("Job", "Pod", "Service", "Secret")] == [12, 12, 1, 1]
        killed.client.post(f"/jobs/{job_id}/stop")
        assert killed.over(job_id)["phase"] == "stopped"
        delete(killed, cluster, job_id)


def test_places_that_do_not_suffice_are_given_back(running: Server, cluster: RealCluster) -> None:
    total = running.client.get("/hosts")[0]["total"]["cpus"]
    asked = {"count": 2, "cpus": total * 0.6}
    job_id = running.submit("sleep 1000", ps=1, workers=asked, kubernetes={**RESTRICTED, "gang": "3s"})
    job = running.until(job_id, lambda job: "all is given back" in job["reason"] and job["phase"] == "queued")
    assert "was not placed within 3 s, while other tasks held resources" in job["reason"]
    assert not cluster.names(job_id).get("Job")
    running.client.post(f"/jobs/{job_id}/stop")
    assert running.over(job_id)["phase"] == "stopped"
    delete(running, cluster, job_id)


def test_a_job_without_its_deleted_service_leaves_no_objects(running: Server, cluster: RealCluster) -> None:
    job_id = running.submit("sleep 1000", ps=1, workers=1, restart={"policy": "never"}, kubernetes=RESTRICTED)
    running.until(job_id, lambda job: job["tasks_running"] == 2)
    cluster.core.delete_namespaced_service(job_id, cluster.namespace, _preload_content=False)
    assert running.over(job_id)["phase"] == "failed"
    cluster.until(lambda: not cluster.names(job_id).get("Job"))
    delete(running, cluster, job_id)


def test_jobs_have_the_queue_label_of_kueue(cluster: RealCluster) -> None:
    """Nothing is made: without Kueue a suspended Job would wait for ever."""
    spec = job_from_data({"name": "queued", "program": "a.py", "ps": 1, "kubernetes": {**RESTRICTED, "queue": "team"}})
    how = Rendering(name="queued", job_id="queued", image=IMAGE, namespace=cluster.namespace, token=None, managed=True)
    jobs = [one for one in job_objects(spec, how) if one["kind"] == "Job"]
    assert len(jobs) == 2
    for one in jobs:
        made = cluster.batch.create_namespaced_job(cluster.namespace, one, dry_run="All")
        assert made.metadata.labels["kueue.x-k8s.io/queue-name"] == "team"
        # The field is newer than Kubernetes 1.20, which drops it.
        assert made.spec.suspend is (None if cluster.minor < 21 else True)


def test_machines_are_reported(running: Server) -> None:
    hosts = running.client.get("/hosts")
    assert [host["problem"] for host in hosts] == [""] * len(hosts)
    assert json.dumps(hosts)
