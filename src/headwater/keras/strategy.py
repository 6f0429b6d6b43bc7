"""Strategies: the placement of a model's variables, and the number of replicas that share the work of a step.

A program creates a strategy, creates its model within ``with strategy.scope():``, and calls ``fit`` as usual. A
strategy changes models in `Strategy.adopt`; the strategy for one device changes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from headwater.keras.devices import canonical_device, local_device
from headwater.keras.values import ReduceOp, local_values, map_structure, regroup, select, total_of

if TYPE_CHECKING:
    from headwater.cluster.resolvers import ClusterResolver
    from headwater.keras.types import Tree


class _Active(threading.local):
    """The scopes and replicas that this thread has entered."""

    def __init__(self) -> None:
        self.strategies: list[Strategy] = []
        self.replicas: list[ReplicaContext] = []


_active = _Active()


class InputContext:
    """The part of the input that a pipeline must produce.

    Attributes:
      num_input_pipelines: number of pipelines, one for each process.
      input_pipeline_id: the index of this pipeline.
      num_replicas_in_sync: number of replicas that share one step.
    """

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Returns the number of examples of each replica in a step.

        Raises:
          ValueError: the batch cannot be divided equally.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"global_batch_size is {global_batch_size}, which the {self.num_replicas_in_sync} replicas cannot "
                "share equally"
            )
        return global_batch_size // self.num_replicas_in_sync


class DatasetCreator:
    """``tf.keras.utils.experimental.DatasetCreator``: the dataset that a function returns, as data of `fit`.

    Args:
      dataset_fn: takes an `InputContext`. It has to return the whole dataset: `fit` divides it among the workers.
      input_options: not supported.

    Raises:
      TypeError: ``dataset_fn`` is not callable.
      NotImplementedError: there are ``input_options``.
    """

    def __new__(cls, dataset_fn: Callable[[InputContext], object], input_options: object = None) -> Any:
        if not callable(dataset_fn):
            raise TypeError(f"`dataset_fn` for `DatasetCreator` must be a `callable`. Received: {dataset_fn}")
        if input_options is not None:
            raise NotImplementedError("DatasetCreator: input_options are not supported")
        return dataset_fn(InputContext())


class ReplicaContext:
    """The context of a function that `Strategy.run` calls: its replica, and exchanges with other replicas.

    Attributes:
      strategy: the strategy that runs the function.
      replica_id_in_sync_group: the number of this replica among all, from 0.
    """

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: int) -> None:
        self.strategy = strategy
        self.replica_id_in_sync_group = replica_id_in_sync_group

    @property
    def num_replicas_in_sync(self) -> int:
        """Replicas that share one step."""
        return self.strategy.num_replicas_in_sync

    def all_reduce(self, reduce_op: ReduceOp | str, value: object, options: object = None) -> Tree:
        """Returns the sum or mean of ``value`` over all replicas; all of them must call this in the same order."""
        del options
        return self.strategy.all_reduce(ReduceOp.of(reduce_op), value)

    def merge_call(
        self,
        merge_fn: Callable[..., object],
        args: Sequence[Sequence[object]] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> Tree:
        """``merge_fn(strategy, *args, **kwargs)``."""
        with _outside_replica():
            return merge_fn(self.strategy, *args, **(kwargs or {}))

    def __enter__(self) -> ReplicaContext:
        _active.replicas.append(self)
        return self

    def __exit__(self, *_exception: object) -> None:
        _active.replicas.pop()


class StrategyExtended:
    """Further properties of a strategy that programs use: ``strategy.extended``."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Names of the devices of this process that hold replicas."""
        return self._strategy.device_names()

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Names of the devices of this process that hold variables."""
        return self._strategy.device_names()

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process writes the checkpoints of the job."""
        return self._strategy.is_chief

    @property
    def should_save_summary(self) -> bool:
        """Whether this process writes the summaries of the job."""
        return self._strategy.is_chief


class Strategy:
    """The default strategy: one replica, on JAX's default device.

    Other strategies override `num_replicas_in_sync`, `adopt` and further methods as needed.
    """

    @property
    def num_replicas_in_sync(self) -> int:
        """Replicas that share one step: a global batch is divided by this."""
        return 1

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the files of the job: checkpoints, summaries, progress."""
        return True

    @property
    def cluster_resolver(self) -> ClusterResolver | None:
        """The source of the cluster; None for strategies of one process."""
        return None

    @property
    def extended(self) -> StrategyExtended:
        """Further properties, such as the devices of replicas."""
        return StrategyExtended(self)

    def device_names(self) -> tuple[str, ...]:
        """Names of the devices of this process that hold replicas."""
        return ("/device:CPU:0",)

    def adopt(self, model: object) -> None:
        """Adopts a Keras model that is created, loaded or compiled in the scope; may be called again for a model."""
        del model

    def _expect_models(self) -> None:
        """Rejects the training of models from outside the scope, until a model is created in the scope.

        Called if this process trains together with others: each process would train such a model alone.
        """
        from headwater.keras.models import expect_models  # noqa: PLC0415  see `scope`

        expect_models(self, active_strategy)

    def placement(self) -> AbstractContextManager[object]:
        """Returns a context manager that is entered with the scope."""
        return nullcontext()

    @contextmanager
    def scope(self) -> Generator[Strategy]:
        """Context manager in which models that are created, loaded or compiled belong to this strategy.

        Raises:
          RuntimeError: this thread is in the scope of another strategy.
        """
        if _active.strategies and _active.strategies[-1] is not self:
            raise RuntimeError(
                f"the scope of {_active.strategies[-1]!r} is active: leave it before entering another strategy's scope"
            )
        # Importing Keras takes most of a second, so only programs that enter a scope import it.
        from headwater.keras.models import watch_models  # noqa: PLC0415

        watch_models(active_strategy)
        _active.strategies.append(self)
        try:
            with self.placement():
                yield self
        finally:
            _active.strategies.pop()

    def run(
        self,
        fn: Callable[..., object],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        options: object = None,
    ) -> Tree:
        """Calls ``fn`` once for each replica of this process.

        Args:
          fn: the work of one replica; `get_replica_context` returns its context.
          args: arguments of ``fn``; a value per replica is replaced by the replica's own value.
          kwargs: like ``args``, by name.
          options: ignored.

        Returns:
          The result of ``fn``; values per replica if this process has several replicas.
        """
        del options
        outputs: list[Tree] = []
        for index, replica in enumerate(self.local_replicas()):
            with self.scope(), ReplicaContext(self, replica), self.replica_placement(index):
                outputs.append(fn(*select(tuple(args), index), **select(dict(kwargs or {}), index)))
        return regroup(outputs)

    def local_replicas(self) -> Sequence[int]:
        """The numbers of this process's replicas among all."""
        return (0,)

    def replica_placement(self, index: int) -> AbstractContextManager[object]:
        """Returns a context manager for the work of this process's replica ``index``."""
        del index
        return nullcontext()

    def reduce(self, reduce_op: ReduceOp | str, value: object, axis: int | None = None) -> Tree:
        """Returns the sum or mean of the values of all replicas.

        Args:
          reduce_op: ``ReduceOp.SUM``, ``ReduceOp.MEAN`` or its name.
          value: a structure of values, as `run` returns it.
          axis: a dimension over which each value is reduced as well; None to reduce over replicas only.

        Raises:
          ValueError: ``reduce_op`` is neither a sum nor a mean.
        """
        op = ReduceOp.of(reduce_op)

        def reduce_leaf(leaf: object) -> Tree:
            total, count = total_of(local_values(leaf), axis)
            if op is ReduceOp.SUM:
                return self.all_reduce_processes(total)
            return self.all_reduce_processes(total) / self.all_reduce_processes(np.float32(count))

        return map_structure(reduce_leaf, value)

    def all_reduce(self, reduce_op: ReduceOp, value: object) -> Tree:
        """Returns the sum or mean over all replicas of the calling replica's value."""
        scale = self.num_replicas_in_sync if reduce_op is ReduceOp.MEAN else 1

        def reduce_leaf(leaf: object) -> Tree:
            total = self.all_reduce_processes(leaf)
            return total / scale if scale > 1 else total

        return map_structure(reduce_leaf, value)

    def all_reduce_processes(self, value: object) -> Tree:
        """The sum of an array over all processes, each of which must call this."""
        return value

    def gather(self, value: object, axis: int) -> Tree:
        """The values of all replicas, one after the other along ``axis``."""

        def gather_leaf(leaf: Tree) -> Tree:
            return self.gather_processes(np.concatenate(local_values(leaf), axis), axis)

        return map_structure(gather_leaf, value)

    def gather_processes(self, value: object, axis: int) -> Tree:
        """The arrays of all processes, one after the other along ``axis``; each process must call this."""
        del axis
        return value

    def experimental_local_results(self, value: object) -> tuple[object, ...]:
        """The values of this process's replicas."""
        return local_values(value)

    def experimental_distribute_dataset(self, dataset: object, options: object = None) -> object:
        """Returns an iterable of this process's share of each batch of ``dataset``, a dataset of global batches."""
        del options
        return dataset

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], object], options: object = None
    ) -> object:
        """Returns the dataset that ``dataset_fn`` makes for this process; each element is a batch for one replica."""
        del options
        return dataset_fn(InputContext())

    def experimental_distribute_values_from_function(self, value_fn: Callable[[Any], object]) -> Tree:
        """``value_fn(context)`` of each replica of this process."""
        return regroup([value_fn(ReplicaContext(self, replica)) for replica in self.local_replicas()])

    def __repr__(self) -> str:
        return f"<headwater {type(self).__name__}, {self.num_replicas_in_sync} replicas>"


class OneDeviceStrategy(Strategy):
    """One replica, on one device of this process.

    Args:
      device: the name of the device, such as ``"/gpu:0"`` or ``"cpu:0"``.
    """

    def __init__(self, device: str) -> None:
        self._name = canonical_device(device)

    @property
    def device(self) -> Any:
        """JAX's device.

        Raises:
          InvalidArgumentError: this process has no such device.
        """
        return local_device(self._name)

    def device_names(self) -> tuple[str, ...]:
        return (f"/device:{self._name}",)

    def placement(self) -> AbstractContextManager[object]:
        default_device = jax.default_device
        return default_device(self.device)

    def __repr__(self) -> str:
        return f"<headwater OneDeviceStrategy on {self._name}>"


def active_strategy() -> Strategy | None:
    """Returns the strategy of this thread's innermost scope; None outside of scopes."""
    return _active.strategies[-1] if _active.strategies else None


def get_strategy() -> Strategy:
    """Returns the strategy of this thread's innermost scope, or the default strategy."""
    return active_strategy() or _default


def get_loss_reduction() -> ReduceOp:
    """Returns the reduction that combines the losses of several replicas: always a sum."""
    return ReduceOp.SUM


def has_strategy() -> bool:
    """Returns whether this thread is in the scope of a strategy other than the default one."""
    return active_strategy() not in (None, _default)


class _Lasting(threading.local):
    """The scope that `set_strategy` entered in this thread."""

    scope: AbstractContextManager[Strategy] | None = None


_lasting = _Lasting()


def set_strategy(strategy: Strategy | None) -> None:
    """Leaves the scope that the previous call entered, and enters the scope of ``strategy`` until the next call.

    Args:
      strategy: the strategy; None only leaves the previous scope.

    Raises:
      RuntimeError: the call is within ``with strategy.scope()``.
    """
    if _lasting.scope is not None:
        scope, _lasting.scope = _lasting.scope, None
        scope.__exit__(None, None, None)
    if has_strategy():
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    if strategy is not None:
        entered = strategy.scope()
        entered.__enter__()
        _lasting.scope = entered


def get_replica_context() -> ReplicaContext | None:
    """The replica that this thread works for; None in a scope outside of `Strategy.run`."""
    if _active.replicas:
        return _active.replicas[-1]
    return None if has_strategy() else ReplicaContext(_default, 0)


def in_cross_replica_context() -> bool:
    """Returns whether this thread is in a scope, but not in a function that runs for one replica."""
    return get_replica_context() is None


@contextmanager
def _outside_replica() -> Generator[None]:
    """A context in which this thread works for no replica."""
    replicas, _active.replicas = _active.replicas, []
    try:
        yield
    finally:
        _active.replicas = replicas


_default = Strategy()
