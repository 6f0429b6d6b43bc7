"""Ray (extra ``ray``): an existing Ray cluster places the tasks.

Each task has a placement group with one bundle, and an actor in it, which runs the task's process through an agent
(`headwater.platform.host.agent`). Actors and groups are detached: they outlive the server. A task ends with its actor,
and an actor ends with its node.

When a node dies, its tasks count as preempted: the job returns to the queue and is placed again.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.cluster.addresses import Address
from headwater.cluster.names import TaskName
from headwater.errors import OpError
from headwater.platform.backends.base import (
    BackendError,
    Capacity,
    Exited,
    HostCapacity,
    NotEnough,
    Resources,
    TaskPlace,
    TaskRequest,
    TaskState,
)
from headwater.platform.backends.hosts import HostConnection, HostsBackend
from headwater.platform.host.agent import Agent, AgentError
from headwater.platform.host.folders import private_folder
from headwater.platform.host.ports import NoPort

if TYPE_CHECKING:
    from types import ModuleType

    from headwater.data.io.json_types import Json, JsonObject

_NAMESPACE = "headwater"
_KILLED = -9


@dataclass(frozen=True, kw_only=True, slots=True)
class RaySettings:
    """The Ray cluster.

    Attributes:
      state_dir: a folder of the server for the secret from which each job's token is derived.
      address: the address of the cluster's head node, such as ``10.0.0.1:6379``; ``auto`` for the cluster of this
        machine.
      place_s: how long Ray may take to place a job before the job waits again, in seconds.
      call_timeout_s: the timeout of calls to an actor, in seconds.
    """

    state_dir: Path
    address: str = "auto"
    place_s: float = 5.0
    call_timeout_s: float = 30.0


class TaskHolder:
    """The actor that runs the process of one task."""

    def __init__(self, folder: str) -> None:
        # Each actor has its own folder, because nodes may share a disk, and an actor must not act on the tasks of
        # another actor. The folder must be private: another user's folder of this name would expose the tasks'
        # environments.
        root = private_folder(Path(tempfile.gettempdir(), f"headwater-ray-{os.getuid()}"))
        self._agent = Agent(root / folder, os.environ, outlive=False)

    def node(self) -> tuple[str, str]:
        """Returns the address of this node, and its Ray node id."""
        import ray  # noqa: PLC0415  an extra

        module: Any = ray
        return module.util.get_node_ip_address(), module.get_runtime_context().get_node_id()

    def call(self, method: str, arguments: JsonObject) -> JsonObject:
        """Calls the agent; returns its result, or its error as a value."""
        try:
            return {"result": getattr(self._agent, method)(**arguments)}
        except (AgentError, NoPort, OSError, OpError) as error:
            return {"error": str(error)}


class _Gone(BackendError):
    """The actor is dead."""


class _ActorConnection:
    """The connection to the actor of one task; see `HostConnection`."""

    local = False
    labels: Mapping[str, str] = {}
    address = ""

    def __init__(self, ray: ModuleType, host: str, timeout_s: float) -> None:
        self.host = host
        self._ray = ray
        self._timeout_s = timeout_s

    def call(self, method: str, **arguments: Json) -> Json:
        answer = self._call_actor("call", method, arguments)
        if "error" in answer:
            raise BackendError(f"{self.host}: {answer['error']}")
        return answer["result"]

    def node(self) -> tuple[str, str]:
        """Returns the address of the actor's node and its Ray node id; raises as `call` does."""
        address, identifier = self._call_actor("node")
        return address, identifier

    def kill(self) -> None:
        """Kills the actor and the task that it runs."""
        with contextlib.suppress(ValueError):  # there is no such actor
            self._ray.kill(self._ray.get_actor(self.host, namespace=_NAMESPACE))

    def _call_actor(self, method: str, *arguments: Json) -> Json:
        exceptions = self._ray.exceptions
        try:
            actor = self._ray.get_actor(self.host, namespace=_NAMESPACE)
            return self._ray.get(getattr(actor, method).remote(*arguments), timeout=self._timeout_s)
        except exceptions.ActorUnavailableError as error:
            raise BackendError(
                f"the actor {self.host} does not answer: {_first_line(error)}", temporary=True
            ) from error
        except (ValueError, exceptions.RayActorError) as error:
            # Ray raises ValueError for a name without a living actor.
            raise _Gone(f"the actor {self.host} is lost, and its task with it: {_first_line(error)}") from error
        except exceptions.RayError as error:
            raise BackendError(f"the actor {self.host}: {_first_line(error)}", temporary=True) from error

    def silence_s(self) -> float:
        return 0.0

    def close(self) -> None:
        """Does nothing: actors have no connection to close."""


class RayBackend(HostsBackend):
    """Runs tasks on a cluster of Ray.

    Args:
      settings: the cluster.

    Raises:
      BackendError: Ray is not installed, or the cluster does not answer.
    """

    name = "ray"

    def __init__(self, settings: RaySettings) -> None:
        super().__init__([], lost_after_s=math.inf, state_dir=settings.state_dir)
        self._settings = settings
        self._ray = _ray_module()
        self._holder: Any = self._ray.remote(TaskHolder)
        self._actors: dict[str, set[TaskName]] = {}
        self._actors_lock = threading.Lock()
        try:
            self._ray.init(
                address=settings.address, namespace=_NAMESPACE, ignore_reinit_error=True, log_to_driver=False
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise BackendError(f"Ray at {settings.address} cannot be reached: {error}", temporary=True) from error

    def capacity(self) -> Capacity:
        free: Mapping[str, Mapping[str, float]] = self._ray._private.state.available_resources_per_node()
        return Capacity(
            hosts=tuple(
                HostCapacity(
                    host=node["NodeManagerAddress"],
                    total=_resources(node["Resources"]),
                    free=_resources(free.get(node["NodeID"], {})),
                    problem="" if node["Alive"] else "the node is dead",
                )
                for node in self._ray.nodes()
            )
        )

    def reserve(self, job_id: str, requests: Sequence[TaskRequest]) -> tuple[TaskPlace, ...]:
        names = {request.task: _actor_name(job_id, request.task) for request in requests}
        groups = self._place(requests, names)
        with self._actors_lock:
            self._actors.setdefault(job_id, set()).update(names)
        try:
            self._make_actors(groups, requests, names)
            return tuple(self._reserved(job_id, request, names[request.task]) for request in requests)
        except BackendError:
            self.release(job_id, list(names))
            self._remove(groups)
            raise

    def restore(self, job_id: str, places: Sequence[TaskPlace]) -> None:
        with self._actors_lock:
            self._actors.setdefault(job_id, set()).update(place.task for place in places)

    def release(self, job_id: str, tasks: Sequence[TaskName] | None = None) -> None:
        with self._actors_lock:
            held = self._actors.get(job_id, set())
            released = set(held if tasks is None else tasks)
            held -= released
            last = not held
        for task in released:
            connection = self._connection(_actor_name(job_id, task))
            with contextlib.suppress(_Gone):
                connection.call("forget", job_id=job_id)
            connection.kill()
        self._remove_groups(job_id, None if last else {_actor_name(job_id, task) for task in released})
        if last:
            with self._actors_lock:
                self._actors.pop(job_id, None)

    def forget(self, job_id: str) -> None:
        # All files of the job are in its actors' folders, which end with the actors.
        self.release(job_id)

    def close(self) -> None:
        self._ray.shutdown()

    def _place(self, requests: Sequence[TaskRequest], names: Mapping[TaskName, str]) -> list[Any]:
        """Creates a placement group for each task: for all tasks or for none.

        One group for all tasks is not possible: a part of a group cannot be released, and Ray would automatically
        replace a bundle on a lost node by a bundle on another node.
        """
        bundles = [_bundle(request.resources) for request in requests]
        groups = [
            self._ray.util.placement_group(
                [bundle], name=f"{names[request.task]}.{secrets.token_hex(4)}", lifetime="detached"
            )
            for request, bundle in zip(requests, bundles, strict=True)
        ]
        waits = [group.ready() for group in groups]
        if len(self._ray.wait(waits, num_returns=len(waits), timeout=self._settings.place_s)[0]) == len(waits):
            return groups
        self._remove(groups)
        there = self._ray.cluster_resources()
        asked = {name: sum(bundle.get(name, 0) for bundle in bundles) for name in ("CPU", "memory", "GPU")}
        short = [f"{amount:g} {name} of {there.get(name, 0):g}" for name, amount in asked.items() if amount]
        beyond = any(amount > there.get(name, 0) for name, amount in asked.items())
        # Resources beyond the cluster's present size may become available later, because a Ray cluster can grow.
        more = ", more than the cluster has now" if beyond else ""
        raise NotEnough(
            f"Ray found no place for {len(bundles)} tasks that ask for {', '.join(short)}{more}", temporary=True
        )

    def _make_actors(
        self, groups: Sequence[Any], requests: Sequence[TaskRequest], names: Mapping[TaskName, str]
    ) -> None:
        strategies = self._ray.util.scheduling_strategies
        for group, request in zip(groups, requests, strict=True):
            bundle = _bundle(request.resources)
            self._holder.options(
                name=names[request.task],
                namespace=_NAMESPACE,
                lifetime="detached",
                get_if_exists=True,
                max_restarts=0,
                # Polls must be answered while a start is in progress.
                max_concurrency=4,
                num_cpus=bundle["CPU"],
                num_gpus=bundle.get("GPU", 0),
                memory=bundle.get("memory", 0),
                scheduling_strategy=strategies.PlacementGroupSchedulingStrategy(
                    placement_group=group, placement_group_bundle_index=0
                ),
            ).remote(f"{names[request.task]}-{secrets.token_hex(4)}")

    def _reserved(self, job_id: str, request: TaskRequest, name: str) -> TaskPlace:
        connection = self._connection(name)
        ports: list[int] = connection.call("lease_ports", job_id=job_id, count=1)
        address, node = connection.node()
        gpus: list[str] = connection.call("describe")["gpus"] if request.resources.gpus else []
        return TaskPlace(
            task=request.task,
            host=address,
            address=str(Address(address, ports[0])),
            resources=request.resources,
            gpus=tuple(gpus),
            detail={"actor": name, "node": node},
        )

    def _remove_groups(self, job_id: str, names: Collection[str] | None) -> None:
        """Removes the placement groups of the actors ``names`` of a job, or all groups of the job if ``names`` is
        None."""
        for group in self._ray.util.placement_group_table().values():
            owner = group["name"].rpartition(".")[0]
            theirs = owner.rpartition("-")[0].rpartition("-")[0] == job_id if names is None else owner in names
            if theirs and group["state"] != "REMOVED":
                self._ray.util.remove_placement_group(self._ray.util.get_placement_group(group["name"]))

    def _remove(self, groups: Sequence[Any]) -> None:
        for group in groups:
            self._ray.util.remove_placement_group(group)

    def _connection_for(self, place: TaskPlace) -> HostConnection:
        return self._connection(place.detail["actor"])

    def _connection(self, host: str) -> _ActorConnection:
        return _ActorConnection(self._ray, host, self._settings.call_timeout_s)

    def _state_without_answer(self, connection: HostConnection, error: BackendError) -> TaskState:
        if isinstance(error, _Gone):
            return Exited(code=_KILLED, reason=str(error), preempted=True)
        return super()._state_without_answer(connection, error)


def _ray_module() -> ModuleType:
    try:
        import ray  # noqa: PLC0415  an extra
        from ray.util import scheduling_strategies  # noqa: PLC0415
    except ImportError as error:
        raise BackendError("Ray is not installed: pip install 'headwater[ray]'") from error
    del scheduling_strategies  # imported so that it is an attribute of ``ray.util``
    return ray


def _actor_name(job_id: str, task: TaskName) -> str:
    return f"{job_id}-{task.job}-{task.index}"


def _bundle(resources: Resources) -> dict[str, float]:
    # Ray rejects empty bundles.
    bundle: dict[str, float] = {"CPU": resources.cpus or 0.001}
    if resources.memory_bytes:
        bundle["memory"] = resources.memory_bytes
    if resources.gpus:
        bundle["GPU"] = resources.gpus
    return bundle


def _resources(values: Mapping[str, float]) -> Resources:
    return Resources(
        cpus=values.get("CPU", 0.0), memory_bytes=int(values.get("memory", 0)), gpus=int(values.get("GPU", 0))
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
