"""Strategies for custom training loops: ``strategy.run`` within ``tf.function``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from headwater.cluster.resolvers import TFConfigClusterResolver
from headwater.keras import strategy as base
from headwater.keras.internals import BaseOptimizer, get_stateless_scope, in_stateless_scope
from headwater.keras.mirrored import strategy as mirrored
from headwater.keras.mirrored.lockstep import current
from headwater.keras.strategy import InputContext, ReplicaContext, Strategy, get_replica_context
from headwater.keras.values import PerReplica, ReduceOp, map_structure
from headwater.tf2.data import Distributed
from headwater.tf2.exchange import Processes, sums
from headwater.tf2.function import Function, as_traced
from headwater.tf2.scope import RecordingScope
from headwater.tf2.tape import value_of
from headwater.tf2.tensors import Variable
from headwater.tf2.tracing import RunsInPython, runs_in_python, tracing

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_Variable = keras.Variable
_scope: Any = get_stateless_scope
_in_scope = in_stateless_scope

_SEED = "seed_generator_state"


class Replicating(Strategy):
    """The common part of strategies for custom training loops."""

    def run(
        self,
        fn: Callable[..., object],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        options: object = None,
    ) -> Any:
        """Calls ``fn`` for this process's replica; within a `function`, ``fn`` is compiled with it.

        If the process has several devices, the surrounding function runs as Python.

        Raises:
          NotImplementedError: ``options`` are given, which are for TPUs.
        """
        if options is not None:
            raise NotImplementedError("strategy.run: options are for TPUs, and are not supported: omit them")
        if len(self.local_replicas()) > 1:
            if tracing() is not None:
                # Replicas of one process exchange values within a step, so each runs in its own thread.
                raise RunsInPython("strategy.run has replicas on several devices of this process")
            return super().run(fn, args, kwargs, options)
        if runs_in_python() and tracing() is None:
            # The surrounding function iterates over a dataset, and could not be compiled as a whole.
            return self._compiled(fn)(*args, **dict(kwargs or {}))
        return self._in_replica(fn, args, kwargs)

    def _compiled(self, fn: Callable[..., object]) -> Function:
        known: dict[object, Function] = self.__dict__.setdefault("_functions", {})
        inner = getattr(fn, "python_function", fn)
        cells = getattr(inner, "__closure__", None) or ()
        key = (
            getattr(inner, "__code__", inner),
            tuple(id(cell.cell_contents) for cell in cells),
            id(getattr(inner, "__self__", None)),
        )
        if key not in known:

            def run(*args: object, **kwargs: object) -> Tree:
                return self._in_replica(inner, args, kwargs)

            known[key] = Function(functools.wraps(inner)(run))
        return known[key]

    def _in_replica(
        self, fn: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object] | None
    ) -> Tree:
        with self.scope(), ReplicaContext(self, self.local_replicas()[0]):
            return as_traced(fn)(*args, **dict(kwargs or {}))

    def combine_gradients(
        self, optimizer: object, gradients: Sequence[object], variables: Sequence[keras.Variable]
    ) -> Tree:
        """Combines this replica's gradients with other replicas' into the gradients to apply; None if they are applied
        on other tasks."""
        del optimizer, variables
        return gradients

    def experimental_distribute_dataset(self, dataset: object, options: object = None) -> Tree:
        return Distributed(super().experimental_distribute_dataset(dataset, options))

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], object], options: object = None
    ) -> Tree:
        return Distributed(super().distribute_datasets_from_function(dataset_fn, options))

    experimental_distribute_datasets_from_function = distribute_datasets_from_function


class DefaultStrategy(Replicating):
    """One replica, on JAX's default device."""


class OneDeviceStrategy(Replicating, base.OneDeviceStrategy):
    __doc__ = base.OneDeviceStrategy.__doc__


class _Mirrors(Replicating):
    """Replicas in several processes."""

    _replicas: Any

    @functools.cached_property
    def _processes(self) -> Processes:
        return Processes(self._replicas)

    @functools.cached_property
    def _aligned(self) -> dict[int, Any]:
        return {}

    def _sums(self, values: Sequence[object]) -> list[Any]:
        """The sums over all processes."""
        trace = tracing()
        if trace is not None:
            trace.strategies[id(self)] = self
        return sums(values, self._processes) if self._replicas.processes > 1 else list(values)

    def align(self, variables: Sequence[Any]) -> None:
        """Broadcasts the values of new variables from the first process."""
        if self._replicas.processes == 1:
            return
        new = [v for v in variables if id(v) not in self._aligned and not str(v.path).endswith(_SEED)]
        self._aligned.update((id(variable), variable) for variable in new)
        if new:
            values = self._replicas.broadcast([np.asarray(value_of(v)) for v in new], "values of new variables")
            for variable, value in zip(new, values, strict=True):
                variable._direct_assign(jnp.asarray(value))

    def _in_replica(
        self, fn: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object] | None
    ) -> Tree:
        if self._replicas.processes == 1:
            return super()._in_replica(fn, args, kwargs)
        if tracing() is None:
            self.align([variable for model in self._models for variable in model.variables])
        with self._changes():
            return super()._in_replica(fn, args, kwargs)

    @functools.cached_property
    def _models(self) -> list[Any]:
        return []

    def adopt(self, model: object) -> None:
        super().adopt(model)
        if not any(model is other for other in self._models):
            self._models.append(model)

    @contextmanager
    def _changes(self) -> Generator[None]:
        """A context in which a replica changes variables; at its end, the replicas' values of each are combined."""
        if _in_scope():
            scope = _scope()
            before, outer, scope.written = dict(scope.state_mapping), scope.written, {}
            yield
            own, scope.written = scope.written, {**outer, **scope.written}
            self._combine(scope, list(own.values()), before)
            return
        with RecordingScope() as scope:
            yield
            self._combine(scope, list(scope.written.values()), {})
        for variable in scope.written.values():
            variable._direct_assign(scope.current(variable))

    def _combine(self, scope: Any, changed: Sequence[Any], before: Mapping[int, Any]) -> None:
        summed = [v for v in changed if v.aggregation == "sum" and not str(v.path).endswith(_SEED)]
        averaged = [v for v in changed if v.aggregation == "mean"]
        old = [before.get(id(v), v._value) for v in summed]
        values = [scope.current(v) - was for v, was in zip(summed, old, strict=True)]
        values += [scope.current(v) for v in averaged]
        totals = self._sums(values)
        for variable, was, total in zip(summed, old, totals, strict=False):
            scope.add_update((variable, was + total))
        for variable, total in zip(averaged, totals[len(summed) :], strict=True):
            scope.add_update((variable, (total / self._replicas.processes).astype(total.dtype)))

    def combine_gradients(
        self, optimizer: object, gradients: Sequence[object], variables: Sequence[keras.Variable]
    ) -> Tree:
        del optimizer, variables
        there = [at for at, gradient in enumerate(gradients) if gradient is not None]
        totals = self._sums([gradients[at] for at in there])
        found = list(gradients)
        for at, total in zip(there, totals, strict=True):
            found[at] = total
        return found

    def reduce(self, reduce_op: ReduceOp | str, value: object, axis: int | None = None) -> Tree:
        """Returns the sum or mean of the values of all replicas; see `headwater.keras.strategy.Strategy.reduce`."""
        op = ReduceOp.of(reduce_op)
        if len(self.local_replicas()) > 1:
            return super().reduce(op, value, axis)

        def reduce_leaf(leaf: object) -> object:
            array = _array(leaf)
            count = 1 if axis is None else array.shape[axis]
            array = array if axis is None else jnp.sum(array, axis=axis)
            if op is ReduceOp.SUM:
                return self._sums([array])[0]
            total, number = self._sums([array, jnp.asarray(count, jnp.float32)])
            return total / number.astype(total.dtype)

        return map_structure(reduce_leaf, value)

    def all_reduce(self, reduce_op: ReduceOp, value: object) -> Tree:
        if len(self.local_replicas()) > 1:
            return super().all_reduce(reduce_op, value)
        scale = self._replicas.processes if reduce_op is ReduceOp.MEAN else 1
        return map_structure(lambda leaf: self._sums([jnp.asarray(leaf)])[0] / scale, value)

    def gather(self, value: object, axis: int) -> Tree:
        if tracing() is not None and self._replicas.processes > 1:
            return map_structure(lambda leaf: self._gathered(_array(leaf), axis), value)
        return jax.tree_util.tree_map(jnp.asarray, super().gather(value, axis))

    def _gathered(self, array: Any, axis: int) -> object:
        """Concatenates the processes' equally shaped arrays, computed as a sum of arrays in which the parts of the
        other processes are zeros."""
        parts = [jnp.zeros_like(array)] * self._replicas.processes
        parts[self._replicas.rank] = array
        whole = jnp.concatenate(parts, axis)
        exact = whole.astype(jnp.int32) if whole.dtype == bool else whole
        return self._sums([exact])[0].astype(whole.dtype)


def _array(leaf: object) -> jax.Array:
    return jnp.asarray(value_of(leaf) if isinstance(leaf, _Variable) else leaf)


class MirroredStrategy(_Mirrors, mirrored.MirroredStrategy):
    __doc__ = mirrored.MirroredStrategy.__doc__


class MultiWorkerMirroredStrategy(_Mirrors, mirrored.MultiWorkerMirroredStrategy):
    __doc__ = mirrored.MultiWorkerMirroredStrategy.__doc__

    def __init__(self, cluster_resolver: object = None, communication_options: object = None) -> None:
        super().__init__(communication_options, cluster_resolver)

    @property
    def cluster_resolver(self) -> Any:
        return self._resolver or TFConfigClusterResolver()


class ExperimentalMultiWorkerMirroredStrategy(_Mirrors, mirrored.ExperimentalMultiWorkerMirroredStrategy):
    __doc__ = mirrored.ExperimentalMultiWorkerMirroredStrategy.__doc__

    @property
    def cluster_resolver(self) -> Any:
        return self._resolver or TFConfigClusterResolver()


_default = DefaultStrategy()


def get_strategy() -> Strategy:
    """Returns the strategy of this thread's innermost scope, or the default strategy."""
    return base.active_strategy() or _default


def watch_optimizers() -> None:
    """Patches Keras's optimizers: called in a replica, they apply the combined gradients of all replicas."""
    kind: Any = BaseOptimizer
    if hasattr(kind.apply, "__wrapped__"):
        return
    apply = kind.apply

    @functools.wraps(apply)
    def applied(self: Any, grads: Any, trainable_variables: Any = None) -> Tree:
        context = get_replica_context()
        strategy = context.strategy if context is not None else None
        if isinstance(strategy, Replicating):
            here = current()
            if here is not None:
                lockstep, index = here
                together = functools.partial(_summed, strategy)
                return lockstep.combine(index, grads, lambda all_: apply(self, together(all_), trainable_variables))
            variables = self._trainable_variables if trainable_variables is None else list(trainable_variables)
            grads = strategy.combine_gradients(self, list(grads), variables)
            if grads is None:
                return None
        return apply(self, grads, trainable_variables)

    kind.apply = applied
    keras.mixed_precision.LossScaleOptimizer.apply = _apply_scaled
    watched: tuple[tuple[object, str], ...] = (
        (kind, "record_optimizer"),
        (keras.metrics.Metric, "record_metric"),
        (Variable, "record_variable"),
    )
    for noted, note in watched:
        noted.__init__ = _noting(noted.__init__, note)


def _apply_scaled(self: Any, grads: Any, trainable_variables: Any = None) -> None:
    """Applies gradients of a scaled loss. Keras's own method changes variables in branches that JAX traces.

    Raises:
      NotImplementedError: it is called in one of several replicas.
    """
    context = get_replica_context()
    strategy = context.strategy if context is not None else None
    if isinstance(strategy, Replicating) and (
        strategy.num_replicas_in_sync > 1 or not isinstance(strategy, (DefaultStrategy, OneDeviceStrategy, _Mirrors))
    ):
        raise NotImplementedError(
            "LossScaleOptimizer in a custom training loop with several replicas is not supported: train with the "
            "policy 'mixed_bfloat16', which needs no loss scale, or with fit"
        )
    if not self.built:
        with keras.name_scope(self.name):
            self.build(list(trainable_variables))
        self.built = True
    targets, own = self._trainable_variables, self.variables
    given = dict(zip(map(id, targets if trainable_variables is None else trainable_variables), grads, strict=True))
    values, state = self.stateless_apply(
        [value_of(variable) for variable in own],
        [given.get(id(variable)) for variable in targets],
        [value_of(variable) for variable in targets],
    )
    for variable, value in zip([*targets, *own], [*values, *state], strict=True):
        variable.assign(value)


def _summed(strategy: Strategy, gradients: Sequence[object]) -> list[Any]:
    """Sums gradients over the replicas of this process and of other processes."""
    return [
        None if parts[0] is None else strategy.reduce(ReduceOp.SUM, PerReplica(list(parts)))
        for parts in zip(*gradients, strict=True)
    ]


def _noting(make: Callable[..., None], note: str) -> Callable[..., None]:
    """Wraps ``make``, a constructor, to pass the new object to the active strategy's method ``note``."""

    @functools.wraps(make)
    def made(self: object, *args: object, **kwargs: object) -> None:
        make(self, *args, **kwargs)
        noted = getattr(base.active_strategy(), note, None)
        if noted is not None:
            noted(self)

    return made
