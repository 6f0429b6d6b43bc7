"""Operations on gates, and the counter of the updates of a group of variables. They run on the task of the group's
first variable."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from headwater.dtypes import int32, int64
from headwater.graph.ops.define import fixed, host, no_outputs, stateful
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.example_ledger import ExampleLedger, ledger_of
from headwater.graph.resources.gate import Gate
from headwater.graph.resources.host_context import HostContext
from headwater.lazy_jax import jax, jnp
from headwater.ps.consistency import from_text


def _gate(context: HostContext, shared_name: str, consistency: str) -> Gate:
    choice = from_text(consistency)
    resources = context.resources
    gate: Gate = resources.get_or_make("", shared_name, Gate, lambda: Gate(shared_name, choice, lock=resources.lock))
    gate.choose(choice)
    return gate


@host("ConsistencyArrive", infer=fixed(int64, ()), inputs="", keeps=True)
def arrive(context: HostContext, *, shared_name: str, consistency: str, worker: str) -> np.integer:
    """Registers a worker before its first step; returns the name of the training's current start."""
    gate = _gate(context, shared_name, consistency)
    gate.announce_worker(context.step.session, worker)
    return np.int64(gate.start)


@host("ConsistencyGive", infer=fixed(int64, (2,)), inputs="version:int64", blocking=True, keeps=True)
def end_step(
    context: HostContext, version: HostArray, *, shared_name: str, consistency: str, worker: str, examples: str = ""
) -> HostArray:
    """Ends a worker's step; returns the version and the start of the training for its next step.

    ``version``: the version of the variables that the step has read and the name of the training's start, int64 of
      shape (2,); only the version, of shape (), if each gradient is an update of its own. ``examples``: name of the
      gradient's examples, if they are accounted for.
    """
    gate = _gate(context, shared_name, consistency)
    of, *start = np.ravel(version).tolist()
    step, since = context.step, start[0] if start else 0
    data = ledger_of(context.resources, examples) if examples else None
    return np.array(gate.end_step(step, step.session, worker, of, since, step.number, data), np.int64)


@host("StartName", infer=fixed(int64, ()), inputs="", keeps=True, stable=True)
def start_name() -> np.integer:
    """Returns a random name for a start of a training; never 0."""
    return np.int64(secrets.randbelow(2**62) + 1)


def _due(inference: Inference) -> list[Spec]:
    del inference
    return [Spec(int32, ()), Spec(int64, ())]


@host("ConsistencyTake", infer=_due, inputs="", blocking=True, keeps=True)
def wait_for_update(context: HostContext, *, shared_name: str, consistency: str) -> Any:
    """Waits until an update is due; returns the number of its gradients, and the start of the training in which they
    were computed."""
    gate = _gate(context, shared_name, consistency)
    due, start = gate.wait_for_update(context.step, context.step.session)
    return [np.int32(due), np.int64(start)]


@host("ConsistencyUpdated", infer=no_outputs, inputs="", announces=True, keeps=True)
def updated(context: HostContext, *, shared_name: str, consistency: str) -> None:
    """Completes an update."""
    _gate(context, shared_name, consistency).complete_update(context.step.session)


@host("ConsistencyRestart", infer=no_outputs, inputs="version:int64, elsewhere:int64, name:int64", keeps=True)
def restart(
    context: HostContext,
    version: HostArray,
    elsewhere: HostArray,
    name: HostArray,
    *,
    shared_name: str,
    consistency: str,
) -> None:
    """Starts or restarts the training, with the variables at ``version``."""
    gate = _gate(context, shared_name, consistency)
    gate.restart(int(version), again=bool(elsewhere), name=int(name))
    for ledger in context.resources.of_kind(ExampleLedger).values():
        gate.data_end(ledger)


@stateful("CountUpdate", refs=(0,), updates=(0,))
def count_update(record: jax.Array, seen: jax.Array) -> tuple[jax.Array, ...]:
    """Counts an update whose gradient was computed from variables that were read when ``record`` had the value
    ``seen``.

    ``record`` is [number of updates, staleness of the latest update, greatest staleness, sum of all stalenesses].
    """
    staleness = record[0] - seen[0]
    return (jnp.stack([record[0] + 1, staleness, jnp.maximum(record[2], staleness), record[3] + staleness]),)
