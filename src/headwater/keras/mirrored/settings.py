"""Settings that programs written for TensorFlow give to strategies. Most of them change nothing here."""

from __future__ import annotations

from enum import Enum
from typing import Any


class CommunicationImplementation(Enum):
    """Which way processes exchange.

    Attributes:
      AUTO: `NCCL` where there are GPUs, `RING` elsewhere.
      RING: over Headwater's channels.
      NCCL: with JAX's own collectives, which are NCCL between GPUs and Gloo between CPUs.
    """

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions:
    """Settings of exchanges between processes.

    Args:
      bytes_per_pack: not used: everything goes in one exchange.
      timeout_seconds: not used: a process that is gone is noticed at once.
      implementation: which way to go.
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
    """How devices of one process exchange: XLA decides that, whatever is given.

    Args:
      settings: not used.
    """

    def __init__(self, *settings: Any, **named: Any) -> None:
        del settings, named


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """See `CrossDeviceOps`."""


class NcclAllReduce(CrossDeviceOps):
    """See `CrossDeviceOps`."""


class ReductionToOneDevice(CrossDeviceOps):
    """See `CrossDeviceOps`."""


class InputReplicationMode(Enum):
    """What shares one input pipeline."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class InputOptions:
    """Settings of distributed datasets, none of which changes anything here.

    Args:
      settings: by name, as TensorFlow has them.
    """

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)


class RunOptions:
    """Settings of ``strategy.run``, none of which changes anything here.

    Args:
      settings: by name, as TensorFlow has them.
    """

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)
