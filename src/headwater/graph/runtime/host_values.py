"""Values of variables that kernels read and change: NumPy arrays in their cells.

A cell's array is read-only except during updates. An update changes the array in place if only the cell refers to it.
Otherwise the update changes a copy, so that a value that a step has read does not change afterwards. A view also counts
as a reference to its array. So a read needs no copy, and an update only copies an array that is still in use.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from headwater.graph.resources.containers import Cell

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray

HostArray = np.ndarray[Any, Any]


def cell_value(cell: Cell) -> Any:
    """Returns the variable's value; FailedPreconditionError, naming the variable, if it has none."""
    value = cell.value
    if value is None:
        raise FailedPreconditionError(
            f"Attempting to use uninitialized value {cell.name}: run its initializer, or restore it, first"
        )
    return value


def current(cell: Cell) -> HostArray:
    """Returns the variable's value as a host array. The caller holds `Resources.lock`; waits for a running executable.

    Raises:
      FailedPreconditionError: the variable has no value.
    """
    value = cell.value
    return value if type(value) is np.ndarray else np.asarray(cell_value(cell))


def writable(cell: Cell) -> HostArray:
    """Returns the variable's array, to be changed in place and then passed to `changed`. The caller holds
    `Resources.lock`.

    Raises:
      FailedPreconditionError: the variable has no value.
    """
    value = cell.value
    if type(value) is not np.ndarray or value.base is not None or sys.getrefcount(value) > _OWN_REFERENCES:
        # Copy the value: it is an executable's output, a view, or in use by a reader.
        value = np.array(cell_value(cell))
        cell.value = value
    else:
        value.setflags(write=True)
    return value


def changed(cell: Cell, value: HostArray) -> None:
    """Counts an update of the variable and makes its array read-only again."""
    value.setflags(write=False)
    cell.counts[cell.slot] += 1


def check_assigned(cell: Cell, value: Any, keeps_shape: bool) -> None:
    """Checks the type and shape of an assigned value against the variable's present value. They may differ if the graph
    of another session has declared the variable differently.

    Raises:
      InternalError: the variable has a different type.
      InvalidArgumentError: the variable has a different shape, and ``keeps_shape`` is true.
    """
    old = cell.value
    if old is None:
        return
    if old.dtype != value.dtype:
        raise InternalError(
            f"variable {cell.name!r} of this task is of type {old.dtype}, and is assigned a value of {value.dtype}: "
            "another session has a variable of this name"
        )
    if keeps_shape and old.shape != value.shape:
        raise InvalidArgumentError(
            f"Assign requires shapes of both tensors to match. lhs shape= {list(old.shape)} "
            f"rhs shape= {list(value.shape)} [variable {cell.name!r}]"
        )


def replace(cell: Cell, value: AnyArray) -> None:
    """Assigns a value to the variable. The caller holds `Resources.lock`.

    Args:
      value: the new value. If only a local variable of the caller refers to the array, the cell takes it over;
        otherwise it is copied.
    """
    # An array that does not own its memory, for example a view of a channel's shared memory, may change later: copy it.
    if type(value) is not np.ndarray or value.base is not None or not value.flags.owndata:
        value = np.array(value)
    elif sys.getrefcount(value) > _GIVEN_REFERENCES or not value.flags.writeable:
        old = cell.value
        # Other code refers to the value, so it has to be copied in any case. Copy it into the variable's present
        # memory: this avoids the page faults of newly allocated memory.
        if old is not None and type(old) is np.ndarray and (old.shape, old.dtype) == (value.shape, value.dtype):
            # With this additional reference, `writable` would allocate a copy.
            del old
            target = writable(cell)
            np.copyto(target, value)
            changed(cell, target)
            return
        value = np.array(value)
    cell.value = value
    changed(cell, value)


def _own_references() -> int:
    """Measures `sys.getrefcount` in `writable` for an array that only a cell refers to."""

    def count(cell: Cell) -> int:
        value = cell.value
        return sys.getrefcount(value)

    cell = Cell("")
    cell.value = np.empty(1)
    return count(cell)


def _given_references() -> int:
    """Measures `sys.getrefcount` in `replace` for an array that only a local variable of its caller refers to."""

    def count(value: HostArray) -> int:
        return sys.getrefcount(value)

    value = np.empty(1)
    return count(value)


# Measured, since they differ between versions of Python.
_OWN_REFERENCES = _own_references()
_GIVEN_REFERENCES = _given_references()
