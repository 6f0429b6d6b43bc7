"""A job as objects of Kubernetes: what ``headwater render`` prints and what the backend submits.

Each task is a Job (``batch/v1``) of one pod, which Kubernetes starts anew when it fails, up to the job's limit. Its pod
always has the same name behind a headless Service, such as ``worker-0.linear``, so that ``TF_CONFIG`` never changes.
All of it is there from version 1.20 of Kubernetes on; nothing newer is used.

What ends a job is not among the objects, because Kubernetes has none for it: the ``ps`` tasks end when the backend, or
a person who applied the objects by hand, deletes them.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from headwater.cluster.names import TaskName
from headwater.platform.host.gpus import CPU_ONLY
from headwater.platform.spec import JobSpec, RoleSpec, VolumeSpec
from headwater.platform.tasks import ELSEWHERE, cluster_of, task_command, task_environment, task_secrets

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject

LABEL = "headwater.dev/job"
ROLE_LABEL = "headwater.dev/role"
INDEX_LABEL = "headwater.dev/index"
ATTEMPT_LABEL = "headwater.dev/attempt"
#: What pods carry until they have ended, so that their Service does not give the address of a dead one.
LIVE_LABEL = "headwater.dev/live"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
#: Each task has a pod, and so an address, of its own: the port can be the same for all.
PORT = 2222
CONTAINER = "task"
# Kubernetes counts evictions as failures: where these are expected the server counts what is the task's own fault.
_NO_LIMIT = 1_000_000
#: What an object may hold, less room for what else is in it.
MAX_ARCHIVE_BYTES = 700_000

# Runs the task, and tells its progress in the pod's log.
_FIRST = ("python", "-P", "-m", "headwater.platform.host.pod_task")
_WORK = "/headwater/work"
_ARCHIVE = "/headwater/archive"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendering:
    """What the objects need beside the job itself.

    Attributes:
      name: the name of the Service, and the beginning of all others.
      job_id: what tasks are told that their job is.
      attempt: how often the job has been submitted before.
      image: the container image of jobs that name none.
      namespace: where the objects of jobs that name none go; None for whatever is current.
      token: the secret that the job's tasks share; None where the Secret ``name`` of the cluster is to hold it.
      secrets: values of the secrets that the job names, which are put into the Secret ``name``; None where a Secret of
        the cluster holds each, by the name that the job has for it, under the key ``value``.
      archive: a file that pods unpack into their working folder; None where the image or a volume has the program.
      managed: whether a server looks after the job, and restarts all of it where its rules say so.
      policy_version: the version of the API ``policy`` that the cluster has.
    """

    name: str
    job_id: str
    attempt: int = 0
    image: str
    namespace: str | None = None
    token: str | None
    secrets: Mapping[str, str] | None = field(default=None, repr=False)
    archive: Path | None = None
    managed: bool = False
    policy_version: str = "v1"


def object_name(job: str) -> str:
    """``job`` as a name that a Service may have: begins with a letter, 63 characters at most with what is added."""
    name = re.sub(r"[^a-z0-9-]+", "-", job.lower()).strip("-")
    return name if name[:1].isalpha() else f"hw-{name}"


def task_name(job: str, task: TaskName) -> str:
    """The name of a task's Job."""
    return f"{job}-{task.job}-{task.index}"


def tasks_of(spec: JobSpec) -> list[TaskName]:
    """All tasks of a job, in the order in which they are started."""
    return [TaskName(role, index) for role, count in spec.counts().items() for index in range(count)]


def job_objects(spec: JobSpec, how: Rendering) -> list[dict[str, Any]]:
    """The objects of a job, in the order in which they are to be made: plain values, as in a manifest.

    Raises:
      ValueError: the archive is too large for an object.
    """
    addresses = {task: f"{task.job}-{task.index}.{how.name}:{PORT}" for task in tasks_of(spec)}
    cluster = cluster_of(addresses)
    objects = [_service(how)] if how.token is None else [_secret(how.token, how), _service(how)]
    if how.archive is not None:
        objects.insert(-1, _archive(how.archive, how))
    if spec.kubernetes.network_policy:
        objects.append(_network_policy(how))
    if spec.kubernetes.disruption_budget:
        objects.append(_disruption_budget(spec, how))
    objects += [_task(spec, task, cluster, how) for task in tasks_of(spec)]
    namespace = spec.kubernetes.namespace or how.namespace
    for one in objects:
        if namespace is not None:
            one["metadata"]["namespace"] = namespace
        one["metadata"]["labels"] = _labels(how) | one["metadata"].get("labels", {})
    return objects


def owned(one: JsonObject, service: Mapping[str, Json]) -> dict[str, object]:
    """``one`` so that Kubernetes deletes it with the job's Service, ``service`` as the cluster has it."""
    metadata = service["metadata"]
    owner = {"apiVersion": "v1", "kind": "Service", "name": metadata["name"], "uid": metadata["uid"]}
    return one | {"metadata": one["metadata"] | {"ownerReferences": [owner]}}


def to_yaml(objects: list[dict[str, object]]) -> str:
    """``objects`` as ``kubectl apply -f -`` takes them."""
    return yaml.dump_all(objects, Dumper=_PlainDumper, sort_keys=False, default_flow_style=False, explicit_start=True)


class _PlainDumper(yaml.SafeDumper):
    """Writes what occurs twice twice: anchors mean nothing to people who look at a manifest."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _labels(how: Rendering) -> dict[str, str]:
    return {"app.kubernetes.io/name": "headwater", LABEL: how.name, ATTEMPT_LABEL: str(how.attempt)}


def _secret(token: str, how: Rendering) -> JsonObject:
    secrets = {_secret_key(name): value for name, value in (how.secrets or {}).items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": how.name},
        "type": "Opaque",
        "stringData": {"token": token, **secrets},
    }


def _secret_key(secret: str) -> str:
    return f"secret.{secret}"


def _archive(path: Path, how: Rendering) -> dict[str, object]:
    data = path.read_bytes()
    if len(data) > MAX_ARCHIVE_BYTES:
        raise ValueError(
            f"the archive {path} has {len(data)} bytes, and {MAX_ARCHIVE_BYTES} fit into an object of Kubernetes: "
            "put the program into the image or a volume, and leave archive out"
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": how.name},
        "binaryData": {"archive": base64.b64encode(data).decode()},
    }


def _service(how: Rendering) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": how.name},
        "spec": {
            "clusterIP": "None",
            # Tasks look for each other before they are ready.
            "publishNotReadyAddresses": True,
            "selector": {LABEL: how.name, LIVE_LABEL: "yes"},
            "ports": [{"name": "cluster", "port": PORT, "protocol": "TCP"}],
        },
    }


def _network_policy(how: Rendering) -> dict[str, object]:
    same = {"matchLabels": {LABEL: how.name}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": _extra_name(how)},
        "spec": {"podSelector": same, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": same}]}]},
    }


def _disruption_budget(spec: JobSpec, how: Rendering) -> dict[str, object]:
    needed = [task for task in tasks_of(spec) if spec.restart_scope == "job" or task.job in ("ps", "chief")]
    roles = sorted({task.job for task in needed})
    return {
        "apiVersion": f"policy/{how.policy_version}",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": _extra_name(how)},
        "spec": {
            # Not maxUnavailable, which needs a controller that can be scaled.
            "minAvailable": len(needed),
            "selector": {
                "matchLabels": {LABEL: how.name, LIVE_LABEL: "yes"},
                "matchExpressions": [{"key": ROLE_LABEL, "operator": "In", "values": roles}],
            },
        },
    }


def _extra_name(how: Rendering) -> str:
    # Those of the last attempt go with its Service, a moment later.
    return f"{how.name}-{how.attempt}"


def _task(spec: JobSpec, task: TaskName, cluster: Mapping[str, list[str]], how: Rendering) -> JsonObject:
    labels = {ROLE_LABEL: task.job, INDEX_LABEL: str(task.index)}
    limit = spec.restart.limit if spec.restart.policy == "on-failure" else 0
    if how.managed and spec.elastic and task.job != "ps":
        limit = _NO_LIMIT
    job: JsonObject = {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 0 if how.managed and spec.restart_scope == "job" else limit,
        "template": {
            "metadata": {"labels": _labels(how) | labels | {LIVE_LABEL: "yes"}},
            "spec": _pod(spec, task, cluster, how),
        },
    }
    if spec.kubernetes.queue is not None:
        labels = labels | {QUEUE_LABEL: spec.kubernetes.queue}
        # Kueue takes this away where the queue has room for it.
        job["suspend"] = True
    if spec.kubernetes.keep is not None:
        job["ttlSecondsAfterFinished"] = math.ceil(spec.kubernetes.keep)
    if spec.deadlines.run is not None:
        job["activeDeadlineSeconds"] = max(1, math.ceil(spec.deadlines.run))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": task_name(how.name, task), "labels": labels},
        "spec": job,
    }


def _pod(spec: JobSpec, task: TaskName, cluster: Mapping[str, list[str]], how: Rendering) -> JsonObject:
    role = _role(spec, task)
    volumes, mounts = _volumes(spec.kubernetes.volumes)
    image = spec.kubernetes.image or how.image
    pulled = {"imagePullPolicy": policy} if (policy := spec.kubernetes.image_pull_policy) else {}
    command = task_command(spec, task, cluster, headwater_command=ELSEWHERE)
    container: dict[str, object] = {
        "name": CONTAINER,
        "image": image,
        **pulled,
        "command": [*_FIRST, *(_literal(part) for part in command)],
        "env": _environment(spec, task, cluster, how),
        "ports": [{"name": "cluster", "containerPort": PORT, "protocol": "TCP"}],
        "resources": _resources(role, spec.kubernetes.gpu_resource),
        "securityContext": _security(spec),
    }
    pod: JsonObject = {
        "hostname": f"{task.job}-{task.index}",
        "subdomain": how.name,
        # A pod that failed stays, with its log, and the Job makes another one.
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": math.ceil(spec.deadlines.grace),
        "containers": [container],
    }
    if spec.kubernetes.shm:
        volumes += [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(spec.kubernetes.shm)}}]
        mounts = [*mounts, {"name": "shm", "mountPath": "/dev/shm"}]
    workdir = spec.workdir
    if how.archive is not None:
        workdir = f"{_WORK}/{spec.workdir}" if spec.workdir else _WORK
        volumes += [{"name": "work", "emptyDir": {}}, {"name": "archive", "configMap": {"name": how.name}}]
        unpacked = {"name": "work", "mountPath": _WORK}
        pod["initContainers"] = [
            {
                "name": "unpack",
                "image": image,
                **pulled,
                "command": ["python", "-m", "headwater.platform.archives", f"{_ARCHIVE}/archive", _WORK],
                "volumeMounts": [unpacked, {"name": "archive", "mountPath": _ARCHIVE, "readOnly": True}],
                # A quota may ask every container for its wishes.
                "resources": _resources(role.model_copy(update={"gpus": 0}), spec.kubernetes.gpu_resource),
                "securityContext": _security(spec),
                # Its last lines are the reason that the server tells.
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }
        ]
        mounts = [*mounts, unpacked]
    if workdir is not None:
        container["workingDir"] = workdir
    if mounts:
        container["volumeMounts"] = mounts
    if volumes:
        pod["volumes"] = volumes
    if spec.kubernetes.user is not None:
        user = spec.kubernetes.user
        pod["securityContext"] = {"runAsUser": user, "runAsGroup": user, "fsGroup": user}
    if spec.kubernetes.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in spec.kubernetes.image_pull_secrets]
    if spec.kubernetes.tolerations:
        pod["tolerations"] = [one.model_dump(exclude_none=True) for one in spec.kubernetes.tolerations]
    if spec.kubernetes.priority_class is not None:
        pod["priorityClassName"] = spec.kubernetes.priority_class
    if role.node_selector:
        pod["nodeSelector"] = dict(role.node_selector)
    if spec.kubernetes.service_account is not None:
        pod["serviceAccountName"] = spec.kubernetes.service_account
    else:
        pod["automountServiceAccountToken"] = False
    return pod


def _security(spec: JobSpec) -> dict[str, object]:
    """What a container may do: with a user of its own, what the standard ``restricted`` of pod security asks for."""
    if spec.kubernetes.user is None:
        return {"allowPrivilegeEscalation": False}
    return {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def rights(namespace: str | None, account: str, *, nodes: bool) -> list[dict[str, Any]]:
    """The objects that let a service account of ``namespace`` do what the server needs, and no more.

    Args:
      namespace: where jobs go; None for whatever is current.
      account: the name of the service account, which is made, too.
      nodes: whether it may also see machines and all pods, to tell what is free.
    """
    where = {} if namespace is None else {"namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace or "default"}
    api = "rbac.authorization.k8s.io"
    found: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, **where}},
        {
            "apiVersion": f"{api}/v1",
            "kind": "Role",
            "metadata": {"name": account, **where},
            "rules": [
                {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "list", "delete"]},
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete", "patch"]},
                {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["create", "delete"]},
                {"apiGroups": [""], "resources": ["services"], "verbs": ["create", "get", "delete"]},
                {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["create"]},
                {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["create"]},
            ],
        },
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": account, **where},
            "subjects": [subject],
            "roleRef": {"apiGroup": api, "kind": "Role", "name": account},
        },
    ]
    if nodes:
        found += [
            {
                "apiVersion": f"{api}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": f"{account}-machines"},
                "rules": [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}],
            },
            {
                "apiVersion": f"{api}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{account}-machines"},
                "subjects": [subject],
                "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": f"{account}-machines"},
            },
        ]
    return found


def _role(spec: JobSpec, task: TaskName) -> RoleSpec:
    return spec.role(task.job)  # pyright: ignore[reportArgumentType]  tasks are made of roles


def _environment(
    spec: JobSpec, task: TaskName, cluster: Mapping[str, list[str]], how: Rendering
) -> list[dict[str, object]]:
    gpus = _role(spec, task).gpus
    variables = {
        # A pod may learn the address behind its own name only later, and has one address anyway.
        "HEADWATER_BIND_HOST": "0.0.0.0",
        **({} if gpus else CPU_ONLY),
        **task_environment(spec, task, cluster, job_id=how.job_id, attempt=how.attempt),
    }
    given: list[dict[str, object]] = [{"name": name, "value": _literal(value)} for name, value in variables.items()]
    secrets = {
        variable: {"name": secret, "key": "value"}
        if how.secrets is None
        else {"name": how.name, "key": _secret_key(secret)}
        for variable, secret in task_secrets(spec, task).items()
    }
    if "HEADWATER_TOKEN" not in variables:
        secrets.setdefault("HEADWATER_TOKEN", {"name": how.name, "key": "token"})
    return [*given, *({"name": name, "valueFrom": {"secretKeyRef": ref}} for name, ref in secrets.items())]


def _resources(role: RoleSpec, gpu_resource: str) -> dict[str, object]:
    asked: dict[str, object] = {}
    if role.cpus:
        asked["cpu"] = f"{math.ceil(role.cpus * 1000)}m"
    if role.memory:
        asked["memory"] = str(role.memory)
    if role.gpus:
        asked[gpu_resource] = str(role.gpus)
    # What is no limit of CPUs lets a task use those that no other task does.
    limits = {name: value for name, value in asked.items() if name != "cpu"}
    return {key: value for key, value in (("requests", asked), ("limits", limits)) if value}


def _volumes(specs: list[VolumeSpec]) -> tuple[list[JsonObject], list[JsonObject]]:
    volumes: list[JsonObject] = []
    mounts: list[dict[str, object]] = []
    for number, volume in enumerate(specs):
        name = f"volume-{number}"
        if volume.claim is not None:
            source: JsonObject = {"persistentVolumeClaim": {"claimName": volume.claim, "readOnly": volume.read_only}}
        elif volume.host_path is not None:
            source = {"hostPath": {"path": volume.host_path}}
        else:
            source = {"emptyDir": {}}
        volumes.append({"name": name, **source})
        mounts.append({"name": name, "mountPath": volume.path, "readOnly": volume.read_only})
    return volumes, mounts


def _literal(text: str) -> str:
    """``text`` so that Kubernetes, which replaces ``$(NAME)``, leaves it as it is."""
    return text.replace("$(", "$$(")
