"""The threads that a chief's `Supervisor` runs concurrently with training."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any, Final

from headwater.tensorboard_protos import event_pb2, summary_pb2
from headwater.tf1.training.coordinator import LooperThread
from headwater.tf1.training.saving_attempts import SavingAttempts
from headwater.tf1.training.training_util import global_step as read_global_step

if TYPE_CHECKING:
    from headwater.tf1.training.supervisor import Supervisor
    from headwater.tf1.variables.variables import Variable

_logger: Final = logging.getLogger(__name__)


class SVSummaryThread(LooperThread):
    """Records the summary operation every ``save_summaries_secs``."""

    def __init__(self, sv: Supervisor, sess: Any) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv = sv
        self._sess = sess

    def run_loop(self) -> None:
        sv = self._sv
        if sv.global_step is None:
            summaries, step = self._sess.run(sv.summary_op), None
        else:
            summaries, step = self._sess.run([sv.summary_op, sv.global_step])
        if sv.summary_writer is not None:
            _logger.info("Recording summary at step %s.", step)
            sv.summary_writer.add_summary(summaries, step)


class SVStepCounterThread(LooperThread):
    """Records the steps per second of all workers together, as ``<global step>/sec``, every ``save_summaries_secs``.

    Args:
      step_counter: the variable that counts steps; the supervisor's global step if None.
    """

    def __init__(self, sv: Supervisor, sess: Any, step_counter: Variable | None = None) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv = sv
        self._sess = sess
        counter: Any = sv.global_step if step_counter is None else step_counter
        self._step_counter: Variable = counter
        self._summary_tag = f"{self._step_counter.op.name}/sec"
        self._last_time = 0.0
        self._last_step = 0

    def start_loop(self) -> None:
        self._last_time = time.monotonic()
        self._last_step = read_global_step(self._sess, self._step_counter)

    def run_loop(self) -> None:
        step = read_global_step(self._sess, self._step_counter)
        now = time.monotonic()
        added, elapsed = step - self._last_step, now - self._last_time
        self._last_step, self._last_time = step, now
        speed = added / elapsed if elapsed > 0 else math.inf
        summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=self._summary_tag, simple_value=speed)])
        if self._sv.summary_writer is not None:
            self._sv.summary_writer.add_summary(summary, step)
        _logger.info("%s: %g", self._summary_tag, speed)


class SVTimerCheckpointThread(LooperThread):
    """Saves a checkpoint every ``save_model_secs``; retries sooner if the disk was full (`SavingAttempts`)."""

    def __init__(self, sv: Supervisor, sess: Any) -> None:
        super().__init__(sv.coord, sv.save_model_secs)
        self._sv = sv
        self._sess = sess
        self._attempts = SavingAttempts(f"checkpoints at {sv.save_path}")

    def run_loop(self) -> None:
        sv = self._sv
        _logger.info("Saving checkpoint to path %s", sv.save_path)

        def save() -> None:
            assert sv.saver is not None
            assert sv.save_path is not None
            sv.saver.save(self._sess, sv.save_path, global_step=sv.global_step)

        while not self._attempts.attempt(save):
            if sv.coord.wait_for_stop(self._attempts.pause_s(0.0)):
                return
        if sv.summary_writer is not None and sv.global_step is not None:
            log = event_pb2.SessionLog(status=event_pb2.SessionLog.CHECKPOINT, checkpoint_path=sv.save_path)
            sv.summary_writer.add_session_log(log, read_global_step(self._sess, sv.global_step))
