"""The place of a model's process in the cluster, and the options of its parameter-server strategy."""

from __future__ import annotations

from typing import Protocol

from headwater.keras.parameter_server.own_momentum import MomentumAt
from headwater.ps.consistency import Consistency
from headwater.ps.layout import Partitioner
from headwater.ps.process import ParameterTask
from headwater.state.state_saver import Saves


class ProcessPlace(Protocol):
    """The place of a model's process, and its strategy's options."""

    @property
    def task(self) -> ParameterTask | None: ...

    @property
    def choice(self) -> Consistency: ...

    @property
    def partitioner(self) -> Partitioner | None: ...

    @property
    def table_bytes(self) -> int: ...

    @property
    def small_tables(self) -> bool: ...

    @property
    def wire(self) -> str: ...

    @property
    def exact_tables(self) -> bool: ...

    @property
    def staleness_aware(self) -> bool: ...

    @property
    def momentum_at(self) -> MomentumAt: ...

    @property
    def saves(self) -> Saves | None: ...

    @property
    def replicas(self) -> int: ...

    @property
    def shards(self) -> int | None: ...

    @property
    def worker(self) -> int: ...

    @property
    def workers(self) -> int: ...

    @property
    def is_chief(self) -> bool: ...
