"""Values determined by the graph: constants, static shapes, and values computed from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from headwater.graph.operation import Tensor
from headwater.graph.registry import MAX_KNOWN_ELEMENTS, HostArray, Kind, as_outputs
from headwater.shapes import Dims

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.graph.types import TensorLike

_MAX_DEPTH = 64
_folded: WeakKeyDictionary[Operation, dict[int, HostArray | None]] = WeakKeyDictionary()
"""Values of outputs by operation and index. Tensors are not used as keys, since their ``==`` may be elementwise."""


def constant_value(tensor: Tensor) -> HostArray | None:
    """The value of ``tensor`` if the graph determines it and it is small, else None."""
    return _constant(tensor, 0)


def get_static_value(tensor: TensorLike, partial: bool = False) -> HostArray | None:
    """The value of ``tensor`` if the graph determines it and it is small, else None.

    Args:
      partial: for a vector with some known elements, return an array with None for unknown elements.
    """
    if not isinstance(tensor, Tensor):
        raise AttributeError(f"get_static_value needs a tensor, not {tensor!r}")
    value = constant_value(tensor)
    if value is not None or not partial or tensor.op.type != "Pack" or tensor.op.attrs.get("axis", 0) != 0:
        return value
    parts = [constant_value(item) for item in tensor.op.inputs]
    if all(part is None for part in parts):
        return None
    found: HostArray = np.empty(len(parts), object)
    for index, part in enumerate(parts):
        found[index] = None if part is None else part[()]
    return found


def _constant(tensor: Tensor, depth: int) -> Any:
    op = tensor.op
    if op.type == "Const":
        return op.attrs["value"]
    if op.type == "Shape":
        dims = op.inputs[0].dims
        if dims is None or None in dims:
            return None
        return np.array(dims, dtype=tensor.dtype.numpy_dtype)
    if op.type == "Rank":
        dims = op.inputs[0].dims
        return None if dims is None else np.array(len(dims), np.int32)
    if op.type == "Size":
        dims = op.inputs[0].dims
        if dims is None or None in dims:
            return None
        return np.array(op.inputs[0].shape.num_elements(), dtype=tensor.dtype.numpy_dtype)
    known = _folded.setdefault(op, {})
    if tensor.value_index in known:
        return known[tensor.value_index]
    value = None if depth > _MAX_DEPTH else _fold(tensor, depth)
    if value is not None or not op.inputs:
        known[tensor.value_index] = value
    return value


def _fold(tensor: Tensor, depth: int) -> HostArray | None:
    op = tensor.op
    if op.definition.kind is not Kind.PURE or op.type.startswith("Placeholder") or not op.inputs:
        return None
    count = tensor.shape.num_elements()
    if count is None or count > MAX_KNOWN_ELEMENTS:
        return None
    values: list[HostArray] = []
    for source in op.inputs:
        value = _constant(source, depth + 1)
        if value is None or value.dtype == object or value.size > MAX_KNOWN_ELEMENTS:
            return None
        values.append(value)
    definition = op.definition
    attrs = {key: value for key, value in op.attrs.items() if key in definition.attrs}
    result = definition.lower(*values, **attrs)
    return np.asarray(as_outputs(result)[tensor.value_index])


def partial_value(tensor: Tensor) -> Dims:
    """Returns the elements of the integer vector ``tensor``, used as a shape, as far as the graph determines them.

    Returns:
      None if the length is unknown; otherwise the elements, with None for each unknown element. A known -1 is returned
      as -1, even if it means an unknown dimension.
    """
    value = constant_value(tensor)
    if value is not None:
        return tuple(int(v) for v in value.ravel())
    op = tensor.op
    if op.type == "Shape":
        return op.inputs[0].dims
    if op.type in ("Cast", "Identity"):
        return partial_value(op.inputs[0])
    if op.type == "Pack":
        return tuple(_scalar(source) for source in op.inputs)
    if op.type == "ConcatV2":
        parts = [partial_value(source) for source in op.inputs[:-1]]
        joined: tuple[int | None, ...] = ()
        for part in parts:
            if part is None:
                return None
            joined += part
        return joined
    if op.type == "StridedSlice" and tensor.dims is not None and len(tensor.dims) == 1:
        return _slice(op)
    if tensor.dims is not None and len(tensor.dims) == 1 and tensor.dims[0] is not None:
        return (None,) * tensor.dims[0]
    return None


def _scalar(tensor: Tensor) -> int | None:
    """Returns the value of the integer scalar ``tensor`` if known, for example an element of a static shape; else
    None."""
    value = constant_value(tensor)
    if value is not None and value.size == 1:
        return int(value.ravel()[0])
    op = tensor.op
    if op.type == "Cast":
        return _scalar(op.inputs[0])
    if op.type == "StridedSlice":
        taken = _slice(op)
        return taken[0] if taken is not None and len(taken) == 1 else None
    return None


def _slice(op: Operation) -> Dims:
    """Returns the slice of a partially known vector."""
    source = partial_value(op.inputs[0])
    bounds = [constant_value(t) for t in op.inputs[1:4]]
    if source is None or any(b is None or b.size != 1 for b in bounds):
        return None
    begin, end, stride = (int(b.ravel()[0]) for b in bounds if b is not None)
    attrs = op.attrs
    if attrs.get("ellipsis_mask") or attrs.get("new_axis_mask"):
        return None
    if attrs.get("shrink_axis_mask"):
        return (source[begin],) if -len(source) <= begin < len(source) else None
    return source[None if attrs.get("begin_mask") else begin : None if attrs.get("end_mask") else end : stride]
