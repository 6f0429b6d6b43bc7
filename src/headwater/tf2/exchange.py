"""Sums over the processes of a mirrored group within compiled functions.

A sum is a JAX primitive. Evaluated eagerly, it uses the group's channels. In a compiled function it divides the
function: the operations before a sum form one executable, the operations that depend on its result another. Sums that
are independent of each other share one exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.extend.core import (
    ClosedJaxpr,  # pyright: ignore[reportPrivateImportUsage]  # JAX 0.12 does not mark it as a name for others
    Primitive,
)
from jax.interpreters import ad

from headwater.graph.runtime.jax_internals import core
from headwater.keras.mirrored.steps import Replicas

if TYPE_CHECKING:
    import jax.extend.core

    from headwater.keras.types import Tree


_primitive = Primitive("headwater_sum")
_primitive.multiple_results = True


class Processes:
    """All processes of a group, as an attribute of operations."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def sums(self, values: Sequence[object]) -> list[Any]:
        """Returns each array's sum over all processes, with one exchange for each element type."""
        arrays = [np.asarray(value) for value in values]
        found: list[Any] = list(arrays)
        for dtype in dict.fromkeys(array.dtype for array in arrays):
            places = [at for at, array in enumerate(arrays) if array.dtype == dtype]
            wide = np.dtype(np.float32) if dtype.itemsize < 4 and dtype.kind not in "iu" else dtype
            vector = np.concatenate([arrays[at].ravel().astype(wide) for at in places])
            total = np.asarray(self._replicas.add_up(vector, "sums of a loop"))
            start = 0
            for at in places:
                size = arrays[at].size
                found[at] = total[start : start + size].reshape(arrays[at].shape).astype(dtype)
                start += size
        return [jax.numpy.asarray(value) for value in found]


def sums(values: Sequence[object], processes: Processes) -> list[Any]:
    """Returns each array's sum over all processes; every process must call this."""
    return _primitive.bind(*map(jax.numpy.asarray, values), processes=processes) if values else []


def _at_once(*values: jax.Array, processes: Processes) -> list[object]:
    return processes.sums(values)


def _same_shapes(*values: jax.Array, processes: Processes) -> list[object]:
    del processes
    return list(values)


def _transposed(cotangents: Sequence[object], *values: jax.Array, processes: Processes) -> list[object]:
    zeros = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    del values
    return sums(zeros, processes)


def _differential(values: Sequence[jax.Array], tangents: Sequence[object], processes: Processes) -> object:
    return sums(values, processes), sums([ad.instantiate_zeros(tangent) for tangent in tangents], processes)


_primitive.def_impl(_at_once)
_primitive.def_abstract_eval(_same_shapes)
ad.primitive_jvps[_primitive] = _differential
ad.primitive_transposes[_primitive] = _transposed


def compiled(closed: ClosedJaxpr) -> Callable[..., Sequence[Any]]:
    """Compiles a traced function with XLA: into one executable, or into several that are divided at its sums.

    Args:
      closed: a ``ClosedJaxpr``.

    Raises:
      NotImplementedError: a sum is within a loop, a branch or another compiled function.
    """
    equations = closed.jaxpr.eqns
    if any(_sums_within(inner) for equation in equations for inner in core.jaxprs_in_params(equation.params)):
        raise NotImplementedError(
            "replicas exchange within a loop, a branch or another compiled function: apply gradients and reduce values "
            "outside of these"
        )
    if not any(equation.primitive is _primitive for equation in equations):
        return jax.jit(core.jaxpr_as_fun(closed))
    return _Pieces(closed)


def _sums_within(jaxpr: jax.extend.core.Jaxpr) -> bool:
    return any(
        equation.primitive is _primitive or any(map(_sums_within, core.jaxprs_in_params(equation.params)))
        for equation in jaxpr.eqns
    )


class _Pieces:
    """A function with sums: for each level, an executable that is followed by all sums whose operands have that level.

    The level of an operation is the maximum number of sums on a path to it.
    """

    def __init__(self, closed: Any) -> None:
        jaxpr = closed.jaxpr
        self._known: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        self._inputs = list(jaxpr.invars)
        self._outputs = list(jaxpr.outvars)
        levels: dict[object, int] = {}
        pieces: list[list[object]] = []
        self._sums: list[list[Any]] = []
        for equation in jaxpr.eqns:
            level = max((levels.get(item, 0) for item in _variables(equation.invars)), default=0)
            while len(pieces) <= level:
                pieces.append([])
                self._sums.append([])
            is_sum = equation.primitive is _primitive
            (self._sums if is_sum else pieces)[level].append(equation)
            levels.update((item, level + is_sum) for item in equation.outvars)
        self._pieces = [self._piece(jaxpr, pieces, level) for level in range(len(pieces))]

    def _piece(self, jaxpr: Any, pieces: Sequence[Sequence[Any]], level: int) -> tuple[list[Any], list[Any], Any]:
        own = pieces[level]
        made = {item for equation in own for item in equation.outvars}
        needed = {
            item
            for later in (*pieces[level + 1 :], *self._sums[level:])
            for equation in later
            for item in _variables(equation.invars)
        }
        needed.update(_variables(self._outputs))
        inputs = list(
            dict.fromkeys(item for equation in own for item in _variables(equation.invars) if item not in made)
        )
        outputs = [item for equation in own for item in equation.outvars if item in needed]
        part = jaxpr.replace(
            constvars=[],
            invars=inputs,
            outvars=outputs,
            eqns=list(own),
            debug_info=_unknown_names(jaxpr, inputs, outputs),
        )
        return inputs, outputs, jax.jit(core.jaxpr_as_fun(ClosedJaxpr(part, [])))

    def __call__(self, *values: jax.Array) -> list[Tree]:
        env = {**self._known, **dict(zip(self._inputs, values, strict=True))}
        for (inputs, outputs, run), equations in zip(self._pieces, self._sums, strict=True):
            if outputs:
                env.update(zip(outputs, run(*[env[item] for item in inputs]), strict=True))
            if equations:
                processes = equations[0].params["processes"]
                totals = processes.sums([_value(item, env) for equation in equations for item in equation.invars])
                env.update(zip([item for equation in equations for item in equation.outvars], totals, strict=True))
        return [_value(item, env) for item in self._outputs]


def _variables(items: Sequence[object]) -> list[Any]:
    return [item for item in items if not isinstance(item, core.Literal)]


def _value(item: object, env: dict[Any, Any]) -> Any:
    return item.val if isinstance(item, core.Literal) else env[item]


def _unknown_names(jaxpr: jax.extend.core.Jaxpr, inputs: Sequence[Tree], outputs: Sequence[Tree]) -> object:
    return jaxpr.debug_info._replace(arg_names=("",) * len(inputs), result_paths=("",) * len(outputs))
