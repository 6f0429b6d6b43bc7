"""Initial values of rows, which depend only on the table's seed and the row's key.

A counter-based generator without state computes element ``j`` of the row of ``key``. So the row of a key is the same on
every task, regardless of when and in which order rows are created.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.tables.compiled import U64, compiled
from headwater.tables.hashing import mix

if TYPE_CHECKING:
    from headwater.tables.compiled import Reals


CONSTANT: Final = 0
UNIFORM: Final = 1
NORMAL: Final = 2
TRUNCATED: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Initializer:
    """The distribution of initial values.

    Attributes:
      kind: ``"constant"`` (``a``), ``"uniform"`` (between ``a`` and ``b``), ``"normal"`` (mean ``a``, standard
        deviation ``b``) or ``"truncated_normal"`` (the same, drawn again beyond two standard deviations).
      a, b: see ``kind``.
    """

    kind: str = "uniform"
    a: float = -0.05
    b: float = 0.05

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"initializer: kind is {self.kind!r}, not one of {', '.join(KINDS)}")
        if not (math.isfinite(self.a) and math.isfinite(self.b)):
            raise ValueError(f"initializer: a and b must be finite, not {self.a} and {self.b}")
        if self.kind in ("normal", "truncated_normal") and self.b < 0:
            raise ValueError(f"initializer: a standard deviation b is not negative, as {self.b} is")


KINDS: Final = {"constant": CONSTANT, "uniform": UNIFORM, "normal": NORMAL, "truncated_normal": TRUNCATED}


@compiled
def _uniform(word: int) -> float:
    """Returns a real number in (0, 1) from a word's high 53 bits."""
    return (np.float64(word >> U64(11)) + 0.5) * (1.0 / 9007199254740992.0)


@compiled
def _normal(state: Reals, at: int) -> float:
    """Returns a standard normal number (Box and Muller, 1958)."""
    radius = math.sqrt(-2.0 * math.log(_uniform(mix(np.int64(state + U64(2 * at))))))
    return radius * math.cos(2.0 * math.pi * _uniform(mix(np.int64(state + U64(2 * at + 1)))))


@compiled
def fill_row(values: Any, start: int, dim: int, kind: int, a: float, b: float, seed: int, key: int, check: int) -> None:
    """Writes a new row to ``values[start : start + dim]``."""
    state = mix(np.int64(mix(np.int64(mix(key) ^ U64(seed))) ^ U64(check)))
    for j in range(dim):
        if kind == 0:
            values[start + j] = a
        elif kind == 1:
            values[start + j] = a + (b - a) * _uniform(mix(np.int64(state + U64(j))))
        elif kind == 2:
            values[start + j] = a + b * _normal(state, j)
        else:
            # Another draw of this element uses a counter that no other element uses.
            again = j
            drawn = _normal(state, again)
            while abs(drawn) > 2.0:
                again += dim
                drawn = _normal(state, again)
            values[start + j] = a + b * drawn
