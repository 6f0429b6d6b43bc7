"""A compiled loop over the time steps of connectionist temporal classification; see `headwater.graph.kernels.ctc`."""

from __future__ import annotations

import math
from typing import Any

from headwater.tables.compiled import compiled


@compiled
def forward(y: Any, skip: Any, stay: Any, scaled_every: int, found: Any, exponents: Any) -> None:
    """Sets the forward probabilities of all moments after the first.

    Args:
      y: probabilities of the states' classes, ``[time, sequences, states]``.
      skip, stay: 1 where a path may skip a state, or stay in it, otherwise 0, ``[sequences, states]``.
      scaled_every: number of steps between two divisions.
      found: forward probabilities after two columns of zeros, ``[time, sequences, 2 + states]``.
      exponents: set to the binary logarithms of the divisors, ``[time, sequences]``.
    """
    for step in range(1, y.shape[0]):
        before = found[step - 1]
        for row in range(y.shape[1]):
            most = 0.0
            for state in range(y.shape[2]):
                value = before[row, state + 2] * stay[row, state] + before[row, state + 1]
                value = (value + before[row, state] * skip[row, state]) * y[step, row, state]
                found[step, row, state + 2] = value
                most = max(most, value)
            if step % scaled_every == 0:
                exponent = math.frexp(most)[1]
                exponents[step, row] = exponent
                factor = math.ldexp(1.0, -exponent)
                for state in range(y.shape[2]):
                    found[step, row, state + 2] *= factor
