"""Optimizers that wrap another one: average or clip variables, skip gradients of zeros, drop stale gradients."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

from headwater.dtypes import float32
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Tensor
from headwater.tf1.functional import math as ops
from headwater.tf1.functional import summary
from headwater.tf1.functional.arrays import identity, reshape, zeros
from headwater.tf1.functional.clip import clip_by_global_norm, clip_by_norm, global_norm
from headwater.tf1.functional.conditions import cond
from headwater.tf1.functional.control_flow import group, no_op
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.indexing import boolean_mask, gather
from headwater.tf1.functional.reductions import count_nonzero
from headwater.tf1.training.moving_averages import ExponentialMovingAverage
from headwater.tf1.training.optimizer import Optimizer
from headwater.tf1.training.saveable import by_name
from headwater.tf1.training.saver import Saver
from headwater.tf1.training.training_util import get_global_step
from headwater.tf1.variables.initializers import Zeros
from headwater.tf1.variables.partitioned import PartitionedVariable
from headwater.tf1.variables.state import scatter_sub
from headwater.tf1.variables.variable_lists import global_variables
from headwater.tf1.variables.variable_scope import get_variable

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.tf1.variables.variables import Variable

_log = logging.getLogger(__name__)


class WrappingOptimizer(Optimizer):
    """An optimizer that computes gradients with another, and returns the slots of the other."""

    def __init__(self, opt: Any, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Computes gradients as the wrapped optimizer does."""
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: object, **kwargs: object) -> Any:
        """Returns a slot of the wrapped optimizer."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: object, **kwargs: object) -> list[str]:
        """Returns the slot names of the wrapped optimizer."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        """Returns the variables of the wrapped optimizer."""
        return self._opt.variables()


class MovingAverageOptimizer(WrappingOptimizer):
    """Keeps moving averages of the variables that an optimizer updates, and saves the averages in their place.

    ::

        opt = tf.contrib.opt.MovingAverageOptimizer(tf.train.AdamOptimizer(0.01), 0.999)
        train_op = opt.minimize(loss)
        saver = opt.swapping_saver()

    Args:
      average_decay, num_updates: as for `ExponentialMovingAverage`.
      sequential_update: update the averages after the variables; otherwise in any order.
    """

    def __init__(
        self, opt: object, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True
    ) -> None:
        super().__init__(opt, False, "MovingAverage")
        self._ema = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._partners: dict[str, str] | None = None
        self._sequential_update = sequential_update

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Operation:
        """Applies gradients as the wrapped optimizer does, and updates the averages."""
        pairs = list(grads_and_vars)
        train_op = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
        updated = [var for grad, var in pairs if grad is not None]
        with control_dependencies([train_op]) if self._sequential_update else nullcontext():
            averaged = self._ema.apply(updated)
        self._partners = {}
        for var in updated:
            average = self._ema.average(var)
            self._partners[var.op.name] = average.op.name
            self._partners[average.op.name] = var.op.name
        return group(train_op, averaged, name="train_with_avg")

    def swapping_saver(self, var_list: object = None, name: str = "swapping_saver", **kwargs: Any) -> Saver:
        """Returns a saver that saves each average under its variable's name, and the variable under the average's.

        A program that only evaluates then restores the averages as its variables.

        Args:
          var_list: variables as for `Saver`, including the averages; all global variables if None.
          name, kwargs: further arguments of `Saver`.

        Raises:
          RuntimeError: neither `minimize` nor `apply_gradients` was called.
          ValueError: a variable's average, or an average's variable, is not in ``var_list``.
        """
        if self._partners is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        listed = by_name(global_variables() if var_list is None else var_list)
        found: dict[str, Any] = {}
        for key, saved in listed.items():
            parts = _parts(saved)
            found.update({key: saved} if parts is None else {part.op.name: part for part in parts})

        def partner(key: str, var: object) -> Any:
            other = self._partners.get(key) if self._partners else None
            if other is not None and other not in found:
                raise ValueError(
                    f"Variable to swap {other} is not part of variables to save. This breaks MovingAverageOptimizer."
                )
            return var if other is None else found[other]

        swapped: dict[str, Any] = {}
        for key, saved in listed.items():
            parts = _parts(saved)
            swapped[key] = partner(key, saved) if parts is None else [partner(part.op.name, part) for part in parts]
        return Saver(swapped, name=name, **kwargs)


def _parts(saved: object) -> list[Any] | None:
    """Returns the parts of a divided variable; None for another one."""
    if isinstance(saved, PartitionedVariable):
        return list(saved)
    return cast("list[Any]", saved) if isinstance(saved, list) else None


class VariableClippingOptimizer(WrappingOptimizer):
    """Clips the norms of variables after each update of them.

    Args:
      vars_to_clip_dims: for each variable, the axes over which a norm is computed: ``{weights: [0]}`` limits each
        column's norm.
      max_norm: greatest norm.
      colocate_clip_ops_with_vars: compute the norms on the variables' devices.

    A sparse gradient clips its rows only, unless the axes include the first.
    """

    def __init__(
        self,
        opt: object,
        vars_to_clip_dims: Mapping[Any, Sequence[int]],
        max_norm: Any,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(opt, use_locking, name)
        self._axes = {var: list(axes) for var, axes in vars_to_clip_dims.items()}
        self._max_norm = max_norm
        self._beside = colocate_clip_ops_with_vars

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Operation:
        """Applies gradients as the wrapped optimizer does, and clips the variables then."""
        pairs = list(grads_and_vars)
        with name_scope(name, self._name) as scope:
            update = self._opt.apply_gradients(pairs, global_step=global_step)
            clipped: list[Any] = []
            with control_dependencies([update]):
                for grad, var in pairs:
                    if grad is not None and var in self._axes:
                        with name_scope(f"clip_{var.op.name}"):
                            clipped.append(self._clip(grad, var))
            return group(update, *clipped, name=scope)

    def _clip(self, grad: Any, var: Any) -> Any:
        axes, graph = self._axes[var], var.graph
        rows = isinstance(grad, IndexedSlices) and 0 not in axes
        if isinstance(grad, IndexedSlices) and not rows:
            _log.warning(
                "Clipping norm across dims %s for %s is inefficient when including sparse dimension 0.",
                axes,
                var.op.name,
            )
        if rows:
            with graph.colocate_with(var.op):
                indices = boolean_mask(grad.indices, grad.indices >= 0)  # without the padding of lookups
                value = gather(var.read_value(), indices)
            return scatter_sub(var, indices, self._excess(value, var), use_locking=self._use_locking)
        with graph.colocate_with(var.op):
            value = var.read_value()
        return var.assign_sub(self._excess(value, var), use_locking=self._use_locking)

    def _excess(self, value: Tensor, var: Any) -> Tensor:
        with var.graph.colocate_with(var.op) if self._beside else nullcontext():
            return value - clip_by_norm(value, self._max_norm, self._axes[var])


def _is_all_zeros(grad: Any) -> Tensor:
    return ops.equal(count_nonzero(grad.values if isinstance(grad, IndexedSlices) else grad), 0)


class MultitaskOptimizerWrapper:
    """Leaves variables with gradients of zeros, and their slots, unchanged.

    For a model with several losses of which only one is nonzero in a step, momentum and averages of the variables of
    one loss are then updated only in the steps of this loss. All attributes are the wrapped optimizer's, which it
    changes.

    Raises:
      TypeError: ``opt`` is not an optimizer.
    """

    def __init__(self, opt: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise TypeError("Supplied optimizer must be an instance of tf.train.Optimizer")
        self._opt = opt
        for name in ("_apply_dense", "_resource_apply_dense", "_apply_sparse", "_resource_apply_sparse"):
            setattr(opt, name, _unless_zeros(getattr(opt, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def _unless_zeros(apply: Any) -> Any:
    def wrapper(grad: Any, *args: Any, **kwargs: Any) -> Any:
        def update() -> Operation:
            with control_dependencies([apply(grad, *args, **kwargs)]):
                return no_op()

        return cond(_is_all_zeros(grad), no_op, update)

    return wrapper


def clip_gradients_by_global_norm(
    gradients_variables: Sequence[tuple[Any, Any]], clip_norm: float = 20.0
) -> tuple[list[tuple[Any, Any]], Tensor]:
    """Clips gradients by their global norm; gradients of zeros, as `MultitaskOptimizerWrapper` skips them, stay exactly
    zero.

    Args:
      gradients_variables: pairs of gradient and variable.
      clip_norm: greatest global norm.

    Returns:
      The pairs with clipped gradients, and the norm before clipping.
    """
    gradients = [grad for grad, _ in gradients_variables]

    def counted(grad: Any) -> Any:
        if grad is None:
            return None
        return cond(_is_all_zeros(grad), lambda: zeros([], dtype=grad.dtype), lambda: convert_to_tensor(grad))

    norm = global_norm([counted(grad) for grad in gradients])
    clipped, _ = clip_by_global_norm(gradients, clip_norm, use_norm=norm)
    return list(zip(clipped, (var for _, var in gradients_variables), strict=True)), norm


class DropStaleGradientOptimizer(WrappingOptimizer):
    """Drops gradients of variables read more than ``staleness`` global steps before.

    The number of dropped gradients is the variable ``stale_counter``; its share of all steps is the summary *Gradient
    staleness percentage*.

    Args:
      staleness: greatest staleness of an applied gradient, in global steps.
    """

    def __init__(self, opt: object, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient") -> None:
        super().__init__(opt, use_locking, name)
        self._staleness = staleness
        self._local_step: Any = None

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """Reads the global step, then computes gradients as the wrapped optimizer does."""
        with get_default_graph().colocate_with(loss.op):
            self._local_step = get_global_step() + 0
        with control_dependencies([self._local_step]):
            return self._opt.compute_gradients(identity(loss), *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients as the wrapped optimizer does, unless they are too old.

        Returns:
          The number of dropped gradients.
        """
        pairs = list(grads_and_vars)
        graph = get_default_graph()
        with graph.colocate_with(global_step.op):
            dropped: Variable = get_variable("stale_counter", [], initializer=Zeros(), trainable=False)

        def accept() -> Tensor:
            with control_dependencies([self._opt.apply_gradients(pairs, global_step=global_step, name=name)]):
                return identity(0.0)

        waits = [grad.values.op if isinstance(grad, IndexedSlices) else grad for grad, _ in pairs if grad is not None]
        with control_dependencies(waits), graph.colocate_with(global_step.op):
            staleness = reshape(global_step.read_value() - self._local_step, ())
        accepted = ops.less_equal(staleness, ops.cast(self._staleness, staleness.dtype))
        train_op = dropped.assign_add(cond(accepted, accept, lambda: identity(1.0)))
        share = dropped / ops.cast(global_step + 1, float32)
        summary.scalar("Gradient staleness percentage", share)
        return train_op
