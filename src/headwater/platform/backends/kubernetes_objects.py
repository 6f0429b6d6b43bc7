"""A job as objects of Kubernetes: the output of ``headwater render``, and the objects that the backend submits.

Each task is a Job (``batch/v1``) of one pod, which Kubernetes restarts when it fails, up to the job's limit. Its pod
always has the same name behind a headless Service, such as ``worker-0.linear``, so that ``TF_CONFIG`` never changes.
All features used exist since Kubernetes 1.20.

Kubernetes has no object that ends a job when its workers are done: the ``ps`` tasks run until the backend, or the user
who applied the objects manually, deletes them.
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
from headwater.platform.tasks import COMMAND_PLACEHOLDER, cluster_of, task_command, task_environment, task_secrets

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject

LABEL = "headwater.dev/job"
ROLE_LABEL = "headwater.dev/role"
INDEX_LABEL = "headwater.dev/index"
ATTEMPT_LABEL = "headwater.dev/attempt"
#: The label of pods that have not ended. The Service selects pods by this label, so that its names do not resolve to
#: dead pods.
LIVE_LABEL = "headwater.dev/live"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
#: Each task has its own pod and address, so all can use the same port.
PORT = 2222
CONTAINER = "task"
# Kubernetes counts evictions as failures: for elastic jobs, the server counts the task's own failures instead.
_NO_LIMIT = 1_000_000
#: The limit of an object's size (1 MiB), less room for its other contents.
MAX_ARCHIVE_BYTES = 700_000

# Runs the task, and writes its progress to the pod's log.
_FIRST = ("python", "-P", "-m", "headwater.platform.host.pod_task")
_WORK = "/headwater/work"
_ARCHIVE = "/headwater/archive"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendering:
    """Values that the objects need in addition to the job's specification.

    Attributes:
      name: the name of the Service, and the prefix of all other names.
      job_id: the job's id, as passed to its tasks.
      attempt: how often the job has been submitted before.
      image: the container image of jobs that name none.
      namespace: the namespace of jobs that name none; None for the client's current namespace.
      token: the secret that the job's tasks share; None if a person stores it in the Secret ``name`` beforehand.
      secrets: the values of the secrets that the job names, which are stored in the Secret ``name``. None if the
        cluster already has a Secret for each: it has the name in the job file, and the value under the key ``value``.
      archive: a file that pods unpack into their working folder; None if the image or a volume has the program.
      managed: whether a server watches the job, and restarts it as a whole if its rules say so.
      policy_version: the cluster's version of the API ``policy``.
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
    """Returns ``job`` as a Service name: begins with a letter, at most 63 characters including suffixes."""
    name = re.sub(r"[^a-z0-9-]+", "-", job.lower()).strip("-")
    return name if name[:1].isalpha() else f"hw-{name}"


def task_name(job: str, task: TaskName) -> str:
    """Returns the name of a task's Job."""
    return f"{job}-{task.job}-{task.index}"


def tasks_of(spec: JobSpec) -> list[TaskName]:
    """Returns all tasks of a job, in start order."""
    return [TaskName(role, index) for role, count in spec.counts().items() for index in range(count)]


def job_objects(spec: JobSpec, how: Rendering) -> list[dict[str, Any]]:
    """Returns the objects of a job, in order of creation: plain values, as in a manifest.

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
    """Returns ``one`` with the job's Service as its owner, so that Kubernetes deletes both together."""
    metadata = service["metadata"]
    owner = {"apiVersion": "v1", "kind": "Service", "name": metadata["name"], "uid": metadata["uid"]}
    return one | {"metadata": one["metadata"] | {"ownerReferences": [owner]}}


def to_yaml(objects: list[dict[str, object]]) -> str:
    """Returns ``objects`` as YAML for ``kubectl apply -f -``."""
    return yaml.dump_all(objects, Dumper=_PlainDumper, sort_keys=False, default_flow_style=False, explicit_start=True)


class _PlainDumper(yaml.SafeDumper):
    """Writes repeated values out, because anchors make a manifest hard to read."""

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
            "put the program into the image or a volume, and omit archive"
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
            # Tasks connect to each other before they are ready.
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
            # Not maxUnavailable, which requires a controller that can be scaled.
            "minAvailable": len(needed),
            "selector": {
                "matchLabels": {LABEL: how.name, LIVE_LABEL: "yes"},
                "matchExpressions": [{"key": ROLE_LABEL, "operator": "In", "values": roles}],
            },
        },
    }


def _extra_name(how: Rendering) -> str:
    # The name contains the attempt, because objects of the previous attempt may still exist: Kubernetes deletes them
    # some time after their Service.
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
        # Kueue resumes the Job once the queue has room for it.
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
    command = task_command(spec, task, cluster, headwater_command=COMMAND_PLACEHOLDER)
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
        # A failed pod stays, with its log, and the Job creates another pod.
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
                # A quota may require resource requests of every container.
                "resources": _resources(role.model_copy(update={"gpus": 0}), spec.kubernetes.gpu_resource),
                "securityContext": _security(spec),
                # The server shows the last lines of the container's log as the reason of a failure.
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
    """Returns a container's security context; with a user, it satisfies the ``restricted`` pod security standard."""
    if spec.kubernetes.user is None:
        return {"allowPrivilegeEscalation": False}
    return {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def rights(namespace: str | None, account: str, *, nodes: bool) -> list[dict[str, Any]]:
    """Returns the objects that grant a service account of ``namespace`` the permissions of the server, and no more.

    Args:
      namespace: the namespace of jobs; None for the client's current namespace.
      account: the name of the service account, which is created, too.
      nodes: whether the account may also list nodes and all pods, which `capacity` needs.
    """
    where = {} if namespace is None else {"namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace or "default"}
    api = "rbac.authorization.k8s.io"
    rules: list[JsonObject] = [
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
        rules += [
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
    return rules


def _role(spec: JobSpec, task: TaskName) -> RoleSpec:
    return spec.role(task.job)  # pyright: ignore[reportArgumentType]  tasks are made of roles


def _environment(
    spec: JobSpec, task: TaskName, cluster: Mapping[str, list[str]], how: Rendering
) -> list[dict[str, object]]:
    gpus = _role(spec, task).gpus
    variables = {
        # A pod may be able to resolve its own name only later, and has just one address anyway.
        "HEADWATER_BIND_HOST": "0.0.0.0",
        **({} if gpus else CPU_ONLY),
        **task_environment(spec, task, cluster, job_id=how.job_id, attempt=how.attempt),
    }
    entries: list[dict[str, object]] = [{"name": name, "value": _literal(value)} for name, value in variables.items()]
    secrets = {
        variable: {"name": secret, "key": "value"}
        if how.secrets is None
        else {"name": how.name, "key": _secret_key(secret)}
        for variable, secret in task_secrets(spec, task).items()
    }
    if "HEADWATER_TOKEN" not in variables:
        secrets.setdefault("HEADWATER_TOKEN", {"name": how.name, "key": "token"})
    return [*entries, *({"name": name, "valueFrom": {"secretKeyRef": ref}} for name, ref in secrets.items())]


def _resources(role: RoleSpec, gpu_resource: str) -> dict[str, object]:
    asked: dict[str, object] = {}
    if role.cpus:
        asked["cpu"] = f"{math.ceil(role.cpus * 1000)}m"
    if role.memory:
        asked["memory"] = str(role.memory)
    if role.gpus:
        asked[gpu_resource] = str(role.gpus)
    # No limit of CPUs, so that a task can use idle CPUs.
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
    """Escapes ``text``, so that Kubernetes does not expand ``$(NAME)`` in it."""
    return text.replace("$(", "$$(")
