"""What optimizers share that update with the mean gradient of several replicas: accumulators, and who updates."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from headwater.build.accumulators import ConditionalAccumulator, SparseConditionalAccumulator
from headwater.build.control_flow import no_op
from headwater.build.queues import FIFOQueue
from headwater.build.variables import Variable
from headwater.dtypes import int32, int64
from headwater.errors import AbortedError, CancelledError, OpError
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor
from headwater.training.coordinator import Coordinator
from headwater.training.optimizer import GradsAndVars
from headwater.training.queue_runner import QueueRunner

_logger: Final = logging.getLogger(__name__)


def local_step_variable(name: str) -> Variable:
    """A variable of this task's own, not of a parameter server: the step that its next gradient is of."""
    graph = get_default_graph()
    here = no_op()
    with graph.colocate_with(here):
        return Variable(0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], dtype=int64, name=name)


def accumulate(
    pairs: GradsAndVars, local_step: Any, required: Any, now: Callable[[], Tensor]
) -> tuple[list[Operation], GradsAndVars, list[Operation]]:
    """Adds an accumulator for every gradient, beside its variable.

    Args:
      pairs: this replica's gradients with their variables.
      local_step: the step that the gradients are of.
      required: how many gradients make an update.
      now: makes a tensor of the step that there is.

    Returns:
      What gives this replica's gradients, the mean gradients with their variables, and what sets the accumulators'
      steps.
    """
    graph = get_default_graph()
    given: list[Operation] = []
    means: GradsAndVars = []
    settings: list[Operation] = []
    for grad, var in pairs:
        if grad is None:
            means.append((None, var))
            continue
        with graph.device(var.device):
            shared_name = f"{var.name}/grad_accum"
            if isinstance(grad, IndexedSlices):
                rows = SparseConditionalAccumulator(grad.dtype, shape=var.shape, shared_name=shared_name)
                given.append(rows.apply_indexed_slices_grad(grad, local_step=local_step))
                means.append((rows.take_for_update(required), var))
                settings.append(rows.set_global_step(now(), name="SetGlobalStep"))
            else:
                whole = ConditionalAccumulator(grad.dtype, shape=var.shape, shared_name=shared_name)
                given.append(whole.apply_grad(grad, local_step=local_step))
                means.append((whole.take_grad(required), var))
                settings.append(whole.set_global_step(now(), name="SetGlobalStep"))
    return given, means, settings


class UpdateRunner(QueueRunner):
    """Updates the variables again and again, until the session is closed.

    Its threads wait for gradients that no replica will give any more once training ends. So nobody waits for them.

    Args:
      update: one update; waits for the gradients it is made of.
      start_over: runs where ``update`` raises AbortedError, because another maker of updates left one undone; None:
        that ends the thread as other errors do.
    """

    def __init__(self, update: Operation, start_over: Operation | None = None) -> None:
        super().__init__(FIFOQueue(1, [int32], shapes=[()], name="dummy_queue", shared_name="dummy_queue"), [update])
        self._start_over = start_over

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        threads = [
            threading.Thread(target=self._run_updates, args=(sess, op, coord), name=f"updates-{op.name}", daemon=True)
            for op in self.enqueue_ops
        ]
        if start:
            for thread in threads:
                thread.start()
        return threads

    def _run_updates(self, sess: Any, op: Any, coord: Coordinator | None) -> None:
        try:
            update = sess.make_callable(op)
            while coord is None or not coord.should_stop():
                try:
                    update()
                except AbortedError as error:
                    if self._start_over is None:
                        raise
                    _logger.warning("Updates start over: %s", error.message)
                    sess.run(self._start_over)
        except (CancelledError, RuntimeError) as error:
            _logger.debug("Updates end: %s", error)  # the session is closed
        except OpError as error:
            if coord is None:
                _logger.error("Exception in QueueRunner: %s", error)
            elif not coord.should_stop():
                coord.request_stop(error)
