"""Mirrored strategies: replicas with equal variables, on several devices of a process or in several processes."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from headwater.cluster.config import TaskConfig, task_config_from_environment
from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress, report
from headwater.cluster.transport.handlers import DeviceInfo
from headwater.keras.collectives.collective import LostPeerError
from headwater.keras.collectives.group import Group, members_of
from headwater.keras.devices import canonical_device, has_gpus, local_device, replica_devices
from headwater.keras.mirrored.cores import restrict_to_own_cores
from headwater.keras.mirrored.lockstep import Lockstep, current
from headwater.keras.mirrored.replicas import DeviceReplicas, GroupReplicas, LocalReplicas, join_jax
from headwater.keras.mirrored.settings import CommunicationImplementation, CommunicationOptions
from headwater.keras.strategy import InputContext, ReplicaContext, Strategy
from headwater.keras.values import PerReplica, ReduceOp, map_structure, regroup, select

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.keras.mirrored.inputs import DistributedDataset
    from headwater.keras.types import Tree


class _Mirrors(Strategy):
    """The common part of mirrored strategies.

    Args:
      devices: names of this process's devices with replicas.
    """

    def __init__(self, replicas: Any, devices: Sequence[str]) -> None:
        self._replicas = replicas
        self._devices = tuple(devices)

    @property
    def num_replicas_in_sync(self) -> int:
        return self._replicas.processes * len(self._devices)

    @property
    def is_chief(self) -> bool:
        return self._replicas.rank == 0

    def device_names(self) -> tuple[str, ...]:
        return tuple(f"/device:{name}" for name in self._devices)

    def local_replicas(self) -> Sequence[int]:
        first = self._replicas.rank * len(self._devices)
        return range(first, first + len(self._devices))

    def replica_placement(self, index: int) -> AbstractContextManager[object]:
        return jax.default_device(local_device(self._devices[index]))

    def adopt(self, model: object) -> None:
        # Imported late: importing Keras takes most of a second, and a program with a model has imported it already.
        from headwater.keras.mirrored.model import MirroredModel, mirrored_of  # noqa: PLC0415

        if mirrored_of(model) is None:
            MirroredModel(model, self._replicas).patch_model()

    def run(
        self,
        fn: Callable[..., object],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        options: object = None,
    ) -> Tree:
        if len(self._devices) == 1:
            return super().run(fn, args, kwargs, options)
        replicas = self.local_replicas()

        def body(index: int) -> object:
            with self.scope(), ReplicaContext(self, replicas[index]), self.replica_placement(index):
                return fn(*select(tuple(args), index), **select(dict(kwargs or {}), index))

        return regroup(Lockstep(len(replicas)).run(body))

    def all_reduce(self, reduce_op: ReduceOp, value: object) -> Tree:
        lockstep_and_index = current()
        if lockstep_and_index is None:
            return super().all_reduce(reduce_op, value)
        lockstep, index = lockstep_and_index

        def reduce_leaf(leaf: object) -> Tree:
            return lockstep.combine(index, leaf, lambda leaves: self.reduce(reduce_op, PerReplica(leaves)))

        return map_structure(reduce_leaf, value)

    def all_reduce_processes(self, value: object) -> Tree:
        array = np.asarray(value)
        total = self._replicas.add_up(np.ravel(array), "reduce")
        return total.reshape(array.shape)

    def gather_processes(self, value: object, axis: int) -> HostArray:
        return np.concatenate([part[0] for part in self._replicas.gather([np.asarray(value)], "gather")], axis)

    def experimental_distribute_dataset(self, dataset: object, options: object = None) -> DistributedDataset:
        del options
        from headwater.keras.mirrored.inputs import distributed_dataset  # noqa: PLC0415  as above

        return distributed_dataset(dataset, self._replicas, len(self._devices))

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], object], options: object = None
    ) -> DistributedDataset:
        del options
        from headwater.keras.mirrored.inputs import DistributedDataset  # noqa: PLC0415  as above

        context = InputContext(self._replicas.processes, self._replicas.rank, self.num_replicas_in_sync)
        return DistributedDataset(dataset_fn(context), self._replicas, len(self._devices))


class MirroredStrategy(_Mirrors):
    """Replicas on several devices of this process.

    Args:
      devices: names of devices, such as ``["/gpu:0", "/gpu:1"]``; all GPUs, or the CPU, if None.
      cross_device_ops: not used: XLA exchanges between the devices.

    Raises:
      InvalidArgumentError: this process has no such device.
      ValueError: a device is listed twice.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: object = None) -> None:
        del cross_device_ops
        names = [canonical_device(name) for name in devices] if devices else replica_devices()
        if len(set(names)) < len(names):
            raise ValueError(f"devices must be distinct, but are {list(devices or ())}")
        super().__init__(LocalReplicas([local_device(name) for name in names]), names)


class MultiWorkerMirroredStrategy(_Mirrors):
    """Replicas in several processes, the tasks of the jobs ``chief`` and ``worker`` of a cluster, on all their GPUs.

    The constructor waits for the other processes. The first process (``chief``, or ``worker`` 0) writes the files that
    are written once per job. Without a cluster, the strategy has one process with all its devices.

    Args:
      communication_options: see `CommunicationOptions`.
      cluster_resolver: the source of the cluster, instead of ``TF_CONFIG``.

    Raises:
      ClusterConfigError: ``TF_CONFIG`` is invalid.
      UnavailableError, DeadlineExceededError: other processes cannot be reached.
    """

    def __init__(self, communication_options: object = None, cluster_resolver: object = None) -> None:
        self._resolver = cluster_resolver
        members, rank = members_of(_config_of(cluster_resolver))
        if not members:
            names = replica_devices()
            super().__init__(LocalReplicas([local_device(name) for name in names]), names)
            return
        restrict_to_own_cores(members, rank)
        # Tell the launcher that all processes belong together. If one is lost, it restarts all of them, because no step
        # is possible with fewer replicas.
        report(Progress(task=str(members[rank].task), together=True))
        me = members[rank].task
        shown: list[DeviceInfo] = []
        self._group = Group(members, rank, devices=lambda: shown)
        atexit.register(self._group.close)
        _end_with_exit_codes()
        wanted = getattr(communication_options, "implementation", CommunicationImplementation.AUTO)
        over_jax = wanted is CommunicationImplementation.NCCL
        if over_jax or (wanted is CommunicationImplementation.AUTO and has_gpus()):
            join_jax(self._group)
            over_jax = True
        names = replica_devices()
        # Add JAX's devices only now, because they were unknown before.
        shown += [DeviceInfo(name=f"{me.device_prefix}/device:{name}", type=name.partition(":")[0]) for name in names]
        devices = [local_device(name) for name in names]
        super().__init__((DeviceReplicas if over_jax else GroupReplicas)(self._group, devices), names)
        if len(members) > 1:
            self._expect_models()

    @property
    def cluster_resolver(self) -> Any:
        return self._resolver


class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy):
    """`MultiWorkerMirroredStrategy` with its earlier arguments.

    Args:
      communication: a `CommunicationImplementation`.
      cluster_resolver: as for `MultiWorkerMirroredStrategy`.
    """

    def __init__(self, communication: Any = None, cluster_resolver: object = None) -> None:
        options = None if communication is None else CommunicationOptions(implementation=communication)
        super().__init__(options, cluster_resolver)


def _config_of(resolver: Any) -> TaskConfig | None:
    """The cluster and this process's place in it."""
    if resolver is None:
        return task_config_from_environment()
    task = TaskName(resolver.task_type, int(resolver.task_id)) if resolver.task_type else None
    return TaskConfig(cluster=resolver.cluster_spec(), task=task)


def _end_with_exit_codes() -> None:
    """Makes an uncaught `LostPeerError` end the program with one line and an exit code that asks for a restart."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, LostPeerError):
            print(
                f"headwater: {error.message}; ending with exit code {error.exit_code} to request a restart",
                file=sys.stderr,
            )
            sys.stderr.flush()
            raise SystemExit(error.exit_code)
        before(kind, error, traceback)

    sys.excepthook = hook
