"""Bounds for values and norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.nn import l2_loss


def _values(item: TensorLike) -> Tensor:
    return item.values if isinstance(item, IndexedSlices) else convert_to_tensor(item)


def _like(item: TensorLike, values: Tensor) -> Any:
    return IndexedSlices(values, item.indices, item.dense_shape) if isinstance(item, IndexedSlices) else values


def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> Any:
    """Clips every element to two bounds, which are broadcast to the shape of ``t``.

    Raises:
      ValueError: a bound has a larger shape than ``t``.
    """
    with name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as scope:
        values = _values(t)
        below = math.minimum(values, clip_value_max)
        values.shape.assert_is_compatible_with(below.shape)
        result = math.maximum(below, clip_value_min, name=scope)
        values.shape.assert_is_compatible_with(result.shape)
        return _like(t, result)


def clip_by_norm(t: TensorLike, clip_norm: TensorLike, axes: TensorLike | None = None, name: str | None = None) -> Any:
    """Scales ``t`` so that its Euclidean norm along ``axes`` is at most n = ``clip_norm``: t n / max(‖t‖, n)."""
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = _values(t)
        squares = reductions.reduce_sum(values * values, axes, keepdims=True)
        # At norm 0 the root has no gradient: compute the root of 1 there instead, and do not use it.
        positive = squares > 0
        safe = one("Select", positive, squares, arrays.ones_like(squares))
        norm = one("Select", positive, math.sqrt(safe), squares)
        scaled = values * clip_norm
        values.shape.assert_is_compatible_with(scaled.shape)
        larger = math.maximum(norm, clip_norm)

        def clipped(rows: Tensor) -> Tensor:
            if rows is values:
                return arrays.identity(scaled / larger, name=scope)
            return rows * clip_norm / larger

        if axes is None and isinstance(t, IndexedSlices):
            return t.scaled(clipped)
        return _like(t, clipped(values))


def clip_by_average_norm(t: TensorLike, clip_norm: TensorLike, name: str | None = None) -> Tensor:
    """Scales ``t`` so that its Euclidean norm divided by the number of elements is at most ``clip_norm``."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        t = convert_to_tensor(t, name="t")
        count = math.cast(arrays.size(t), t.dtype.base_dtype)
        inverse = math.rsqrt(reductions.reduce_sum(t * t))
        bound = constant(1.0, t.dtype.base_dtype) / clip_norm
        return arrays.identity(t * clip_norm * math.minimum(inverse * count, bound), name=scope)


def global_norm(t_list: Sequence[TensorLike | None], name: str | None = None) -> Tensor:
    """Returns √ Σ ‖t‖² over all tensors of a list; None items are ignored.

    Raises:
      TypeError: ``t_list`` is not a list.
    """
    items = _listed(t_list)
    with name_scope(name, "global_norm", [item for item in items if item is not None]):
        values = [_values(item) for item in items if item is not None]
        halves: list[Tensor] = []
        for value in values:
            with get_default_graph().colocate_with(value):
                halves.append(l2_loss(value))
        total = reductions.reduce_sum(arrays.stack(halves))
        return math.sqrt(total * constant(2.0, total.dtype.base_dtype), name="global_norm")


def clip_by_global_norm(
    t_list: Sequence[TensorLike | None],
    clip_norm: TensorLike,
    use_norm: TensorLike | None = None,
    name: str | None = None,
) -> tuple[list[Any], Tensor]:
    """Scales all tensors of a list so that their `global_norm` is at most ``clip_norm``.

    Args:
      use_norm: their global norm, if it is already computed.

    Returns:
      The scaled tensors (all NaN when the norm is not finite), and the global norm before scaling.

    Raises:
      TypeError: ``t_list`` is not a list.
    """
    items = _listed(t_list)
    norm = global_norm(items, name) if use_norm is None else convert_to_tensor(use_norm)
    with name_scope(name, "clip_by_global_norm", [item for item in items if item is not None]) as scope:
        dtype = norm.dtype.base_dtype
        bound = constant(1.0, dtype) / clip_norm
        scale = clip_norm * math.minimum(1.0 / norm, bound)
        scale = one("Select", math.is_finite(norm), scale, constant(np.nan, dtype))
        results: list[object] = []
        for index, item in enumerate(items):
            if item is None:
                results.append(None)
                continue
            own, clipped_name = _values(item), f"{scope}clip_by_global_norm/_{index}/"

            def clipped(values: Tensor, own: Tensor = own, name: str = clipped_name) -> Tensor:
                with get_default_graph().colocate_with(values):
                    return arrays.identity(values * scale, name=name if values is own else None)

            results.append(item.scaled(clipped) if isinstance(item, IndexedSlices) else clipped(own))
        return results, norm


def _listed(items: object) -> list[Any]:
    if not isinstance(items, list | tuple):
        raise TypeError("t_list should be a sequence")
    return list(items)  # pyright: ignore[reportUnknownArgumentType]
