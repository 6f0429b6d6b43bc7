"""Python's control flow over tensors in a compiled function, as JAX's conditions and loops.

A branch or an iteration is traced separately, and may read and change Keras's variables: the new values are among its
results. XLA's shapes are static: if the shapes of two branches, or before and after an iteration, differ, the function
runs as Python.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Never

import jax
import jax.core
import jax.numpy as jnp
import keras
import numpy as np

from headwater.graph.ops.control_flow import Turns, differentiable_while
from headwater.graph.runtime.jax_internals import core
from headwater.keras.internals import get_stateless_scope, in_stateless_scope
from headwater.tf1.functional.autograph import conversion as conversion
from headwater.tf1.functional.autograph.staging import add_staging
from headwater.tf2.tape import value_of
from headwater.tf2.tensor_arrays import TensorArray
from headwater.tf2.tensors import convert_to_tensor
from headwater.tf2.tracing import RunsInPython, tracing

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_lax: Any = jax.lax
_Variable = keras.Variable
_scope: Any = get_stateless_scope
_in_scope = in_stateless_scope


class CannotCompile(RunsInPython):
    """Control flow that XLA cannot compile; the message states the reason."""

    quiet = False


class Range:
    """The integers of a range with limits that are known at run time only. A loop can iterate over it; all other uses
    raise `CannotCompile`.

    Args:
      first: the first integer.
      step: the difference of consecutive integers.
      count: the number of integers.
    """

    def __init__(self, first: Tree, step: Tree, count: Tree) -> None:
        self.first, self.step, self.count = first, step, count

    def _no_array(self, *_: object, **__: object) -> Never:
        raise CannotCompile("a tf.range of unknown length can only be used in a loop")

    __array__ = __jax_array__ = __iter__ = __len__ = __getitem__ = _no_array
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_array
    __floordiv__ = __mod__ = __pow__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _no_array

    def __getattr__(self, name: str) -> Never:
        if name.startswith("_"):
            raise AttributeError(name)
        self._no_array()


class ArrayStaging:
    """`Staging` for JAX's arrays in a function that is compiled."""

    lazy_ranges = True

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, (jax.core.Tracer, Range)) or (isinstance(value, _Variable) and tracing() is not None)

    def convert(self, value: Tree) -> Tree:
        if isinstance(value, TensorArray):
            raise CannotCompile("a loop or condition over tensors changes a TensorArray")
        found = convert_to_tensor(value)
        if isinstance(found, np.ndarray):
            if found.dtype.kind in "OSU":
                raise TypeError(f"{value!r} is text, which cannot be compiled")
            found = jnp.asarray(found)
        return _lax.convert_element_type(found, found.dtype)

    def cond(self, pred: object, yes: Callable[[], list[Tree]], no: Callable[[], list[Tree]]) -> list[Tree]:
        branches = [_Branch(yes), _Branch(no)]
        written = {id(variable): variable for branch in branches for variable in branch.written}
        for one, other in zip(branches[0].outputs, branches[1].outputs, strict=True):
            if one.dtype != other.dtype:
                raise TypeError(
                    f"the branches of a condition must have the same type, not {one.dtype} and {other.dtype}"
                )
            if one.shape != other.shape:
                raise CannotCompile(f"the branches of a condition have shapes {one.shape} and {other.shape}")
        variables = list(written.values())
        now = [value_of(variable) for variable in variables]
        chosen = _lax.cond(
            jnp.reshape(self.convert(pred), ()),
            *(lambda branch=branch: branch.results(variables, now) for branch in branches),
        )
        count = len(branches[0].outputs)
        _update(variables, chosen[count:])
        return list(chosen[:count])

    def while_loop(
        self,
        test: Callable[[Sequence[Tree]], Tree],
        turn: Callable[[Sequence[Tree]], list[Tree]],
        start: Sequence[Tree],
        names: Sequence[str],
        options: dict[str, Tree],
    ) -> list[Tree]:
        if "shape_invariants" in options:
            raise CannotCompile("shape_invariants of a loop: XLA's shapes do not change")
        most = options.get("maximum_iterations")
        variables: list[Tree] = []
        while True:
            values = [*start, *map(value_of, variables)]
            body, shapes, written = _traced(turn, values, variables)
            holds, _, _ = _traced(lambda given: [self.convert(test(given))], values, variables)
            new = [variable for variable in written if not any(variable is known for known in variables)]
            if not new:
                break
            variables += new
        for name, before, after in zip(names, start, shapes, strict=False):
            if before.dtype != after.dtype:
                raise TypeError(
                    f"{name!r} has dtype {before.dtype} before the loop, but dtype {after.dtype} after one iteration"
                )
            if before.shape != after.shape:
                raise ValueError(
                    f"{name!r} has shape {before.shape} before the loop, but shape {after.shape} after one iteration"
                )
        found = _run(body, holds, values, None if most is not None else options.get("turns"), most)
        _update(variables, found[len(start) :])
        return found[: len(start)]

    def specs(self, function: Callable[[], list[Tree]], options: dict[str, Tree]) -> list[Tree]:
        turns = options.get("turns")
        if not isinstance(turns, int) or not turns:
            raise CannotCompile("a variable is first assigned in a loop that may have no iterations")
        return [jnp.zeros(output.shape, output.dtype) for output in _Branch(function).outputs]

    def logical_not(self, value: object) -> Tree:
        return jnp.logical_not(self.convert(value))

    def size(self, value: object) -> Tree:
        if isinstance(value, Range):
            return value.count
        array = self.convert(value)
        if not array.ndim:
            raise TypeError("iterating over a scalar tensor is not allowed")
        return array.shape[0]

    def item(self, value: Tree, index: object) -> Tree:
        if isinstance(value, Range):
            return value.first + index * value.step
        return _lax.dynamic_index_in_dim(self.convert(value), index, keepdims=False)

    def range(self, *limits: object) -> Tree:
        first, stop, step = (0, *limits, 1) if len(limits) == 1 else (*limits, 1)[:3]
        arrays = [self.convert(value) for value in (first, stop, step)]
        given = zip(arrays, (first, stop, step), strict=True)
        dtype = jnp.result_type(*(array for array, limit in given if self.is_tensor(limit)))
        first, stop, step = (array.astype(dtype) for array in arrays)
        count = jnp.maximum(0, -((first - stop) // step)).astype(np.int32)
        return Range(first, step, count)

    def number(self, value: object, kind: type) -> Tree:
        return self.convert(value).astype(np.int32 if kind is int else np.float32)


def _update(variables: Sequence[object], values: Sequence[object]) -> None:
    for variable, value in zip(variables, values, strict=True):
        _scope().add_update((variable, value))


@contextmanager
def _apart() -> Generator[Tree]:
    """A context in which changes of variables are local to a branch; yields the scope that records them."""
    if not _in_scope():
        raise CannotCompile("control flow over tensors outside of a function")
    scope = _scope()
    before, outer, scope.written = scope.state_mapping, scope.written, {}
    scope.state_mapping = dict(before)
    try:
        yield scope
    finally:
        scope.state_mapping, scope.written = before, outer


def _traced(
    function: Callable[[Sequence[Tree]], Sequence[Tree]], values: Sequence[Tree], variables: Sequence[Tree] = ()
) -> tuple[Tree, list[Tree], list[Tree]]:
    """Traces a function whose arguments are arrays, followed by values of ``variables``.

    Returns:
      The traced function; the shapes and types of its results; the variables that it changes. The traced function also
      returns the new values of ``variables``, then of other variables that it changes.
    """
    recorded: list[Tree] = []

    def run(*given: Tree) -> list[Tree]:
        count = len(given) - len(variables)
        with _apart() as scope:
            for variable, value in zip(variables, given[count:], strict=True):
                scope.state_mapping[id(variable)] = value
            results = list(function(given[:count]))
            recorded[:] = [list(scope.written.values())]
            new = [variable for variable in recorded[0] if not any(variable is known for known in variables)]
            return [*results, *(scope.current(variable) for variable in (*variables, *new))]

    closed = jax.make_jaxpr(run)(*values)
    return closed, list(closed.out_avals), recorded[0]


class _Branch:
    """A traced branch.

    Attributes:
      outputs: shapes and types of its results.
      written: the variables that it changes.
    """

    def __init__(self, function: Callable[[], list[Tree]]) -> None:
        self._closed, outputs, self.written = _traced(lambda _: function(), ())
        self.outputs = outputs[: len(outputs) - len(self.written)]

    def results(self, variables: Sequence[object], now: Sequence[Tree]) -> tuple[Tree, ...]:
        """The branch's results, then the values of ``variables``: the branch's own values, or else ``now``."""
        found = list(core.jaxpr_as_fun(self._closed)())
        own = {id(v): value for v, value in zip(self.written, found[len(self.outputs) :], strict=True)}
        rest = (own.get(id(variable), value) for variable, value in zip(variables, now, strict=True))
        return (*found[: len(self.outputs)], *rest)


class _TracedTurns(Turns):
    """Traced iterations of a loop; values that they capture from outside follow the loop's own values."""

    def __init__(self, dynamic: Sequence[Tree], count: int, body: Tree, holds: Tree, most: object) -> None:
        self.start = tuple(dynamic[:count])
        split = count + len(body.consts)
        self._body, self._holds = body.jaxpr, holds.jaxpr
        self._body_consts, self._test_consts = dynamic[count:split], dynamic[split:]
        self._most = most

    def condition(self, turn: Tree, values: Sequence[Tree]) -> Tree:
        more = jnp.reshape(core.eval_jaxpr(self._holds, self._test_consts, *values)[0], ())
        return more if self._most is None else more & (turn < self._most)

    def turn(self, turn: Tree, values: Sequence[Tree]) -> tuple[Tree, ...]:
        del turn
        return tuple(core.eval_jaxpr(self._body, self._body_consts, *values))


def _run(body: Tree, holds: Tree, values: Sequence[Tree], turns: object, most: object) -> list[Tree]:
    dynamic = [jnp.asarray(value) for value in (*values, *body.consts, *holds.consts)]

    def loop_of(dynamic: Sequence[Tree]) -> _TracedTurns:
        return _TracedTurns(dynamic, len(values), body, holds, most)

    if isinstance(turns, int):
        # The number of iterations is known, so use scan: its gradient does not recompute iterations.
        loop = loop_of(dynamic)
        state, _ = _lax.scan(lambda state, _: (loop.turn(None, state), None), loop.start, None, length=turns)
        return list(state)
    return list(differentiable_while(loop_of, dynamic))[: len(values)]


add_staging(ArrayStaging())
