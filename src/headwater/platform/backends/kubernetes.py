"""Kubernetes, through its official Python client (extra ``kubernetes``) and an API server from version 1.20 on."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import random
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.cluster.names import TaskName
from headwater.platform.backends import kubernetes_objects as objects
from headwater.platform.backends.base import (
    BackendError,
    Capacity,
    Exited,
    JobBackend,
    JobOrder,
    JobReport,
    Running,
    TaskState,
)
from headwater.platform.backends.kubernetes_logs import Listener, fetch_log, last_progress
from headwater.platform.backends.kubernetes_reports import (
    CANNOT_RUN,
    DONE,
    cannot_run,
    condition,
    count_failures,
    failed_too_often,
    host_capacity,
    is_suspended,
    job_report,
    labelled_task,
    last_failure_reason,
    task_state,
    without_node,
)
from headwater.platform.logfiles import plain, read_part
from headwater.platform.spec import JobSpec
from headwater.platform.states import label, task_of

if TYPE_CHECKING:
    from types import ModuleType

    from headwater.data.io.json_types import Json, JsonObject

_NOT_FOUND, _CONFLICT = 404, 409
_TIMEOUT_S = 30.0
# The maximum number of a job's ending pods whose logs are followed; each needs a thread.
_MAX_LISTENERS = 64
# The number of last output lines of a failed task that are kept with its failure.
_LAST_LINES = 20
_CONNECT_S, _LAST_WORDS_S = 3.0, 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class KubernetesSettings:
    """The cluster and how it is used.

    Attributes:
      image: the container image of jobs that name none; it must contain Headwater.
      namespace: the namespace of jobs that name none.
      config_file: the kubeconfig file; unless given, ``kubectl``'s file or, in a pod, the pod's service account.
      context: a context of that file; by default its current context.
    """

    image: str
    namespace: str = "default"
    config_file: Path | None = None
    context: str | None = None


class KubernetesBackend(JobBackend):
    """Submits jobs to Kubernetes, as the objects of `kubernetes_objects`.

    Args:
      settings: the cluster and how it is used.
      clock: returns monotonic seconds.

    Raises:
      BackendError: the client is not installed, or its configuration cannot be used.
    """

    name = "kubernetes"
    elastic = True

    @classmethod
    def refusals(cls, spec: JobSpec, *, has_archive: bool) -> list[tuple[str, str]]:
        if spec.restart_scope == "job":
            return []
        usual = type(spec.restart)()
        own = ("backoff", "max_backoff", "reset_after")
        return [
            (f"restart.{field}", "Kubernetes determines the pauses itself: omit the field, or use restart.scope: job")
            for field in own
            if getattr(spec.restart, field) != getattr(usual, field)
        ]

    def __init__(self, settings: KubernetesSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._client = _client_module()
        api = self._connect(settings)
        self._core: Any = self._client.CoreV1Api(api)
        self._batch: Any = self._client.BatchV1Api(api)
        self._network: Any = self._client.NetworkingV1Api(api)
        self._policy: Any = self._client.PolicyApi(api)
        self._custom: Any = self._client.CustomObjectsApi(api)
        self._clock = clock
        self._listeners: dict[str, dict[str, Listener]] = {}
        # By job: the time since which some of its tasks have been placed while others cannot be placed, in seconds of
        # the clock.
        self._crowded_since: dict[str, float] = {}
        # Jobs that this process has asked to end: their Kubernetes Jobs may be missing without the job being lost.
        self._stopping: set[str] = set()

    def capacity(self) -> Capacity:
        with self._translate_errors("list nodes"):
            nodes = _decoded(self._core.list_node(**_RAW))["items"]
        taken: dict[str, list[Mapping[str, Json]]] = {}
        with (
            contextlib.suppress(BackendError),
            self._translate_errors("list pods"),
        ):  # listing all pods needs a cluster role
            for pod in _decoded(self._core.list_pod_for_all_namespaces(**_RAW))["items"]:
                if pod.get("status", {}).get("phase") not in DONE:
                    taken.setdefault(pod["spec"].get("nodeName", ""), []).extend(
                        container.get("resources", {}).get("requests", {}) for container in pod["spec"]["containers"]
                    )
        return Capacity(hosts=tuple(host_capacity(node, taken.get(node["metadata"]["name"], [])) for node in nodes))

    def submit_job(self, order: JobOrder) -> str:
        name = objects.object_name(order.job_id)
        namespace = order.spec.kubernetes.namespace or self._settings.namespace
        how = objects.Rendering(
            name=name,
            job_id=order.job_id,
            attempt=order.attempt,
            image=self._settings.image,
            namespace=namespace,
            token=secrets.token_urlsafe(32),
            secrets=order.secrets,
            archive=order.archive,
            managed=True,
            policy_version=self._policy_version() if order.spec.kubernetes.disruption_budget else "v1",
        )
        try:
            wanted = objects.job_objects(order.spec, how)
        except ValueError as error:
            raise BackendError(str(error)) from error
        handle = {"name": name, "namespace": namespace, "log_dir": str(order.log_dir.absolute())}
        self._fence(handle, order.attempt)
        self._stopping.discard(name)
        order.log_dir.mkdir(parents=True, exist_ok=True)
        handle["chief"] = "yes" if order.spec.counts().get("chief") else ""
        # Stored in the handle, since others may delete the Jobs that exist in the cluster.
        handle["tasks"] = " ".join(label(task) for task in objects.tasks_of(order.spec))
        gang = order.spec.kubernetes.gang
        handle["gang"] = "" if gang is None else str(gang)
        if order.spec.elastic:
            # An elastic job may continue with this many fewer workers if they cannot be placed. This backend counts the
            # failures of an elastic job itself, because Kubernetes would count evictions, too.
            handle["spare"] = str(order.spec.workers.count.most - order.least)
            handle["limit"] = str(order.spec.restart.limit if order.spec.restart.policy == "on-failure" else 0)
        handle["again"] = "yes" if order.spec.restart_scope == "job" else ""
        try:
            # The Service is created first: it owns all other objects, so that deleting it deletes them.
            services = [one for one in wanted if one["kind"] == "Service"]
            (service,) = [self._create(one, namespace) for one in services]
            for one in wanted:
                if one["kind"] != "Service":
                    self._create(objects.owned(one, service), namespace)
        except BackendError as error:
            if not error.temporary:  # for example a quota: remove the objects created so far
                with contextlib.suppress(BackendError):
                    self._remove(name, namespace)
            raise
        return json.dumps(handle)

    def poll_job(self, handle: str) -> JobReport:
        fields = json.loads(handle)
        jobs, pods = self._jobs(fields), self._pods(fields)
        if not jobs and not pods:
            self._close_listeners(fields["name"])
            return JobReport(phase="lost", reason=f"Kubernetes has no objects of {fields['name']}")
        self._fetch_logs(fields, pods)
        self._hide_ended(fields, pods)
        expected = [task_of(text) for text in fields.get("tasks", "").split()]
        tasks: dict[TaskName, TaskState] = {}
        restarts: dict[TaskName, int] = {}
        for task in sorted({*jobs, *pods, *expected}):
            latest = pods.get(task, [])[-1:]
            if latest:
                progress = last_progress(_log_path(fields, task), latest[0]["metadata"]["name"])
                host = latest[0]["spec"].get("nodeName", "")
                state = dataclasses.replace(task_state(latest[0]), progress=progress, host=host)
                if isinstance(state, Exited) and state.code:
                    last = plain(read_part(_log_path(fields, task), tail=_LAST_LINES).data).splitlines()
                    state = dataclasses.replace(state, last_lines=tuple(last))
                tasks[task] = state
            elif task in jobs and is_suspended(jobs[task]):
                queue = jobs[task]["metadata"]["labels"].get(objects.QUEUE_LABEL)
                tasks[task] = Running(waiting=f"its Job is suspended until the queue {queue} has free capacity")
            else:
                tasks[task] = Running(waiting="Kubernetes has not created its pod yet")
            failed = int(jobs.get(task, {}).get("status", {}).get("failed") or 0)
            # If a Job has failed permanently, Kubernetes has counted its last failure as well, but no restart followed
            # that failure.
            over = task in jobs and condition(jobs[task], "Failed") is not None
            restarts[task] = max(len(pods.get(task, [])) - 1, failed - over, 0)
            if fields.get("limit"):  # evictions do not count as failures of an elastic job
                restarts[task] = count_failures(pods.get(task, []))
        stopping = fields["name"] in self._stopping
        homeless = [task for task, attempts in pods.items() if without_node(attempts[-1])]
        homeless += [task for task, job in jobs.items() if is_suspended(job)]
        spare = _optional_workers(fields, homeless)
        crowded = (
            None if stopping else self._crowded_report(fields, tasks, [task for task in homeless if task not in spare])
        )
        if crowded is not None:
            return dataclasses.replace(crowded, tasks=tasks, restarts=restarts)
        report = job_report(
            jobs, tasks, restarts, expected=() if stopping else expected, chief=bool(fields["chief"]), without=spare
        )
        guilty = failed_too_often(pods, int(fields["limit"])) if fields.get("limit") else None
        if guilty is not None and report.phase != "succeeded":
            failure = last_failure_reason(tasks[guilty])
            reason = f"{guilty.job} {guilty.index} failed: {failure} (after {fields['limit']} restarts)"
            return dataclasses.replace(self._delete_unneeded(fields, jobs, report), phase="failed", reason=reason)
        hopeless = next((task for task, attempts in pods.items() if any(map(cannot_run, attempts))), None)
        if hopeless is not None and report.phase != "succeeded":
            reason = f"{hopeless.job} {hopeless.index} failed: its program cannot be run (exit code {CANNOT_RUN})"
            return dataclasses.replace(self._delete_unneeded(fields, jobs, report), phase="failed", reason=reason)
        report = dataclasses.replace(report, again=report.phase == "failed" and bool(fields.get("again")))
        return self._delete_unneeded(fields, jobs, report) if report.phase in ("succeeded", "failed") else report

    def _crowded_report(
        self, fields: Mapping[str, str], tasks: Mapping[TaskName, TaskState], without: Sequence[TaskName]
    ) -> JobReport | None:
        """Returns a ``crowded`` report if some tasks have been placed for too long while others cannot be, or None."""
        if not fields.get("gang") or not without or len(without) == len(tasks):
            self._crowded_since.pop(fields["name"], None)
            return None
        gang, since = float(fields["gang"]), self._crowded_since.setdefault(fields["name"], self._clock())
        if self._clock() - since < gang:
            return None
        del self._crowded_since[fields["name"]]
        first = tasks[without[0]]
        why = first.waiting if isinstance(first, Running) else ""
        reason = f"{label(without[0])} was not placed within {gang:g} s, while other tasks held resources: {why}"
        # If several jobs block each other, their random pauses differ, so that one job can be placed before the other
        # jobs try again.
        return JobReport(phase="crowded", reason=reason, pause_s=gang * random.uniform(0.2, 2.0))

    def _delete_unneeded(
        self, fields: Mapping[str, str], jobs: Mapping[TaskName, Mapping[str, object]], report: JobReport
    ) -> JobReport:
        """Deletes the Jobs of tasks that still run and are no longer needed; ended pods stay for later polls."""
        for task, job in jobs.items():
            if condition(job, "Complete", "Failed") is None:
                self._delete_job(fields, objects.task_name(fields["name"], task))
        return report

    def stop_job(self, handle: str, *, grace_s: float) -> None:
        fields = json.loads(handle)
        self._stopping.add(fields["name"])
        for task in self._jobs(fields):
            self._delete_job(fields, objects.task_name(fields["name"], task), pods="Orphan")
        training = any(
            task.job in ("worker", "chief") and pod.get("status", {}).get("phase") not in DONE
            for task, pods in self._pods(fields).items()
            for pod in pods
        )
        # A ps holds values that workers may be about to save, so it is stopped by a later call, after the last worker.
        asked = [
            (task, pod)
            for task, pods in self._pods(fields).items()
            for pod in pods
            if not (task.job == "ps" and training) and "deletionTimestamp" not in pod["metadata"]
        ]
        for task, pod in asked:
            self._listen(fields, task, pod, patience_s=grace_s + _TIMEOUT_S)
        until = time.monotonic() + _CONNECT_S
        for listener in self._listeners.get(fields["name"], {}).values():
            listener.wait_connected(max(0.0, until - time.monotonic()))
        for _, pod in asked:
            self._delete_pod(pod["metadata"]["name"], fields["namespace"], max(1, math.ceil(grace_s)))

    def delete_job(self, handle: str) -> None:
        fields = json.loads(handle)
        self._remove(fields["name"], fields["namespace"])

    def remove(self, job_id: str, spec: JobSpec) -> None:
        self._remove(objects.object_name(job_id), spec.kubernetes.namespace or self._settings.namespace)

    def _remove(self, name: str, namespace: str) -> None:
        """Deletes all objects with the job's label."""
        self._stopping.discard(name)
        self._crowded_since.pop(name, None)
        self._close_listeners(name)
        fields = {"name": name, "namespace": namespace}
        for task in self._jobs(fields):
            self._delete_job(fields, objects.task_name(name, task))
        for pods in self._pods(fields).values():
            for pod in pods:
                if "deletionTimestamp" not in pod["metadata"]:
                    self._delete_pod(pod["metadata"]["name"], namespace, None)
        deletions = (
            self._core.delete_namespaced_service,
            self._core.delete_namespaced_config_map,
            self._core.delete_namespaced_secret,
        )
        for delete in deletions:
            with self._translate_errors("delete objects", unless=_NOT_FOUND):
                delete(name, namespace, **_RAW)

    def _delete_pod(self, pod: str, namespace: str, grace_s: int | None) -> None:
        grace: dict[str, object] = {} if grace_s is None else {"grace_period_seconds": grace_s}
        with self._translate_errors(f"end pod {pod}", unless=_NOT_FOUND):
            self._core.delete_namespaced_pod(pod, namespace, **grace, **_RAW)

    def _listen(self, handle: Mapping[str, str], task: TaskName, pod: Mapping[str, Json], *, patience_s: float) -> None:
        """Follows a pod's log from now to its end, because the pod is about to be deleted with its log."""
        name, listeners = pod["metadata"]["name"], self._listeners.setdefault(handle["name"], {})
        if pod.get("status", {}).get("phase") != "Running" or name in listeners or len(listeners) >= _MAX_LISTENERS:
            return
        path = _log_path(handle, task)
        listeners[name] = Listener(self._core, name, handle["namespace"], path, patience_s=patience_s)

    def _close_listeners(self, name: str) -> None:
        """Writes the last output of a job's deleted pods to their logs."""
        until = time.monotonic() + _LAST_WORDS_S
        for listener in self._listeners.pop(name, {}).values():
            listener.close(max(0.0, until - time.monotonic()))

    def _hide_ended(self, handle: Mapping[str, str], pods: Mapping[TaskName, list[JsonObject]]) -> None:
        """Removes ended pods from the Service; otherwise its names would still resolve to their addresses."""
        for pod in (pod for attempts in pods.values() for pod in attempts):
            ended = pod.get("status", {}).get("phase") in DONE
            if not ended or objects.LIVE_LABEL not in pod["metadata"]["labels"]:
                continue
            name, change = pod["metadata"]["name"], {"metadata": {"labels": {objects.LIVE_LABEL: None}}}
            # Best effort: a failure here must not hide the task's state.
            with contextlib.suppress(BackendError), self._translate_errors(f"change pod {name}", unless=_NOT_FOUND):
                self._core.patch_namespaced_pod(name, handle["namespace"], change, **_RAW)

    def close(self) -> None:
        for name in list(self._listeners):
            self._close_listeners(name)
        self._core.api_client.close()

    def _connect(self, settings: KubernetesSettings) -> object:
        from kubernetes import config  # noqa: PLC0415  an extra

        loader: Any = config
        try:
            if settings.config_file is None and settings.context is None:
                with contextlib.suppress(loader.ConfigException):
                    loader.load_incluster_config()
                    return self._client.ApiClient()
            file = None if settings.config_file is None else str(settings.config_file)
            return loader.new_client_from_config(config_file=file, context=settings.context)
        except (loader.ConfigException, OSError) as error:
            raise BackendError(f"Kubernetes cannot be reached: {error}") from error

    def _fence(self, handle: Mapping[str, str], attempt: int) -> None:
        """Deletes objects of earlier attempts; raises a temporary error until they are gone."""
        old = [
            one
            for one in [*self._jobs(handle).values(), *(pod for pods in self._pods(handle).values() for pod in pods)]
            if int(one["metadata"]["labels"].get(objects.ATTEMPT_LABEL, "0")) < attempt
        ]
        if old:
            self.delete_job(json.dumps(dict(handle)))
            raise BackendError(
                f"{len(old)} objects of an earlier attempt of {handle['name']} are being deleted", temporary=True
            )

    def _create(self, wanted: JsonObject, namespace: str) -> dict[str, object]:
        """Creates an object and returns it as stored in the cluster."""
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        create = {
            "Secret": self._core.create_namespaced_secret,
            "ConfigMap": self._core.create_namespaced_config_map,
            "Service": self._core.create_namespaced_service,
            "NetworkPolicy": self._network.create_namespaced_network_policy,
            "PodDisruptionBudget": self._create_budget,
            "Job": self._batch.create_namespaced_job,
        }[kind]
        # The object exists already if an earlier call created it and the response to that call was lost.
        with self._translate_errors(f"create {kind} {name}", unless=_CONFLICT):
            return _decoded(create(namespace, wanted, **_RAW))
        if kind != "Service":
            return wanted
        with self._translate_errors(f"look at Service {name}"):
            return _decoded(self._core.read_namespaced_service(name, namespace, **_RAW))

    def _create_budget(self, namespace: str, wanted: JsonObject, **options: object) -> Json:
        # The client has a class for the newest version of budgets only.
        group, _, version = wanted["apiVersion"].partition("/")
        return self._custom.create_namespaced_custom_object(
            group, version, namespace, "poddisruptionbudgets", wanted, **options
        )

    def _policy_version(self) -> str:
        """Returns the API version of budgets that the cluster prefers: v1 from Kubernetes 1.21 on."""
        with self._translate_errors("list the versions of the API policy"):
            group = _decoded(self._policy.get_api_group(**_RAW))
        return str(group["preferredVersion"]["version"])

    def _delete_job(self, handle: Mapping[str, str], name: str, *, pods: str = "Background") -> None:
        with self._translate_errors(f"delete Job {name}", unless=_NOT_FOUND):
            self._batch.delete_namespaced_job(name, handle["namespace"], propagation_policy=pods, **_RAW)

    def _jobs(self, handle: Mapping[str, str]) -> dict[TaskName, JsonObject]:
        with self._translate_errors("list Jobs"):
            listed = _decoded(
                self._batch.list_namespaced_job(
                    handle["namespace"], label_selector=f"{objects.LABEL}={handle['name']}", **_RAW
                )
            )
        return {labelled_task(job): job for job in listed["items"]}

    def _pods(self, handle: Mapping[str, str]) -> dict[TaskName, list[JsonObject]]:
        """Returns the pods of each task, oldest first."""
        with self._translate_errors("list pods"):
            listed = _decoded(
                self._core.list_namespaced_pod(
                    handle["namespace"], label_selector=f"{objects.LABEL}={handle['name']}", **_RAW
                )
            )
        pods: dict[TaskName, list[JsonObject]] = {}
        for pod in sorted(listed["items"], key=lambda pod: pod["metadata"].get("creationTimestamp") or ""):
            pods.setdefault(labelled_task(pod), []).append(pod)
        return pods

    def _fetch_logs(self, handle: Mapping[str, str], pods: Mapping[TaskName, list[JsonObject]]) -> None:
        for task, attempts in pods.items():
            path = _log_path(handle, task)
            for pod in attempts:
                listener = self._listeners.get(handle["name"], {}).get(pod["metadata"]["name"])
                if listener is not None:
                    listener.write()
                    continue
                if pod.get("status", {}).get("phase") not in ("Running", *DONE):
                    continue
                # A log that is unavailable now, for example after a node failure, must not hide the task's state.
                ended = pod["status"]["phase"] in DONE
                with contextlib.suppress(BackendError), self._translate_errors("read logs", unless=_NOT_FOUND):
                    fetch_log(self._core, pod["metadata"]["name"], handle["namespace"], path, ended=ended)

    @contextlib.contextmanager
    def _translate_errors(self, what: str, unless: int | None = None) -> Generator[None]:
        """Translates exceptions of the client to `BackendError`; ignores a response with status ``unless``."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415  comes with the extra

        try:
            yield
        except self._client.ApiException as error:
            if error.status == unless:
                return
            temporary = not error.status or error.status >= 500 or error.status in (408, 429)
            raise BackendError(f"Kubernetes did not {what}: {_message(error)}", temporary=temporary) from error
        except (HTTPError, OSError) as error:
            raise BackendError(f"Kubernetes does not answer ({what}): {error}", temporary=True) from error


# Responses are read as plain JSON: the client's types reject fields of newer or older servers.
_RAW: JsonObject = {"_preload_content": False, "_request_timeout": _TIMEOUT_S}


def _client_module() -> ModuleType:
    try:
        from kubernetes import client  # noqa: PLC0415  an extra
    except ImportError as error:
        raise BackendError("the Kubernetes client is not installed: pip install 'headwater[kubernetes]'") from error
    return client


def _decoded(response: Any) -> JsonObject:
    values: JsonObject = json.loads(response.data)
    return values


def _message(error: Any) -> str:
    try:
        return f"{json.loads(error.body)['message']} (status {error.status})"
    except (TypeError, ValueError, KeyError):
        return f"status {error.status}: {error.reason}"


def _log_path(handle: Mapping[str, str], task: TaskName) -> Path:
    return Path(handle["log_dir"], f"{task.job}-{task.index}.log")


def _optional_workers(handle: Mapping[str, str], homeless: Sequence[TaskName]) -> Sequence[TaskName]:
    """Returns the workers among ``homeless``, the tasks that cannot be placed, if the job can continue without them."""
    without = [task for task in homeless if task.job == "worker"]
    return without if len(without) <= int(handle.get("spare") or 0) else ()
