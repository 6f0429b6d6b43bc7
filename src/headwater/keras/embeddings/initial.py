"""Computes the initial values of some rows of a table without the other rows.

A Keras initializer is traced for the whole table. The traced computation is then evaluated for a range of rows. These
rows have the same values as in the whole table: element-wise operations need no other rows, and each random number of
JAX depends only on the seed and on the number's position (Salmon, Moraes, Dror and Shaw, *Parallel Random Numbers: As
Easy as 1, 2, 3*, SC 2011). If a row depends on all rows, as with an orthogonal initializer, it computes the whole
table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import jax
import numpy as np
from jax.extend.random import threefry2x32_p

from headwater.ps.updater import Array

if TYPE_CHECKING:
    import jax.extend.core

    from headwater.keras.types import Tree

_jax: Any = jax
_jnp: Any = _jax.numpy
_threefry = threefry2x32_p

#: Element-wise operations.
_BY_ELEMENT: Final = frozenset(
    (
        *("abs", "add", "and", "bitcast_convert_type", "clamp", "convert_element_type", "copy", "cos", "div", "eq"),
        *("erf", "erf_inv", "exp", "floor", "ge", "gt", "integer_pow", "is_finite", "le", "log", "log1p", "lt", "max"),
        *("min", "mul", "ne", "neg", "nextafter", "not", "or", "pow", "rem", "round", "rsqrt", "select_n"),
        *("shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sqrt", "square"),
        *("stop_gradient", "sub", "tanh", "xor"),
    )
)
_CALLS: Final = frozenset({"jit", "pjit", "closed_call", "core_call", "custom_jvp_call"})


class _NeedsAllRowsError(Exception):
    """Raised if an initializer computes a row from other rows."""


def initial_rows(initializer: Callable[..., object], shape: Sequence[int], dtype: str) -> Callable[[int, int], Array]:
    """Returns a function that computes rows ``start`` to ``stop`` of ``initializer(shape, dtype=dtype)``.

    Args:
      initializer: a Keras initializer, or a function with the same signature.
      shape: shape of the whole table.
      dtype: type of its elements.
    """

    def make() -> object:
        return initializer(tuple(shape), dtype=dtype)

    whole: list[Array] = []

    def sliced(start: int, stop: int) -> Array:
        if not whole:
            whole.append(np.asarray(make()))
        return whole[0][start:stop]

    closed = _jax.make_jaxpr(make)()
    rows = _Rows(int(shape[0]))

    def some(start: int, stop: int) -> Array:
        return np.asarray(rows.of(closed, np.uint32(start), stop - start))

    try:
        _jax.eval_shape(lambda first: rows.of(closed, first, 1), np.uint32(0))
    except _NeedsAllRowsError:
        return sliced
    return some


class _Rows:
    """Computes some rows of the result of a traced function.

    A part that is compiled as one unit in the traced function is compiled as one unit here, so that sums and products
    are rounded in the same way.

    Args:
      total: number of rows of the whole result.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._compiled: dict[tuple[int, int], Any] = {}

    def of(self, closed: Any, first: object, count: int) -> object:
        """Computes ``count`` rows, from ``first``, of the only result of ``closed``."""
        jaxpr = closed.jaxpr
        env = dict(zip(jaxpr.constvars, ((const, False) for const in closed.consts), strict=True))
        ((value, by_row),) = self._follow(jaxpr, env, first, count, outermost=True)
        if not by_row:
            raise _NeedsAllRowsError
        return value

    def _follow(
        self,
        jaxpr: jax.extend.core.Jaxpr,
        env: Mapping[Any, Any],
        first: object,
        count: int,
        *,
        outermost: bool = False,
    ) -> list[tuple[object, bool]]:
        """Computes the results. With each result it returns a boolean: whether the result has only the wanted rows;
        otherwise it has all rows."""
        known: dict[Any, tuple[Any, bool]] = dict(env)

        def read(atom: Any) -> tuple[Any, bool]:
            return (atom.val, False) if hasattr(atom, "val") else known[atom]

        for eqn in jaxpr.eqns:
            operands = [read(atom) for atom in eqn.invars]
            results = self._compiled_results if outermost and eqn.primitive.name in _CALLS else self._results
            known.update(zip(eqn.outvars, results(eqn, operands, first, count), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _compiled_results(
        self, eqn: Any, operands: Sequence[tuple[Tree, bool]], first: object, count: int
    ) -> list[tuple[object, bool]]:
        by_row = [flag for _, flag in operands]

        def call(values: Sequence[object], first: object) -> list[Tree]:
            return [value for value, _ in self._results(eqn, list(zip(values, by_row, strict=True)), first, count)]

        if (id(eqn), count) not in self._compiled:
            self._compiled[id(eqn), count] = _jax.jit(call)
        results = self._compiled[id(eqn), count]([value for value, _ in operands], first)
        return [(value, self._has_rows(var.aval.shape)) for value, var in zip(results, eqn.outvars, strict=True)]

    def _results(
        self, eqn: Any, operands: Sequence[tuple[Tree, bool]], first: object, count: int
    ) -> list[tuple[object, bool]]:
        name, values = eqn.primitive.name, [value for value, _ in operands]
        inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        if name in _CALLS and inner is not None:
            body = getattr(inner, "jaxpr", inner)
            consts = ((const, False) for const in getattr(inner, "consts", ()))
            env = dict(zip(body.constvars, consts, strict=True)) | dict(zip(body.invars, operands, strict=True))
            return self._follow(body, env, first, count)
        shapes = [tuple(var.aval.shape) for var in eqn.outvars]
        if not any(by_row for _, by_row in operands) and not any(self._has_rows(shape) for shape in shapes):
            results = eqn.primitive.bind(*values, **eqn.params)
            return [(value, False) for value in (results if eqn.primitive.multiple_results else [results])]
        if len(shapes) != 1:
            raise _NeedsAllRowsError
        shape = shapes[0]
        if name == "random_bits" and eqn.params["bit_width"] == 32:
            return [(self._bits(values[0], shape, first, count), True)]
        if name == "broadcast_in_dim" and len(values) == 1 and np.shape(values[0]) in ((), (1,) * len(shape)):
            return [(_jnp.broadcast_to(values[0], (count, *shape[1:])), True)]
        # All values other than rows are scalars.
        fit = self._has_rows(shape) and all(by_row or np.size(value) == 1 for value, by_row in operands)
        if name in _BY_ELEMENT and fit:
            return [(eqn.primitive.bind(*values, **eqn.params), True)]
        raise _NeedsAllRowsError

    def _has_rows(self, shape: Sequence[int]) -> bool:
        return len(shape) > 0 and shape[0] == self._total

    def _bits(self, key: Any, shape: Sequence[int], first: Any, count: int) -> object:
        """Computes these rows of the result of `jax.random.bits`."""
        if key.ndim or str(_jax.random.key_impl(key)) != "threefry2x32" or not _jax.config.jax_threefry_partitionable:
            raise _NeedsAllRowsError
        width = int(np.prod(shape[1:]))
        if self._total * width >= 1 << 32:
            raise _NeedsAllRowsError
        places = first * np.uint32(width) + _jnp.arange(count * width, dtype=np.uint32)
        one, two = _jax.random.key_data(key)
        high, low = _threefry.bind(
            _jnp.broadcast_to(one, places.shape), _jnp.broadcast_to(two, places.shape), _jnp.zeros_like(places), places
        )
        return (high ^ low).reshape(count, *shape[1:])
