"""Operations on examples that are accounted for; see `headwater.graph.resources.example_ledger`.

A ``ps`` assigns ranges of examples to steps, and a worker makes a batch from the range of its step. The update of a
step and the accounting of its range are atomic: either both are made or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType, int32, int64, resource
from headwater.graph.ops.bodies import decode_body, interpret
from headwater.graph.ops.datasets import checked_element, element_specs, specs_of
from headwater.graph.ops.define import fixed, host, no_outputs, stateful
from headwater.graph.ops.queues import as_handle
from headwater.graph.registry import FunctionAttr, HostArray
from headwater.graph.resources.containers import Resources
from headwater.graph.resources.example_batches import ExampleBatches
from headwater.graph.resources.example_ledger import ExampleLedger, RangeRequest, ledger_of
from headwater.graph.resources.gate import Gate
from headwater.graph.resources.host_context import HostContext, RunningStep
from headwater.lazy_jax import jax
from headwater.ps.accounting.ledger import Plan, Work


def _ledger(context: HostContext, name: str, applied: Any) -> ExampleLedger:
    def make() -> ExampleLedger:
        return ExampleLedger(name, context.task, context.resources, applied)

    return context.resources.get_or_make("", name, ExampleLedger, make)


@host("TakeExamples", infer=fixed(int64, (4,)), refs=(0,), blocking=True, keeps=True, types={})
def assign_range(
    context: HostContext,
    applied: Any,
    *,
    shared_name: str,
    worker: str,
    size: int,
    batch: int,
    tries: int,
    shuffle: bool,
    seed: int,
    epochs: int,
    patience_s: float,
) -> HostArray:
    """Assigns a range to this step; returns its epoch, start, end, and the seed of the epoch's order.

    Args:
      applied: the variable that records the applied batches.
      seed: -1 to let the ``ps`` draw a seed.
    """

    ledger = _ledger(context, shared_name, applied)
    plan = Plan(size=size, batch=batch, tries=tries, shuffle=shuffle, seed=None if seed < 0 else seed)
    request = RangeRequest(worker=worker, epochs=epochs, plan=plan, patience_s=float(patience_s))

    def starved() -> None:
        for gate in context.resources.of_kind(Gate).values():
            gate.data_end(ledger)

    work, its_seed = ledger.assign_range(context.step, request, starved)
    return np.array([*work, its_seed], np.int64)


def _admit(resources: Resources, step: RunningStep, *, shared_name: str, batch: int) -> Callable[[], object]:
    del batch
    return ledger_of(resources, shared_name).admit(step)


@stateful("AccountExamples", refs=(0,), updates=(0,), admit=_admit)
def account(applied: jax.Array, handed: jax.Array, *, shared_name: str, batch: int) -> tuple[jax.Array, ...]:
    """Marks the range returned by `assign_range` as applied, together with the updates of the same executable."""
    del shared_name
    epoch, start = handed[0], handed[1]
    return (applied.at[1, 0].add(1).at[epoch % 2, 1 + start // batch].set(epoch + 1),)


def _admit_round(resources: Resources, step: RunningStep, *, shared_name: str, batch: int) -> Callable[[], object]:
    del batch
    return ledger_of(resources, shared_name).admit_round(step)


@stateful("AccountRound", refs=(0,), updates=(0,), admit=_admit_round)
def account_round(applied: jax.Array, ranges: jax.Array, *, shared_name: str, batch: int) -> tuple[jax.Array, ...]:
    """Marks the ranges of gathered gradients, int64 [n, 3], as applied, together with the updates of the same
    executable."""
    del shared_name
    epochs, starts = ranges[:, 0], ranges[:, 1]
    return (applied.at[1, 0].add(1).at[epochs % 2, 1 + starts // batch].set(epochs + 1),)


@host("ExampleRound", infer=fixed(int32, ()), refs=(0,), blocking=True, keeps=True, stable=True, types={})
def round_of(context: HostContext, applied: object, num_required: HostArray, *, shared_name: str) -> np.integer:
    """Waits until enough gradients for an update are gathered; returns their number."""
    ledger = _ledger(context, shared_name, applied)
    return np.int32(ledger.wait_for_round(context.step, int(num_required)))


@host("ExamplesGiven", infer=no_outputs, inputs="", keeps=True)
def mark_step_given(context: HostContext, *, shared_name: str) -> None:
    """Records that the step has sent its gradients to all accumulators."""
    ledger_of(context.resources, shared_name).mark_step_given(context.step)


@host("ExampleBatches", infer=fixed(resource, ()))
def batches(
    context: HostContext,
    *,
    size: int,
    shuffle: bool,
    dataset_factory: FunctionAttr | None = None,
    output_types: Sequence[DType] = (),
    output_shapes: object = (),
    output_classes: Sequence[str] = (),
    container: str = "",
    shared_name: str = "",
) -> HostArray:
    """Returns the source of batches of ranges, for the dataset of ``dataset_factory`` or of ``MakeIterator``."""
    make = lambda: ExampleBatches(context.op_name, size=size, shuffle=shuffle)  # noqa: E731 - a short factory
    signature = {"size": size, "shuffle": shuffle, "element types": output_types, "element shapes": output_shapes}
    if output_classes:
        signature["element classes"] = output_classes
    state = context.resource(container, shared_name, ExampleBatches, make, signature)
    if dataset_factory is not None:
        state.start_once(lambda: interpret(decode_body(dataset_factory), context, ())[0].item(), context)
    return as_handle(state)


@host("ExampleBatch", infer=element_specs, blocking=True)
def batch_of(
    context: HostContext,
    batches: HostArray,
    handed: HostArray,
    *,
    output_types: Any,
    output_shapes: Any,
    output_classes: Any = (),
) -> Sequence[HostArray]:
    """Returns the examples of a range."""
    epoch, start, stop, seed = map(int, handed)
    specs = specs_of(output_types, output_shapes, output_classes)
    return checked_element(batches.item().batch(Work(epoch, start, stop), seed, context), specs)
