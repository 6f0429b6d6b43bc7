"""TensorFlow's settings of strategies, for compatibility. Most of them have no effect."""

from __future__ import annotations

from enum import Enum


class CommunicationImplementation(Enum):
    """The transport of exchanges between processes.

    Attributes:
      AUTO: `NCCL` if there are GPUs, otherwise `RING`.
      RING: over Headwater's channels.
      NCCL: with JAX's own collectives, which are NCCL between GPUs and Gloo between CPUs.
    """

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions:
    """Settings of exchanges between processes.

    Args:
      bytes_per_pack: ignored: all values are sent in one exchange.
      timeout_seconds: ignored: a lost process is detected by its closed channel or missing heartbeats.
      implementation: the transport.
    """

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: CommunicationImplementation = CommunicationImplementation.AUTO,
    ) -> None:
        self.bytes_per_pack = bytes_per_pack
        self.timeout_seconds = timeout_seconds
        self.implementation = implementation


class CrossDeviceOps:
    """TensorFlow's exchanges between devices of one process. Ignored: XLA exchanges between the devices."""


class _InPacks(CrossDeviceOps):
    """See `CrossDeviceOps`.

    Args:
      num_packs: number of messages of an exchange; ignored: XLA decides, and the sums do not depend on it.

    Raises:
      ValueError: ``num_packs`` is negative.
    """

    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ValueError(f"NCCL all-reduce requires num_packs >= 0, but {num_packs} is specified")


class HierarchicalCopyAllReduce(_InPacks):
    """See `CrossDeviceOps`."""


class NcclAllReduce(_InPacks):
    """See `CrossDeviceOps`."""


class ReductionToOneDevice(CrossDeviceOps):
    """See `CrossDeviceOps`.

    Args:
      reduce_to_device: the device that adds; ignored: XLA decides, and the sums do not depend on it.
      accumulation_fn: must be None: values are always added up.

    Raises:
      ValueError: ``accumulation_fn`` is given.
    """

    def __init__(self, reduce_to_device: object = None, accumulation_fn: object = None) -> None:
        if accumulation_fn is not None:
            raise ValueError("accumulation_fn is not supported: values are always added up; omit it")
        self.reduce_to_device = reduce_to_device


class InputReplicationMode(Enum):
    """The unit of input replication: one input pipeline for each worker, or for each replica."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class InputOptions:
    """Settings of distributed datasets; all are ignored.

    Args:
      settings: TensorFlow's settings, by name.
    """

    def __init__(self, **settings: object) -> None:
        self.__dict__.update(settings)


class RunOptions:
    """Settings of ``strategy.run``; all are ignored.

    Args:
      settings: TensorFlow's settings, by name.
    """

    def __init__(self, **settings: object) -> None:
        self.__dict__.update(settings)
