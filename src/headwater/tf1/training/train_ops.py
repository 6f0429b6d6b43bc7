"""Training operations of slim and contrib: gradients, their transformations, and further updates in one tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, clip, math, nn, summary
from headwater.tf1.functional.checks import check_numerics as checked
from headwater.tf1.functional.control_flow import group, with_dependencies
from headwater.tf1.functional.default_graph import control_dependencies, get_collection
from headwater.tf1.functional.random import truncated_normal
from headwater.tf1.training.optimizer import Optimizer
from headwater.tf1.training.optimizers.adagrad import AdagradOptimizer
from headwater.tf1.training.optimizers.adam import AdamOptimizer
from headwater.tf1.training.optimizers.descent import GradientDescentOptimizer, MomentumOptimizer
from headwater.tf1.training.optimizers.ftrl import FtrlOptimizer
from headwater.tf1.training.optimizers.rmsprop import RMSPropOptimizer
from headwater.tf1.training.training_util import get_global_step, get_or_create_global_step
from headwater.tf1.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Gradient, TensorLike
    from headwater.shapes import TensorShape
    from headwater.tf1.training.optimizer import Hyperparameter, OptimizerLike
    from headwater.tf1.variables.partitioned import PartitionInfo
    from headwater.tf1.variables.variables import Variable


OPTIMIZER_CLS_NAMES: Mapping[str, Any] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "Momentum": partial(MomentumOptimizer, momentum=0.9),
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}
OPTIMIZER_SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]
_USE_GLOBAL_STEP = 0

Gradients = list[tuple[Any, Any]]


def _values(gradient: Gradient) -> Tensor:
    return gradient.values if isinstance(gradient, IndexedSlices) else gradient


def _changed(gradient: Gradient, function: Callable[[Tensor], Tensor]) -> IndexedSlices | Tensor:
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(function(gradient.values), gradient.indices, gradient.dense_shape)
    return function(gradient)


def clip_gradient_norms(
    gradients_to_variables: Sequence[tuple[Gradient | None, Variable]], max_norm: float
) -> Gradients:
    """Clips the norm of each gradient to ``max_norm``."""
    return [
        (gradient if gradient is None else clip.clip_by_norm(gradient, max_norm), variable)
        for gradient, variable in gradients_to_variables
    ]


def multiply_gradients(
    grads_and_vars: Sequence[tuple[Gradient | None, Variable]], gradient_multipliers: Mapping[TensorLike, TensorLike]
) -> Gradients:
    """Multiplies the gradients of variables that have a factor, by variable or name.

    Raises:
      ValueError: the multipliers are not a dictionary, or a variable with a factor has no gradient.
    """
    if not isinstance(gradient_multipliers, Mapping) or not gradient_multipliers:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError("`gradient_multipliers` must be a non-empty dictionary.")
    found: Gradients = []
    for gradient, variable in grads_and_vars:
        key = next((key for key in (variable, variable.op.name) if key in gradient_multipliers), None)
        if key is not None:
            if gradient is None:
                raise ValueError(f"Requested multiple of `None` gradient for {variable.op.name}.")
            factor = math.cast(convert_to_tensor(gradient_multipliers[key]), _values(gradient).dtype)
            gradient = _changed(gradient, lambda g, factor=factor: g * factor)
        found.append((gradient, variable))
    return found


def add_gradients_summaries(grads_and_vars: Sequence[tuple[Gradient | None, Variable]]) -> list[Tensor]:
    """Returns histograms of gradients and their norms, with the tags ``<variable>/gradient`` of ``tf.contrib.slim``."""
    return _gradients_summaries(grads_and_vars, "/")


def add_training_gradients_summaries(grads_and_vars: Sequence[tuple[Gradient | None, Variable]]) -> list[Tensor]:
    """Returns summaries as `add_gradients_summaries`, with the tags ``<variable>_gradient`` of
    ``tf.contrib.training``."""
    return _gradients_summaries(grads_and_vars, "_")


def _gradients_summaries(grads_and_vars: Sequence[tuple[Gradient | None, Variable]], separator: str) -> list[Tensor]:
    made: list[Tensor] = []
    for gradient, variable in grads_and_vars:
        if gradient is not None:
            values, name = _values(gradient), f"{variable.op.name}{separator}gradient"
            made.append(summary.histogram(name, values))
            made.append(summary.scalar(f"{name}_norm", clip.global_norm([values])))
    return made


def create_train_op(
    total_loss: Tensor,
    optimizer: Any,
    global_step: TensorLike | None = _USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Iterable[Variable] | None = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Any = None,
    check_numerics: bool = True,
    transform_grads_fn: Callable[[Gradients], Gradients] | None = None,
) -> Tensor:
    """Returns a tensor whose computation performs a training step, with the loss as its value.

    Args:
      total_loss: the loss to minimise.
      global_step: the variable that counts steps; by default the graph's, created if missing; None: no counting.
      update_ops: operations to run before; the collection ``UPDATE_OPS`` if None.
      variables_to_train: ``TRAINABLE_VARIABLES`` if None.
      clip_gradient_norm: the largest norm of a gradient; 0 for any.
      summarize_gradients: add summaries of the gradients.
      gate_gradients, aggregation_method, colocate_gradients_with_ops: see `Optimizer.compute_gradients`.
      gradient_multipliers: factors, by variables or their names.
      check_numerics: fail if the loss is not finite.
      transform_grads_fn: maps the pairs of gradients and variables to the pairs to apply.
    """
    if global_step is _USE_GLOBAL_STEP:
        global_step = get_or_create_global_step()
    updates = list(get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else update_ops)
    if updates:
        with control_dependencies(updates):
            barrier = group(name="update_barrier")
        total_loss = with_dependencies([barrier], total_loss)
    variables = variables_to_train
    if variables is None:
        variables = get_collection(GraphKeys.TRAINABLE_VARIABLES)
    pairs = optimizer.compute_gradients(
        total_loss,
        variables,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )
    if gradient_multipliers:
        pairs = multiply_gradients(pairs, gradient_multipliers)
    if transform_grads_fn is not None:
        pairs = transform_grads_fn(pairs)
    if clip_gradient_norm > 0:
        pairs = clip_gradient_norms(pairs, clip_gradient_norm)
    if summarize_gradients:
        with name_scope("summarize_grads"):
            add_training_gradients_summaries(pairs)
    applied = optimizer.apply_gradients(pairs, global_step=global_step)
    with name_scope("train_op", None, []):
        if check_numerics:
            total_loss = checked(total_loss, "LossTensor is inf or nan")
        train = with_dependencies([applied], total_loss)
    graph = get_default_graph()
    if all(train is not other for other in graph.get_collection(GraphKeys.TRAIN_OP)):
        graph.add_to_collection(GraphKeys.TRAIN_OP, train)
    return train


def optimize_loss(
    loss: Tensor,
    global_step: Variable | None,
    learning_rate: Hyperparameter | None,
    optimizer: OptimizerLike,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Any = None,
    clip_gradients: object = None,
    learning_rate_decay_fn: Callable[[Tensor, Tensor], Tensor] | None = None,
    update_ops: Any = None,
    variables: Sequence[Variable] | None = None,
    name: str | None = None,
    summaries: Sequence[str] | None = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Tensor:
    """Returns a tensor whose computation performs a training step, with the loss as its value.

    Args:
      loss: the loss to minimise.
      global_step: the variable that counts steps; the graph's if None.
      learning_rate: a number, a tensor, or None if the optimizer has its own.
      optimizer: one of `OPTIMIZER_CLS_NAMES`, a class, an optimizer, or a function of the learning rate.
      gradient_noise_scale: deviation of the noise added to gradients.
      gradient_multipliers: factors, by variables or their names.
      clip_gradients: the largest global norm of the gradients, or a function of the pairs.
      learning_rate_decay_fn: ``f(learning_rate, global_step)``.
      update_ops: operations to run before; the collection ``UPDATE_OPS`` if None.
      variables: the variables to train; ``TRAINABLE_VARIABLES`` if None.
      summaries: which of `OPTIMIZER_SUMMARIES` to make.
      increment_global_step: whether to increment ``global_step``.

    Raises:
      ValueError: the optimizer is unknown, or the learning rate or a summary is invalid.
    """
    loss = convert_to_tensor(loss)
    step = get_global_step() if global_step is None else global_step
    with variable_scope(name, "OptimizeLoss", [loss, step]):
        if update_ops is None:
            update_ops = set(get_collection(GraphKeys.UPDATE_OPS))
        if update_ops:
            loss = with_dependencies(list(update_ops), loss)
        wanted = ["loss", "learning_rate", "global_gradient_norm"] if summaries is None else list(summaries)
        for item in wanted:
            if item not in OPTIMIZER_SUMMARIES:
                raise ValueError(f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided {item}.")
        rate = _rate(learning_rate, learning_rate_decay_fn, step)
        if rate is not None and "learning_rate" in wanted:
            summary.scalar("learning_rate", rate)
        made = _optimizer(optimizer, rate)
        chosen = get_collection(GraphKeys.TRAINABLE_VARIABLES) if variables is None else variables
        pairs: Gradients = made.compute_gradients(loss, chosen, colocate_gradients_with_ops=colocate_gradients_with_ops)
        if gradient_noise_scale is not None:
            noise: float = gradient_noise_scale
            pairs = [
                (
                    g
                    if g is None
                    else _changed(g, lambda t: t + truncated_normal(arrays.shape(t), dtype=t.dtype) * noise),
                    v,
                )
                for g, v in pairs
            ]
        if gradient_multipliers is not None:
            pairs = multiply_gradients(pairs, gradient_multipliers)
        if "global_gradient_norm" in wanted or "gradient_norm" in wanted:
            summary.scalar("global_norm/gradient_norm", clip.global_norm([g for g, _ in pairs if g is not None]))
        if isinstance(clip_gradients, float):
            clipped, _ = clip.clip_by_global_norm([g for g, _ in pairs], clip_gradients)
            pairs = [(g, v) for g, (_, v) in zip(clipped, pairs, strict=True)]
        elif callable(clip_gradients):
            changed: Any = clip_gradients(pairs)
            pairs = changed
        elif clip_gradients is not None:
            raise ValueError(f"Unknown type {type(clip_gradients)} for clip_gradients")
        if "loss" in wanted:
            summary.scalar("loss", loss)
        updates = made.apply_gradients(pairs, global_step=step if increment_global_step else None, name="train")
        return with_dependencies([updates], loss)


def _rate(learning_rate: Hyperparameter | None, decay: Callable[[Tensor, Tensor], Tensor] | None, step: Any) -> Any:
    if learning_rate is None:
        return None
    if isinstance(learning_rate, Tensor) and learning_rate.dims in ((), None):
        rate: Any = learning_rate
    elif isinstance(learning_rate, float):
        if learning_rate < 0.0:
            raise ValueError(f"Invalid learning_rate {learning_rate}")
        from_value = _constant(learning_rate)
        rate: Any = get_variable("learning_rate", [], trainable=False, initializer=from_value)
    else:
        raise ValueError(
            f"Learning rate should be 0d Tensor or float. Got {learning_rate} of type {type(learning_rate)}"
        )
    if decay is not None:
        if step is None:
            raise ValueError("global_step is required for learning_rate_decay_fn.")
        rate = decay(rate, step)
    return rate


def _constant(value: float) -> Callable[..., Tensor]:
    def initializer(
        shape: TensorShape, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Any:
        del partition_info
        return arrays.fill(shape, convert_to_tensor(value, dtype))

    return initializer


def _optimizer(optimizer: object, rate: object) -> Any:
    if isinstance(optimizer, str):
        if rate is None:
            raise ValueError(f"Learning rate is None, but should be specified if optimizer is string ({optimizer}).")
        if optimizer not in OPTIMIZER_CLS_NAMES:
            raise ValueError(
                f"Optimizer name should be one of [{', '.join(OPTIMIZER_CLS_NAMES)}], you provided {optimizer}."
            )
        return OPTIMIZER_CLS_NAMES[optimizer](learning_rate=rate)
    if isinstance(optimizer, type):
        if rate is None:
            raise ValueError("Learning rate is None, but should be specified if optimizer is class.")
        return optimizer(learning_rate=rate)
    if hasattr(optimizer, "compute_gradients"):
        return optimizer
    if callable(optimizer):
        return optimizer(rate) if rate is not None else optimizer()
    raise ValueError(f"Unrecognized optimizer: should be string, subclass of Optimizer, or function: {optimizer}")


def summarize_activation(op: Tensor) -> Tensor:
    """Returns summaries of a layer's output: values, and for relu and sigmoid the fraction of zero or saturated."""
    if op.op.type in ("Relu", "Softplus", "Relu6"):
        summary.scalar(f"{op.op.name}/zeros", nn.zero_fraction(op))
    return summary.histogram(f"{op.op.name}/activation", op)


def summarize_tensor(tensor: Tensor, tag: str | None = None) -> Tensor:
    """Returns a summary of a tensor: of a scalar its value, otherwise a histogram."""
    name = tag or f"{tensor.op.name}_summary"
    scalar = convert_to_tensor(tensor).dims == ()
    return summary.scalar(name, tensor) if scalar else summary.histogram(name, tensor)


def summarize_tensors(tensors: Sequence[object], summarizer: Callable[[Any], Any] = summarize_tensor) -> list[Any]:
    """Returns summaries of several tensors."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """Returns summaries of the items of a collection."""
    return [summarizer(item) for item in get_collection(collection, name_filter)]


def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """Returns summaries of the collection ``ACTIVATIONS``."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)
