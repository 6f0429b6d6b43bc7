"""Placement of operations in between-graph replication: variables on ``ps`` tasks, other operations on the worker."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from headwater.cluster.devices import Device, parse_device
from headwater.cluster.spec import ClusterSpec
from headwater.dtypes import as_dtype
from headwater.graph.operation import Operation
from headwater.shapes import as_shape

PS_OPS = (
    "AutoReloadVariable",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "MutableHashTable",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableHashTableV2",
    "ResourceConditionalAccumulator",
    "VarHandleOp",
    "Variable",
    "VariableV2",
)
"""Operation types that hold state and so belong on a ``ps`` task: the list of TensorFlow 1.15."""

Strategy = Callable[[Operation], int]


class RoundRobinStrategy:
    """Assigns variables cyclically to tasks 0, 1, 2 …, in the order of their creation.

    All workers must make them in the same order.

    Args:
      num_tasks: number of ``ps`` tasks.
    """

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks = num_tasks
        self._next = 0

    def __call__(self, op: Operation) -> int:
        task = self._next
        self._next = (task + 1) % self._num_tasks
        return task


class GreedyLoadBalancingStrategy:
    """Assigns variables to the task with the least load so far; ties are resolved by the lowest index.

    All workers must create the variables in the same order.

    Args:
      num_tasks: number of ``ps`` tasks.
      load_fn: the load that an operation adds, e.g. `byte_size_load_fn`.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Operation], float]) -> None:
        self._load_fn = load_fn
        self._loads = [0.0] * num_tasks

    def __call__(self, op: Operation) -> int:
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


class RandomStrategy:
    """Assigns variables to random tasks, with a seed that all workers share.

    Args:
      num_ps_tasks: number of ``ps`` tasks.
      seed: the seed of the sequence.
    """

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_ps_tasks
        self._random = random.Random(seed)

    def __call__(self, op: Operation) -> int:
        return self._random.randrange(self._num_tasks)


def byte_size_load_fn(op: Operation) -> float:
    """Returns the size in bytes of the variable that ``op`` creates.

    Raises:
      ValueError: its shape is not fully known.
    """
    shape = as_shape(op.get_attr("shape"))
    shape.assert_is_fully_defined()
    return float((shape.num_elements() or 0) * as_dtype(op.get_attr("dtype")).size)


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: ClusterSpec | Mapping[str, object] | object = None,
    ps_ops: Iterable[str] | None = None,
    ps_strategy: Strategy | None = None,
) -> Callable[[Operation], str] | None:
    """Returns a function for `tf.device` that places one worker's graph (between-graph replication).

    Operations that hold state are placed on the ``ps`` tasks that ``ps_strategy`` chooses, all others on
    ``worker_device``. Inner device scopes take precedence.

    >>> from headwater import tf
    >>> with tf.Graph().as_default():
    ...     with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:1")):
    ...         w, b = tf.Variable(0.0), tf.Variable(0.0)
    ...         y = w + b
    ...     print(w.device, b.device, y.device)
    /job:ps/task:0 /job:ps/task:1 /job:worker/task:1

    Args:
      ps_tasks: number of ``ps`` tasks; ignored if ``cluster`` is given.
      ps_device: device of the ``ps`` job; the task is added. Empty: state stays on the worker.
      worker_device: this worker's device.
      merge_devices: complete partially specified devices; False: leave any specified device unchanged.
      cluster: a `ClusterSpec`, or an argument of its constructor.
      ps_ops: operation types that hold state; `PS_OPS` if None.
      ps_strategy: returns the ``ps`` task of an operation; round robin if None.

    Returns:
      The function, or None without ``ps`` tasks, so that `tf.device` changes nothing.

    Raises:
      TypeError: ``cluster`` is not a cluster, or ``ps_strategy`` is not callable.
    """
    if cluster is not None:
        job = parse_device(ps_device).job
        jobs = ClusterSpec(cluster).as_dict()
        if job not in jobs:
            return None
        ps_tasks = len(jobs[job])
    if ps_tasks == 0:
        return None
    if ps_strategy is None:
        ps_strategy = RoundRobinStrategy(ps_tasks)
    if not callable(ps_strategy):
        raise TypeError("ps_strategy must be callable")
    held = frozenset(PS_OPS if ps_ops is None else ps_ops)
    return _Chooser(ps_device, worker_device, merge_devices, held, ps_strategy)


class _Chooser:
    def __init__(
        self, ps_device: str, worker_device: str, merge: bool, ps_ops: frozenset[str], strategy: Strategy
    ) -> None:
        self._ps = parse_device(ps_device or "")
        self._worker = parse_device(worker_device or "")
        self._has_ps = bool(ps_device)
        self._merge = merge
        self._ps_ops = ps_ops
        self._strategy = strategy

    @property
    def first_ps(self) -> str:
        """Returns the first of the tasks that hold state; empty without such tasks."""
        return self._ps._replace(task=0).name() if self._has_ps else ""

    def __call__(self, op: Operation) -> str:
        if op.device and not self._merge:
            return op.device
        asked: Device = parse_device(op.device)
        if not self._has_ps or op.type not in self._ps_ops:
            return asked.over(self._worker).name()
        if self._ps.job and asked.job in (None, self._ps.job):
            return asked.over(self._ps._replace(task=self._strategy(op))).name()
        return asked.over(self._ps).name()
