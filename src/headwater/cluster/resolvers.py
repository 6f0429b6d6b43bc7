"""Cluster resolvers, which tell a program its cluster and its task.

They have the methods of TensorFlow's ``tf.distribute.cluster_resolver``: `cluster_spec`, `master`, `task_type`,
`task_id`, `num_accelerators`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from headwater.cluster.config import ClusterConfigError, TaskConfig, check_task, task_config_from_environment
from headwater.cluster.spec import ClusterSpec


class ClusterResolver(ABC):
    """Base of cluster resolvers.

    Attributes:
      task_type: the job of this process; None if unknown.
      task_id: its index within the job; None if unknown.
      environment: a word for the environment of the cluster; may be empty.
      rpc_layer: the protocol that addresses for sessions begin with, such as ``grpc``; None for no protocol.
    """

    task_type: str | None = None
    task_id: int | None = None
    environment: str = ""
    rpc_layer: str | None = None

    @abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """Returns the current cluster."""

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Returns the target for a session with a task; empty if there is no cluster.

        Args:
          task_type: the task's job; this process's job if None.
          task_id: the task's index; this process's index if None.
          rpc_layer: the protocol; the resolver's protocol if None.

        Raises:
          ClusterConfigError: the cluster has no such task.
        """
        spec = self.cluster_spec()
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if not spec or job is None or index is None:
            return ""
        task = check_task(spec, job, index, type(self).__name__)
        address = spec.task_address(task.job, task.index)
        layer = self.rpc_layer if rpc_layer is None else rpc_layer
        return f"{layer}://{address}" if layer else address

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        """Returns a task's number of accelerators by kind, as given to the resolver; empty if not given."""
        del task_type, task_id, config_proto
        return {}


class SimpleClusterResolver(ClusterResolver):
    """A resolver for a cluster that the program specifies itself.

    Args:
      master: the target for sessions if no task is named.
      num_accelerators: the number of accelerators of each kind of a task.
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: Mapping[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        self._spec = cluster_spec
        self._master = master
        self._accelerators = dict(num_accelerators or {})
        self.task_type, self.task_id = task_type, task_id
        self.environment, self.rpc_layer = environment, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        return self._spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        if task_type is None or task_id is None:
            return self._master
        return super().master(task_type, task_id, rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        return dict(self._accelerators)


class UnionClusterResolver(ClusterResolver):
    """The union of several clusters: tasks of jobs with the same name are merged.

    If a job's tasks are lists in all clusters, they are concatenated and renumbered; otherwise they keep their numbers.

    Args:
      args: resolvers.
      kwargs: ``rpc_layer``, ``task_type`` and ``task_id``; the first resolver's by default.

    Raises:
      ValueError: there is no resolver, or an unknown argument.
      TypeError: an argument is not a resolver.
    """

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        unknown = kwargs.keys() - {"rpc_layer", "task_type", "task_id"}
        if unknown:
            raise ValueError(f"Unexpected kwargs provided {sorted(unknown)!r}")
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        for each in args:
            if not isinstance(each, ClusterResolver):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError("All arguments must be a sub-class of `ClusterResolver.`")
        self._resolvers = args
        self.rpc_layer = kwargs.get("rpc_layer", args[0].rpc_layer)
        self.task_type = kwargs.get("task_type", args[0].task_type)
        self.task_id = kwargs.get("task_id", args[0].task_id)

    def cluster_spec(self) -> ClusterSpec:
        """Returns the union of the clusters.

        Raises:
          KeyError: two clusters have different addresses for one task.
        """
        jobs: dict[str, list[dict[int, str]]] = {}
        dense: dict[str, bool] = {}
        for each in self._resolvers:
            for job, tasks in each.cluster_spec().as_dict().items():
                numbered = dict(enumerate(tasks)) if isinstance(tasks, list) else dict(tasks)
                jobs.setdefault(job, []).append(numbered)
                dense[job] = dense.get(job, True) and isinstance(tasks, list)
        merged: dict[str, dict[int, str] | list[str]] = {}
        for job, parts in jobs.items():
            if dense[job]:
                merged[job] = [address for part in parts for address in part.values()]
                continue
            together: dict[int, str] = {}
            for part in parts:
                for index, address in part.items():
                    if together.setdefault(index, address) != address:
                        raise KeyError(f"Duplicate keys detected when merging two ClusterSpecs: {index}")
            merged[job] = together
        return ClusterSpec(merged)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Returns the target for a session with a task; without one, the first resolver's target."""
        if task_type is not None and task_id is not None:
            return super().master(task_type, task_id, rpc_layer)
        # As in TensorFlow, the first resolver decides alone if no task is named.
        return self._resolvers[0].master(rpc_layer=rpc_layer)


class TFConfigClusterResolver(ClusterResolver):
    """The cluster in ``TF_CONFIG``.

    Args:
      task_type, task_id, rpc_layer, environment: in place of the values in ``TF_CONFIG``.

    Raises:
      ClusterConfigError: ``TF_CONFIG`` is invalid; also from its methods.
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        config = self._read()
        task = config.task if config else None
        rest: Mapping[str, Any] = config.rest if config else {}
        self.task_type: str | None = task_type if task_type is not None or task is None else task.job
        self.task_id: int | None = int(task_id) if task_id is not None else None if task is None else task.index
        self.rpc_layer: str | None = rpc_layer if rpc_layer is not None else str(rest.get("rpc_layer", "grpc"))
        self.environment: str = environment if environment is not None else str(rest.get("environment", ""))

    def _read(self) -> TaskConfig | None:
        return task_config_from_environment()

    def cluster_spec(self) -> ClusterSpec:
        config = self._read()
        return config.cluster if config else ClusterSpec({})


class SlurmClusterResolver(ClusterResolver):
    """The tasks of a Slurm step, assigned to jobs in order.

    Slurm numbers a step's tasks node by node; the task with local number n on a node listens at ``port_base`` + n.

    Args:
      jobs: the number of tasks of each job, in order; all tasks are workers if None.
      port_base: the port of the first task on each node.
      gpus_per_node: the number of GPUs of each node; as many as its tasks use if None.
      gpus_per_task: the number of GPUs of each task; an equal share of the node's if None.
      tasks_per_node: the number of tasks of each node, in order, or of every node; Slurm's numbers if None.
      auto_set_gpu: set ``CUDA_VISIBLE_DEVICES`` to this task's GPUs.
      rpc_layer: the protocol of addresses for sessions.

    Raises:
      ClusterConfigError: a variable of Slurm is missing or invalid, or the jobs do not have as many tasks as the step.
    """

    def __init__(
        self,
        jobs: Mapping[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: int | Sequence[int] | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        self._rank = _number("SLURM_PROCID")
        nodes = expand_nodes(_first_set("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"))
        if tasks_per_node is None:
            counts = expand_counts(_first_set("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"))
        elif isinstance(tasks_per_node, int):
            counts = [tasks_per_node] * len(nodes)
        else:
            counts = list(tasks_per_node)
        if len(counts) != len(nodes):
            raise ClusterConfigError(
                "tasks_per_node", f"names {len(counts)} nodes, but the step has {len(nodes)}: {', '.join(nodes[:8])}"
            )
        places = [(node, local) for node, count in zip(nodes, counts, strict=True) for local in range(count)]
        task_counts = dict(jobs) if jobs is not None else {"worker": len(places)}
        if sum(task_counts.values()) != len(places):
            raise ClusterConfigError("jobs", f"have {sum(task_counts.values())} tasks, but the step has {len(places)}")
        if self._rank >= len(places):
            raise ClusterConfigError("SLURM_PROCID", f"is {self._rank}, but the step has {len(places)} tasks")
        addresses = [f"{node}:{port_base + local}" for node, local in places]
        tasks = [(job, index) for job, count in task_counts.items() for index in range(count)]
        spec: dict[str, list[str]] = {}
        for (job, _), address in zip(tasks, addresses, strict=True):
            spec.setdefault(job, []).append(address)
        self._spec = ClusterSpec(spec)
        self.task_type, self.task_id = tasks[self._rank]
        self.rpc_layer = rpc_layer
        node, local = places[self._rank]
        here = counts[nodes.index(node)]
        self._gpus = gpus_per_task if gpus_per_task is not None else (gpus_per_node or 0) // here
        if gpus_per_node is not None and self._gpus * here > gpus_per_node:
            raise ClusterConfigError(
                "gpus_per_task", f"is {self._gpus}, but node {node} has {here} tasks and {gpus_per_node} GPUs"
            )
        if auto_set_gpu and self._gpus:
            first = local * self._gpus
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(first, first + self._gpus)))

    def cluster_spec(self) -> ClusterSpec:
        return self._spec

    def get_task_info(self) -> tuple[str | None, int | None]:
        """Returns the job and index of this process."""
        return self.task_type, self.task_id

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        return {"GPU": self._gpus} if self._gpus else {}


def _first_set(*names: str) -> str:
    for name in names:
        if os.environ.get(name):
            return os.environ[name]
    raise ClusterConfigError(names[0], "is not set: is this a task of a Slurm step (srun)?")


def _number(name: str) -> int:
    text = _first_set(name)
    if not text.isdigit():
        raise ClusterConfigError(name, f"must be a whole number, not {text!r}")
    return int(text)


def expand_nodes(text: str) -> list[str]:
    """Expands a node list of Slurm, such as ``gpu[01-03,7],login``, to the names of the nodes.

    Raises:
      ClusterConfigError: brackets do not match, or a range is invalid.
    """
    names: list[str] = []
    for part in _split_outside_brackets(text):
        head, bracket, rest = part.partition("[")
        if not bracket:
            names.append(part)
            continue
        inside, closing, tail = rest.partition("]")
        if not closing:
            raise ClusterConfigError("node list", f"has an unmatched bracket: {text!r}")
        for item in inside.split(","):
            low, dash, high = item.partition("-")
            if not low.isdigit() or (dash and not high.isdigit()):
                raise ClusterConfigError("node list", f"has the malformed range {item!r}: {text!r}")
            numbers = range(int(low), int(high if dash else low) + 1)
            for ending in expand_nodes(tail) if tail else [""]:
                # Pad to the digits of the lower bound, whose leading zeros are part of the names.
                names += [f"{head}{number:0{len(low)}d}{ending}" for number in numbers]
    return names


def _split_outside_brackets(text: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def expand_counts(text: str) -> list[int]:
    """Expands a list of numbers of Slurm, such as ``2(x3),1``.

    Raises:
      ClusterConfigError: the list is malformed.
    """
    counts: list[int] = []
    for part in text.split(","):
        number, times, rest = part.strip().partition("(x")
        repeat = rest.removesuffix(")") if times else "1"
        if not number.isdigit() or not repeat.isdigit():
            raise ClusterConfigError(
                "SLURM_STEP_TASKS_PER_NODE", f"has the part {part!r}, which is not a number: {text!r}"
            )
        counts += [int(number)] * int(repeat)
    return counts


class KubernetesClusterResolver(ClusterResolver):
    """The running pods of a Kubernetes cluster, chosen by labels.

    Args:
      job_to_label_mapping: the label selectors of the pods of each job; ``{"worker": ["job-name=tensorflow"]}`` when
        None.
      tf_server_port: the port on which each pod's task listens.
      rpc_layer: the protocol of addresses for sessions.
      override_client: a ``kubernetes.client.CoreV1Api``; if None, a client of the pod's own cluster, or of the
        user's configuration outside a cluster.

    Raises:
      RuntimeError: from `cluster_spec`: a pod is not running yet, or the package ``kubernetes`` is not installed.
    """

    def __init__(
        self,
        job_to_label_mapping: Mapping[str, Sequence[str]] | None = None,
        tf_server_port: int = 8470,
        rpc_layer: str = "grpc",
        override_client: object = None,
    ) -> None:
        self._labels = dict(job_to_label_mapping or {"worker": ["job-name=tensorflow"]})
        self._port = tf_server_port
        self._client = override_client
        self.rpc_layer = rpc_layer

    def _api(self) -> Any:
        if self._client is None:
            try:
                import kubernetes  # noqa: PLC0415 - an optional dependency
            except ImportError as error:
                raise RuntimeError(
                    "KubernetesClusterResolver needs the package kubernetes: pip install kubernetes"
                ) from error
            module: Any = kubernetes
            try:
                module.config.load_incluster_config()
            except module.config.ConfigException:
                module.config.load_kube_config()
            self._client = module.client.CoreV1Api()
        return self._client

    def cluster_spec(self) -> ClusterSpec:
        spec: dict[str, list[str]] = {}
        for job, selectors in self._labels.items():
            addresses: list[str] = []
            for selector in selectors:
                pods = self._api().list_pod_for_all_namespaces(label_selector=selector)
                # Sort the pods: each task resolves the cluster by itself, and all tasks must number the pods equally.
                for pod in sorted(pods.items, key=lambda item: item.metadata.name):
                    if pod.status.phase != "Running":
                        raise RuntimeError(
                            f'Pod "{pod.metadata.name}" of job {job!r} is not running; phase: "{pod.status.phase}"'
                        )
                    addresses.append(f"{pod.status.pod_ip}:{self._port}")
            spec[job] = addresses
        return ClusterSpec(spec)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Returns the target as `ClusterResolver.master`, by default of the first task of the first job."""
        if task_type is None and task_id is None and self.task_type is None:
            return super().master(next(iter(self._labels)), 0, rpc_layer)
        return super().master(task_type, task_id, rpc_layer)


class GCEClusterResolver(ClusterResolver):
    """The running machines of a Google Compute Engine instance group, as one job, in the order of their addresses.

    Args:
      project, zone, instance_group: the group.
      port: the port on which each machine's task listens.
      task_type: the job of all tasks.
      task_id: this task's number.
      rpc_layer: the protocol of addresses for sessions.
      credentials: credentials for the service; ``"default"`` for the machine's own account.
      service: a client of the service ``compute``; made with the credentials if None.

    Raises:
      ImportError: without ``service``, the package googleapiclient is not installed.
    """

    def __init__(
        self,
        project: str,
        zone: str,
        instance_group: str,
        port: int,
        task_type: str = "worker",
        task_id: int = 0,
        rpc_layer: str = "grpc",
        credentials: object = "default",
        service: object = None,
    ) -> None:
        self._group: dict[str, str] = {"project": project, "zone": zone}
        self._name = instance_group
        self._port = port
        self.task_type: str | None = task_type
        self.task_id: int | None = task_id
        self.rpc_layer: str | None = rpc_layer
        self._service: Any = _compute_engine(credentials) if service is None else service

    def cluster_spec(self) -> ClusterSpec:
        addresses: list[str] = []
        groups: Any = self._service.instanceGroups()
        body = {"instanceState": "RUNNING"}
        request: Any = groups.listInstances(**self._group, instanceGroup=self._name, body=body, orderBy="name")
        while request is not None:  # one request for each page of the list
            response: Any = request.execute()
            for item in response.get("items", []):
                machine = str(item["instance"]).rpartition("/")[2]
                about: Any = self._service.instances().get(**self._group, instance=machine).execute()
                addresses.append(f"{about['networkInterfaces'][0]['networkIP']}:{self._port}")
            request = groups.listInstances_next(previous_request=request, previous_response=response)
        return ClusterSpec({self.task_type or "worker": sorted(addresses)})


def _compute_engine(credentials: object) -> Any:
    try:
        discovery: Any = import_module("googleapiclient.discovery")  # an optional dependency
    except ImportError as error:
        raise ImportError(
            "googleapiclient must be installed before using the GCE cluster resolver: "
            "pip install google-api-python-client"
        ) from error
    if credentials == "default":
        auth: Any = import_module("google.auth")  # a dependency of googleapiclient
        credentials = auth.default()[0]
    return discovery.build("compute", "v1", credentials=credentials)
