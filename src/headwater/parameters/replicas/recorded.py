"""An updater that notes what happens to its values, for another copy of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headwater.parameters.updater import Array, HostedTable, Updater


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """What one update was made of; see `headwater.parameters.updater.Updater.apply`."""

    gradients: Sequence[Array]
    changes: Mapping[int, Array]
    knobs: Sequence[float]
    scale: float


@dataclass(kw_only=True, slots=True)
class Noted:
    """What has happened since the last look.

    Attributes:
      updates: in their order.
      replaced: whether values were replaced as a whole, so that updates alone do not lead to what there is.
    """

    updates: list[Update] = field(default_factory=list[Update])
    replaced: bool = False


class RecordedUpdater:
    """Does what another updater does, and notes it where it succeeded. It has no tables.

    Args:
      updater: the other one.
    """

    def __init__(self, updater: Updater) -> None:
        self.inner: Updater = updater
        self._noted = Noted()

    def take(self) -> Noted:
        """What has happened since this was called last."""
        noted, self._noted = self._noted, Noted()
        return noted

    @property
    def tables(self) -> Sequence[HostedTable]:
        return ()

    @property
    def optimizer(self) -> str:
        return self.inner.optimizer

    def fill(self, values: Sequence[Array], state: Sequence[Array] | None) -> None:
        self.inner.fill(values, state)
        self._noted = Noted(replaced=True)

    def assign(self, values: Sequence[Array]) -> None:
        self.inner.assign(values)
        self._noted = Noted(replaced=True)

    def values(self, extras: Sequence[int] | None) -> list[Array]:
        return self.inner.values(extras)

    def state_sizes(self) -> list[tuple[str, tuple[int, ...], str]]:
        return self.inner.state_sizes()

    def state(self) -> dict[str, Array]:
        return self.inner.state()

    def rows(self, numbers: Sequence[Array]) -> list[Array]:
        return self.inner.rows(numbers)

    def apply(
        self,
        gradients: Sequence[Array],
        changes: Mapping[int, Array],
        tables: Sequence[tuple[Array, Array]],
        knobs: Sequence[float],
        scale: float = 1.0,
    ) -> None:
        self.inner.apply(gradients, changes, tables, knobs, scale)
        self._noted.updates.append(Update(gradients=gradients, changes=changes, knobs=knobs, scale=scale))
