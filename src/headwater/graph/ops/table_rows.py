"""Reading, writing and adding up rows of an array by index, for lookups in tables and their updates.

XLA's code for CPUs is slow for these tasks. Reading rows takes several times as long as copying them, and the addition
of equal rows, which XLA sorts, up to 80 times as long. If there are enough rows, an executable for a CPU therefore
calls `headwater.tables.xla_calls`, which computes the same result: in place if the executable owns the array, and with
rows in the given order. An index outside of the array updates nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from headwater.lazy_jax import custom_vjp, jax, jnp

# Pyright finds the types of these functions of JAX in part only.
_jax: Any = jax

_MIN_ROWS: Final = 2048
"""Minimum number of rows for a call of `headwater.tables.xla_calls`. With fewer rows, a call saves less than a
millisecond, while loading the called library takes 1 to 4 s, during which the tracing thread holds the interpreter's
lock."""
_COPIED: Final = frozenset({"float32", "float64", "int32", "int64", "uint32", "uint64", "complex64"})
_ADDED: Final = frozenset({"float32"})
_INDICES: Final = frozenset({"int32", "int64"})
_registered: set[str] = set()
_registering: Final = threading.Lock()


def take_rows(array: object, indices: object, *, nearest: bool = False) -> jax.Array:
    """``array[indices]`` along the first dimension.

    Args:
      nearest: an index outside of the array selects the nearest row instead of zeros.
    """
    array, indices = jnp.asarray(array), jnp.asarray(indices)
    if not _worth_a_call(array, indices, _COPIED):
        return _taken(array, indices, nearest)
    rows = _take(array, _flat(indices), nearest)
    return rows.reshape((*indices.shape, *array.shape[1:]))


def put_rows(array: object, indices: jax.Array, rows: jax.Array) -> jax.Array:
    """Returns ``array`` after ``array[indices] = rows``; if an index occurs several times, its last row is used."""
    if not _worth_a_call(array, indices, _COPIED):
        return _put(array, indices, rows)
    return _changed("headwater_put_rows", _put, array, _flat(indices), rows)


def add_rows(array: jax.Array, indices: jax.Array, rows: object) -> Any:
    """Returns ``array`` after ``array[indices] += rows``, with the rows added one after the other."""
    if not _worth_a_call(array, indices, _ADDED):
        return _add(array, indices, rows)
    return _added(array, _flat(indices), rows)


def sum_equal_rows(rows: jax.Array, indices: jax.Array) -> tuple[Any, Any]:
    """Adds up rows with the same index; see the operation ``SumEqualRows``."""
    if not _worth_a_call(rows, indices, _ADDED):
        return _summed(rows, indices)
    shapes = jax.ShapeDtypeStruct(rows.shape, rows.dtype), jax.ShapeDtypeStruct(indices.shape, np.int64)
    sums, distinct = _on_cpus(_call("headwater_sum_rows", shapes), _summed, rows, _flat(indices))
    return sums, jnp.minimum(distinct, jnp.iinfo(indices.dtype).max).astype(indices.dtype)


def turns(indices: jax.Array, size: int) -> jax.Array:
    """Returns for each index the number of equal ones before it; 0 for an index that is ``size`` or greater."""
    place = jnp.arange(indices.size)
    within = indices < size

    def count() -> jax.Array:
        order = jnp.argsort(indices, stable=True)
        ordered = indices[order]
        first = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
        earlier = place - _jax.lax.cummax(jnp.where(first, place, 0))
        return jnp.where(within, jnp.zeros_like(place).at[order].set(earlier), 0)

    ascending = ((indices[1:] > indices[:-1]) | ~within[1:]).all()
    return _jax.lax.cond(ascending, lambda: jnp.zeros_like(place), count) if indices.size else place


def adagrad_rows(
    otherwise: Callable[..., object], array: Any, squares: Any, rate: Any, rows: jax.Array, indices: jax.Array
) -> tuple[object, object] | None:
    """Returns the array and its slot after Adagrad's update of the rows at ``indices``; None if a call would not be
    faster than XLA's own code. See `headwater.graph.ops.optimizers.adagrad`.

    Args:
      otherwise: computes the result from the other arguments on devices other than CPUs.
    """
    if not _worth_a_call(array, indices, _ADDED):
        return None
    shapes = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in (array, squares))
    call = _call("headwater_adagrad", shapes, input_output_aliases={0: 0, 1: 1})
    return _on_cpus(call, otherwise, array, squares, jnp.asarray(rate, array.dtype), rows, _flat(indices))


# Called by the executable -----------------------------------------------------------------------------------------


def _worth_a_call(array: Any, indices: Any, dtypes: frozenset[str]) -> bool:
    """Returns whether there are enough rows, of a type that the called functions support."""
    return (
        array.ndim > 1
        and isinstance(indices.size, int)
        and indices.size >= _MIN_ROWS
        and array.dtype.name in dtypes
        and indices.dtype.name in _INDICES
        and all(isinstance(size, int) for size in array.shape)
    )


def _register(name: str) -> None:
    """Registers a function with XLA as a call target."""
    with _registering:
        if name not in _registered:
            from headwater.tables import xla_calls  # noqa: PLC0415  only if it is needed

            _jax.ffi.register_ffi_target(name, _jax.ffi.pycapsule(xla_calls.address_of(name)), platform="cpu")
            _registered.add(name)


def _call(name: str, results: object, **options: object) -> Callable[..., object]:
    _register(name)
    return _jax.ffi.ffi_call(name, results, vmap_method="sequential", **options)


def _on_cpus(call: Callable[..., object], otherwise: Callable[..., object], *inputs: object) -> Any:
    return _jax.lax.platform_dependent(*inputs, cpu=call, default=otherwise)


def _flat(indices: jax.Array) -> jax.Array:
    return jnp.ravel(indices).astype(np.int64)


def _changed(name: str, otherwise: Callable[..., object], array: Any, indices: jax.Array, rows: jax.Array) -> Any:
    shape = jax.ShapeDtypeStruct(array.shape, array.dtype)
    call = _call(name, shape, input_output_aliases={0: 0})
    rows = jnp.asarray(rows, array.dtype).reshape(indices.size, *array.shape[1:])
    return _on_cpus(call, otherwise, array, indices, rows)


@partial(custom_vjp, nondiff_argnums=(2,))
def _take(array: jax.Array, indices: jax.Array, nearest: bool) -> jax.Array:
    name = "headwater_take_nearest" if nearest else "headwater_take_or_zeros"
    shape = jax.ShapeDtypeStruct((indices.size, *array.shape[1:]), array.dtype)
    return _on_cpus(_call(name, shape), partial(_taken, nearest=nearest), array, indices)


def _take_forward(array: jax.Array, indices: jax.Array, nearest: bool) -> object:
    return _take(array, indices, nearest), (array, indices)


def _take_backward(nearest: bool, saved: tuple[jax.Array, jax.Array], slope: object) -> object:
    array, indices = saved
    if nearest:
        indices = jnp.clip(indices, 0, array.shape[0] - 1)
    return add_rows(jnp.zeros_like(array), indices, slope), None


_take.defvjp(_take_forward, _take_backward)


@custom_vjp
def _added(array: jax.Array, indices: jax.Array, rows: jax.Array) -> jax.Array:
    return _changed("headwater_add_rows", _add, array, indices, rows)


def _added_forward(array: jax.Array, indices: jax.Array, rows: jax.Array) -> object:
    return _added(array, indices, rows), indices


def _added_backward(indices: jax.Array, slope: object) -> object:
    return slope, None, take_rows(slope, indices)


_added.defvjp(_added_forward, _added_backward)


# By XLA alone -----------------------------------------------------------------------------------------------------


def _taken(array: jax.Array, indices: jax.Array, nearest: bool) -> Any:
    if not array.shape[0]:
        # An array without rows. A loop over no rows traces this code but never runs it; in other cases, the runtime
        # reports the index as out of range.
        return jnp.zeros(jnp.shape(indices) + array.shape[1:], array.dtype)
    at = array.at[indices]
    if nearest:
        return at.get(mode="clip", wrap_negative_indices=False)
    return at.get(mode="fill", fill_value=0, wrap_negative_indices=False)


def _put(array: Any, indices: jax.Array, rows: jax.Array) -> Any:
    return array.at[indices].set(rows, mode="drop", wrap_negative_indices=False)


def _add(array: jax.Array, indices: jax.Array, rows: object) -> object:
    return array.at[indices].add(rows, mode="drop", wrap_negative_indices=False)


def _summed(rows: jax.Array, indices: jax.Array) -> tuple[object, object]:
    if indices.size == 0:
        return rows, indices
    order = jnp.argsort(indices, stable=True)
    ordered = indices[order]
    first = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
    segment = jnp.cumsum(first) - 1
    outside = jnp.full_like(indices, jnp.iinfo(indices.dtype).max)
    return jnp.zeros_like(rows).at[segment].add(rows[order]), outside.at[segment].set(ordered)
