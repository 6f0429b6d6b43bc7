"""All replicas of a mirrored job: some on the devices of this process, others in other processes."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from headwater.keras.collectives.group import Group
from headwater.keras.mirrored.step_vector import TRAINING_STEP

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.keras.types import Tree

_AXIS = "replica"


class Placement:
    """Divides the work of one process between its devices.

    Every device holds all variables and computes with its rows of each batch; XLA adds up the results. A batch that
    cannot be divided equally, such as the last batch of a data set, is computed whole by each device.

    Args:
      devices: JAX devices; with one or none, JAX's default placement applies.
    """

    def __init__(self, devices: Sequence[object] = ()) -> None:
        self.devices: list[object] = list(devices)
        if len(self.devices) > 1:
            mesh = Mesh(np.asarray(self.devices), (_AXIS,))
            self._whole: object = NamedSharding(mesh, PartitionSpec())
            self._rows = NamedSharding(mesh, PartitionSpec(_AXIS))

    def place(self, values: object, batch: bool) -> Tree:
        """See `headwater.keras.mirrored.steps.Replicas`."""
        if len(self.devices) < 2:
            return values
        return jax.tree_util.tree_map(self._place_rows if batch else self._everywhere, values)

    def _everywhere(self, value: object) -> object:
        return value if getattr(value, "sharding", None) == self._whole else jax.device_put(value, self._whole)

    def _place_rows(self, value: jax.Array) -> object:
        shared = np.ndim(value) > 0 and np.shape(value)[0] % len(self.devices) == 0
        return jax.device_put(value, self._rows if shared else self._whole)


class LocalReplicas(Placement):
    """Replicas in this process only."""

    rank = 0
    processes = 1

    def add_up(self, vector: object, what: str) -> Any:
        del what
        return vector

    def gather(self, values: Sequence[object], what: str) -> list[Sequence[Tree]]:
        del what
        return [values]

    def broadcast(self, values: Sequence[object], what: str) -> Sequence[object]:
        del what
        return values


class GroupReplicas(Placement):
    """Replicas in several processes, which exchange over Headwater's channels.

    Args:
      group: all processes.
      devices: see `Placement`.
    """

    def __init__(self, group: Group, devices: Sequence[object] = ()) -> None:
        super().__init__(devices)
        self._collective = group.collective
        self.rank: int = group.rank
        self.processes: int = len(group.members)

    def add_up(self, vector: object, what: str) -> HostArray:
        return self._collective.sum(np.asarray(vector), what)

    def gather(self, values: Sequence[object], what: str) -> list[Sequence[Tree]]:
        others = self._collective.gather([np.asarray(value) for value in values], what)
        return [values if rank == self.rank else others[rank] for rank in range(self.processes)]

    def broadcast(self, values: Sequence[object], what: str) -> Sequence[HostArray]:
        return self._collective.broadcast([np.asarray(value) for value in values], what)


class DeviceReplicas(GroupReplicas):
    """Replicas in several processes that add up step vectors with JAX's collectives: NCCL between GPUs, Gloo between
    CPUs. All other exchanges use the group's channels.

    When another process ends unexpectedly, JAX ends this process, too, and the launcher restarts both processes.

    Args:
      group: all processes.
      devices: see `Placement`.
    """

    def __init__(self, group: Group, devices: Sequence[object]) -> None:
        super().__init__(group, devices)
        firsts: dict[int, object] = {}
        for device in jax.devices():
            firsts.setdefault(device.process_index, device)
        self._mine = firsts[jax.process_index()]
        mesh = Mesh(np.asarray([firsts[index] for index in sorted(firsts)]), (_AXIS,))
        self._apart = NamedSharding(mesh, PartitionSpec(_AXIS))
        self._sum = jax.jit(_sum_rows, out_shardings=NamedSharding(mesh, PartitionSpec()))

    def add_up(self, vector: Any, what: str) -> Any:
        if vector.dtype == np.float64 or what != TRAINING_STEP:
            return super().add_up(vector, what)
        row = jax.device_put(vector, self._mine)[None]
        shape = (self.processes, vector.shape[0])
        rows = jax.make_array_from_single_device_arrays(shape, self._apart, [row])
        return self._sum(rows).addressable_data(0)


def _sum_rows(rows: jax.Array) -> object:
    return rows.sum(0)


def join_jax(group: Group) -> None:
    """Connects this process to JAX's distributed runtime, for `DeviceReplicas`. Must be called before JAX computes
    anything.

    Raises:
      RuntimeError: JAX has computed something already.
    """
    place = np.zeros(0, np.uint8)
    if group.rank == 0:
        with socket.create_server((group.members[0].address.host, 0)) as free:
            host, port = group.members[0].address.host, free.getsockname()[1]
        place = np.frombuffer(f"{host}:{port}".encode(), np.uint8)
    address = group.collective.broadcast([place], "address of JAX's coordinator")[0].tobytes().decode()
    jax.distributed.initialize(address, num_processes=len(group.members), process_id=group.rank)
