"""Conditions and loops: operations with parts of a graph in their attributes (see `headwater.graph.ops.bodies`).

There are two kinds of each operation. The kind with ``Stateless`` in its name is compiled, with JAX's ``cond``,
``while_loop`` and ``scan``. The other kind runs on the host, one operation of the body after the other. It is for
bodies that change variables, print, use queues or handle strings, and for loops with values whose shapes change.

Reverse-mode differentiation needs the values computed in every iteration of a loop. The gradient of a loop is therefore
the gradient of `while_scan`: the same loop with a number of iterations that is known when compiling. If the graph does
not determine this number, a run computes it first and rounds it up to a power of two, so that loops of many lengths
share a few executables; iterations beyond the end do nothing. The gradient of a nested loop recomputes its iterations
(`stateless_while`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from headwater.dtypes import DType, int32, uint32
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.bodies import Body, declared, decode_body, evaluate, interpret, static_inputs
from headwater.graph.ops.define import fixed, host, pure, random
from headwater.graph.ops.inner_faults import Faults, are_noted, noting, record_faults, with_faults
from headwater.graph.registry import Attrs, FunctionAttr, HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext
from headwater.lazy_jax import custom_vjp, jax, jnp, lax
from headwater.shapes import TensorShape

_lax: Any = lax


@random("RandomKey", infer=fixed(uint32, (2,)), static=(), inputs="")
def random_key(key: jax.Array, *, seed: int = 0, seed2: int = 0) -> jax.Array:
    """A key for the random numbers of a body."""
    del seed, seed2
    return jax.random.key_data(key)


# Conditions -----------------------------------------------------------------------------------------------------


def _if_static(attrs: Attrs, count: int) -> frozenset[int]:
    del count
    positions = {1 + i for name in ("then_branch", "else_branch") for i in static_inputs(decode_body(attrs[name]))}
    return frozenset(positions | ({0} if attrs["shapes_differ"] else set()))


@pure("StatelessIf", infer=declared, static_of=_if_static, types={"Tcond": 0})
def stateless_if(
    predicate: Any,
    *inputs: jax.Array,
    then_branch: FunctionAttr,
    else_branch: FunctionAttr,
    shapes_differ: bool = False,
    Tout: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
) -> tuple[jax.Array, ...]:
    """Returns the outputs of one of two bodies, which both take ``inputs``.

    Args:
      shapes_differ: whether the branches' values have different shapes, in which case the predicate must be known when
        compiling.
    """
    del output_shapes, shapes_differ
    branches = [decode_body(then_branch), decode_body(else_branch)]
    if isinstance(predicate, np.ndarray | np.generic) and all(all(body.outputs) for body in branches):
        return evaluate(branches[0 if predicate else 1], inputs)

    def of(body: Body) -> Any:
        return lambda: tuple(
            None if value is None else _as_type(value, dtype)
            for value, dtype in zip(evaluate(body, inputs), Tout, strict=True)
        )

    checked = [with_faults(of(body)) for body in branches]
    specs = [cast(Any, jax).eval_shape(branch) for branch in checked]
    shapes = [[None if out is None else tuple(out.shape) for out in outputs] for outputs, _ in specs]
    joined = [_join(a, b) for a, b in zip(*shapes, strict=True)]
    failing = sorted({name for _, faults in specs for name in faults})

    def grown(branch: Callable[[], tuple[tuple[Any, ...], Faults]]) -> Callable[[], tuple[tuple[Any, ...], Faults]]:
        def run() -> tuple[tuple[Any, ...], Faults]:
            values, faults = branch()
            outputs = tuple(
                jnp.zeros(shape, dtype.base_dtype.numpy_dtype) if value is None else _grow(value, shape)
                for value, shape, dtype in zip(values, joined, Tout, strict=True)
            )
            return outputs, {name: faults.get(name, jnp.asarray(False)) for name in failing}

        return run

    if isinstance(predicate, np.ndarray | np.generic):
        values, faults = grown(checked[0 if predicate else 1])()
    else:
        values, faults = _lax.cond(jnp.reshape(predicate, ()), grown(checked[0]), grown(checked[1]))
    record_faults(faults)
    return tuple(values)


def _as_type(value: jax.Array, dtype: DType) -> jax.Array:
    return _lax.convert_element_type(value, dtype.base_dtype.numpy_dtype)


def _join(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> tuple[int, ...]:
    """Returns the common shape of the values of two branches. An empty TensorArray fits any shape.

    None represents a branch without a value; the result is then the shape of the other value.
    """
    if a is None or b is None:
        shape = b if a is None else a
        assert shape is not None
        return shape
    for empty, other in ((a, b), (b, a)):
        if len(empty) == 2 and empty[1] == 0 and other[:1] == empty[:1]:
            return other
    return a


def _grow(value: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    if value.shape != shape and value.size == 0 and value.ndim == 2:
        return jnp.zeros(shape, value.dtype)
    return value


@host("If", infer=declared, ref_attr="refs", types={"Tcond": 0}, blocking=True)
def run_if(
    context: HostContext,
    predicate: HostArray,
    *inputs: Any,
    then_branch: FunctionAttr,
    else_branch: FunctionAttr,
    Tout: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
    refs: Sequence[int] = (),
) -> tuple[HostArray, ...]:
    """Like `stateless_if`, on the host."""
    del output_shapes, refs
    results = interpret(decode_body(then_branch if predicate else else_branch), context, inputs)
    return tuple(
        np.zeros((), dtype.base_dtype.numpy_dtype) if value is None else value
        for value, dtype in zip(results, Tout, strict=True)
    )


# Loops ----------------------------------------------------------------------------------------------------------


def _while_static(attrs: Attrs, count: int) -> frozenset[int]:
    del count
    loop = len(attrs["Tout"]) - 1
    positions = {i for name in ("cond", "body") for i in static_inputs(decode_body(attrs[name]))}
    return frozenset(i for i in positions if i >= loop)


def _start(inputs: Sequence[jax.Array], body: Body, types: Sequence[DType]) -> list[jax.Array]:
    """Returns the loop's values before the first iteration, grown to the shapes that they have after it."""
    count = len(body.outputs)
    values = [_as_type(value, dtype) for value, dtype in zip(inputs[:count], types, strict=False)]
    shapes: list[tuple[int, ...]] = []

    def turn(*changing: object) -> Any:
        return evaluate(body, [*changing, *inputs[count:]], None, 0)

    for _ in range(count + 1):
        with noting(None):
            shapes = [tuple(out.shape) for out in cast(Any, jax).eval_shape(turn, *values)]
        grown = [_grow(v, _join(v.shape, shape)) for v, shape in zip(values, shapes, strict=True)]
        if all(a is b for a, b in zip(grown, values, strict=True)):
            break
        values = grown
    for index, (value, shape) in enumerate(zip(values, shapes, strict=True)):
        if value.shape != shape:
            raise InvalidArgumentError(
                f"loop variable {index} has shape {list(value.shape)} before an iteration of the loop and "
                f"{list(shape)} after it; give its changing dimension as None in shape_invariants"
            )
    return values


class Turns(ABC):
    """A loop: the function that computes an iteration, and its condition.

    Attributes:
      start: the loop's values before the first iteration.
    """

    start: tuple[Any, ...]

    @abstractmethod
    def condition(self, turn: jax.Array, values: Sequence[object]) -> jax.Array:
        """Returns whether the loop makes the iteration with this number, which starts with ``values``."""

    @abstractmethod
    def turn(self, turn: jax.Array, values: Sequence[object]) -> tuple[Any, ...]:
        """Returns the values after the iteration."""

    def until(self, values: Sequence[jax.Array], turns: object) -> tuple[object, tuple[object, ...]]:
        """Makes ``turns`` iterations, or if None, iterations until the condition fails; returns their number and the
        values after them."""

        def checked_turn(turn: jax.Array, values: Sequence[object]) -> tuple[Any, ...]:
            if are_noted():
                self.condition(turn, values)  # discard failures: a condition has no output for them
            return self.turn(turn, values)

        turn_with_faults = with_faults(checked_turn)
        names: list[str] = []  # names of operations that may fail, collected while an iteration is traced

        def more(state: Any) -> jax.Array:
            turn, values, failed = state
            with noting(None):
                wanted = self.condition(turn, values) if turns is None else turn < turns
            return wanted & (failed == 0)  # stop after a failure: the condition might stay true forever

        def step(state: Any) -> Any:
            turn, values, failed = state
            after, faults = turn_with_faults(turn, values)
            names[:] = faults
            for number, fault in enumerate(faults.values(), 1):
                failed = jnp.where((failed == 0) & fault, jnp.int32(number), failed)
            return turn + 1, after, failed

        done, last, failed = _lax.while_loop(more, step, (jnp.int32(0), tuple(values), jnp.int32(0)))
        record_faults({name: failed == number for number, name in enumerate(names, 1)})
        if are_noted():
            self.condition(done, last)
        return done, last


class _Loop(Turns):
    """A loop that is defined by two bodies, with its invariant inputs."""

    def __init__(self, inputs: Sequence[Any], cond: FunctionAttr, body: FunctionAttr, types: Sequence[DType]) -> None:
        self._cond, self._body, self._types = decode_body(cond), decode_body(body), types
        self._fixed = inputs[len(self._body.outputs) :]
        self.start = tuple(_start(inputs, self._body, types))

    def condition(self, turn: jax.Array, values: Sequence[object]) -> jax.Array:
        return jnp.reshape(evaluate(self._cond, [*values, *self._fixed], None, turn)[0], ())

    def turn(self, turn: jax.Array, values: Sequence[object]) -> tuple[Any, ...]:
        results = evaluate(self._body, [*values, *self._fixed], None, turn)
        pairs = zip(results, self._types, self.start, strict=False)
        return tuple(_grow(_as_type(value, dtype), first.shape) for value, dtype, first in pairs)


@pure("StatelessWhile", infer=declared, static_of=_while_static, types={})
def stateless_while(
    *inputs: jax.Array,
    cond: FunctionAttr,
    body: FunctionAttr,
    bound: int = -1,
    Tout: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
) -> tuple[jax.Array, ...]:
    """Returns the loop's values when ``cond`` becomes false, and the number of iterations.

    Args:
      inputs: the loop's initial values, then loop-invariant inputs.
      bound: the maximum number of iterations if known, else -1.
    """
    del output_shapes, bound
    known = [isinstance(value, np.ndarray | np.generic) for value in inputs]

    def loop_of(dynamic: Sequence[object]) -> _Loop:
        rest = iter(dynamic)
        return _Loop([v if k else next(rest) for v, k in zip(inputs, known, strict=True)], cond, body, Tout)

    return differentiable_while(loop_of, [value for value, k in zip(inputs, known, strict=True) if not k])


def differentiable_while(loop_of: Callable[[Sequence[Any]], Turns], dynamic: Sequence[object]) -> Any:
    """Runs a loop with a custom gradient, for loops nested in differentiated code.

    No values of the iterations are stored. The gradient processes the iterations in reverse order and recomputes the
    initial values of each iteration from the start. So its time is quadratic in the number of iterations, and its
    memory is constant.
    """

    @custom_vjp
    def run(*dynamic: object) -> Any:
        loop = loop_of(dynamic)
        (turns, values), faults = with_faults(loop.until)(loop.start, None)
        return (*values, turns), faults

    def forward(*dynamic: object) -> Any:
        results = run(*dynamic)
        return results, (dynamic, results[0][-1])

    def backward(kept: Any, gradients: Any) -> object:
        dynamic, turns = kept
        grads, _ = gradients
        floating = [i for i, value in enumerate(dynamic) if jnp.issubdtype(value.dtype, jnp.inexact)]

        def with_floats(floats: Sequence[object]) -> list[Any]:
            values = list(dynamic)
            for index, value in zip(floating, floats, strict=True):
                values[index] = value
            return values

        loop = loop_of(dynamic)
        moving = [i for i, value in enumerate(loop.start) if jnp.issubdtype(value.dtype, jnp.inexact)]

        def through(turn: Any, values: Sequence[object]) -> Any:
            """Propagates gradients back through one iteration that started with ``values``."""

            def one_iteration(moved: Sequence[object], floats: Sequence[Any]) -> object:
                all_values = list(values)
                for index, value in zip(moving, moved, strict=True):
                    all_values[index] = value
                after = loop_of(with_floats(floats)).turn(turn, all_values)
                return [after[i] for i in moving]

            return jax.vjp(one_iteration, [values[i] for i in moving], [dynamic[i] for i in floating])[1]

        def step(state: Any) -> Any:
            left, moved, floats = state
            values = loop.until(loop.start, left - 1)[1]
            moved, more = through(left - 1, values)(moved)
            return left - 1, moved, [a + b for a, b in zip(floats, more, strict=True)]

        begin = (turns, [grads[i] for i in moving], [jnp.zeros_like(dynamic[i]) for i in floating])
        _, moved, floats = _lax.while_loop(lambda state: state[0] > 0, step, begin)

        def start(*floats: object) -> Any:
            values = loop_of(with_floats(floats)).start
            return [values[i] for i in moving]

        first = jax.vjp(start, *(dynamic[i] for i in floating))[1](moved)
        found = {i: a + b for i, a, b in zip(floating, floats, first, strict=True)}
        return tuple(
            found[i] if i in found else np.zeros(value.shape, jax.dtypes.float0) for i, value in enumerate(dynamic)
        )

    run.defvjp(forward, backward)
    results, faults = run(*dynamic)
    record_faults(faults)
    return results


def _scan_specs(inference: Inference) -> Sequence[Spec]:
    return declared(inference)[:-1]


def _scan_static(attrs: Attrs, count: int) -> frozenset[int]:
    return _while_static(attrs, count) | {count - 1}


@pure("WhileScan", infer=_scan_specs, static_of=_scan_static, types={})
def while_scan(
    *inputs: jax.Array,
    cond: FunctionAttr,
    body: FunctionAttr,
    bound: int = -1,
    Tout: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
) -> jax.Array:
    """Returns the loop's values as `stateless_while`, in a differentiable form.

    Args:
      inputs: as there, then the result of `while_trips`.
    """
    del output_shapes, bound
    loop = _Loop(inputs[:-1], cond, body, Tout)
    length, exact = (int(value) for value in inputs[-1])

    def step(values: Any, turn: Any) -> Any:
        if exact:
            return loop.turn(turn, values), None
        return _lax.cond(loop.condition(turn, values), lambda: loop.turn(turn, values), lambda: values), None

    return _lax.scan(step, loop.start, jnp.arange(length, dtype=jnp.int32))[0]


@pure("WhileTrips", infer=fixed(int32, (2,)), types={}, differentiable=False)
def while_trips(
    *inputs: jax.Array, cond: FunctionAttr, body: FunctionAttr, used: Sequence[int], loop: Sequence[int]
) -> jax.Array:
    """Returns the number of iterations of a loop, and whether it is exact (1) or rounded up to a power of two (0).

    Args:
      inputs: the loop's inputs on which its condition depends.
      used: their positions among the loop's inputs.
      loop: the positions among ``used`` of inputs that change from iteration to iteration.
    """
    cond_body, loop_body = decode_body(cond), decode_body(body)
    given = dict(zip(used, inputs, strict=True))

    def at(values: Sequence[jax.Array]) -> list[Any]:
        changed = given | dict(zip(loop, values, strict=True))
        return [changed.get(i) for i in range(len(loop_body.inputs))]

    def more(state: Any) -> jax.Array:
        return jnp.reshape(evaluate(cond_body, at(state[1]), cond_body.outputs)[0], ())

    def step(state: Any) -> Any:
        results = evaluate(loop_body, at(state[1]), [loop_body.outputs[i] for i in loop])
        pairs = zip(results, state[1], strict=True)
        return state[0] + 1, tuple(_lax.convert_element_type(after, before.dtype) for after, before in pairs)

    start = tuple(jnp.asarray(given[i]) for i in loop)
    with noting(None):  # the loop itself records the failures
        turns = _lax.while_loop(more, step, (jnp.int32(0), start))[0]
    if all(isinstance(value, np.ndarray | np.generic) for value in inputs):
        return jnp.stack([turns, jnp.int32(1)])
    return _rounded(turns)


@pure("RoundedTrips", infer=fixed(int32, (2,)), inputs="turns:int32", differentiable=False)
def rounded_trips(turns: jax.Array) -> jax.Array:
    """Returns ``turns``, rounded up, in the format of the result of `while_trips`."""
    return _rounded(turns)


def _rounded(turns: jax.Array) -> jax.Array:
    powers = jnp.asarray([0, *(1 << i for i in range(31))], jnp.int32)
    return jnp.stack([powers[jnp.searchsorted(powers, turns)], jnp.int32(0)])


@host("While", infer=declared, ref_attr="refs", types={}, blocking=True)
def run_while(
    context: HostContext,
    *inputs: Any,
    cond: FunctionAttr,
    body: FunctionAttr,
    Tout: Sequence[DType] = (),
    output_shapes: Sequence[TensorShape] = (),
    refs: Sequence[int] = (),
) -> Any:
    """Like `stateless_while`, on the host."""
    del Tout, output_shapes, refs
    cond_body, loop_body = decode_body(cond), decode_body(body)
    count = len(loop_body.outputs)
    values, rest = tuple(inputs[:count]), inputs[count:]
    turn = 0
    while bool(interpret(cond_body, context, (*values, *rest), turn)[0]):
        context.step.check()
        values = interpret(loop_body, context, (*values, *rest), turn)
        turn += 1
    return (*values, np.int32(turn))


def _wanted_specs(inference: Inference) -> Sequence[Spec]:
    specs = zip(inference.inputs, inference.attrs["wanted"], strict=False)
    return [Spec(spec.dtype.base_dtype, spec.dims) for spec, wanted in specs if wanted]


@host("WhileGradient", infer=_wanted_specs, types={})
def while_gradient(
    context: HostContext, *inputs: Any, cond: FunctionAttr, body: FunctionAttr, wanted: Sequence[bool]
) -> list[HostArray]:
    """Returns the gradients of a loop with values of changing shapes, iteration by iteration from the last to the
    first.

    Args:
      inputs: the loop's inputs, then the gradients of its results, without results that have no gradient.
      wanted: for each of the loop's inputs, whether to compute its gradient.
    """
    holds, turn_body = decode_body(cond), decode_body(body)
    count = len(turn_body.outputs)
    given, moved = inputs[: len(turn_body.inputs)], list(inputs[len(turn_body.inputs) :])
    fixed, values = list(given[count:]), list(given[:count])
    history: list[list[object]] = []
    while interpret(holds, context, [*values, *fixed], len(history))[0]:
        context.step.check()
        history.append(values)
        values = list(interpret(turn_body, context, [*values, *fixed], len(history) - 1))
    moving = [i for i in range(count) if wanted[i]]
    floating = [i for i in range(len(fixed)) if wanted[count + i]]
    totals = [np.zeros(fixed[i].shape, fixed[i].dtype) for i in floating]

    def results(turn: int, before: Sequence[Any], moved: Sequence[Any], floats: Sequence[Any]) -> list[Any]:
        now, same = list(before), list(fixed)
        for index, value in zip(moving, moved, strict=True):
            now[index] = value
        for index, value in zip(floating, floats, strict=True):
            same[index] = value
        after = evaluate(turn_body, [*now, *same], None, turn)
        return [after[i] for i in moving]

    for turn, before in reversed(list(enumerate(history))):
        back: object = jax.vjp(
            partial(results, turn, before), [before[i] for i in moving], [fixed[i] for i in floating]
        )[1]
        moved, more = back([jnp.asarray(grad) for grad in moved])
        totals = [total + np.asarray(each) for total, each in zip(totals, more, strict=True)]
    return [np.asarray(grad) for grad in (*moved, *totals)]
