"""Assignments to variables, and to their rows, elements and slices, in place. Indices out of range update nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.errors import InvalidArgumentError, UnimplementedError
from headwater.graph.kernels.indexing import scattered
from headwater.graph.kernels.registry import NoKernel, update_kernel
from headwater.graph.kernels.rows import combine_rows, outside
from headwater.graph.kernels.slices import key_of

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray


def _same_shape(ref: HostArray, value: HostArray, op_type: str) -> None:
    if ref.shape != value.shape:
        raise InvalidArgumentError(
            f"{op_type} requires shapes of both tensors to match. lhs shape= {list(ref.shape)} rhs shape= "
            f"{list(value.shape)}"
        )


@update_kernel("AssignAdd")
def assign_add(ref: HostArray, value: HostArray, *, use_locking: bool = False) -> None:
    """Adds a value."""
    del use_locking
    _same_shape(ref, value, "AssignAdd")
    np.add(ref, value, out=ref)


@update_kernel("AssignSub")
def assign_sub(ref: HostArray, value: HostArray, *, use_locking: bool = False) -> None:
    """Subtracts a value."""
    del use_locking
    _same_shape(ref, value, "AssignSub")
    np.subtract(ref, value, out=ref)


# Rows -------------------------------------------------------------------------------------------------------------


def _scatter(op_type: str, combine: Callable[[Any, Any, Any], None]) -> None:
    @update_kernel(op_type)
    def scatter(ref: HostArray, indices: HostArray, updates: HostArray, *, use_locking: bool = False) -> None:  # pyright: ignore[reportUnusedFunction]
        del use_locking
        if not ref.flags.c_contiguous:
            raise NoKernel
        at = indices.reshape(-1)
        rows = np.broadcast_to(updates, indices.shape + ref.shape[1:]).reshape((at.size, *ref.shape[1:]))
        bad = outside(at, len(ref))
        if bad is not None:
            at, rows = at[~bad], rows[~bad]
        combine(ref, at, rows)


def _put(ref: HostArray, at: HostArray, rows: HostArray) -> None:
    ref[at] = rows


def _divide(ref: HostArray, at: HostArray, rows: HostArray) -> None:
    if ref.dtype.kind not in "iu":
        combine_rows(np.divide, ref, at, rows)
        return
    divisors = np.ones_like(ref)
    combine_rows(np.multiply, divisors, at, rows)
    ref[...] = np.sign(ref) * np.sign(divisors) * (np.abs(ref) // np.abs(divisors))


_scatter("ScatterUpdate", _put)
_scatter("ScatterAdd", lambda ref, at, rows: combine_rows(np.add, ref, at, rows))
_scatter("ScatterSub", lambda ref, at, rows: combine_rows(np.add, ref, at, np.negative(rows)))
_scatter("ScatterMul", lambda ref, at, rows: combine_rows(np.multiply, ref, at, rows))
_scatter("ScatterDiv", _divide)
_scatter("ScatterMin", lambda ref, at, rows: combine_rows(np.minimum, ref, at, rows))
_scatter("ScatterMax", lambda ref, at, rows: combine_rows(np.maximum, ref, at, rows))


# Elements and slices ----------------------------------------------------------------------------------------------


def _scatter_nd(op_type: str, combine: object) -> None:
    @update_kernel(op_type)
    def scatter(ref: HostArray, indices: HostArray, updates: HostArray, *, use_locking: bool = True) -> None:  # pyright: ignore[reportUnusedFunction]
        del use_locking
        if not ref.flags.c_contiguous:
            raise NoKernel
        scattered(combine, ref, indices, updates)


_scatter_nd("ScatterNdUpdate", None)
_scatter_nd("ScatterNdAdd", np.add)
_scatter_nd("ScatterNdSub", np.subtract)


@update_kernel("StridedSliceAssign")
def strided_slice_assign(
    ref: HostArray,
    begin: HostArray,
    end: HostArray,
    strides: HostArray,
    value: HostArray,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> None:
    """Puts ``value`` in place of a slice; see `headwater.graph.ops.slices.strided_slice_assign`.

    Raises:
      UnimplementedError: ``value`` has a different shape than the slice; TensorFlow does not broadcast it either.
    """
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    key = key_of(begin, end, strides, masks, ref.shape)
    taken = ref[key].shape
    if value.shape != taken:
        raise UnimplementedError(f"a slice of shape {list(taken)} cannot take a value of shape {list(value.shape)}")
    ref[key] = value
