"""Comparison of gradients with finite differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from headwater.dtypes import as_dtype
from headwater.graph.context import get_default_session
from headwater.graph.convert import constant
from headwater.graph.indexed_slices import IndexedSlices
from headwater.tf1.functional.arrays import identity
from headwater.tf1.functional.gradients import gradients

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.graph.types import FeedDict

Jacobian = npt.NDArray[Any]
Pair = tuple[Jacobian, Jacobian]


def compute_gradient(
    x: object,
    x_shape: Any,
    y: object,
    y_shape: object,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: object = None,
    extra_feed_dict: FeedDict | None = None,
) -> list[tuple[HostArray, HostArray]] | tuple[HostArray, HostArray]:
    """The Jacobian of ``y`` by ``x``, from the graph's gradients and from central differences.

    By the differences it is ``J[i, j] = (y_j(x + delta e_i) - y_j(x - delta e_i)) / (2 delta)``. A complex tensor
    counts as one of twice as many real numbers. Runs in the default session.

    Args:
      x: a tensor, or a list of tensors.
      x_shape: its shape, or a list of shapes.
      y: a tensor that depends on ``x``.
      x_init_value: the value of ``x`` at which to compute the Jacobian, or a list; random by default.
      delta: the change of ``x`` for the differences.
      init_targets: operations to run first.
      extra_feed_dict: values for other tensors.

    Returns:
      Two arrays of shape (size of ``x``, size of ``y``): from the graph, and from differences; a list of such pairs for
      a list.

    Raises:
      ValueError: ``y`` does not depend on ``x``, or a value does not have the given shape.
    """
    session = get_default_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session: use it within `with session.as_default()`")
    many = isinstance(x, list)
    xs = cast("list[object]", x) if many else [x]
    shapes: Sequence[Any] = x_shape if many else [x_shape]
    starts: Sequence[Any] = x_init_value if many and x_init_value is not None else [x_init_value] * len(xs)
    checks = [_Check(session, each, y, y_shape, dict(extra_feed_dict or {}), delta) for each in xs]
    if init_targets is not None:
        for target in init_targets if isinstance(init_targets, list | tuple) else [init_targets]:  # pyright: ignore[reportUnknownVariableType]
            session.run(target)
    results = [
        check.jacobians(_start(each, s, v)) for check, each, s, v in zip(checks, xs, shapes, starts, strict=True)
    ]
    return results if many else results[0]


def compute_gradient_error(
    x: object,
    x_shape: object,
    y: object,
    y_shape: object,
    x_init_value: object = None,
    delta: float = 1e-3,
    init_targets: object = None,
    extra_feed_dict: FeedDict | None = None,
) -> float:
    """Returns the largest difference between the two Jacobians of `compute_gradient`, with the same arguments."""
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = cast("list[Pair]", found if isinstance(found, list) else [found])
    return max((float(np.max(np.abs(one - other))) for one, other in pairs if one.size), default=0.0)


def _start(x: Any, shape: Any, value: object) -> npt.NDArray[Any]:
    """Returns the point at which the Jacobian is computed."""
    dtype = as_dtype(x.dtype).base_dtype
    size = tuple(int(dim) for dim in np.atleast_1d(shape)) if np.size(shape) else ()
    if value is not None:
        given = np.asarray(value)
        if given.shape != size:
            raise ValueError(f"x_init_value has the shape {given.shape}, and x_shape says {size}")
        return given
    random: npt.NDArray[Any] = np.random.random_sample(size)
    if dtype.is_complex:
        random = random + 1j * np.random.random_sample(size)
    return np.asarray(random, dtype.as_numpy_dtype)


class _Check:
    def __init__(self, session: Any, x: Any, y: Any, y_shape: Any, feeds: dict[Any, Any], delta: float) -> None:
        self._session = session
        self._x = x
        self._y = y
        self._feeds = feeds
        self._delta = delta
        self._y_type = as_dtype(y.dtype).base_dtype.as_numpy_dtype
        self._y_shape = tuple(int(dim) for dim in np.atleast_1d(y_shape)) if np.size(y_shape) else ()
        with y.graph.as_default():
            # Compute the gradient from a copy: a tensor that is fed cannot be fetched as well.
            self._dy = constant(np.ones(self._y_shape, self._y_type))
            (self._dx,) = gradients(y, x, identity(self._dy))
        if self._dx is None:
            raise ValueError(f"{x.name} does not influence {y.name}")

    def jacobians(self, start: HostArray) -> Pair:
        return self._of_graph(start), self._of_differences(start)

    def _run(self, fetch: Any, start: npt.NDArray[Any], **others: Any) -> Any:
        return self._session.run(fetch, {**self._feeds, self._x: start, **others.get("feeds", {})})

    def _of_graph(self, start: HostArray) -> Jacobian:
        columns: list[HostArray] = []
        seed = np.zeros(self._y_shape, self._y_type)
        for unit in _units(self._y_type):
            for index in range(seed.size):
                seed.flat[index] = unit
                columns.append(self._gradient(start, seed))
                seed.flat[index] = 0
        jacobian = np.stack(columns, axis=1) if columns else np.zeros((_reals(start).size, 0))
        return _interleaved(jacobian, 1, len(_units(self._y_type)))

    def _gradient(self, start: HostArray, seed: HostArray) -> HostArray:
        if not isinstance(self._dx, IndexedSlices):
            found = np.asarray(self._run(self._dx, start, feeds={self._dy: seed}))
            return _reals(np.broadcast_to(found, start.shape))
        values, indices = self._run([self._dx.values, self._dx.indices], start, feeds={self._dy: seed})
        dense = np.zeros(start.shape, values.dtype)
        np.add.at(dense, indices, values)
        return _reals(dense)

    def _of_differences(self, start: HostArray) -> Jacobian:
        rows: list[HostArray] = []
        for index in range(start.size):
            for unit in _units(start.dtype):
                above, below = start.copy(), start.copy()
                above.flat[index] += unit * self._delta
                below.flat[index] -= unit * self._delta
                change = np.asarray(self._run(self._y, above)) - np.asarray(self._run(self._y, below))
                rows.append(_reals(change) / (2 * self._delta))
        size = math.prod(self._y_shape) * len(_units(self._y_type))
        return np.stack(rows) if rows else np.zeros((0, size))


def _units(dtype: Any) -> tuple[complex, ...]:
    """Returns the units by which an element varies: real, and imaginary if it is complex."""
    return (1, 1j) if np.dtype(dtype).kind == "c" else (1,)


def _reals(value: object) -> Any:
    """Flattens elements; complex ones to alternating real and imaginary parts."""
    array: Any = np.ascontiguousarray(value)
    return np.stack([array.real, array.imag], axis=-1).ravel() if array.dtype.kind == "c" else array.ravel()


def _interleaved(jacobian: Jacobian, axis: int, parts: int) -> Jacobian:
    """Reorders columns from all real parts, then all imaginary parts, to alternating parts of each element."""
    size = jacobian.shape[axis] // parts
    order: Any = cast(Any, np).arange(size * parts).reshape(parts, size).T.ravel()
    return np.take(jacobian, order, axis)
