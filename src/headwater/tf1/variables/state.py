"""Changing variables: assignment, updates of rows and slices, and whether a variable has a value.

Every operation here runs on its variable's task. Its result is a reference to the variable; reading it after the
operation returns the new value. Updates are atomic and serialised; ``use_locking`` is accepted and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import DType
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.indexed_slices import checked
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import SIZES_KNOWN
from headwater.tf1.functional import arrays

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.types import AnyVariable
    from headwater.tf1.variables.variables import Variable


Value = tuple[str, Any, DType | None]


def as_reference(value: TensorLike, op_type: str) -> Tensor:
    """Returns the reference of ``value``, a variable or the result of an update.

    Raises:
      TypeError: ``value`` is not a variable; the message names ``op_type``.
    """
    ref = convert_to_tensor(value, as_ref=True)
    if not ref.dtype.is_ref:
        raise TypeError(
            f"'{op_type}' Op requires that input 'ref' be a mutable tensor (e.g.: a tf.Variable), got {value!r}"
        )
    return ref


def update_op(
    op_type: str,
    refs: Sequence[TensorLike],
    values: Sequence[Value],
    attrs: dict[str, Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """Adds an operation on variables, beside the first of them.

    Args:
      op_type: the operation type; takes ``refs``, then ``values``.
      refs: variables or references.
      values: for each further input its argument name, value, and element type (None: any).
    """
    references = [as_reference(ref, op_type) for ref in refs]
    graph = references[0].graph
    with graph.as_default(), graph.name_scope(name or op_type) as scope:
        # Do not convert values that have a type: the operation reports a mismatch.
        inputs = [
            convert_to_tensor(value, None if isinstance(getattr(value, "dtype", None), DType) else dtype, name=argument)
            for argument, value, dtype in values
        ]
        with graph.colocate_with(references[0].op):
            return graph.create_op(op_type, [*references, *inputs], attrs, name=scope).outputs[0]


def is_variable_initialized(variable: Variable) -> Tensor:
    """Returns a boolean tensor: whether ``variable`` has a value."""
    return update_op("IsVariableInitialized", [variable], [])


def assign(
    ref: Any, value: Any, validate_shape: bool | None = None, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Assigns ``value`` to ``ref``.

    Args:
      validate_shape: require the shape of the variable; with False it may change.

    Raises:
      ValueError: the static shapes contradict each other.
    """
    if isinstance(getattr(ref, "dtype", None), str):  # of a variable of Keras
        return ref.assign(value)
    if not _is_reference(ref):
        return ref.assign(value, name=name)
    attrs: dict[str, Any] = {
        "validate_shape": True if validate_shape is None else validate_shape,
        "use_locking": True if use_locking is None else use_locking,
    }
    shape = as_reference(ref, "Assign").shape
    if attrs["validate_shape"] and shape.is_fully_defined():
        attrs["_shape"] = shape
    return update_op("Assign", [ref], [("value", value, ref.dtype.base_dtype)], attrs, name)


def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Tensor:
    """Adds ``value`` to ``ref``."""
    if not _is_reference(ref):
        return ref.assign_add(value)
    return _add_or_subtract("AssignAdd", ref, value, use_locking, name)


def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Tensor:
    """Subtracts ``value`` from ``ref``."""
    if not _is_reference(ref):
        return ref.assign_sub(value)
    return _add_or_subtract("AssignSub", ref, value, use_locking, name)


def assign_slice(ref: Variable | Tensor, taken: Operation, value: TensorLike, name: str | None = None) -> Tensor:
    """Assigns ``value`` to the elements of ``ref`` that ``taken``, a strided slice of it, reads."""
    attrs = {key: given for key, given in taken.attrs.items() if key.endswith("_mask") or key == SIZES_KNOWN}
    bounds: list[Value] = [
        (argument, tensor, None) for argument, tensor in zip(("begin", "end", "strides"), taken.inputs[1:], strict=True)
    ]
    return update_op("StridedSliceAssign", [ref], [*bounds, ("value", value, ref.dtype.base_dtype)], attrs, name)


def _is_reference(ref: TensorLike) -> bool:
    """Returns whether ``ref`` is a reference, or has no element type. Any other value, such as a variable, also of
    Keras, whose element type is a text, has its own methods for assignments."""
    dtype = getattr(ref, "dtype", None)
    return not isinstance(dtype, DType | str) or (isinstance(dtype, DType) and dtype.is_ref)


def _add_or_subtract(
    op_type: str, ref: AnyVariable | Tensor, value: Tensor, use_locking: bool | None, name: str | None
) -> Tensor:
    attrs = {"use_locking": bool(use_locking)}
    return update_op(op_type, [ref], [("value", value, ref.dtype.base_dtype)], attrs, name)


def count_up_to(ref: Variable | Tensor, limit: int, name: str | None = None) -> Tensor:
    """Adds one to the integer ``ref`` and returns its old value.

    The operation fails with `OutOfRangeError` if ``ref`` has already reached ``limit``.
    """
    return update_op("CountUpTo", [ref], [], {"limit": limit}, name)


def _scatter(op_type: str, doc: str, locked: bool = False) -> Callable[..., Tensor]:
    def function(
        ref: Variable | Tensor,
        indices: TensorLike,
        updates: TensorLike,
        use_locking: bool = locked,
        name: str | None = None,
    ) -> Tensor:
        values: list[Value] = [("indices", indices, None), ("updates", updates, ref.dtype.base_dtype)]
        return update_op(op_type, [ref], values, {"use_locking": use_locking, **checked(indices)}, name)

    function.__doc__ = doc
    return function


scatter_update: Callable[..., Tensor] = _scatter(
    "ScatterUpdate",
    """Replaces the rows ``ref[indices]`` by ``updates``.

    Args:
      indices: integers of any shape, which index the first dimension.
      updates: values of shape ``indices.shape + ref.shape[1:]``, or a scalar.
    """,
    locked=True,
)
_ROWS = "the rows ``ref[indices]``"
_SEE = "; see `scatter_update`."
scatter_add: Callable[..., Tensor] = _scatter("ScatterAdd", f"Adds ``updates`` to {_ROWS}{_SEE} Equal indices add up.")
scatter_sub: Callable[..., Tensor] = _scatter(
    "ScatterSub", f"Subtracts ``updates`` from {_ROWS}{_SEE} Equal indices add up."
)
scatter_mul: Callable[..., Tensor] = _scatter("ScatterMul", f"Multiplies {_ROWS} by ``updates``{_SEE}")
scatter_div: Callable[..., Tensor] = _scatter("ScatterDiv", f"Divides {_ROWS} by ``updates``{_SEE}")
scatter_min: Callable[..., Tensor] = _scatter(
    "ScatterMin", f"Replaces {_ROWS} by the elementwise minimum with ``updates``{_SEE}"
)
scatter_max: Callable[..., Tensor] = _scatter(
    "ScatterMax", f"Replaces {_ROWS} by the elementwise maximum with ``updates``{_SEE}"
)
scatter_nd_update: Callable[..., Tensor] = _scatter(
    "ScatterNdUpdate",
    """Replaces slices of ``ref`` by ``updates``.

    Args:
      indices: integers whose last dimension holds positions in the first ``K`` dimensions of ``ref``.
      updates: values of shape ``indices.shape[:-1] + ref.shape[K:]``.
    """,
    locked=True,
)
scatter_nd_add: Callable[..., Tensor] = _scatter(
    "ScatterNdAdd", "Adds ``updates`` to slices of ``ref``; see `scatter_nd_update`."
)
scatter_nd_sub: Callable[..., Tensor] = _scatter(
    "ScatterNdSub", "Subtracts ``updates`` from slices of ``ref``; see `scatter_nd_update`."
)


def variable_op(shape: ShapeLike, dtype: DType, name: str, shared_name: str = "", container: str = "") -> Tensor:
    """Adds the storage of a variable to the graph and returns the reference to it."""
    graph = get_default_graph()
    container = container or graph.current_container
    attrs = {"shape": shape, "dtype": dtype, "shared_name": shared_name, "container": container}
    return graph.create_op("VariableV2", [], attrs, name).outputs[0]


def batch_scatter_update(
    ref: Variable, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Replaces slices of many tensors that ``ref`` holds: ``ref[i, indices[i, j]] = updates[i, j]``.

    Args:
      indices: integers; all dimensions but the last equal the first dimensions of ``ref``.
      updates: values of shape ``indices.shape + ref.shape[indices.rank:]``.

    Raises:
      ValueError: the rank of ``indices`` is not known.
    """
    with name_scope(name, "batch_scatter_update", [ref, indices, updates]):
        indices = convert_to_tensor(indices, name="indices")
        if indices.dims is None:
            raise ValueError("batch_scatter_update needs indices of known rank")
        sizes = arrays.shape(indices, out_type=indices.dtype)
        count = len(indices.dims)
        places = [
            arrays.broadcast_to(arrays.reshape(arrays.range(sizes[axis]), [-1] + [1] * (count - 1 - axis)), sizes)
            for axis in range(count - 1)
        ]
        return scatter_nd_update(ref, arrays.stack([*places, indices], -1), updates, use_locking)
