"""Lookups that combine rows in bags, in a table on other tasks: rows are pooled on those tasks if that sends fewer
bytes.

``RouteBags`` (`headwater.graph.ops.bag_routes`) divides the ids among the parts of the table; each id is sent once.
``GatherBags`` reads the rows of one part; if the request includes the bags, it adds up the rows of each bag and sends
one row per bag. ``JoinBags`` combines the results into bags. The gradient takes the reverse path: ``SplitBags`` sends
each part the gradients of its rows or of the bags, and ``SpreadBags`` converts gradients of bags to gradients of rows
on the part. The size of ``counts`` selects the form: it is empty if rows are sent. So ``RouteBags`` decides in each
step, and each form has its own executable.

With bags b of ids i, weights w and a divisor d given by the combiner: out[b] = (Σ w[i] row[i]) / d[b].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from headwater.dtypes import bfloat16, float32
from headwater.graph.ops.define import pure
from headwater.graph.ops.table_rows import add_rows, take_rows
from headwater.graph.registry import Inference, Spec
from headwater.lazy_jax import jax, jnp


def _numbers(arrived: jax.Array) -> jax.Array:
    """Decodes whole numbers of ``arrived.shape[1]`` bytes each, the least significant byte first."""
    scale = np.array([1 << 8 * place for place in range(arrived.shape[1])], np.int64)
    return jnp.sum(arrived.astype(np.int64) * scale, axis=1)


def _bags_of(counts: jax.Array, places: int) -> jax.Array:
    """Returns the bag number of each id of a part, in ascending order, ``[places]``. Unused places get the number of
    bags."""
    return jnp.searchsorted(jnp.cumsum(_numbers(counts)), jnp.arange(places), side="right")


def _times(rows: jax.Array, factors: jax.Array) -> jax.Array:
    """Multiplies rows by their weights, if any."""
    return rows * _wide(factors, rows) if factors.shape[0] == rows.shape[0] else rows


def _wide(numbers: jax.Array, rows: jax.Array) -> jax.Array:
    """Reshapes a vector with one number per row so that it broadcasts with ``rows``."""
    return numbers.reshape(-1, *[1] * (rows.ndim - 1))


def _part_spec(inference: Inference) -> Sequence[Spec]:
    params = inference.inputs[0]
    tail = None if params.dims is None else (None, *params.dims[1:])
    return [Spec(bfloat16 if inference.attrs.get("halves") else params.dtype.base_dtype, tail)]


@pure(
    "GatherBags", inputs="params:T, routed:Tids|index, numbers:uint8, counts:uint8, weights:float32", infer=_part_spec
)
def gather_bags(
    params: jax.Array,
    routed: jax.Array,
    numbers: jax.Array,
    counts: jax.Array,
    weights: jax.Array,
    *,
    halves: bool = False,
) -> jax.Array:
    """Returns the rows of one part that ``RouteBags`` requests, or their sum for each bag; bfloat16 with ``halves``."""
    rows = take_rows(params, routed, nearest=True)
    if bags := counts.shape[0]:
        chosen = _times(take_rows(rows, _numbers(numbers)), weights)
        rows = add_rows(jnp.zeros((bags, *rows.shape[1:]), rows.dtype), _bags_of(counts, len(chosen)), chosen)
    return rows.astype(jnp.bfloat16) if halves else rows


def _joined_spec(inference: Inference) -> Sequence[Spec]:
    divisors, found = inference.inputs[3], inference.inputs[5]
    known = None if found.dims is None or divisors.dims is None else (*divisors.dims, *found.dims[1:])
    return [Spec(float32, known)]


_OF_IDS: Final = "places:int32, of:int32, factors:float32, divisors:float32"


@pure("JoinBags", inputs=f"{_OF_IDS}, counts:uint8, found:T*", infer=_joined_spec)
def join_bags(
    places: jax.Array,
    of: jax.Array,
    factors: jax.Array,
    divisors: jax.Array,
    counts: jax.Array,
    *found: jax.Array,
    combiner: str,
    weighted: bool,
) -> jax.Array:
    """Returns the bags, float32 ``[bags, …]``, from the results of ``GatherBags`` of each part."""
    del combiner, weighted  # only the gradient function reads these attributes
    rows = [part.astype(np.float32) for part in found]
    if counts.shape[0]:
        total = sum(rows[1:], rows[0])
    else:
        chosen = _times(take_rows(jnp.concatenate(rows), places), factors)
        total = add_rows(jnp.zeros((len(divisors), *chosen.shape[1:]), np.float32), of, chosen)
    return total / _wide(divisors, total)


def _split_spec(inference: Inference) -> Sequence[Spec]:
    grad, routed = inference.inputs[0], inference.inputs[6:]
    return [Spec(float32, None if grad.dims is None else (None, *grad.dims[1:]))] * len(routed)


@pure("SplitBags", inputs=f"grad:T, {_OF_IDS}, counts:uint8, routed:Tids*", infer=_split_spec)
def split_bags(
    grad: jax.Array,
    places: jax.Array,
    of: jax.Array,
    factors: jax.Array,
    divisors: jax.Array,
    counts: jax.Array,
    *routed: Any,
    of_rows: bool = False,
) -> tuple[jax.Array, ...]:
    """Returns, for each part, the gradient of the result of ``GatherBags``; with ``of_rows``, always a gradient of
    rows."""
    share = grad / _wide(divisors, grad)
    if counts.shape[0] and not of_rows:
        return (share,) * len(routed)
    sizes = [part.shape[0] for part in routed]
    chosen = _times(take_rows(share, of), factors)
    rows = add_rows(jnp.zeros((sum(sizes), *grad.shape[1:]), grad.dtype), places, chosen)
    return tuple(jnp.split(rows, np.cumsum(sizes)[:-1]))


def _spread_spec(inference: Inference) -> Sequence[Spec]:
    grad, routed = inference.inputs[:2]
    return [Spec(float32, None if grad.dims is None or routed.dims is None else (*routed.dims, *grad.dims[1:]))]


@pure(
    "SpreadBags", inputs="grad:T, routed:Tids|index, numbers:uint8, counts:uint8, weights:float32", infer=_spread_spec
)
def spread_bags(
    grad: jax.Array, routed: jax.Array, numbers: jax.Array, counts: jax.Array, weights: jax.Array
) -> jax.Array:
    """Returns the gradients, float32, of the rows requested from a part, given the gradient of the result of
    ``GatherBags``."""
    grad = grad.astype(np.float32)
    if not counts.shape[0]:
        return grad
    chosen = _times(take_rows(grad, _bags_of(counts, len(numbers))), weights)
    return add_rows(jnp.zeros((len(routed), *grad.shape[1:]), grad.dtype), _numbers(numbers), chosen)


@pure(
    "GradientOfBagWeights",
    inputs=f"grad:T, pooled:T, {_OF_IDS}, found:T*",
    infer=lambda inference: [Spec(float32, inference.inputs[4].dims)],
)
def gradient_of_weights(
    grad: jax.Array,
    pooled: jax.Array,
    places: jax.Array,
    of: jax.Array,
    factors: jax.Array,
    divisors: jax.Array,
    *found: jax.Array,
    combiner: str,
) -> jax.Array:
    """Returns the gradient of the weights of ids, in the order of places.

    With out = s / d:  ∂L/∂w[i] = g[b]·(row[i] − out[b] ∂d/∂w[i]) / d[b], where d is Σ w or the root of Σ w².

    Args:
      grad: the gradient of the bags.
      pooled: the bags.
      found: the rows requested from each part.
    """

    def flat(rows: jax.Array) -> jax.Array:
        return rows.reshape(rows.shape[0], -1)

    slope = take_rows(flat(grad / _wide(divisors, grad)), of)
    rows = take_rows(flat(jnp.concatenate(found)), places)
    if combiner == "sum":
        return jnp.sum(slope * rows, axis=1)
    bag, divisor = take_rows(flat(pooled), of), take_rows(divisors[:, np.newaxis], of)
    more = jnp.ones_like(divisor) if combiner == "mean" else factors[:, np.newaxis] / jnp.where(divisor > 0, divisor, 1)
    return jnp.sum(slope * (rows - bag * more), axis=1)
