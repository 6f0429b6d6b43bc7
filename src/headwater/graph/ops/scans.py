"""Recurrence along sequences: one body, once per element, as one compiled loop with a gradient.

Unlike for a general loop (`headwater.graph.ops.control_flow`), the number of iterations is known, and so are the slices
that each iteration reads and writes. So `jax.lax.scan` stores for the gradient only the values that each iteration
computes, and its backward pass is also a scan. Bodies are the same as for loops (`headwater.graph.ops.bodies`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType
from headwater.graph.ops.bodies import declared, decode_body, evaluate, interpret, static_inputs
from headwater.graph.ops.define import host, pure
from headwater.graph.ops.inner_faults import record_faults, with_faults
from headwater.graph.registry import Attrs, FunctionAttr, HostArray
from headwater.graph.resources.host_context import HostContext
from headwater.lazy_jax import jax, jnp, lax
from headwater.shapes import TensorShape

_lax: Any = lax


def _static(attrs: Attrs, count: int) -> frozenset[int]:
    del count
    begin = attrs["states"] + attrs["sequences"]
    return frozenset(i for i in static_inputs(decode_body(attrs["body"])) if i >= begin)


@pure("StatelessScan", infer=declared, static_of=_static, types={})
def stateless_scan(
    *inputs: jax.Array,
    body: FunctionAttr,
    states: int,
    sequences: int,
    Tout: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
) -> tuple[jax.Array, jax.Array]:
    """Returns the final states, then the body's other results, each stacked over the iterations.

    Args:
      inputs: the initial states, the sequences (with equal first dimensions), and loop-invariant inputs. The body takes
        them in this order, with one slice of each sequence, and returns the states after the iteration and its other
        results.
      states: the number of states.
      sequences: the number of sequences.
    """
    del output_shapes
    decoded = decode_body(body)
    fixed = inputs[states + sequences :]
    start = tuple(jnp.asarray(value) for value in inputs[:states])

    turn_with_faults = with_faults(evaluate)

    def step(carry: Any, slices: Any) -> Any:
        turn, values = carry
        results, faults = turn_with_faults(decoded, [*values, *slices, *fixed], None, turn)
        typed = [
            _lax.convert_element_type(value, dtype.base_dtype.numpy_dtype)
            for value, dtype in zip(results, Tout, strict=True)
        ]
        return (turn + 1, tuple(typed[:states])), (tuple(typed[states:]), faults)

    xs = tuple(jnp.asarray(value) for value in inputs[states : states + sequences])
    (_, last), (stacked, faults) = _lax.scan(step, (jnp.int32(0), start), xs)
    record_faults({name: fault.any() for name, fault in faults.items()})
    return (*last, *stacked)


@host("Scan", infer=declared, ref_attr="refs", types={}, blocking=True)
def run_scan(
    context: HostContext,
    *inputs: Any,
    body: FunctionAttr,
    states: int,
    sequences: int,
    Tout: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
    refs: Sequence[int] = (),
) -> tuple[HostArray, ...]:
    """Like `stateless_scan`, on the host, without a gradient: for bodies that change variables, print or use text."""
    del output_shapes, refs
    decoded = decode_body(body)
    values = list(inputs[:states])
    xs, fixed = inputs[states : states + sequences], inputs[states + sequences :]
    rows: list[list[HostArray]] = [[] for _ in Tout[states:]]
    for turn in range(len(xs[0])):
        context.step.check()
        results = interpret(decoded, context, (*values, *(x[turn] for x in xs), *fixed), turn)
        values = list(results[:states])
        for row, value in zip(rows, results[states:], strict=True):
            row.append(value)
    return (*values, *(np.stack(row) for row in rows))
