"""Rules that merge the workers' values for their shares of a batch into the value for the whole batch.

A `Rule` merges a variable: either its values after the step, or its changes during the step. The result is their sum,
their mean weighted by rows, the first worker's value, the largest value, or the smallest value.

- State of layers follows the variable's ``aggregation``: ``"sum"``, ``"only_first_replica"``, and the mean otherwise.
- State of metrics is a sum over examples in all of Keras's own metrics. A metric of a program may declare another
  merge: by the ``aggregation`` of its variables, or by an attribute ``merge``, which is one of the names in `Merge` or
  a dictionary that maps names of variables to such names. Without a declaration, `headwater.keras.combining.trial`
  finds the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class Merge(Enum):
    """The operation that merges the values of several workers."""

    SUM = "sum"
    MEAN = "mean"  # weighted by rows
    EACH = "each"  # the mean over workers, not weighted by rows
    FIRST = "first"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule that merges a variable.

    Attributes:
      merge: the kind of merge of the values below.
      state: whether values after the step are merged, rather than changes during the step.
    """

    merge: Merge
    state: bool = False

    def start(self, old: Any) -> Any:
        """Returns the value with which a worker starts a step. If changes are merged, this is 0: starting from a large
        old value, small changes would be lost to rounding."""
        return old if self.state else jnp.zeros_like(old)

    def contribution(self, start: object, after: object) -> Any:
        """Returns a worker's contribution to the merge, given the variable's value ``after`` the step."""
        return after if self.state else change_in(start, after)

    def apply_merge(self, old: Any, value: Any) -> Any:
        """Returns the variable's value after the step; ``value`` is the merge of all contributions (`contribution`)."""
        return as_dtype(value, old.dtype) if self.state else changed(old, value)


#: State of Keras's own metrics.
ADDED = Rule(Merge.SUM)
#: A layer's floating-point state, such as moving averages.
AVERAGED = Rule(Merge.MEAN, state=True)
#: A layer's other state, such as counters of random numbers.
COUNTED = Rule(Merge.EACH)

_AGGREGATIONS = {"sum": Merge.SUM, "mean": Merge.MEAN, "only_first_replica": Merge.FIRST}


def declared_merge(metric: Any, variable: Any) -> Merge | None:
    """Returns the merge that a metric declares for one of its variables; None without a declaration.

    Raises:
      ValueError: the declared merge is unknown.
    """
    declared: object = getattr(metric, "merge", None)
    if isinstance(declared, dict):
        declared = declared.get(variable.name)
    if isinstance(declared, str):
        if declared not in ("sum", "mean", "first", "max", "min"):
            raise ValueError(
                f"metric {metric.name!r} declares merge={declared!r} for its variable {variable.name!r}; it must be "
                "'sum', 'mean', 'first', 'max' or 'min'"
            )
        return Merge(declared)
    aggregation = getattr(variable, "aggregation", "sum")
    return None if aggregation == "sum" else _AGGREGATIONS.get(aggregation)


def layer_rule(variable: Any, *, assigned: bool) -> Rule:
    """Returns the rule that merges a variable of a layer's state.

    Args:
      variable: not trained.
      assigned: whether its value after a step does not depend on its value before the step.
    """
    floating = bool(jnp.issubdtype(variable.dtype, np.floating))
    aggregation = getattr(variable, "aggregation", "none")
    if aggregation == "sum":
        return Rule(Merge.SUM, state=assigned)
    if aggregation == "only_first_replica":
        return Rule(Merge.FIRST)
    return AVERAGED if floating else COUNTED


def share_of_change(rule: Rule, before: Any, after: Any, part: Any, first: Any) -> Any:
    """Returns a worker's contribution to a layer's state. The mean of all contributions, weighted by rows, is the
    change for the whole batch.

    Args:
      rule: the variable's rule.
      before, after: values of the variable before and after the worker's step.
      part: the worker's share of the rows of the batch, as a fraction.
      first: 1 for the worker with the first rows of the batch, else 0.
    """
    if rule.merge is Merge.SUM:
        return after / part - before if rule.state else (after - before) / part
    if rule.merge is Merge.FIRST:
        return (after - before) * first / part
    return after - before


def share_of_metric(rule: Rule, total: Any, part: Any, first: Any) -> Any:
    """Returns a worker's contribution to a metric's variable. The first ``ps`` adds up the contributions of all
    workers, or selects the largest or smallest."""
    if rule.merge is Merge.MEAN:
        return total * part
    return total * first if rule.merge is Merge.FIRST else total


def combined(merge: Merge, values: Sequence[object], rows: Sequence[int]) -> Any:
    """Merges the values of several workers, as arrays; ``rows`` are the rows of their shares, none of them 0."""
    stacked = np.stack([np.asarray(value, np.float64) for value in values])
    if merge is Merge.MEAN:
        return np.average(stacked, axis=0, weights=rows)
    if merge is Merge.FIRST:
        return stacked[0]
    reduce: Any = {Merge.SUM: np.sum, Merge.EACH: np.mean, Merge.MAX: np.max, Merge.MIN: np.min}[merge]
    return reduce(stacked, axis=0)


def change_in(before: Any, after: Any) -> Any:
    """The change of a value; for an integer, which may have overflowed, as a signed integer."""
    if jnp.issubdtype(before.dtype, np.floating):
        return after - before
    if before.dtype == bool:
        return after.astype(np.float32) - before.astype(np.float32)
    difference = after - before
    signed = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[np.dtype(difference.dtype).itemsize]
    return jax.lax.bitcast_convert_type(difference, signed)


def changed(value: Any, change: Any) -> Any:
    """Adds a change of a floating-point type to ``value``."""
    if jnp.issubdtype(value.dtype, np.floating):
        return value + change.astype(value.dtype)
    if value.dtype == bool:
        return value.astype(np.float32) + change > 0.5
    return value + jnp.round(change).astype(np.int32).astype(value.dtype)


def as_dtype(value: Any, dtype: Any) -> Any:
    """Converts a floating-point number to ``dtype``."""
    if jnp.issubdtype(dtype, np.floating):
        return value.astype(dtype)
    return value > 0.5 if dtype == np.dtype(bool) else jnp.round(value).astype(dtype)
