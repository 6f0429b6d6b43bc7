"""`SessionManager`: opens sessions with a ready model, by restoring, initialising, or waiting for the chief."""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from headwater.cluster.pauses import pause
from headwater.cluster.transport.waiting import Patience
from headwater.errors import DeadlineExceededError, FailedPreconditionError, GaveUpError, OpError, OutOfRangeError
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.master.targets import local_master
from headwater.tf1.training.checkpoint_state import get_checkpoint_state
from headwater.tf1.training.seals import RESTORE, THIS_PROCESS, Seal, SealDecision, Seals, always_restores, decide
from headwater.tf1.training.supervised_session import LOST, SupervisedSession
from headwater.tf1.variables.variable_lists import global_variables

if TYPE_CHECKING:
    from headwater.graph.session.session import BaseSession
    from headwater.graph.types import FeedDict, OpOrTensor, SessionLike, Structure
    from headwater.tensorboard_protos import ConfigProto, RunOptions
    from headwater.tf1.training.saver import Saver


_logger: Final = logging.getLogger(__name__)
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_LOG_INTERVAL_S: Final = 5.0
_MAX_NAMES: Final = 5


class SessionManager:
    """Opens sessions, and restores, initialises or waits for the model.

    Args:
      local_init_op: initialises the state that belongs to this task; runs in every new session.
      ready_op: computes the names of variables without a value, a vector of strings; None: always ready.
      ready_for_local_init_op: as ``ready_op``, for the variables that ``local_init_op`` needs.
      graph: the graph; the default one if None.
      recovery_wait_secs: most seconds between two checks whether the model is ready.
      local_init_run_options: ``RunOptions`` of ``local_init_op``.
      local_init_feed_dict: values to feed to ``local_init_op``.
      global_step: the variable or tensor that counts steps, to log how many steps a restored checkpoint loses.
    """

    def __init__(
        self,
        local_init_op: OpOrTensor | None = None,
        ready_op: OpOrTensor | None = None,
        ready_for_local_init_op: OpOrTensor | None = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: RunOptions | None = None,
        local_init_feed_dict: FeedDict | None = None,
        global_step: object = None,
    ) -> None:
        self._graph = graph or get_default_graph()
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict
        self._global_step = global_step
        self._training: str | None = None

    def prepare_session(
        self,
        master: str,
        init_op: OpOrTensor | None = None,
        saver: Saver | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
        init_feed_dict: FeedDict | None = None,
        init_fn: Callable[..., Structure] | None = None,
    ) -> SupervisedSession:
        """Returns a session with a ready model: still on the parameter servers, else restored, else initialised.

        A restarted chief continues with the state of the parameter servers if none of them has lost its state since the
        chief's previous incarnation prepared the model, and every variable has a value; see
        `headwater.tf1.training.seals`. ``HEADWATER_RESTORE=always`` in the environment restores or initialises in any
        case.

        Args:
          master: the target of the master.
          init_op: initialises the model; run only if no checkpoint was restored.
          saver: restores; None: nothing is restored.
          checkpoint_dir: folder whose newest checkpoint to restore.
          checkpoint_filename_with_path: a checkpoint to restore, in place of ``checkpoint_dir``.
          wait_for_checkpoint: wait until there is a checkpoint.
          max_wait_secs: longest time to wait, in seconds.
          config: a ``ConfigProto``.
          init_feed_dict: values to feed to ``init_op``.
          init_fn: ``init_fn(session)``, called after ``init_op``.

        Raises:
          RuntimeError: there is no way to initialise, or the model is not ready afterwards; names the variables.
        """
        sess, restored = self._restored_session(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
            prepares=True,
        )
        try:
            if not restored:
                if init_op is None and init_fn is None and self._local_init_op is None:
                    raise RuntimeError("Model is not initialized and no init_op or init_fn or local_init_op was given")
                if init_op is not None:
                    sess.run(init_op, feed_dict=init_feed_dict)
                if init_fn is not None:
                    init_fn(sess)
            for missing, what in ((self._run_local_init(sess), " for local_init"), (self._missing(sess), "")):
                if missing is not None:
                    raise RuntimeError(
                        f"Init operations did not make model ready{what}.  Init op: {_name(init_op)}, init fn: "
                        f"{init_fn}, local_init_op: {_name(self._local_init_op)}, error: {missing}"
                    )
            # Seal last: if this chief is lost before, its next incarnation finds no seals and prepares the model again.
            self._seal(master, config, checkpoint_dir or checkpoint_filename_with_path)
        except BaseException:
            _close(sess)
            raise
        return sess

    def recover_session(
        self,
        master: str,
        saver: Saver | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
    ) -> tuple[SupervisedSession, bool]:
        """Returns a session restored from a checkpoint, and whether its model is ready; see `prepare_session`."""
        sess, restored = self._restored_session(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        missing_local = self._run_local_init(sess)
        if not restored:
            return sess, False
        source = checkpoint_dir or checkpoint_filename_with_path
        if missing_local is not None:
            _logger.info("Restoring model from %s did not make model ready for local init: %s", source, missing_local)
            return sess, False
        missing = self._missing(sess)
        if missing is not None:
            _logger.info("Restoring model from %s did not make model ready: %s", source, missing)
            return sess, False
        _logger.info("Restored model from %s", source)
        self._seal(master, config, source)
        return sess, True

    def rejoin_session(self, master: str, config: ConfigProto | None = None) -> SupervisedSession | None:
        """Returns a session if the model is ready without initialisation, else None.

        Args:
          master: the target of the master.
          config: a ``ConfigProto``.
        """
        sess = SupervisedSession(master, self._graph, config)
        try:
            # Values alone are no evidence of readiness: an interrupted restore may have assigned each variable, too.
            if self._is_whole(master, config) and self._run_local_init(sess) is None and self._missing(sess) is None:
                return sess
        except BaseException:
            _close(sess)
            raise
        _close(sess)
        return None

    def wait_for_session(
        self, master: str, config: ConfigProto | None = None, max_wait_secs: float = math.inf
    ) -> SupervisedSession:
        """Returns a session once the chief has made the model ready.

        Every few seconds a log line names the missing variables and their tasks.

        Args:
          master: the target of the master.
          config: a ``ConfigProto``.
          max_wait_secs: longest time to wait, in seconds.

        Raises:
          DeadlineExceededError: the model is not ready after that time; names the missing variables.
          OutOfRangeError: the model is not ready, and this task was notified that the job has ended.
          UnavailableError: a required task could not be reached for ``HEADWATER_CONNECT_DEADLINE_S``.
        """
        here = local_master(master)
        lost_since: float | None = None
        begin = time.monotonic()
        said = begin - _LOG_INTERVAL_S / 2
        pause_s = _FIRST_PAUSE_S
        sess = None
        while True:
            try:
                if sess is None:
                    sess = SupervisedSession(master, self._graph, config)
                missing = self._run_local_init(sess)
                if missing is None:
                    missing = self._missing(sess)
                # Variables may have values of an unfinished restore: also wait until the chief has sealed them.
                if missing is None:
                    missing = self._being_prepared(master, config)
                if missing is None:
                    return sess
                lost_since = None
            except GaveUpError:
                _close(sess)
                raise
            except LOST as error:
                lost_since = time.monotonic() if lost_since is None else lost_since
                if time.monotonic() - lost_since >= Patience.from_environment().deadline_s:
                    _close(sess)
                    raise
                # The task has not started yet, or has left: a new session may find it.
                _close(sess)
                sess = None
                missing = str(error)
            except BaseException:
                _close(sess)
                raise
            waited = time.monotonic() - begin
            if here is not None and here.over:
                _close(sess)
                raise OutOfRangeError(f"The job is over ({here.over}). {missing}")
            if waited + pause_s > max_wait_secs:
                _close(sess)
                raise DeadlineExceededError(f"Session was not ready after waiting {max_wait_secs:g} secs. {missing}")
            if time.monotonic() - said >= _LOG_INTERVAL_S:
                said = time.monotonic()
                _logger.warning("Waiting for the model to be ready, for %.0f s so far: %s", waited, missing)
            pause(pause_s)
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S, max(self._recovery_wait_secs, _FIRST_PAUSE_S))

    def _restored_session(
        self,
        master: str,
        saver: Any,
        checkpoint_dir: str | None,
        checkpoint_filename_with_path: str | None,
        wait_for_checkpoint: bool,
        max_wait_secs: float,
        config: ConfigProto,
        *,
        prepares: bool = False,
    ) -> tuple[SupervisedSession, bool]:
        """Returns a session, and whether its model was kept or restored; ``prepares``: the caller seals it later."""
        if checkpoint_dir and checkpoint_filename_with_path:
            raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        sess = SupervisedSession(master, self._graph, config)
        try:
            if self._keeps(sess, master, config, checkpoint_dir or checkpoint_filename_with_path, prepares=prepares):
                saved = get_checkpoint_state(checkpoint_dir) if checkpoint_dir else None
                # The saver also has to delete checkpoints of the chief's previous incarnation.
                if saved is not None and saver is not None:
                    saver.recover_last_checkpoints(saved.all_model_checkpoint_paths)
                return sess, True
            if saver is None or not (checkpoint_dir or checkpoint_filename_with_path):
                return sess, False
            if checkpoint_filename_with_path:
                saver.restore(sess, checkpoint_filename_with_path)
                return sess, True
            found = self._checkpoint_in(checkpoint_dir or "", max_wait_secs if wait_for_checkpoint else 0.0)
            if found is None:
                return sess, False
            before = self._step(sess)
            saver.restore(sess, found.model_checkpoint_path)
            self._log_lost_steps(before, self._step(sess), found.model_checkpoint_path)
            saver.recover_last_checkpoints(found.all_model_checkpoint_paths)
        except BaseException:
            _close(sess)
            raise
        return sess, True

    def _is_whole(self, master: str, config: ConfigProto) -> bool:
        """Returns whether the parameter servers hold the model that this chief has prepared.

        In a process that has prepared none: whether no chief is preparing the model.
        """
        if self._training is None:
            return self._being_prepared(master, config) is None
        return self._decide(Seals(master, self._graph, config).read(), None).keep == self._training

    def _being_prepared(self, master: str, config: ConfigProto | None) -> str | None:
        """Returns a message that names tasks whose variables a chief is preparing; None if there are none."""
        tasks = Seals(master, self._graph, config).being_prepared_on()
        return f"The chief is preparing the variables on {', '.join(tasks)}" if tasks else None

    def _decide(self, found: Mapping[str, Seal | None], source: str | None) -> SealDecision:
        """Decides by the seals whether to continue with the training that the parameter servers hold."""
        return decide(found, process=THIS_PROCESS, own=self._training, source=source or "", always=always_restores())

    def _keeps(
        self, sess: SessionLike, master: str, config: ConfigProto, source: str | None, *, prepares: bool
    ) -> bool:
        """Returns whether to continue with the state that the parameter servers hold.

        If not, the seals are removed, so that no other chief considers the state complete, and, if ``prepares``, the
        variables are marked, so that no worker considers the model ready.
        """
        seals = Seals(master, self._graph, config)
        found = seals.read()
        decision = self._decide(found, source)
        if decision.keep is not None and self._has_all_values(sess):
            self._training = decision.keep
            step = self._step(sess)
            _logger.warning(
                "The parameter servers still have the state of this training%s, so training continues from that state "
                "(with %s=always the chief restores the newest checkpoint instead)",
                "" if step is None else f", at step {step}",
                RESTORE,
            )
            return True
        if decision.reason:
            _logger.warning("The model is restored or initialised again: %s", decision.reason)
        if prepares or any(found.values()):
            seals.write(None, prepares=prepares)
        return False

    def _seal(self, master: str, config: ConfigProto, source: str | None) -> None:
        """Seals the ready model, so that a restarted chief may continue with it."""
        self._training = self._training or secrets.token_hex(8)
        seal = Seal(training=self._training, process=THIS_PROCESS, source=source or "")
        Seals(master, self._graph, config).write(seal)

    def _has_all_values(self, sess: SessionLike) -> bool:
        """Returns whether every global variable has a value; False without an operation that reports it."""
        op = self._ready_op if self._ready_op is not None else self._ready_for_local_init_op
        if op is None:
            return False
        try:
            found = sess.run(op)
        except FailedPreconditionError:
            return False
        with self._graph.as_default():
            held = {variable.op.name for variable in global_variables()}
        return _are_names(found) and held.isdisjoint(name.decode() for name in found.ravel())

    def _step(self, sess: SessionLike) -> int | None:
        """Returns the global step; None if there is none, or it has no value."""
        if self._global_step is None:
            return None
        try:
            return int(sess.run(self._global_step))
        except FailedPreconditionError:
            return None

    @staticmethod
    def _log_lost_steps(before: int | None, after: int | None, path: str) -> None:
        if before is not None and after is not None and after < before:
            _logger.warning(
                "Restored step %d from %s; the parameter servers were at step %d: %d steps are lost",
                after,
                path,
                before,
                before - after,
            )

    def _checkpoint_in(self, folder: str, max_wait_secs: float) -> Any:
        deadline = time.monotonic() + max_wait_secs
        while True:
            found = get_checkpoint_state(folder)
            if found is not None and found.model_checkpoint_path:
                return found
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            _logger.info("Waiting for a checkpoint in %s.", folder)
            pause(min(left, self._recovery_wait_secs))

    def _run_local_init(self, sess: BaseSession) -> str | None:
        """Runs ``local_init_op`` if the variables that it needs are ready, else returns a message that names them."""
        if self._local_init_op is None:
            return None
        missing = self._without_value(sess, self._ready_for_local_init_op)
        if missing is None:
            _logger.debug("Running local_init_op.")
            sess.run(self._local_init_op, feed_dict=self._local_init_feed_dict, options=self._local_init_run_options)
        return missing

    def _missing(self, sess: SessionLike) -> str | None:
        """Returns a message that names the variables without a value; None if the model is ready."""
        return self._without_value(sess, self._ready_op)

    def _without_value(self, sess: SessionLike, op: object) -> str | None:
        if op is None:
            return None
        try:
            found = sess.run(op)
        except FailedPreconditionError as error:
            if "uninitialized" not in str(error):
                raise
            return str(error)
        names = list(found.ravel()) if _are_names(found) else []
        return "Variables not initialized: " + self._located([name.decode() for name in names]) if names else None

    def _located(self, names: list[str]) -> str:
        """Describes variables by the task that holds them, with the first few names."""
        by_task: dict[str, list[str]] = {}
        for name in names:
            try:
                device = self._graph.get_operation_by_name(name).device
            except (KeyError, ValueError):
                device = ""
            by_task.setdefault(device, []).append(name)
        parts: list[str] = []
        for device, held in sorted(by_task.items()):
            shown = ", ".join(held[:_MAX_NAMES])
            more = f" and {len(held) - _MAX_NAMES} more" if len(held) > _MAX_NAMES else ""
            parts.append(f"{shown}{more}{f' on {device}' if device else ''}")
        return "; ".join(parts)


def _name(op: object) -> str:
    return "None" if op is None else str(getattr(op, "name", op))


def _close(sess: Any) -> None:
    if sess is not None:
        try:
            sess.close()
        except (OpError, RuntimeError) as error:
            _logger.debug("Ignored exception: %s", error)


def _are_names(found: object) -> bool:
    """Returns whether a ready operation returned names; programs' own may return numbers, which only have to exist."""
    return getattr(getattr(found, "dtype", None), "kind", "") == "O"
