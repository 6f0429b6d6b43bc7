"""Variables and their updates.

A variable is a ``VariableV2`` operation: it names a cell (storage for a value) in the container of its task, and its
output is a reference to it. The operations here take references and return the new values; their own output, if used,
is the first updated variable.

Indices outside of a variable update nothing; for indices from the program, `headwater.graph.ops.faults` reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.dtypes import as_ref, bool_, int32, int64, string, to_string_array
from headwater.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from headwater.graph.ops import table_rows
from headwater.graph.ops.define import host, pure, stateful
from headwater.graph.registry import HostArray, Inference, Kind, OpDef, Spec, register
from headwater.graph.resources.host_context import HostContext
from headwater.lazy_jax import jax, jnp
from headwater.shapes import TensorShape, as_shape, merge_dims

Scatter = Callable[[Any, Any, Any], Any]


def _variable_spec(inference: Inference) -> Sequence[Spec]:
    attrs = inference.attrs
    return [Spec(as_ref(attrs["dtype"]), as_shape(attrs["shape"]).as_dims)]


def _never_lowered(**attrs: object) -> jax.Array:
    raise AssertionError(f"a variable is a cell of its task and is never compiled: {attrs}")


register(
    OpDef(
        name="VariableV2",
        kind=Kind.STATEFUL,
        lower=_never_lowered,
        infer=_variable_spec,
        defaults={"container": "", "shared_name": ""},
        attrs=frozenset({"shape", "dtype", "container", "shared_name"}),
        differentiable=False,
        types={},
    )
)


@host("IsVariableInitialized", infer=lambda inference: [Spec(bool_, ())], refs=(0,), types={"dtype": 0})
def is_variable_initialized(ref: Any) -> HostArray:
    return np.array(ref.initialized)


def _names_spec(inference: Inference) -> Sequence[Spec]:
    del inference
    return [Spec(string, (None,))]


@host("UninitializedNames", infer=_names_spec)
def uninitialized_names(*initialized: object, names: Sequence[str]) -> HostArray:
    """Returns the ``names`` for which the input boolean is false."""
    return to_string_array([name for name, done in zip(names, initialized, strict=True) if not done])


def _value_spec(inference: Inference) -> Sequence[Spec]:
    ref = inference.inputs[0]
    return [Spec(ref.dtype.base_dtype, ref.dims)]


@host("InitializedValue", infer=_value_spec, refs=(0,), types={"T": 0})
def initialized_value(context: HostContext, ref: Any, initial: Any) -> HostArray:
    """Returns the variable's value, or ``initial`` if it has none."""
    with context.resources.lock:
        return np.asarray(ref.value) if ref.initialized else initial


@host("CountUpTo", infer=_value_spec, refs=(0,), types={"T": 0})
def count_up_to(context: HostContext, ref: Any, *, limit: int) -> HostArray:
    """Adds one to a variable and returns its old value. Runs on the host, because it may fail."""
    with context.resources.lock:
        if not ref.initialized:
            raise FailedPreconditionError(f"Attempting to use uninitialized value {ref.name}")
        before = np.array(ref.value)
        if before >= limit:
            raise OutOfRangeError(f"Reached limit of {limit}")
        ref.value = jnp.asarray(before + 1, dtype=before.dtype)
        ref.counts[ref.slot] += 1
    return before


# Assignment -----------------------------------------------------------------------------------------------------


def _check_types(inference: Inference, first: int = 1) -> None:
    ref = inference.inputs[0]
    for spec in inference.inputs[first:]:
        if spec.dtype.base_dtype != ref.dtype.base_dtype:
            raise TypeError(
                f"Input 'value' of '{inference.op_type}' Op has type {spec.dtype.base_dtype.name} that does not match "
                f"type {ref.dtype.base_dtype.name} of argument 'ref'."
            )


def _assign_spec(inference: Inference) -> Sequence[Spec]:
    ref, value = inference.inputs
    _check_types(inference)
    if not inference.attrs.get("validate_shape", True):
        return [Spec(as_ref(ref.dtype), value.dims)]
    return [Spec(as_ref(ref.dtype), merge_dims(ref.dims, value.dims))]


@stateful("Assign", refs=(0,), reads=(), updates=(0,), infer=_assign_spec)
def assign(
    ref: Any,
    value: jax.Array,
    *,
    validate_shape: bool = True,
    use_locking: bool = True,
    _shape: TensorShape | None = None,
) -> tuple[jax.Array, ...]:
    """Replaces the variable's value. ``_shape`` is the variable's static shape, if fully known."""
    del use_locking
    wanted = _shape.as_dims if _shape is not None else None if ref is None else tuple(ref.shape)
    if validate_shape and wanted is not None and wanted != tuple(value.shape):
        raise InvalidArgumentError(
            f"Assign requires shapes of both tensors to match. lhs shape= {list(wanted)} rhs shape= {list(value.shape)}"
        )
    return (value,)


def _same_shape_spec(inference: Inference) -> Sequence[Spec]:
    ref, value = inference.inputs
    _check_types(inference)
    return [Spec(as_ref(ref.dtype), merge_dims(ref.dims, value.dims))]


@stateful("AssignAdd", refs=(0,), updates=(0,), infer=_same_shape_spec)
def assign_add(ref: jax.Array, value: jax.Array, *, use_locking: bool = False) -> tuple[jax.Array, ...]:
    del use_locking
    return (ref + value,)


@stateful("AssignSub", refs=(0,), updates=(0,), infer=_same_shape_spec)
def assign_sub(ref: jax.Array, value: jax.Array, *, use_locking: bool = False) -> tuple[jax.Array, ...]:
    del use_locking
    return (ref - value,)


# Rows -----------------------------------------------------------------------------------------------------------


def rows(ref: jax.Array, indices: jax.Array) -> jax.Array:
    """Returns the flattened ``indices``. Negative indices are moved past the end of ``ref``, where updates are
    dropped."""
    flat = jnp.ravel(indices)
    return jnp.where(flat < 0, ref.shape[0], flat)


def _check_integers(indices: Spec) -> None:
    if indices.dtype.base_dtype not in (int32, int64):
        raise TypeError(
            f"Value passed to parameter 'indices' has DataType {indices.dtype.name} not in list of allowed values: "
            "int32, int64"
        )


def _scatter_spec(inference: Inference) -> Sequence[Spec]:
    ref, indices, updates = inference.inputs
    _check_types(inference, first=2)
    _check_integers(indices)
    if ref.dims is not None and indices.dims is not None and updates.dims not in (None, ()):
        try:
            merge_dims(updates.dims, indices.dims + ref.dims[1:])
        except ValueError:
            raise ValueError(
                "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
                f"updates.shape {TensorShape(updates.dims)}, indices.shape {TensorShape(indices.dims)}, "
                f"params.shape {TensorShape(ref.dims)}"
            ) from None
    return [Spec(as_ref(ref.dtype), ref.dims)]


def _define_scatter(name: str, combine: Scatter) -> None:
    @stateful(name, refs=(0,), updates=(0,), infer=_scatter_spec, types={"Tindices": 1})
    def scatter(ref: jax.Array, indices: jax.Array, updates: jax.Array, *, use_locking: bool = False) -> object:  # pyright: ignore[reportUnusedFunction]
        del use_locking
        indices, updates = jnp.asarray(indices), jnp.asarray(updates)
        updates = jnp.broadcast_to(updates, indices.shape + ref.shape[1:])
        return (combine(ref, rows(ref, indices), updates.reshape((indices.size, *ref.shape[1:]))),)


def _divide(ref: jax.Array, at: jax.Array, updates: jax.Array) -> jax.Array:
    if jnp.issubdtype(ref.dtype, jnp.inexact):
        return ref.at[at].divide(updates, mode="drop")
    divisors = jnp.ones_like(ref).at[at].multiply(updates, mode="drop")
    return (jnp.sign(ref) * jnp.sign(divisors) * (jnp.abs(ref) // jnp.abs(divisors))).astype(ref.dtype)


_define_scatter("ScatterUpdate", table_rows.put_rows)
_define_scatter("ScatterAdd", table_rows.add_rows)
_define_scatter("ScatterSub", lambda ref, at, updates: table_rows.add_rows(ref, at, -updates))
_define_scatter("ScatterMul", lambda ref, at, updates: ref.at[at].multiply(updates, mode="drop"))
_define_scatter("ScatterDiv", _divide)
_define_scatter("ScatterMin", lambda ref, at, updates: ref.at[at].min(updates, mode="drop"))
_define_scatter("ScatterMax", lambda ref, at, updates: ref.at[at].max(updates, mode="drop"))


# Slices at given positions --------------------------------------------------------------------------------------


def _scatter_nd_spec(inference: Inference) -> Sequence[Spec]:
    ref, indices, updates = inference.inputs
    _check_types(inference, first=2)
    _check_integers(indices)
    if ref.dims is not None and indices.dims and indices.dims[-1] is not None:
        depth = indices.dims[-1]
        if depth > len(ref.dims):
            raise ValueError(
                f"The last dimension of indices ({depth}) must not exceed the rank of ref, {TensorShape(ref.dims)}"
            )
        merge_dims(updates.dims, indices.dims[:-1] + ref.dims[depth:])
    return [Spec(as_ref(ref.dtype), ref.dims)]


def _define_scatter_nd(name: str, combine: Scatter) -> None:
    @stateful(name, refs=(0,), updates=(0,), infer=_scatter_nd_spec, types={"Tindices": 1})
    def scatter_nd(ref: jax.Array, indices: jax.Array, updates: jax.Array, *, use_locking: bool = True) -> object:  # pyright: ignore[reportUnusedFunction]
        del use_locking
        indices = jnp.asarray(indices)
        # A negative index is moved out of the variable; JAX alone would count it from the end.
        at = tuple(
            jnp.where(indices[..., axis] < 0, ref.shape[axis], indices[..., axis]) for axis in range(indices.shape[-1])
        )
        return (combine(ref, at, updates),)


_define_scatter_nd("ScatterNdUpdate", lambda ref, at, updates: ref.at[at].set(updates, mode="drop"))
_define_scatter_nd("ScatterNdAdd", lambda ref, at, updates: ref.at[at].add(updates, mode="drop"))
_define_scatter_nd("ScatterNdSub", lambda ref, at, updates: ref.at[at].add(-updates, mode="drop"))


# Sums of equal rows ---------------------------------------------------------------------------------------------


def _sum_rows_spec(inference: Inference) -> Sequence[Spec]:
    values, indices = inference.inputs
    if values.dims is not None and indices.dims is not None:
        merge_dims(values.dims[:1], indices.dims)
    return [Spec(spec.dtype.base_dtype, spec.dims) for spec in inference.inputs]


@pure("SumEqualRows", infer=_sum_rows_spec, differentiable=False, types={"T": 0, "Tindices": 1})
def sum_equal_rows(values: jax.Array, indices: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Adds up rows that have the same index. The result has as many rows as ``values``, so that its shape is known.

    The sums are first. The remaining rows are zeros, with the largest integer as index, which is outside of every
    variable, so that updates skip them.
    """
    return table_rows.sum_equal_rows(jnp.asarray(values), jnp.asarray(indices))
