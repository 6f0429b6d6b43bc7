"""`Supervisor`: manages a training run, from the first session to the last checkpoint.

The chief initialises or restores the model and runs services: summaries, the step counter, checkpoints. The other
workers wait until the model is ready, and log which variables are missing.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from headwater.cluster.telemetry.troubles import TROUBLES
from headwater.errors import OpError
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.tensorboard_protos import event_pb2
from headwater.tf1.training.accounted import require_accounted
from headwater.tf1.training.coordinator import Coordinator, LooperThread
from headwater.tf1.training.file_writer import FileWriter
from headwater.tf1.training.meta_graph import make_meta_graph
from headwater.tf1.training.preemption import SaveOnSigterm
from headwater.tf1.training.progress import GlobalStepThread, progress_reporter, report_end
from headwater.tf1.training.saver import Saver
from headwater.tf1.training.scaffold import Scaffold, merged_summaries
from headwater.tf1.training.session_manager import SessionManager
from headwater.tf1.training.supervised_session import SupervisedSession
from headwater.tf1.training.supervisor_services import SVStepCounterThread, SVSummaryThread, SVTimerCheckpointThread
from headwater.tf1.training.training_util import global_step as read_global_step
from headwater.tf1.training.training_util import write_graph
from headwater.tf1.variables.variable_lists import (
    global_variables,
    global_variables_initializer,
    report_uninitialized_variables,
)

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import FeedDict, GraphTensor, OpOrTensor, SessionLike, TensorLike
    from headwater.tensorboard_protos import ConfigProto, RunOptions, Summary
    from headwater.tf1.training.coordinator import ExcInfo
    from headwater.tf1.training.queue_runner import QueueRunner


_logger: Final = logging.getLogger(__name__)


class Supervisor:
    """Manages a training run.

    ::

        sv = tf.train.Supervisor(is_chief=task == 0, logdir="/tmp/run")
        with sv.managed_session(server.target) as sess:
            while not sv.should_stop():
                sess.run(train_op)

    Arguments with the value ``USE_DEFAULT`` are taken from the graph's collection of the same name, or else made. The
    graph is then finalized.

    Args:
      graph: the graph; the default one if None.
      ready_op: computes the names of variables without a value, a vector of strings; by default
        `report_uninitialized_variables`. None: the model counts as ready.
      ready_for_local_init_op: as ``ready_op``, for the variables that ``local_init_op`` needs; None by default.
      is_chief: whether this task initialises, restores, saves and summarises.
      init_op: initialises the model if there is no checkpoint; all global variables by default.
      init_feed_dict: values to feed to ``init_op``.
      local_init_op: initialises the state of this task alone, in every session; all local variables by default.
      logdir: folder of checkpoints and events; None: neither is written.
      summary_op: the summaries that `SVSummaryThread` records; all summaries of the graph by default. None: no such
        thread.
      saver: saves and restores; a `Saver` of all variables by default. None: neither.
      global_step: counts the steps of all workers; the graph's ``global_step`` by default.
      save_summaries_secs: seconds between two summaries; 0: none.
      save_model_secs: seconds between two checkpoints; 0: none.
      recovery_wait_secs: most seconds between two checks of a waiting worker.
      stop_grace_secs: seconds that threads may take to stop.
      checkpoint_basename: file name of the checkpoints in ``logdir``.
      session_manager: opens the sessions; a `SessionManager` with these settings by default.
      summary_writer: writes events; a `FileWriter` to ``logdir`` by default, on the chief only. None: no events.
      init_fn: ``init_fn(session)``, called after ``init_op``.
      local_init_run_options: ``RunOptions`` of ``local_init_op``.

    Raises:
      ValueError: a variable of a task that is not the chief has no device.

    Attributes:
      coord: the coordinator of all threads.
      summary_writer: the writer of events; None on tasks other than the chief.
      save_summaries_secs: seconds between two summaries.
      save_model_secs: seconds between two checkpoints.
      save_path: path of the checkpoints, without the step.
    """

    USE_DEFAULT: ClassVar[int] = 0

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: OpOrTensor | int | None = USE_DEFAULT,
        ready_for_local_init_op: OpOrTensor | int | None = USE_DEFAULT,
        is_chief: bool = True,
        init_op: OpOrTensor | int | None = USE_DEFAULT,
        init_feed_dict: FeedDict | None = None,
        local_init_op: OpOrTensor | int | None = USE_DEFAULT,
        logdir: str | None = None,
        summary_op: OpOrTensor | int | None = USE_DEFAULT,
        saver: Saver | int | None = USE_DEFAULT,
        global_step: TensorLike | None = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: FileWriter | int | None = USE_DEFAULT,
        init_fn: Callable[[SessionLike], object] | None = None,
        local_init_run_options: RunOptions | None = None,
    ) -> None:
        self._graph = graph or get_default_graph()
        require_accounted(self._graph)
        self.is_chief: bool = is_chief
        with self._graph.as_default():
            self.ready_op: OpOrTensor | None = self._chosen(
                ready_op, GraphKeys.READY_OP, report_uninitialized_variables
            )
            self.ready_for_local_init_op: OpOrTensor | None = self._chosen(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, None
            )
            self.init_op: OpOrTensor | None = self._chosen(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self._local_init_op = self._chosen(local_init_op, GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op)
            self.saver: Saver | Any = self._chosen(
                saver, GraphKeys.SAVERS, lambda: Saver() if global_variables() else None
            )
            self.summary_op: OpOrTensor | None = self._chosen(summary_op, GraphKeys.SUMMARY_OP, merged_summaries)
            self.global_step: GraphTensor | None = self._chosen(
                global_step, GraphKeys.GLOBAL_STEP, self._default_global_step
            )
        self.init_feed_dict: FeedDict | None = init_feed_dict
        self._init_fn = init_fn
        self.coord: Coordinator = Coordinator()
        self._stop_grace_secs = stop_grace_secs
        # Only the chief runs services and writes files.
        self._logdir = logdir if is_chief else None
        self.save_summaries_secs: float | None = save_summaries_secs if is_chief else None
        self.save_model_secs: float | None = save_model_secs if is_chief else None
        self.save_path: str | Any = os.path.join(logdir, checkpoint_basename) if is_chief and logdir else None
        self.summary_writer: FileWriter | Any = None
        if is_chief and not isinstance(summary_writer, int):
            self.summary_writer = summary_writer
        elif self._logdir and summary_writer == self.USE_DEFAULT:
            self.summary_writer = FileWriter(self._logdir)
        self._writer_open = self.summary_writer is not None
        self._graph_added_to_summary = False
        self._at_sigterm: SaveOnSigterm | None = None
        self.session_manager: SessionManager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self.ready_op,
            ready_for_local_init_op=self.ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
            global_step=self.global_step,
        )
        self._verify_setup()
        self._graph.finalize()

    # Arguments and their defaults -------------------------------------------------------------------------------

    def _chosen(self, given: object, collection: str, make: Callable[[], object] | None) -> Any:
        """Returns ``given`` unless it is ``USE_DEFAULT``, else the collection's first item, or adds a new one."""
        # Check the type first: for a variable or tensor, == would add an operation.
        if not (isinstance(given, int) and given == self.USE_DEFAULT):
            return given
        collected = self._graph.get_collection(collection)
        if collected:
            return collected[0]
        made = make() if make is not None else None
        if made is not None:
            self._graph.add_to_collection(collection, made)
        return made

    def _default_global_step(self) -> Tensor | None:
        try:
            found = self._graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
        if found.dtype.base_dtype.is_integer:
            return found
        _logger.warning("Found 'global_step' but is not an int type: %s", found.dtype)
        return None

    def _verify_setup(self) -> None:
        """Raises ValueError if a variable has no device: every worker would have its own copy of it."""
        if self.is_chief:
            return
        for op in self._graph.get_operations():
            if op.type in ("Variable", "VariableV2") and not op.device:
                raise ValueError(f"When using replicas, all Variables must have their device set: {op.name}")

    # Sessions ---------------------------------------------------------------------------------------------------

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> SupervisedSession:
        """Returns a session whose model is ready: the chief prepares the model, the other workers wait.

        When a task is lost, a step waits until the model is ready again, and is retried: if variables were lost with
        the task, the chief restores the newest checkpoint, or initialises if there is none.

        Args:
          master: the target of the master: empty, or a server's.
          config: a ``ConfigProto``.
          wait_for_checkpoint: the chief waits for a checkpoint instead of initialising.
          max_wait_secs: longest time to wait, in seconds.
          start_standard_services: start the chief's services, and all queue runners.

        Raises:
          DeadlineExceededError: the model is not ready after ``max_wait_secs``.
          RuntimeError: the chief's initialisation left variables without a value.
        """
        self.coord.clear_stop()
        if self.summary_writer is not None:
            self.summary_writer.reopen()
            self._writer_open = True
        sess = self._ready_session(master, config, wait_for_checkpoint, max_wait_secs)
        if isinstance(sess, SupervisedSession):  # pyright: ignore[reportUnnecessaryIsInstance]  of a program's manager
            sess.recover_with(lambda: self._session_after_loss(master, config, max_wait_secs))
        if self.is_chief:
            self._write_graph()
            if start_standard_services:
                _logger.info("Starting standard services.")
                self.start_standard_services(sess)
        if start_standard_services:
            _logger.info("Starting queue runners.")
            self.start_queue_runners(sess)
            if self.global_step is not None and progress_reporter().listening:
                GlobalStepThread(self.coord, sess, self.global_step).start()
        return sess

    PrepareSession = prepare_or_wait_for_session

    def _ready_session(
        self, master: str, config: ConfigProto, wait_for_checkpoint: bool, max_wait_secs: float
    ) -> SupervisedSession:
        if not self.is_chief:
            return self.session_manager.wait_for_session(master, config=config, max_wait_secs=max_wait_secs)
        return self.session_manager.prepare_session(
            master,
            init_op=self.init_op,
            saver=self.saver,
            checkpoint_dir=self._logdir,
            wait_for_checkpoint=wait_for_checkpoint,
            max_wait_secs=max_wait_secs,
            config=config,
            init_feed_dict=self.init_feed_dict,
            init_fn=self._init_fn,
        )

    def _session_after_loss(self, master: str, config: ConfigProto, max_wait_secs: float) -> SupervisedSession:
        """Returns a new session after a loss: continues with complete state, otherwise prepares the model again."""
        if self.is_chief:
            sess = self.session_manager.rejoin_session(master, config)
            if sess is not None:
                return sess
        return self._ready_session(master, config, False, max_wait_secs)

    @contextmanager
    def managed_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Generator[SupervisedSession]:
        """A session for the block, with all services; see `prepare_or_wait_for_session`.

        At the end of the block the services stop and the session is closed. An error of the block or of a service is
        raised after that, except for `OutOfRangeError`, which is the end of the input.
        """
        sess: SupervisedSession | None = None
        try:
            sess = self.prepare_or_wait_for_session(
                master=master, config=config, start_standard_services=start_standard_services
            )
            yield sess
            report_end(sess, self.global_step)
        except Exception as error:  # noqa: BLE001 - raised again where the threads are joined
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                # Closing the session ends steps that still wait in it, such as a service's.
                if sess is not None:
                    try:
                        sess.close()
                    except (OpError, RuntimeError) as error:
                        _logger.debug("Ignored exception: %s", error)

    def _write_graph(self) -> None:
        """Writes the graph to ``logdir`` and to the events."""
        if self._logdir:
            with TROUBLES.record_full_disk(f"graph.pbtxt in {self._logdir}", "Training continues without it"):
                write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self.summary_writer is not None and not self._graph_added_to_summary:
            self.summary_writer.add_graph(self._graph)
            self.summary_writer.add_meta_graph(make_meta_graph(self._graph, saver=self.saver))
            self._graph_added_to_summary = True

    # Services ---------------------------------------------------------------------------------------------------

    def start_standard_services(self, sess: SessionLike) -> list[LooperThread] | None:
        """Starts the chief's threads: summaries, the step counter, checkpoints. From then on SIGTERM saves a checkpoint
        before it ends the process, unless the program handles it itself.

        Returns:
          The threads; None without a ``logdir``.

        Raises:
          RuntimeError: this is not the chief.
        """
        if not self.is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief supervisors can write events."
            )
        if not self._logdir:
            _logger.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        if self.global_step is not None and self.summary_writer is not None:
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self.summary_writer.add_session_log(start, read_global_step(sess, self.global_step))
        threads: list[LooperThread] = []
        if self.save_summaries_secs and self.summary_writer is not None:
            if self.summary_op is not None:
                threads.append(SVSummaryThread(self, sess))
            if self.global_step is not None:
                threads.append(SVStepCounterThread(self, sess))
        if self.saver is not None and self.save_model_secs:
            threads.append(SVTimerCheckpointThread(self, sess))
        if self.saver is not None:
            self._at_sigterm = SaveOnSigterm(
                lambda: self.saver.save(sess, self.save_path, global_step=self.global_step)
            )
            self._at_sigterm.install()
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(
        self, sess: SessionLike, queue_runners: Iterable[QueueRunner] | None = None
    ) -> list[threading.Thread]:
        """Starts the threads of ``queue_runners``, or of all in the graph."""
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        threads: list[threading.Thread] = []
        for runner in queue_runners:
            threads.extend(runner.create_threads(sess, coord=self.coord, daemon=True, start=True))
        return threads

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., object],
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls ``target`` at an interval of seconds until the coordinator stops."""
        return LooperThread.loop(self.coord, timer_interval_secs, target, args, kwargs)

    def summary_computed(
        self, sess: SessionLike, summary: Summary | bytes, global_step: TensorLike | None = None
    ) -> None:
        """Writes a summary that the program has computed.

        Args:
          summary: a ``Summary``, or its bytes as computed by a summary operation.
          global_step: the step it is of; read from ``sess`` if None.

        Raises:
          RuntimeError: there is no summary writer.
        """
        if self.summary_writer is None:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self.global_step is not None:
            global_step = read_global_step(sess, self.global_step)
        self.summary_writer.add_summary(summary, global_step)

    # Stopping ---------------------------------------------------------------------------------------------------

    def request_stop(self, ex: BaseException | ExcInfo | None = None) -> None:
        """Asks all threads to stop; see `Coordinator.request_stop`."""
        self.coord.request_stop(ex=ex)

    def should_stop(self) -> bool:
        """Returns whether a stop was requested."""
        return self.coord.should_stop()

    def stop_on_exception(self) -> AbstractContextManager[None]:
        """Returns a context that turns an error of its block into a stop request."""
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until a stop is requested."""
        self.coord.wait_for_stop()

    def stop(
        self,
        threads: Iterable[threading.Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stops all services and waits for them.

        Args:
          threads: to wait for besides the services.
          close_summary_writer: close it.
          ignore_live_threads: only log threads that do not stop in time.

        Raises:
          BaseException: the first error that a thread left.
          RuntimeError: threads that do not stop in time.
        """
        if self._at_sigterm is not None:
            self._at_sigterm.remove()
        self.coord.request_stop()
        try:
            self.coord.join(
                threads, stop_grace_period_secs=self._stop_grace_secs, ignore_live_threads=ignore_live_threads
            )
        finally:
            # A second call, as after `managed_session`, finds the writer closed.
            if close_summary_writer and self.summary_writer is not None and self._writer_open:
                self.summary_writer.add_session_log(event_pb2.SessionLog(status=event_pb2.SessionLog.STOP))
                self.summary_writer.close()
                self._writer_open = False
                self._graph_added_to_summary = False

    Loop = loop
    RequestStop = request_stop
    ShouldStop = should_stop
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    StopOnException = stop_on_exception
    SummaryComputed = summary_computed
    WaitForStop = wait_for_stop
