"""A training loop around one operation (slim's ``learning.train``), on the supervisor."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.cluster.pauses import pause
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.tf1.functional.math import equal, floormod, greater_equal
from headwater.tf1.training.supervisor import Supervisor
from headwater.tf1.training.training_util import get_or_create_global_step

if TYPE_CHECKING:
    from headwater.graph.types import FeedDict, GraphTensor, OpOrTensor, SessionLike, Structure, TensorLike
    from headwater.tensorboard_protos import ConfigProto
    from headwater.tf1.training.saver import Saver
    from headwater.tf1.variables.variables import Variable


_logger: Final = logging.getLogger(__name__)
_USE_DEFAULT: Final = 0


def train_step(
    sess: SessionLike, train_op: OpOrTensor, global_step: Variable, train_step_kwargs: Mapping[str, object]
) -> tuple[float, bool]:
    """Runs one step; returns its loss, and whether to stop.

    Args:
      train_step_kwargs: may contain ``should_stop`` and ``should_log``, tensors computed from the step's number.
    """
    begin_s = time.monotonic()
    loss, step = sess.run([train_op, global_step])
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        _logger.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, time.monotonic() - begin_s)
    stop = "should_stop" in train_step_kwargs and bool(sess.run(train_step_kwargs["should_stop"]))
    return loss, stop


def train(
    train_op: Any,
    logdir: str | None,
    train_step_fn: Callable[..., Any] = train_step,
    train_step_kwargs: Any = _USE_DEFAULT,
    log_every_n_steps: int = 1,
    graph: Graph | None = None,
    master: str = "",
    is_chief: bool = True,
    global_step: GraphTensor | None = None,
    number_of_steps: int | None = None,
    init_op: Any = _USE_DEFAULT,
    init_feed_dict: FeedDict | None = None,
    local_init_op: Any = _USE_DEFAULT,
    init_fn: Callable[..., Structure] | None = None,
    ready_op: Any = _USE_DEFAULT,
    summary_op: Any = _USE_DEFAULT,
    save_summaries_secs: int = 600,
    summary_writer: Any = _USE_DEFAULT,
    startup_delay_steps: int = 0,
    saver: Saver | None = None,
    save_interval_secs: int = 600,
    sync_optimizer: Any = None,
    session_config: ConfigProto | None = None,
) -> float | None:
    """Trains until ``number_of_steps``, with checkpoints and summaries in ``logdir``.

    Args:
      train_op: the tensor to compute in each step, as returned by `create_train_op`.
      train_step_fn: ``f(session, train_op, global_step, train_step_kwargs)`` returns the loss and whether to stop.
      train_step_kwargs: passed to ``train_step_fn``.
      log_every_n_steps: steps between two lines of the log; 0 for none.
      master, is_chief: of this task.
      init_op, init_feed_dict, local_init_op, init_fn, ready_op, summary_op, summary_writer, saver: see `Supervisor`.
      save_summaries_secs, save_interval_secs: seconds between summaries and between checkpoints.
      startup_delay_steps: number of steps after which other tasks than the chief begin; at most ``number_of_steps``.
      sync_optimizer: a `SyncReplicasOptimizer`.

    Returns:
      The last loss; None if no step ran.

    Raises:
      ValueError: ``train_op`` is None, or a delay together with ``sync_optimizer``.
    """
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if sync_optimizer is not None and startup_delay_steps > 0:
        raise ValueError("startup_delay_steps must be zero when sync_optimizer is supplied.")
    graph = graph or get_default_graph()
    with graph.as_default():
        step = get_or_create_global_step() if global_step is None else global_step
        kwargs = (
            train_step_kwargs
            if train_step_kwargs is not _USE_DEFAULT
            else _step_kwargs(step, number_of_steps, log_every_n_steps)
        )
        options = {
            "init_op": init_op,
            "local_init_op": local_init_op,
            "ready_op": ready_op,
            "summary_op": summary_op,
            "summary_writer": summary_writer,
        }
        given = {key: value for key, value in options.items() if value is not _USE_DEFAULT}
        if sync_optimizer is not None:
            sync_init = sync_optimizer.get_init_tokens_op() if is_chief else None
            queue_runner = sync_optimizer.get_chief_queue_runner() if is_chief else None
            given.setdefault(
                "local_init_op", sync_optimizer.chief_init_op if is_chief else sync_optimizer.local_step_init_op
            )
            given.setdefault("ready_for_local_init_op", sync_optimizer.ready_for_local_init_op)
        else:
            sync_init = queue_runner = None
        supervisor = Supervisor(
            graph=graph,
            is_chief=is_chief,
            logdir=logdir,
            init_feed_dict=init_feed_dict,
            init_fn=init_fn,
            global_step=step,
            saver=saver or _saver(graph),
            save_summaries_secs=save_summaries_secs,
            save_model_secs=save_interval_secs,
            **given,
        )
    loss: float | None = None
    with supervisor.managed_session(master, config=session_config) as session:
        if is_chief and queue_runner is not None:
            supervisor.start_queue_runners(session, [queue_runner])
            session.run(sync_init)
        if not is_chief and startup_delay_steps > 0:
            _wait_for(session, step, min(startup_delay_steps, number_of_steps or startup_delay_steps))
        stop = False
        while not stop and not supervisor.should_stop():
            loss, stop = train_step_fn(session, train_op, step, kwargs)
        if logdir and is_chief and supervisor.saver is not None and supervisor.save_path is not None:
            supervisor.saver.save(session, supervisor.save_path, global_step=step)
    return loss if loss is None else float(np.asarray(loss))


def _saver(graph: Graph) -> Any:
    found = graph.get_collection(GraphKeys.SAVERS)
    return found[0] if found else Supervisor.USE_DEFAULT


def _step_kwargs(step: TensorLike, number_of_steps: int | None, log_every_n_steps: int) -> dict[str, object]:
    found: dict[str, object] = {}
    if number_of_steps is not None:
        found["should_stop"] = greater_equal(step, number_of_steps)
    if log_every_n_steps > 0:
        found["should_log"] = equal(floormod(step, log_every_n_steps), 0)
    return found


def _wait_for(session: SessionLike, step: TensorLike, count: int) -> None:
    while session.run(step) < count:
        pause(1)
