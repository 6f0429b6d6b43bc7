"""Operations on accumulators. They run in Python, on the task of the accumulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType, int32, int64, resource, string
from headwater.errors import CancelledError
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.ops.queues import as_handle
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.accumulators import Accumulator, DenseSum, Gradient, RowSum
from headwater.graph.resources.example_ledger import GatheredRange, ledger_of
from headwater.graph.resources.host_context import HostContext
from headwater.graph.resources.training_runs import Members, has_forgotten
from headwater.shapes import Dims, TensorShape, as_shape


def _define_accumulator(op_type: str, kind: str, sum_of: Callable[[str, Dims], DenseSum | RowSum]) -> None:
    @host(op_type, infer=fixed(resource, ()), keeps=True)
    def accumulator(  # pyright: ignore[reportUnusedFunction]
        context: HostContext,
        *,
        dtype: DType,
        shape: Any = None,
        container: str = "",
        shared_name: str = "",
        reduction_type: str = "MEAN",
    ) -> HostArray:
        sums = [sum_of(context.op_name, as_shape(shape).as_dims)]
        signature = {"type": kind, "element type": dtype, "shape": shape, "reduction_type": reduction_type}
        make = lambda: Accumulator(context.op_name, sums, mean=reduction_type == "MEAN")  # noqa: E731 - a short factory
        return as_handle(context.resource(container, shared_name, Accumulator, make, signature))


_define_accumulator("ResourceConditionalAccumulator", "dense", lambda name, dims: DenseSum(dims))
_define_accumulator("SparseConditionalAccumulator", "sparse", RowSum)


@host("ResourceAccumulatorApplyGradient", infer=no_outputs, keeps=True)
def apply_dense(handle: HostArray, local_step: HostArray, gradient: HostArray, *, dtype: DType) -> None:
    del dtype
    handle.item().apply([(gradient,)], int(local_step))


@host("SparseAccumulatorApplyGradient", infer=no_outputs, keeps=True)
def apply_sparse(
    handle: HostArray,
    local_step: HostArray,
    indices: HostArray,
    values: HostArray,
    shape: HostArray,
    *,
    dtype: DType,
    has_known_shape: bool = False,
) -> None:
    del dtype, has_known_shape  # an unknown shape is passed as an empty one
    handle.item().apply([(indices, values, shape)], int(local_step))


def _dense_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["dtype"], as_shape(inference.attrs.get("_shape")).as_dims)]


@host("ResourceAccumulatorTakeGradient", infer=_dense_spec, blocking=True, keeps=True)
def dense_mean(context: HostContext, handle: HostArray, num_required: HostArray, *, dtype: DType) -> HostArray:
    ((gradient,),) = handle.item().pop_mean(context.step, int(num_required))[0]
    return gradient.astype(dtype.numpy_dtype, copy=False)


def _sparse_specs(inference: Inference) -> Sequence[Spec]:
    dims = as_shape(inference.attrs.get("_shape")).as_dims
    values = None if dims is None else (None, *dims[1:])
    shape = None if dims is None else (len(dims),)
    return [Spec(int64, (None,)), Spec(inference.attrs["dtype"], values), Spec(int64, shape)]


@host("SparseAccumulatorTakeGradient", infer=_sparse_specs, blocking=True, keeps=True)
def sparse_mean(context: HostContext, handle: HostArray, num_required: HostArray, *, dtype: DType) -> HostArray:
    del dtype
    (gradient,) = handle.item().pop_mean(context.step, int(num_required))[0]
    return gradient


@host("ResourceAccumulatorNumAccumulated", infer=fixed(int32, ()), keeps=True)
def num_accumulated(handle: HostArray) -> np.integer:
    return np.int32(handle.item().count())


@host("ResourceAccumulatorSetGlobalStep", infer=no_outputs, keeps=True)
def set_global_step(handle: HostArray, new_global_step: HostArray) -> None:
    handle.item().set_step(int(new_global_step))


# Accumulators for the gradients of all variables of a task ----------------------------------------------------


def _gathered(context: HostContext, name: str, shapes: Sequence[TensorShape], rows: Sequence[int]) -> Accumulator:
    def make() -> Accumulator:
        dims = [as_shape(shape).as_dims for shape in shapes]
        sums = [RowSum(name, d, for_update=True) if i in rows else DenseSum(d) for i, d in enumerate(dims)]
        return Accumulator(name, sums, resources=context.resources)

    return context.resources.get_or_make("", name, Accumulator, make)


@host("GatherGradients", infer=no_outputs, keeps=True)
def gather(
    context: HostContext,
    local_step: HostArray,
    *parts: HostArray,
    shared_name: str,
    shapes: Any,
    rows: Any,
    examples: str = "",
) -> None:
    """Adds one gradient for each variable to the accumulator of the task. ``rows`` lists the variables whose gradients
    consist of rows (indices and values).

    ``local_step``: the global step at which the gradients were computed, int64 of shape (); or this step and the name
      of the training's start, int64 of shape (2,). ``examples``: name of the range of examples behind the gradient, if
      examples are accounted for.
    """
    accumulator = _gathered(context, shared_name, shapes, rows)
    remaining = iter(parts)
    unknown = np.zeros(0, np.int64)
    gradients: list[Gradient] = [
        (next(remaining), next(remaining), unknown) if index in rows else (next(remaining),)
        for index in range(len(shapes))
    ]
    step, start = local_step if local_step.ndim else (local_step, None)
    of_step = context.step
    given = GatheredRange(context.resources, examples, of_step.session, of_step.number) if examples else None
    since = None if start is None else int(start)
    accumulator.apply(gradients, int(step), of_step.session, since, given, follows=of_step.follows)


def _means(inference: Inference) -> Sequence[Spec]:
    attrs = inference.attrs
    specs = [Spec(int64, ())]
    for index, (dtype, shape) in enumerate(zip(attrs["dtypes"], attrs["shapes"], strict=True)):
        dims = as_shape(shape).as_dims
        if index in attrs["rows"]:
            specs += [Spec(int64, (None,)), Spec(dtype, None if dims is None else (None, *dims[1:]))]
        else:
            specs.append(Spec(dtype, dims))
    if attrs.get("examples"):
        specs.append(Spec(int64, (None, 3)))
    return specs


def _repeat_take(
    context: HostContext,
    run: Any,
    times: int,
    num_required: HostArray,
    *,
    shared_name: str,
    shapes: Any,
    rows: Any,
    dtypes: Sequence[DType],
    examples: str = "",
    several: bool = False,
) -> None:
    del dtypes, examples, several
    session = context.step.session
    _gathered(context, shared_name, shapes, rows).repeat(context.step, int(num_required), run, times, session)


@host("GatherTake", infer=_means, blocking=True, repeat=_repeat_take, keeps=True)
def mean_gradients(
    context: HostContext,
    num_required: Any,
    start: Any = 0,
    *,
    shared_name: str,
    shapes: Any,
    rows: Any,
    dtypes: Sequence[DType],
    examples: str = "",
    several: bool = False,
) -> Any:
    """Waits for ``num_required`` gradients, removes them from the accumulator and returns their means.

    If ``several`` tasks hold accumulators, the step is a two-phase commit: each task applies its part of the update
    only after all tasks have removed their gradients.

    Returns:
      The starting step, the mean gradient of every variable, and the ranges of their examples if these are accounted
      for.
    """
    del dtypes
    accumulator = _gathered(context, shared_name, shapes, rows)
    gradients, step, ranges = accumulator.pop_mean(context.step, int(num_required), context.step.session, int(start))
    made = [np.int64(step), *(part for gradient in gradients for part in gradient[:2])]
    if examples:
        made.append(ledger_of(context.resources, examples).assign_taken_ranges(context.step, ranges))
    if several:
        try:
            context.step.commit()
        except CancelledError as error:
            error.half_done = True  # the gradients were taken, so the step must not resume at this instruction
            raise
    return made


@host("GatherJoin", infer=no_outputs, keeps=True)
def join(context: HostContext, *, shared_name: str, shapes: Any, rows: Any) -> None:
    """Registers a replica."""
    _gathered(context, shared_name, shapes, rows).join(context.step.session)


# Saved graphs contain the name of this operation, so it stays.
@host("GatherLife", infer=fixed(int64, ()), keeps=True, stable=True)
def run_number(context: HostContext, *, shared_name: str, shapes: Any, rows: Any) -> np.integer:
    """Returns the number of times that the training has started, as far as this task knows."""
    return np.int64(_gathered(context, shared_name, shapes, rows).run_number)


@host("GatherMembers", infer=fixed(string, ()), keeps=True, stable=True)
def members(context: HostContext, *, shared_name: str, shapes: Any, rows: Any) -> HostArray:
    """Returns the replicas that have joined on this task, and the replicas that have also sent gradients to it; see
    `training_runs.Members`."""
    return np.array(_gathered(context, shared_name, shapes, rows).members().encode(), object)


@host("GatherForgotten", infer=fixed(int64, ()))
def forgotten(*members: HostArray) -> np.integer:
    """Returns 1 if a task has restarted and has thereby lost gradients that replicas had sent to it; otherwise 0."""
    return np.int64(has_forgotten(Members.decode(one.item()) for one in members))


@host("GatherStart", infer=no_outputs, keeps=True)
def start(
    context: HostContext,
    step: HostArray,
    elsewhere: HostArray,
    name: HostArray,
    *,
    shared_name: str,
    shapes: Any,
    rows: Any,
    renews: bool,
) -> None:
    """Starts or restarts the training at ``step``.

    ``renews``: whether the other replicas have to join again. ``elsewhere`` and ``name``: see `Accumulator.start`.
    """
    accumulator = _gathered(context, shared_name, shapes, rows)
    accumulator.start(context.step.session, int(step), int(elsewhere), renews=renews, name=int(name))
