"""Strategies with the arguments of ``tf.contrib.distribute``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.keras.devices import replica_devices
from headwater.keras.mirrored import strategy as mirrored


class MirroredStrategy(mirrored.MirroredStrategy):
    """Replicas on several devices of this process.

    Args:
      devices: names of devices.
      num_gpus, num_gpus_per_worker: number of GPUs, instead of ``devices``. If none of the three is given, all GPUs are
        used, or the CPU.
      cross_device_ops, auto_shard_dataset, cross_tower_ops: not used: XLA exchanges between the devices.

    Raises:
      ValueError: both ``devices`` and a number of GPUs are given.
      InvalidArgumentError: this process has no such device.
    """

    def __init__(
        self,
        devices: Sequence[str] | None = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        cross_device_ops: object = None,
        auto_shard_dataset: bool = False,
        cross_tower_ops: object = None,
    ) -> None:
        del cross_device_ops, auto_shard_dataset, cross_tower_ops
        if num_gpus is not None and num_gpus_per_worker is not None:
            raise ValueError("You cannot specify both `num_gpus` and `num_gpus_per_worker`.")
        count = num_gpus if num_gpus is not None else num_gpus_per_worker
        if devices is not None and count is not None:
            raise ValueError("Must only specify one of `devices` and `num_gpus`.")
        if count is not None:
            devices = [f"/gpu:{index}" for index in range(count)] or ["/cpu:0"]
        super().__init__(devices)


class CentralStorageStrategy(mirrored.MirroredStrategy):
    """Replicas on several devices of this process; each device has all variables.

    Args:
      compute_devices: names of devices; all GPUs, or the CPU, if None.
      parameter_device: must be None: every device has all variables, instead of one device for all replicas.

    Raises:
      InvalidArgumentError: this process has no such device.
      NotImplementedError: ``parameter_device`` is given.
    """

    def __init__(self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None) -> None:
        if parameter_device is not None:
            raise NotImplementedError(
                f"parameter_device={parameter_device!r}: every compute device keeps all variables. Omit it, or give a "
                "single compute device"
            )
        super().__init__(compute_devices)


class CollectiveAllReduceStrategy(mirrored.MultiWorkerMirroredStrategy):
    """Replicas in several processes, the tasks of the jobs ``chief`` and ``worker`` in ``TF_CONFIG``.

    Args:
      num_gpus_per_worker: number of GPUs of each process; it must equal the number of visible GPUs.
      communication: a `CommunicationImplementation`.

    Raises:
      ValueError: the process sees a different number of GPUs.
    """

    def __init__(self, num_gpus_per_worker: int = 0, communication: Any = None) -> None:
        gpus = [name for name in replica_devices() if name.startswith("GPU")] if num_gpus_per_worker else []
        if num_gpus_per_worker and len(gpus) != num_gpus_per_worker:
            raise ValueError(
                f"num_gpus_per_worker is {num_gpus_per_worker}, but this process sees {len(gpus)} GPUs: set "
                "CUDA_VISIBLE_DEVICES to the GPUs to use"
            )
        options = None if communication is None else mirrored.CommunicationOptions(implementation=communication)
        super().__init__(options)
