"""Everything that the processes exchange in a training step, as one vector.

With process i holding n_i examples, the vector is

    [ n_i g_i | n_i s_i | n_i l_i | d_i | m_i | n_i | 1 if n_i > 0 else 0 | w_i ]

where g are the gradients, s the floating-point state that layers keep (such as moving averages), l the logs of a
model's own training step, d by how much state of other types has changed (such as counters of random numbers), m by
how much the metrics have, and w is 1 where the process is asked to end. Of the sum over all processes, the first three
are divided by the sum of the n_i, and d by how many processes had examples: a gradient of a mean over the batch becomes
that of the mean over the whole batch, and metrics, which keep sums, those of the whole. A loss that is a sum over the
batch is not weighted: its gradients add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.graph.registry import HostArray
    from headwater.keras.types import Tree

#: What the exchange of such a vector is called.
TRAINING_STEP = "training step"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepVector:
    """Where what is in the vector.

    Attributes:
      gradients: shapes of the gradients.
      floating: shapes of the layers' floating-point state.
      logs: names of scalars to average.
      counted: shapes of the layers' other state.
      metrics: shapes of the metrics' state.
      summed_loss: whether the loss is a sum over the batch, not a mean.
      dtype: of the vector.
    """

    gradients: Sequence[tuple[int, ...]]
    floating: Sequence[tuple[int, ...]] = ()
    logs: Sequence[str] = ()
    counted: Sequence[tuple[int, ...]] = ()
    metrics: Sequence[tuple[int, ...]] = ()
    summed_loss: bool = False
    dtype: Any = field(default_factory=lambda: np.dtype(np.float32))

    @property
    def length(self) -> int:
        """Elements of the vector."""
        shapes = [*self.gradients, *self.floating, *((),) * len(self.logs), *self.counted, *self.metrics]
        return sum(int(np.prod(shape)) for shape in shapes) + 3

    def pack(
        self,
        examples: int,
        wish: Any,
        gradients: Sequence[object],
        floating: Sequence[object],
        logs: Sequence[Mapping[str, object] | None],
        counted: Sequence[object],
        metrics: Sequence[object],
    ) -> Any:
        """The vector of a process that has ``examples`` rows; ``wish`` is w above, the rest as the attributes are."""
        weight = np.asarray(examples, self.dtype)
        parts = [self._flat(value) for value in gradients]
        if not self.summed_loss:
            parts = [part * weight for part in parts]
        parts += [self._flat(value) * weight for value in (*floating, *logs)]
        parts += [self._flat(value) for value in (*counted, *metrics)]
        return jnp.concatenate([*parts, np.asarray([examples, 1], self.dtype), jnp.reshape(wish, 1)])

    def nothing(self, wish: Any) -> HostArray:
        """The vector of a process that has no examples in this step."""
        vector = np.zeros(self.length, self.dtype)
        vector[-1] = wish
        return vector

    def unpack(self, total: Any) -> tuple[list[Any], list[Any], list[Any], list[Any], list[Any]]:
        """Gradients, floating-point state, logs, and changes of other state and of metrics, of the whole.

        Args:
          total: the sum of all processes' vectors.
        """
        weight = 1 / total[-3]
        active = 1 / total[-2]
        at = 0

        def take(shapes: Sequence[tuple[int, ...]], scale: object) -> list[Tree]:
            nonlocal at
            found: list[Any] = []
            for shape in shapes:
                size = int(np.prod(shape))
                part = total[at : at + size]
                found.append((part if scale is None else part * scale).reshape(shape))
                at += size
            return found

        return (
            take(self.gradients, None if self.summed_loss else weight),
            take(self.floating, weight),
            take([()] * len(self.logs), weight),
            take(self.counted, active),
            take(self.metrics, None),
        )

    def _flat(self, value: Any) -> Any:
        return jnp.ravel(value).astype(self.dtype)


def shapes_of(values: Sequence[Any]) -> list[tuple[int, ...]]:
    """The shape of each of ``values``."""
    return [tuple(int(size) for size in value.shape) for value in values]
