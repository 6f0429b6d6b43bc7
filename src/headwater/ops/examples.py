"""Operations on examples that are accounted for; see `headwater.resources.example_ledger`.

A ``ps`` hands out their ranges, a worker makes batches of these, and the update of a step and the account of its range
are one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from headwater.accounting.ledger import Plan, Work
from headwater.dtypes import DType, int64, resource
from headwater.errors import AbortedError
from headwater.ops.bodies import decode_body, interpret
from headwater.ops.datasets import checked_element, element_specs
from headwater.ops.define import fixed, host, stateful
from headwater.ops.queues import as_handle
from headwater.registry import FunctionAttr, HostArray
from headwater.resources.containers import Resources
from headwater.resources.example_batches import ExampleBatches
from headwater.resources.example_ledger import ExampleLedger, Wish
from headwater.resources.host_context import HostContext, RunningStep


@host("TakeExamples", infer=fixed(int64, (4,)), refs=(0,), blocking=True, keeps=True, types={})
def take(
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
    """A range for this step: its epoch, its first place, the first behind it, and the seed of the epoch's order.

    Args:
      applied: the variable that says what is applied.
      seed: -1 for one that the ``ps`` draws.
    """

    def make() -> ExampleLedger:
        return ExampleLedger(shared_name, context.task, context.resources, applied)

    ledger = context.resources.get_or_make("", shared_name, ExampleLedger, make)
    plan = Plan(size=size, batch=batch, tries=tries, shuffle=shuffle, seed=None if seed < 0 else seed)
    work, its_seed = ledger.take(
        context.step, Wish(worker=worker, epochs=epochs, plan=plan, patience_s=float(patience_s))
    )
    return np.array([*work, its_seed], np.int64)


def _admit(resources: Resources, step: RunningStep, *, shared_name: str, batch: int) -> Callable[[], object]:
    del batch
    ledger = resources.find("", shared_name, ExampleLedger)
    if ledger is None:
        raise AbortedError(None, None, f"no ranges of {shared_name!r} were handed out here: the task was started anew")
    return ledger.admit(step)


@stateful("AccountExamples", refs=(0,), updates=(0,), admit=_admit)
def account(applied: jax.Array, handed: jax.Array, *, shared_name: str, batch: int) -> tuple[jax.Array, ...]:
    """The range that `take` gave is applied, with the updates of the same executable."""
    del shared_name
    epoch, start = handed[0], handed[1]
    return (applied.at[1, 0].add(1).at[epoch % 2, 1 + start // batch].set(epoch + 1),)


@host("ExampleBatches", infer=fixed(resource, ()))
def batches(
    context: HostContext,
    *,
    size: int,
    shuffle: bool,
    dataset_factory: FunctionAttr | None = None,
    output_types: Sequence[DType] = (),
    output_shapes: object = (),
    container: str = "",
    shared_name: str = "",
) -> HostArray:
    """What makes batches of ranges, of the dataset that ``dataset_factory`` gives, or ``MakeIterator``."""
    state = context.resource(
        container, shared_name, ExampleBatches, lambda: ExampleBatches(context.op_name, size=size, shuffle=shuffle)
    )
    if dataset_factory is not None:
        state.start_once(lambda: interpret(decode_body(dataset_factory), context, ())[0].item(), context)
    return as_handle(state)


@host("ExampleBatch", infer=element_specs, blocking=True)
def batch_of(
    context: HostContext, batches: HostArray, handed: HostArray, *, output_types: Any, output_shapes: Any
) -> Sequence[HostArray]:
    """The examples of a range."""
    epoch, start, stop, seed = map(int, handed)
    return checked_element(batches.item().batch(Work(epoch, start, stop), seed, context), output_types, output_shapes)
