"""``tf.train.experimental``: losses scaled up, so that their gradients do not vanish in float16."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from headwater import dtypes
from headwater.graph.convert import constant, convert_to_tensor
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional import arrays, conditions, math, reductions
from headwater.tf1.functional.control_flow import group, no_op
from headwater.tf1.training.optimizer import GradsAndVars, Optimizer
from headwater.tf1.variables.state import assign
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.types import Gradient


class LossScale(ABC):
    """A factor of losses; calling it returns the tensor."""

    @abstractmethod
    def __call__(self) -> Tensor:
        """Returns the scale, float32."""

    @abstractmethod
    def update(self, grads: object) -> tuple[Any, Any]:
        """Returns an operation that adapts the scale to the gradients, and whether these may be applied."""

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The settings."""

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> Self:
        """Returns a loss scale with these settings."""
        return cls(**config)


class FixedLossScale(LossScale):
    """A constant scale.

    Args:
      loss_scale_value: the number, at least 1.

    Raises:
      ValueError: it is not a Python number, or less than 1.
    """

    def __init__(self, loss_scale_value: float) -> None:
        if not isinstance(loss_scale_value, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError("loss_scale_value must be a Python int or float.")
        if loss_scale_value < 1:
            raise ValueError("loss_scale_value must be at least 1.")
        self._value = float(loss_scale_value)

    def __call__(self) -> Tensor:
        return constant(self._value, dtypes.float32)

    def update(self, grads: object) -> tuple[Any, Any]:
        """Returns no operation, and that gradients may always be applied."""
        del grads
        return no_op(), True

    def get_config(self) -> dict[str, Any]:
        return {"loss_scale_value": self._value}


class DynamicLossScale(LossScale):
    """A scale that grows while gradients are finite, and shrinks when one is not.

    Args:
      initial_loss_scale: the initial scale.
      increment_period: number of steps with finite gradients after which the scale grows.
      multiplier: the factor by which the scale grows or shrinks.
    """

    def __init__(
        self, initial_loss_scale: float = 2**15, increment_period: int = 2000, multiplier: float = 2.0
    ) -> None:
        self.initial_loss_scale: float = float(initial_loss_scale)
        self.increment_period: int = int(increment_period)
        self.multiplier: float = float(multiplier)
        self._scale = Variable(
            self.initial_loss_scale, trainable=False, dtype=dtypes.float32, name="current_loss_scale"
        )
        self._good_steps = Variable(0, trainable=False, dtype=dtypes.int64, name="good_steps")

    def __call__(self) -> Tensor:
        return convert_to_tensor(self._scale)

    def update(self, grads: object) -> tuple[Any, Any]:
        """Returns an operation that changes the scale, and whether the gradients are finite."""
        finite = _all_finite(grads)
        scale, steps = self._scale.read_value(), self._good_steps.read_value()
        grows = math.greater_equal(steps + 1, constant(self.increment_period, dtypes.int64))
        larger = scale * self.multiplier
        # Do not let the scale overflow to infinity.
        grown = conditions.cond(math.logical_and(grows, math.is_finite(larger)), lambda: larger, lambda: scale)
        shrunk = math.maximum(scale / self.multiplier, constant(1.0))
        next_scale = conditions.cond(finite, lambda: arrays.identity(grown), lambda: arrays.identity(shrunk))
        further = conditions.cond(
            math.logical_and(finite, math.logical_not(grows)), lambda: steps + 1, lambda: arrays.zeros_like(steps)
        )
        return group(assign(self._scale, next_scale), assign(self._good_steps, further)), finite

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_loss_scale": self.initial_loss_scale,
            "increment_period": self.increment_period,
            "multiplier": self.multiplier,
        }


def _all_finite(grads: Any) -> Tensor:
    parts = [grad.values if isinstance(grad, IndexedSlices) else grad for grad in grads if grad is not None]
    return reductions.reduce_all(arrays.stack([reductions.reduce_all(math.is_finite(part)) for part in parts]))


def _loss_scale(value: Any) -> LossScale:
    if isinstance(value, LossScale):
        return value
    if value == "dynamic":
        return DynamicLossScale()
    return FixedLossScale(value)


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """Wraps an optimizer: scales the loss up before its gradients are computed, and the gradients down again.

    Args:
      loss_scale: a number, "dynamic", or a `LossScale`.

    Raises:
      ValueError: ``opt`` is not an optimizer.
    """

    def __init__(self, opt: Optimizer, loss_scale: object) -> None:
        if not isinstance(opt, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        super().__init__(opt._use_locking, opt.get_name())  # pyright: ignore[reportPrivateUsage]
        self._optimizer = opt
        self._loss_scale = _loss_scale(loss_scale)

    def compute_gradients(
        self,
        loss: object,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> GradsAndVars:
        """Computes gradients of the scaled loss with the wrapped optimizer, and divides them by the scale."""
        scale = self._loss_scale()
        value: Any = loss() if callable(loss) else loss
        scaled: Any = value * math.cast(scale, value.dtype)
        found = self._optimizer.compute_gradients(
            scaled, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        return [(_divided(grad, scale), variable) for grad, variable in found]

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Gradient | None, Variable]],
        global_step: Tensor | Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Applies gradients with the wrapped optimizer; skips gradients that the loss scale rejects as not finite."""
        pairs = list(grads_and_vars)
        update, applies = self._loss_scale.update([grad for grad, _ in pairs])
        if applies is True:
            return group(update, self._optimizer.apply_gradients(pairs, global_step), name=name)
        done = conditions.cond(applies, lambda: group(self._optimizer.apply_gradients(pairs, global_step)), no_op)
        return group(done, update, name=name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a slot of the wrapped optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        """Returns the slot names of the wrapped optimizer."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        """Returns the variables of the wrapped optimizer."""
        return self._optimizer.variables()


def _divided(grad: Any, scale: Tensor) -> Any:
    if grad is None:
        return None
    if isinstance(grad, IndexedSlices):
        return grad.scaled(lambda values: values * math.cast(math.reciprocal(scale), values.dtype))
    return grad * math.cast(math.reciprocal(scale), grad.dtype)


def enable_mixed_precision_graph_rewrite(opt: Optimizer, loss_scale: object = "dynamic") -> Optimizer:
    """Returns an optimizer that scales the loss, as float16 gradients need.

    The graph is not rewritten: the program chooses which operations compute in fewer bits, as with TensorFlow on a
    CPU.

    Args:
      loss_scale: a number, "dynamic", or a `LossScale`.

    Raises:
      ValueError: ``opt`` is not an optimizer, or already scales the loss.
    """
    if isinstance(opt, MixedPrecisionLossScaleOptimizer):
        raise ValueError(
            '"opt" must not already be an instance of a MixedPrecisionLossScaleOptimizer. '
            "`enable_mixed_precision_graph_rewrite` will automatically wrap the optimizer with a "
            "MixedPrecisionLossScaleOptimizer."
        )
    if not isinstance(opt, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f'"opt" must be an instance of a tf.train.Optimizer, but got: {opt}')
    return MixedPrecisionLossScaleOptimizer(opt, loss_scale)


def disable_mixed_precision_graph_rewrite() -> None:
    """Does nothing: graphs are not rewritten."""
