"""`GradientTape`: records operations while it is open, and differentiates them.

All of JAX's computations pass through its current trace. A tape installs a trace of its own in front of it, which
forwards each operation, and records the operation, its arguments and its results. So values stay ordinary arrays, in
eager execution as well as in a function that is being compiled. For a gradient, the operations between sources and
targets run again under `jax.vjp`; in a compiled function, XLA eliminates the duplicate computation.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import keras
from keras import StatelessScope

from headwater.graph.runtime.jax_internals import core
from headwater.keras.internals import get_stateless_scope, in_stateless_scope

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_tree = jax.tree_util
_Variable = keras.Variable
_scope: Any = get_stateless_scope
_in_scope = in_stateless_scope
_stateless = StatelessScope

_NONE = "none"
_ZERO = "zero"


@dataclass(frozen=True, slots=True)
class _Noted:
    """A recorded operation.

    Attributes:
      compute: maps values of the arguments to a list of the results' values.
      arguments: arrays.
      results: arrays.
    """

    compute: Callable[..., Any]
    arguments: Sequence[Any]
    results: Sequence[Tree]


class _NotingTrace(core.Trace):
    """Forwards each operation to another trace, and records it."""

    def __init__(self, below: object, note: Callable[[_Noted], None]) -> None:
        super().__init__()
        self.below: Any = below
        self._note = note
        self.requires_low = False

    def stage_value(self, val: object) -> Tree:
        return self.below.stage_value(val)

    def _run(self, compute: Callable[..., Any], arguments: Sequence[Any], *, several: bool) -> Tree:
        with core.set_current_trace(self.below):
            results = compute(*arguments)

        def as_list(*values: object) -> Tree:
            return compute(*values) if several else [compute(*values)]

        self._note(_Noted(as_list, tuple(arguments), list(results) if several else [results]))
        return results

    def process_primitive(self, primitive: Any, tracers: Sequence[Any], params: Tree, /) -> Tree:
        def compute(*values: object) -> Tree:
            return primitive.bind(*values, **params)

        return self._run(compute, tracers, several=primitive.multiple_results)

    def process_custom_jvp_call(
        self, primitive: object, fun: object, jvp: object, tracers: Sequence[object], /, **settings: object
    ) -> Any:
        return self._run_function(
            lambda trace, *values: trace.process_custom_jvp_call(primitive, fun, jvp, values, **settings), tracers
        )

    def process_custom_vjp_call(
        self, primitive: object, fun: object, fwd: object, bwd: object, tracers: Sequence[object], /, **settings: object
    ) -> Any:
        return self._run_function(
            lambda trace, *values: trace.process_custom_vjp_call(primitive, fun, fwd, bwd, values, **settings), tracers
        )

    def _run_function(self, call: Callable[..., object], arguments: Sequence[object]) -> Tree:
        """Records a function with a custom derivative.

        The function may be traced only once, so it is converted to a jaxpr, which can run repeatedly.
        """
        closed = jax.make_jaxpr(lambda *values: call(core.trace_ctx.trace, *values))(*arguments)
        return self._run(core.jaxpr_as_fun(closed), arguments, several=True)


class GradientTape:
    """Records operations, for `gradient`.

    Args:
      persistent: whether several gradients may be computed.
      watch_accessed_variables: whether trainable variables are watched automatically.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_variables = watch_accessed_variables
        self._noted: list[_Noted] = []
        self._watched: dict[int, object] = {}
        self._variables: dict[int, tuple[Any, dict[int, Any]]] = {}
        self._trace: _NotingTrace | None = None
        self._used = False

    def __enter__(self) -> GradientTape:
        self._open()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._trace is not None:
            self._close()

    def _open(self) -> None:
        if self._trace is not None:
            raise ValueError("Tape is still recording. This can happen if you try to re-enter an already-active tape.")
        self._trace = _NotingTrace(core.trace_ctx.trace, self._noted.append)
        core.trace_ctx.set_trace(self._trace)
        _open_tapes.append(self)

    def _close(self) -> None:
        assert self._trace is not None
        core.trace_ctx.set_trace(self._trace.below)
        _open_tapes.remove(self)
        self._trace = None

    def watch(self, tensor: object) -> None:
        """Watches tensors or variables, so that gradients with respect to them can be computed.

        Raises:
          ValueError: one is not an array or variable.
        """
        for leaf in _flat(tensor):
            if isinstance(leaf, _Variable):
                self._values_of(leaf)
                self._watched[id(leaf)] = leaf
            elif isinstance(leaf, jax.Array):
                self._watched[id(leaf)] = leaf
            else:
                raise ValueError(
                    f"Passed in object {leaf} of type {type(leaf).__name__!r}, not tf.Tensor or tf.Variable"
                )

    def watched_variables(self) -> tuple[object, ...]:
        """The watched variables that have been used so far, in the order of their first use."""
        return tuple(variable for variable, _ in self._variables.values())

    @contextmanager
    def stop_recording(self) -> Generator[None]:
        """A context in which no operations are recorded.

        Raises:
          ValueError: the tape is not open.
        """
        if self._trace is None:
            raise ValueError("Tape is not recording.")
        self._close()
        try:
            yield
        finally:
            self._open()

    def reset(self) -> None:
        """Drops all recorded operations."""
        self._noted.clear()
        self._watched.clear()
        self._variables.clear()

    def changed(self, variable: object) -> None:
        """Notes a variable's value before it changes, so that gradients include operations on the old value."""
        self._values_of(variable)

    def _values_of(self, variable: object) -> dict[int, object]:
        """The values that a variable has had while the tape was open."""
        _, values = self._variables.setdefault(id(variable), (variable, {}))
        value = value_of(variable)
        values[id(value)] = value
        return values

    def gradient(
        self, target: object, sources: object, output_gradients: object = None, unconnected_gradients: object = _NONE
    ) -> Tree:
        """Returns the sum of the gradients of all targets with respect to each of ``sources``.

        Args:
          target: tensors or variables, in a structure.
          sources: tensors or variables, in a structure.
          output_gradients: a factor for the gradient of each target; ones if None.
          unconnected_gradients: ``none`` or ``zero``: the result for a source on which no target depends.

        Returns:
          A structure like ``sources``.

        Raises:
          RuntimeError: the second call on a tape that is not persistent.
        """
        self._use_up("gradients")
        leaves, structure = _tree.tree_flatten(sources, is_leaf=_is_none)
        targets = [_as_array(leaf) for leaf in _flat(target)]
        seeds: list[object] = (
            [None] * len(targets) if output_gradients is None else _flat(output_gradients, keep_none=True)
        )
        found = self._gradients(targets, seeds, leaves)
        if str(getattr(unconnected_gradients, "value", unconnected_gradients)) == _ZERO:
            found = [
                jnp.zeros_like(_as_array(leaf)) if value is None else value
                for leaf, value in zip(leaves, found, strict=True)
            ]
        return _tree.tree_unflatten(structure, found)

    def jacobian(
        self,
        target: object,
        sources: object,
        unconnected_gradients: object = _NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tree:
        """Returns each element's gradient by each of ``sources``: the shape of ``target``, then the source's shape.

        ``parallel_iterations`` and ``experimental_use_pfor`` select how TensorFlow computes the same; they are ignored.
        """
        del parallel_iterations, experimental_use_pfor
        self._use_up("gradients (or Jacobians)")
        leaves, structure = _tree.tree_flatten(sources, is_leaf=_is_none)
        whole = _as_array(target)
        function, positions, values = self._function([whole], leaves)
        zero = str(getattr(unconnected_gradients, "value", unconnected_gradients)) == _ZERO
        found: list[Any] = [
            jnp.zeros((*whole.shape, *_as_array(leaf).shape), whole.dtype) if zero else None for leaf in leaves
        ]
        if values:
            _, pull = jax.vjp(function, *values)
            ones = jnp.eye(whole.size, dtype=whole.dtype).reshape(whole.size, *whole.shape)
            rows = jax.vmap(lambda row: pull([row]))(ones)
            for position, total in _sums(positions, rows):
                found[position] = total.reshape(*whole.shape, *total.shape[1:])
        return _tree.tree_unflatten(structure, found)

    def batch_jacobian(
        self,
        target: object,
        source: object,
        unconnected_gradients: object = _NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> jax.Array | None:
        """Returns the Jacobian of each row of ``target`` by the same row of ``source``."""
        whole = self.jacobian(target, source, unconnected_gradients, parallel_iterations, experimental_use_pfor)
        if whole is None:
            return None
        rank, count = _as_array(target).ndim, _as_array(target).shape[0]
        each = jnp.arange(count)
        return jnp.moveaxis(whole, rank, 1)[each, each]

    def derivative(
        self, target: object, sources: Sequence[object], tangents: Sequence[object], zero: bool
    ) -> jax.Array | None:
        """Returns the derivative of ``target`` in the direction of ``tangents``, one for each of ``sources``.

        Returns:
          An array of the target's shape; if the target depends on no source: zeros if ``zero``, or None.
        """
        whole = _as_array(target)
        function, positions, values = self._function([whole], sources)
        if not values:
            return jnp.zeros_like(whole) if zero else None
        directions = [
            jnp.asarray(_as_array(tangents[at]), jnp.result_type(values[n])) for n, at in enumerate(positions)
        ]
        (found,) = jax.jvp(function, values, directions)[1]
        return found

    def _use_up(self, what: str) -> None:
        if self._used and not self._persistent:
            raise RuntimeError(
                f"A non-persistent GradientTape can only be used to compute one set of {what}: give persistent=True"
            )
        self._used = True

    def _gradients(self, targets: Sequence[Tree], seeds: Sequence[object], leaves: Sequence[object]) -> list[object]:
        differentiable = [at for at, target in enumerate(targets) if _is_floating(target)]
        targets, seeds = [targets[at] for at in differentiable], [seeds[at] for at in differentiable]
        function, positions, values = self._function(targets, leaves)
        found: list[Any] = [None] * len(leaves)
        if values:
            _, pull = jax.vjp(function, *values)
            factors = [
                jnp.ones_like(target)
                if seed is None
                else jnp.broadcast_to(jnp.asarray(_as_array(seed), target.dtype), target.shape)
                for target, seed in zip(targets, seeds, strict=True)
            ]
            for position, total in _sums(positions, pull(factors)):
                found[position] = total
        if not self._persistent:
            self.reset()
        return found

    def _function(
        self, targets: Sequence[object], leaves: Sequence[object]
    ) -> tuple[Callable[..., object], list[int], list[object]]:
        """Returns ``targets`` as a function of the ``leaves`` that any of them depends on.

        Returns:
          The function of values, the position of each value's leaf, and the values. A leaf has several values if it is
          a variable that has changed while the tape was open, and none if no target depends on it.
        """
        noted = list(self._noted)
        made = {id(result) for operation in noted for result in operation.results}
        given: dict[int, tuple[int, Tree]] = {}
        for position, leaf in enumerate(leaves):
            for value in self._values_to_differentiate(leaf, made):
                given[id(value)] = (position, value)
        active = set(given)
        path: list[_Noted] = []
        for operation in noted:
            if any(id(argument) in active for argument in operation.arguments):
                path.append(operation)
                active.update(id(result) for result in operation.results)
        wanted = {id(target) for target in targets}
        kept: list[_Noted] = []
        for operation in reversed(path):
            if any(id(result) in wanted and id(result) not in given for result in operation.results):
                kept.append(operation)
                wanted.update(id(argument) for argument in operation.arguments)
        kept.reverse()
        used = {key: place for key, place in given.items() if key in wanted}

        def function(*values: object) -> list[object]:
            env = dict(zip(used, values, strict=True))
            for operation in kept:
                results = operation.compute(*[env.get(id(argument), argument) for argument in operation.arguments])
                for result, value in zip(operation.results, results, strict=True):
                    if id(result) not in used:
                        env[id(result)] = value
            return [env.get(id(target), target) for target in targets]

        return function, [position for position, _ in used.values()], [value for _, value in used.values()]

    def _values_to_differentiate(self, leaf: object, made: set[int]) -> Iterable[object]:
        if isinstance(leaf, _Variable):
            if id(leaf) not in self._watched and not (self._watch_variables and leaf.trainable):
                return ()
            return [value for value in self._values_of(leaf).values() if _is_floating(value)]
        if leaf is None or isinstance(leaf, str):
            raise ValueError(f"sources must be tensors or variables, not {leaf!r}")
        known = id(leaf) in self._watched or id(leaf) in made
        return [leaf] if known and _is_floating(leaf) else ()


_open_tapes: list[GradientTape] = []


def variable_changes(variable: object) -> None:
    """Notifies all open tapes before a variable changes."""
    for tape in _open_tapes:
        tape.changed(variable)


def value_of(variable: Any) -> Any:
    """Returns the current value of a Keras variable, in the function that is being compiled if there is one."""
    value = _scope().get_current_value(variable) if _in_scope() else None
    if value is not None:
        return value
    return variable.value if variable._value is None else variable._value


def _as_array(value: object) -> Any:
    return (
        value_of(value)
        if isinstance(value, _Variable)
        else value
        if isinstance(value, jax.Array)
        else jnp.asarray(value)
    )


def _is_floating(value: object) -> bool:
    return bool(jnp.issubdtype(jnp.result_type(value), jnp.inexact))


def _is_none(value: object) -> bool:
    return value is None


def _flat(structure: object, *, keep_none: bool = False) -> list[object]:
    return _tree.tree_leaves(structure, is_leaf=_is_none if keep_none else None)


def _sums(positions: Sequence[int], values: Iterable[object]) -> Iterable[tuple[int, Any]]:
    """Adds up the values of each position."""
    sums: dict[int, Any] = {}
    for position, value in zip(positions, values, strict=True):
        sums[position] = sums[position] + value if position in sums else value
    return sums.items()
