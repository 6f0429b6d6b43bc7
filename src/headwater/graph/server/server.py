"""`Server`: one task of a cluster, reachable for other tasks and clients."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from headwater.cluster.names import TaskName
from headwater.cluster.server_def import ServerDef, make_server_def
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task.lifetime import PS
from headwater.cluster.variables import FIRST_PS, REPLICAS, SHARDS, has_two_copies
from headwater.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from headwater.graph.master.session_config import device_counts, process_settings
from headwater.graph.server.task_server import TaskServer

if TYPE_CHECKING:
    from headwater.tensorboard_protos import ConfigProto


class Server:
    """A task's server.

    >>> from headwater import tf
    >>> server = tf.train.Server.create_local_server()
    >>> with tf.Graph().as_default(), tf.Session(server.target) as session:
    ...     print(session.run(tf.constant(20) + 22))
    42
    >>> server.stop()

    Args:
      server_or_cluster_def: a ``ServerDef``, or a cluster in any form that `ClusterSpec` takes.
      job_name: the task's job; needed if the cluster has several jobs and no ``ServerDef`` is given.
      task_index: the task's index; needed if that job has several tasks and no ``ServerDef`` is given.
      protocol: ``"grpc"`` (the default) sends tensors over channels beside gRPC; ``"grpc+stream"`` sends them inside
        gRPC, for networks that block all other traffic.
      config: a ``ConfigProto``; its ``device_count``, ``gpu_options`` and ``intra_op_parallelism_threads`` are used.
      start: whether to start the server now rather than in `start`.

    Raises:
      ValueError, TypeError: job or task is missing and ambiguous, or an argument has the wrong type.
      InternalError, InvalidArgumentError: the cluster has no such job, or no such task.
      AlreadyExistsError: another process holds the port; the message names it.
      PermissionDeniedError: the server would be reachable from other machines without authentication.
      FailedPreconditionError: the job may change its number of ``ps`` while it runs.
    """

    def __init__(
        self,
        server_or_cluster_def: object,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: ConfigProto | None = None,
        start: bool = True,
    ) -> None:
        self._server_def = _server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        self._cluster = ClusterSpec(self._server_def.cluster)
        self._task = TaskName(self._server_def.job_name, self._server_def.task_index)
        self._running: TaskServer | None = None
        if start:
            self.start()

    @property
    def server_def(self) -> Any:
        """The ``ServerDef``."""
        return self._server_def

    @property
    def target(self) -> str:
        """The target of sessions that use this server: ``grpc://host:port``."""
        return self._require_running().target

    def start(self) -> None:
        """Starts the server; does nothing if it is running."""
        if self._running is None:
            _require_fixed_servers(self._cluster)
            config = self._server_def.default_session_config
            self._running = TaskServer(
                self._cluster,
                self._task,
                inside_grpc=self._server_def.protocol == INSIDE_GRPC,
                device_counts=device_counts(config),
                settings=process_settings(config),
            )
            atexit.register(self._running.answer_all)
            if self._running.shell.is_chief:
                atexit.register(self._announce_end)
            elif self._task.job != PS:
                atexit.register(self._running.announce_departure)

    def join(self) -> None:
        """Waits until the job is over or the process receives SIGTERM.

        The job is over when the program of the chief (``/job:chief/task:0``, or ``/job:worker/task:0`` if there is
        no chief) has ended without an error after it has run sessions, and every other worker has connected and ended,
        too.

        In the main thread, SIGTERM ends the wait; then this method raises SystemExit with code 0, because programs
        assume that it never returns: the code after the call may be meant for workers only. In another thread it
        returns. Ctrl-C raises KeyboardInterrupt.
        """
        self._require_running().shell.wait_until_over()
        self.stop()
        if threading.current_thread() is threading.main_thread():
            raise SystemExit(0)

    def _announce_end(self) -> None:
        """At exit of the chief: declares the job over, unless the program has failed."""
        if self._running is not None and getattr(sys, "last_value", None) is None:
            self._running.announce_end()

    def stop(self) -> None:
        """Stops the server and frees its port. Its state is lost."""
        atexit.unregister(self._announce_end)
        if self._running is not None:
            atexit.unregister(self._running.answer_all)
            atexit.unregister(self._running.announce_departure)
            self._running.stop()

    def _require_running(self) -> TaskServer:
        if self._running is None:
            raise FailedPreconditionError(f"the server of {self._task} is not started")
        return self._running

    @staticmethod
    def create_local_server(config: ConfigProto | None = None, start: bool = True) -> Server:
        """Creates a server of a cluster of one task, at a port that the system chooses."""
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)


def _require_fixed_servers(cluster: ClusterSpec) -> None:
    """Raises FailedPreconditionError if the number of ``ps`` may change and variables are not replicated: variables of
    graphs do not move, so a removed ``ps`` would lose its variables."""
    shards, first = os.environ.get(SHARDS, ""), os.environ.get(FIRST_PS, "")
    if not shards or PS not in cluster.jobs or has_two_copies():
        return
    begins = f" begins with {first} ps, and" if first else ""
    raise FailedPreconditionError(
        f"this job{begins} lets its number of ps change while it runs ({SHARDS}={shards}), and this program builds "
        f"graphs, whose variables can move to another ps only if they are replicated. Set {REPLICAS}=2 for all tasks "
        "of the job (in its file, under 'env'), with at least 2 ps; or give the job a fixed number of ps (in its file, "
        f"'ps: 2' instead of a range such as 'ps: 2:4'); or, without a job file, remove {SHARDS} from the environment"
    )


INSIDE_GRPC = "grpc+stream"
_PROTOCOLS = ("grpc", INSIDE_GRPC)


def _server_def(
    source: object, job_name: str | None, task_index: int | None, protocol: str | None, config: object
) -> Any:
    if isinstance(source, ServerDef):
        made: Any = ServerDef()
        made.CopyFrom(source)
        cluster = ClusterSpec(made.cluster)
        job_name = job_name or made.job_name or None
        task_index = made.task_index if task_index is None else task_index
        protocol = protocol or made.protocol or None
        config = config if config is not None else made.default_session_config
    else:
        try:
            cluster = ClusterSpec(source)
        except TypeError:
            raise TypeError(
                "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or `tf.train.ClusterSpec`."
            ) from None
    if job_name is None:
        if len(cluster.jobs) != 1:
            raise ValueError("Must specify an explicit `job_name`.")
        job_name = cluster.jobs[0]
    if job_name not in cluster.jobs:
        raise InternalError(f'Job "{job_name}" was not defined in cluster: {cluster.jobs}')
    if task_index is None:
        indices = cluster.task_indices(job_name)
        if len(indices) != 1:
            raise ValueError("Must specify an explicit `task_index`.")
        task_index = indices[0]
    if task_index not in cluster.task_indices(job_name):
        raise InvalidArgumentError(f'Task {task_index} was not defined in job "{job_name}"')
    if protocol not in (None, *_PROTOCOLS):
        raise ValueError(f"protocol must be one of {', '.join(_PROTOCOLS)}, not {protocol!r}")
    return make_server_def(cluster, TaskName(job_name, task_index), protocol=protocol or "grpc", config=config)
