"""Operations on accumulators. They run on the host of the task that the accumulator is placed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.dtypes import int32, int64, resource
from headwater.ops.accumulator_state import Accumulator, DenseAccumulator, SparseAccumulator
from headwater.ops.define import fixed, host, no_outputs
from headwater.ops.queues import as_handle
from headwater.registry import Inference, Spec
from headwater.shapes import as_shape


@host("ResourceConditionalAccumulator", infer=fixed(resource, ()))
def dense(
    context: Any, *, dtype: Any, shape: Any = None, container: str = "", shared_name: str = "",
    reduction_type: str = "MEAN",
) -> Any:  # fmt: skip
    del dtype
    dims, mean = as_shape(shape).as_dims, reduction_type == "MEAN"
    make = lambda: DenseAccumulator(context.op_name, dims, mean)  # noqa: E731 - it is one
    return as_handle(context.resource(container, shared_name, Accumulator, make))


@host("SparseConditionalAccumulator", infer=fixed(resource, ()))
def sparse(
    context: Any, *, dtype: Any, shape: Any = None, container: str = "", shared_name: str = "",
    reduction_type: str = "MEAN",
) -> Any:  # fmt: skip
    del dtype
    dims, mean = as_shape(shape).as_dims, reduction_type == "MEAN"
    make = lambda: SparseAccumulator(context.op_name, dims, mean)  # noqa: E731 - it is one
    return as_handle(context.resource(container, shared_name, Accumulator, make))


@host("ResourceAccumulatorApplyGradient", infer=no_outputs)
def apply_dense(context: Any, handle: Any, local_step: Any, gradient: Any, *, dtype: Any) -> None:
    del context, dtype
    handle.item().apply(gradient, int(local_step))


@host("SparseAccumulatorApplyGradient", infer=no_outputs)
def apply_sparse(
    context: Any, handle: Any, local_step: Any, indices: Any, values: Any, shape: Any, *, dtype: Any,
    has_known_shape: bool = False,
) -> None:  # fmt: skip
    del context, dtype
    handle.item().apply(indices, values, shape if has_known_shape else None, int(local_step))


def _dense_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["dtype"], as_shape(inference.attrs.get("_shape")).as_dims)]


@host("ResourceAccumulatorTakeGradient", infer=_dense_spec, blocking=True)
def take_dense(context: Any, handle: Any, num_required: Any, *, dtype: Any) -> Any:
    return handle.item().take(context.step, int(num_required)).astype(dtype.numpy_dtype, copy=False)


def _sparse_specs(inference: Inference) -> Sequence[Spec]:
    dims = as_shape(inference.attrs.get("_shape")).as_dims
    values = None if dims is None else (None, *dims[1:])
    shape = None if dims is None else (len(dims),)
    return [Spec(int64, (None,)), Spec(inference.attrs["dtype"], values), Spec(int64, shape)]


@host("SparseAccumulatorTakeGradient", infer=_sparse_specs, blocking=True)
def take_sparse(context: Any, handle: Any, num_required: Any, *, dtype: Any, _for_update: bool = False) -> Any:
    del dtype
    return handle.item().take(context.step, int(num_required), _for_update)


@host("ResourceAccumulatorNumAccumulated", infer=fixed(int32, ()))
def num_accumulated(context: Any, handle: Any) -> Any:
    del context
    return np.int32(handle.item().count())


@host("ResourceAccumulatorSetGlobalStep", infer=no_outputs)
def set_global_step(context: Any, handle: Any, new_global_step: Any) -> None:
    del context
    handle.item().set_step(int(new_global_step))
