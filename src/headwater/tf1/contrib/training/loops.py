"""A training operation, and a loop in a `MonitoredTrainingSession`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.tf1.training import train_ops
from headwater.tf1.training.monitored_session import MonitoredTrainingSession
from headwater.tf1.training.optimizer import Optimizer
from headwater.tf1.training.training_util import get_or_create_global_step

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike
    from headwater.tensorboard_protos import ConfigProto
    from headwater.tf1.training.scaffold import Scaffold
    from headwater.tf1.training.session_run_hook import SessionRunHook
    from headwater.tf1.variables.variables import Variable


def clip_gradient_norms_fn(max_norm: float) -> Callable[[Any], Any]:
    """Returns a function that limits the norm of each gradient in pairs of gradients and variables."""
    return lambda pairs: train_ops.clip_gradient_norms(pairs, max_norm)


def create_train_op(
    total_loss: Tensor,
    optimizer: Optimizer,
    global_step: TensorLike | None = 0,
    update_ops: object = None,
    variables_to_train: Iterable[Variable] | None = None,
    transform_grads_fn: Callable[[Any], Any] | None = None,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: int | None = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Tensor:
    """`tf.contrib.slim.learning.create_train_op`, without its clipping and factors of gradients.

    Args:
      global_step: 0 for the graph's global step; None: no counting.
      transform_grads_fn: maps the pairs of gradients and variables to the pairs to apply.
    """
    return train_ops.create_train_op(
        total_loss,
        optimizer,
        get_or_create_global_step() if isinstance(global_step, int) and global_step == 0 else global_step,
        update_ops=update_ops,
        variables_to_train=variables_to_train,
        summarize_gradients=summarize_gradients,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
        check_numerics=check_numerics,
        transform_grads_fn=transform_grads_fn,
    )


def train(
    train_op: object,
    logdir: str | None,
    master: str = "",
    is_chief: bool = True,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100,
    config: ConfigProto | None = None,
    max_wait_secs: float = 7200,
    run_metadata: object = None,
) -> Any:
    """Runs ``train_op`` until a hook stops or the input ends, in a `MonitoredTrainingSession`.

    Returns:
      The value of ``train_op`` in the last step; None if there was none.

    Raises:
      ValueError: ``logdir`` is None although checkpoints or summaries are to be saved.
    """
    if logdir is None and is_chief:
        if save_summaries_steps:
            raise ValueError("logdir cannot be None when save_summaries_steps is not None")
        if save_checkpoint_secs:
            raise ValueError("logdir cannot be None when save_checkpoint_secs is not None")
    loss = None
    with MonitoredTrainingSession(
        master=master,
        is_chief=is_chief,
        checkpoint_dir=logdir,
        scaffold=scaffold,
        hooks=hooks,
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
        max_wait_secs=max_wait_secs,
    ) as session:
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss
