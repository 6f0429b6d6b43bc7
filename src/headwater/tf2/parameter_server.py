"""Custom training loops on parameter servers: `ParameterServerStrategy`, `ClusterCoordinator`, `Server`.

A TensorFlow program has two parts: a ``worker`` or ``ps`` makes a ``Server`` and waits in ``join``, and the chief's
part schedules functions on them. Headwater does not send functions. So ``join`` runs the program again, with the
chief's part, up to the first `ClusterCoordinator.schedule`: by then the task has made the same model, optimizer and
functions. From then on a ``ps`` serves the variables, and a worker calls the functions that the chief schedules.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np

from headwater.cluster.config import ClusterConfigError, TaskConfig, task_config_from_environment
from headwater.cluster.names import TaskName
from headwater.cluster.resolvers import SimpleClusterResolver
from headwater.cluster.spec import ClusterSpec
from headwater.errors import NotFoundError
from headwater.keras.coordinator.calls import CallServer, Registry, name_of
from headwater.keras.coordinator.coordinator import ClusterCoordinator as Coordinator
from headwater.keras.coordinator.coordinator import RemoteValue
from headwater.keras.parameter_server import strategy as served_strategy
from headwater.keras.parameter_server.model import ServedModel
from headwater.keras.strategy import InputContext
from headwater.tf2.data import Distributed
from headwater.tf2.free_variables import FreeVariables
from headwater.tf2.function import Function
from headwater.tf2.strategies import Replicating
from headwater.tf2.tracing import tracing

if TYPE_CHECKING:
    from collections.abc import Mapping

    import keras

    from headwater.cluster.resolvers import ClusterResolver
    from headwater.cluster.transport.channel import Channel
    from headwater.keras.types import Tree

#: Disables tables by rows: a custom loop computes gradients of whole variables.
_NO_TABLES = 1 << 62


class _Own:
    """This process's own task, while its program runs the chief's part."""

    config: TaskConfig | None = None
    #: Tasks with a `Server` in this process. If they are the whole cluster, this process runs all of its tasks.
    made: ClassVar[set[TaskName]] = set()


class Server:
    """A task that waits for the chief's functions.

    Args:
      job_name, task_index: this task.
      protocol: ``grpc``, or None.
      config: a ``ConfigProto`` that sets ``inter_op_parallelism_threads`` only: a task calls one function at a time.
      start: nothing is started before `join`.

    Raises:
      NotImplementedError: ``config`` has other settings, or the protocol is another.
    """

    def __init__(
        self,
        server_or_cluster_def: object,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        del start
        settings = [field.name for field, _ in config.ListFields()] if config is not None else []
        if set(settings) - {"inter_op_parallelism_threads"}:
            raise NotImplementedError(f"tf.distribute.Server: config with {', '.join(settings)} is not supported")
        if protocol not in (None, "grpc"):
            raise NotImplementedError(f"tf.distribute.Server: protocol {protocol!r} is not supported, only 'grpc'")
        self._cluster = ClusterSpec(server_or_cluster_def)
        if job_name is None or task_index is None:
            raise ValueError("tf.distribute.Server needs job_name and task_index")
        self._task = TaskName(job_name, int(task_index))
        _Own.made.add(self._task)

    def join(self) -> None:
        """Runs the program's chief part, which serves from its first ``schedule`` on.

        Raises:
          SystemExit: when the job is over.
          ClusterConfigError: the program does not take its task from ``TF_CONFIG``, or the cluster has no chief.
        """
        if _Own.config is not None:
            raise ClusterConfigError(
                "TF_CONFIG",
                f"{self._task} runs the chief's part of the program, which called Server.join() again: the program "
                "must take its task from TF_CONFIG",
            )
        given = task_config_from_environment()
        if given is None or given.task != self._task:
            raise ClusterConfigError("TF_CONFIG", f"it must name {self._task}, the task of this server")
        if "chief" not in self._cluster.jobs:
            raise ClusterConfigError(
                "TF_CONFIG", "the cluster has no job 'chief', whose program determines the computation"
            )
        _Own.config = given
        config = json.loads(os.environ["TF_CONFIG"])
        config["task"] = {"type": "chief", "index": 0}
        os.environ["TF_CONFIG"] = json.dumps(config)
        path = getattr(sys.modules["__main__"], "__file__", None)
        if path is None:
            raise ClusterConfigError("TF_CONFIG", "the program is not a file, so the chief's part cannot be run again")
        runpy.run_path(path, run_name="__main__")
        raise SystemExit(0)


class ParameterServerStrategy(Replicating, served_strategy.ParameterServerStrategy):
    """Variables on tasks of job ``ps``; workers run the functions that the chief's `ClusterCoordinator` schedules.

    Args:
      cluster_resolver: the source of the cluster; ``TF_CONFIG`` by default. A process that has made a `Server` for each
        task of the cluster runs the whole cluster: a ``ps``, and a thread as the worker.
      variable_partitioner: selects the variables to split by rows among the ``ps``.

    Raises:
      ValueError: the cluster has no ``ps`` or no worker.
    """

    def __init__(self, cluster_resolver: ClusterResolver | None = None, variable_partitioner: Any = None) -> None:
        self._optimizers: list[Any] = []
        self.metrics: list[keras.metrics.Metric] = []
        self._variables: list[Any] = []
        self.free = FreeVariables(self._free_variables, self._free_optimizers)
        self._fresh: set[int] = set()
        self._read: dict[int, np.ndarray[Any, Any]] = {}  # by id, of variables without an optimizer
        own = _Own.config
        if own is not None and own.task is not None:
            whole = SimpleClusterResolver(own.cluster, task_type=own.task.job, task_id=own.task.index)
            super().__init__(whole, variable_partitioner, table_bytes=_NO_TABLES)
        else:
            given = None if _is_within(cluster_resolver) else cluster_resolver
            super().__init__(given, variable_partitioner, table_bytes=_NO_TABLES)
        self.functions: Registry = _Functions(self)
        self.calls: CallServer | None = None
        if self.task is not None and not self.task.members.is_server and not self.is_chief:
            # Serve before functions are registered, so that an early chief waits instead of failing to connect.
            self.calls = CallServer(str(self.task.members.me), self.functions)
            self.task.shell.add_service(self.calls)

    def record_optimizer(self, optimizer: keras.Optimizer) -> None:
        """Records an optimizer that was made in the scope."""
        self._optimizers.append(optimizer)

    def record_metric(self, metric: keras.metrics.Metric) -> None:
        """Records a metric that was made in the scope."""
        self.metrics.append(metric)

    def record_variable(self, variable: object) -> None:
        """Records a variable that the program itself made in the scope."""
        self._variables.append(variable)

    def _free_variables(self) -> list[Any]:
        owners = (*self._models, *self.metrics)
        owned = {id(variable) for owner in owners for variable in owner.variables}
        return [variable for variable in self._variables if id(variable) not in owned]

    def _free_optimizers(self) -> list[Any]:
        self._models_to_serve()  # assigns optimizers of the scope to models without one
        taken = {id(model.optimizer) for model in self._models if getattr(model, "optimizer", None) is not None}
        return [optimizer for optimizer in self._optimizers if id(optimizer) not in taken]

    def _models_to_serve(self) -> list[ServedModel]:
        trained = _outermost([model for model in self._models if model.trainable_variables or not model.built])
        without = [model for model in trained if getattr(model, "optimizer", None) is None]
        taken = {id(model.optimizer) for model in self._models if getattr(model, "optimizer", None) is not None}
        free = [optimizer for optimizer in self._optimizers if id(optimizer) not in taken]
        for model in without:
            if not model.built:
                raise ValueError(f"model {model.name!r} has no variables yet: add an Input, or call its build()")
        if without and len(without) != len(free):
            raise ValueError(
                f"the scope has {len(without)} models without an optimizer and {len(free)} optimizers without a model, "
                "so it is ambiguous which belong together: create one for each model, in the models' order, or pass "
                "each model its own with model.compile(optimizer=...)"
            )
        for model, optimizer in zip(without, free, strict=bool(without)):
            model.optimizer = optimizer
        return super()._models_to_serve()

    def _in_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
        trace = tracing()
        if trace is not None:
            trace.served[id(self)] = self
        else:
            self.read(())
        return super()._in_replica(fn, args, kwargs)

    def read(self, variables: Sequence[Any]) -> None:
        """Sets the models' variables to the values of the ``ps``.

        The answer to the last push contains these values; otherwise they are read. Changes that this worker has since
        made without an optimizer, such as moving averages, are kept, and sent with the next gradients of the model.
        """
        del variables
        for served in self._models_to_serve():
            client = served.connect()
            optimized = len(served.model.trainable_variables)
            if id(client) not in self._fresh:
                client.set_extras(range(optimized, len(served.variables)))
                client.pull()
            self._fresh.discard(id(client))
            for at, (variable, value) in enumerate(zip(served.variables, client.values(), strict=True)):
                if at < optimized:
                    variable._direct_assign(jnp.asarray(value))
                else:
                    there = np.asarray(value)
                    variable._direct_assign(jnp.asarray(there + self._changed(variable), there.dtype))
                    self._read[id(variable)] = there

    def _changed(self, variable: Any) -> Any:
        """This worker's change of a variable since it was read."""
        before = self._read.get(id(variable))
        return 0 if before is None else np.asarray(variable.value) - before

    def write(
        self, optimizer: Any, variables: Sequence[Any], gradients: Sequence[Any], written: Sequence[Any] = ()
    ) -> None:
        """Pushes gradients to the ``ps``, with this worker's changes of variables that no optimizer changes.

        Raises:
          NotImplementedError: the step changes trained variables without the optimizer.
          ValueError: the optimizer was made outside of the scope, or gradients belong to another model.
        """
        everything = self._models_to_serve()
        served = next((served for served in everything if served.model.optimizer is optimizer), None)
        if served is None:
            raise ValueError(f"optimizer {optimizer.name!r} was not made in the strategy's scope")
        trained = {id(variable) for each in everything for variable in each.model.trainable_variables}
        changed = [variable.path for variable in written if id(variable) in trained]
        if changed:
            raise NotImplementedError(
                f"the step changes {', '.join(changed)} directly: on parameter servers, a custom loop must change "
                "trained variables through an optimizer only"
            )
        client = served.connect()
        known = {id(variable): gradient for variable, gradient in zip(variables, gradients, strict=True)}
        arrays = [
            np.asarray(known.pop(id(variable), np.zeros(variable.shape, variable.dtype)))
            for variable in served.model.trainable_variables
        ]
        if known:
            raise ValueError(
                f"optimizer {optimizer.name!r} belongs to model {served.model.name!r}, which does not have "
                f"{len(known)} of the variables that it is to change: models and optimizers of a scope are matched in "
                "the order of their creation, unless model.compile(optimizer=...) is used"
            )
        rest = list(enumerate(served.variables))[len(arrays) :]
        changes = {
            at: np.asarray(self._changed(variable) + np.zeros(variable.shape), variable.dtype) for at, variable in rest
        }
        client.push([*arrays, *[None] * len(rest)], changes=changes)
        for _, variable in rest:
            self._read[id(variable)] = np.asarray(variable.value)
        self._fresh.add(id(client))

    def combine_gradients(self, optimizer: object, gradients: Sequence[object], variables: Sequence[object]) -> Tree:
        if any(optimizer is free for free in self._free_optimizers()):
            return gradients
        pairs = [pair for pair in zip(variables, gradients, strict=True) if pair[1] is not None]
        variables, gradients = [variable for variable, _ in pairs], [gradient for _, gradient in pairs]
        trace = tracing()
        if trace is None:
            self.write(optimizer, variables, gradients)
        else:
            trace.pushes.append((self, optimizer, variables, gradients))

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], object], options: object = None
    ) -> Distributed:
        del options
        members = self.task.members if self.task is not None else None
        others = len(members.workers) - 1 if members is not None else 1
        index = members.number - 1 if members is not None and not members.is_server else 0
        return Distributed(dataset_fn(InputContext(max(others, 1), max(index, 0), 1)))

    def experimental_distribute_dataset(self, dataset: object, options: object = None) -> Tree:
        raise NotImplementedError(
            "on parameter servers, each worker creates its own dataset: "
            "coordinator.create_per_worker_dataset(dataset_fn)"
        )


def _is_within(resolver: Any) -> bool:
    """Returns whether this process is no task of the cluster, but has made a `Server` for each ``ps`` and worker."""
    if resolver is None or resolver.task_type:
        return False
    cluster = ClusterSpec(resolver.cluster_spec())
    tasks = {
        TaskName(job, index) for job in ("ps", "worker") if job in cluster.jobs for index in cluster.task_indices(job)
    }
    return bool(tasks) and tasks <= _Own.made


def _outermost(models: Sequence[Any]) -> list[Any]:
    """Returns the models that are not parts of other models; a model within a `Sequential` is such a part."""
    owned = [{id(variable) for variable in model.trainable_variables} for model in models]

    def is_part(at: int) -> bool:
        mine = owned[at]
        return bool(mine) and any(mine < other or (mine == other and by < at) for by, other in enumerate(owned))

    return [model for at, model in enumerate(models) if not is_part(at)]


class _Functions(Registry):
    """Functions that workers may call: scheduled functions, and the ``tf.function``s of the program.

    Args:
      strategy: the strategy; results include the counts of its metrics.
    """

    def __init__(self, strategy: ParameterServerStrategy) -> None:
        super().__init__()
        self._strategy = strategy
        self._program: dict[str, object] = {}

    def add(self, function: Callable[..., object]) -> str:
        self._program = self._program or getattr(getattr(function, "__wrapped__", function), "__globals__", {})
        return super().add(function)

    def find(self, name: str) -> Callable[..., object]:
        try:
            found = super().find(name)
        except NotFoundError:
            # The chief schedules it at a later line, which this task's program never reaches.
            found = self._program.get(name.rpartition(".")[2])
            if not isinstance(found, Function) or name_of(found) != name:
                raise
        return found if self._strategy.task is None else self._with_changes(found)

    def _with_changes(self, function: Callable[..., object]) -> Callable[..., object]:
        """Wraps ``function`` for free variables and metrics.

        The wrapper takes the values of free variables as its first argument (None to keep the present values). It
        returns the function's result, the changes of metrics, the new values of free variables if the function changes
        them, and how it uses them.
        """

        def call(state: Tree, *args: Sequence[object], **kwargs: Mapping[str, object]) -> Tree:
            free, variables = self._strategy.free, _counts(self._strategy)
            if state is not None:
                free.assign_values(state)
            before = [np.asarray(variable.value) for variable in variables]
            result = function(*args, **kwargs)
            changes = [np.asarray(v.value) - was for v, was in zip(variables, before, strict=True)]
            use = free.use_by(function) if free else "nothing"
            return [result, changes, free.values() if use == "writes" else None, use]

        return call


def _counts(strategy: ParameterServerStrategy) -> list[Any]:
    """The variables of a scope's metrics that are sums."""
    return [v for metric in strategy.metrics for v in metric.variables if v.aggregation == "sum"]


class ClusterCoordinator(Coordinator):
    """Schedules function calls on the next free worker.

    Args:
      strategy: the strategy with the workers.
    """

    def __init__(self, strategy: ParameterServerStrategy) -> None:
        if not isinstance(strategy, ParameterServerStrategy):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError("`ClusterCoordinator` is only for `tf.distribute.ParameterServerStrategy`")
        self._served = strategy
        self._strategy = strategy
        self._registry = strategy.functions
        self._server = strategy.calls
        self._begun = self._server is not None
        self._uses: dict[str, str] = {}
        self._turn = threading.Lock()

    def _start_serving(self) -> None:
        """Starts to serve, once models and functions have been made: a ``ps`` does not return."""
        if not self._begun:
            self._begun = True
            super().__init__(self._served, self._registry)

    def schedule(
        self,
        fn: Callable[..., object],
        args: Sequence[Sequence[object]] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> RemoteValue:
        self._registry.add(fn)
        self._start_serving()
        return super().schedule(fn, args, kwargs)

    def join(self) -> None:
        self._start_serving()
        super().join()

    def done(self) -> bool:
        self._start_serving()
        return super().done()

    def fetch(self, val: object) -> Tree:
        self._start_serving()
        return super().fetch(val)

    def exchange(self, channel: Channel, name: str, args: Any, kwargs: Any) -> Tree:
        if self._served.task is None:
            return super().exchange(channel, name, args, kwargs)
        use = self._uses.get(name, "writes") if self._served.free else "nothing"
        with self._turn if use == "writes" else nullcontext():
            state = None if use == "nothing" else self._served.free.values()
            value, changes, state, use = super().exchange(channel, name, (state, *args), kwargs)
            self._uses[name] = use
            with self._changed:
                for variable, change in zip(_counts(self._served), changes, strict=True):
                    variable._direct_assign(variable.value + jnp.asarray(change))
                if state is not None:
                    self._served.free.assign_values(state)
        return value
