"""Normalization of batches, layers, and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.contrib.slim.arg_scope import add_arg_scope
from headwater.tf1.contrib.slim.layers import collect_variable, layer_variables
from headwater.tf1.contrib.slim.utils import collect_named_outputs
from headwater.tf1.contrib.slim.variables import model_variable
from headwater.tf1.functional import arrays, math, nn, reductions
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.layers.normalization import BatchNormalization
from headwater.tf1.variables.initializers import ONES, ZEROS
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.tf1.variables.scope_settings import VariableScope
    from headwater.tf1.variables.types import Reuse


@add_arg_scope
def batch_norm(
    inputs: TensorLike,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Callable[[Tensor], Tensor] | None = None,
    param_initializers: Any = None,
    param_regularizers: Any = None,
    updates_collections: object = GraphKeys.UPDATE_OPS,
    is_training: object = True,
    reuse: Reuse | None = None,
    variables_collections: Any = None,
    outputs_collections: Sequence[str] | None = None,
    trainable: bool = True,
    batch_weights: object = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: str | VariableScope | None = None,
    renorm: bool = False,
    renorm_clipping: object = None,
    renorm_decay: float = 0.99,
    adjustment: object = None,
) -> Tensor:
    """Batch normalization (Ioffe and Szegedy, 2015); see `BatchNormalization`.

    Args:
      decay: the decay of the moving averages.
      center, scale: whether there are a ``beta`` and a ``gamma``.
      activation_fn: applied to the result.
      param_initializers, param_regularizers: by the variables' names.
      updates_collections: where the updates of the averages are added; None runs them with the result.
      is_training: a truth value or a tensor.
      data_format: ``NHWC`` or ``NCHW``.
      reuse, variables_collections, outputs_collections, trainable, scope: see `headwater.tf1.contrib.slim.layers`.

    Raises:
      ValueError: batch weights, debiasing, renormalisation or an adjustment, or a bad ``data_format``.
    """
    del renorm_clipping, renorm_decay
    if batch_weights is not None or zero_debias_moving_mean or renorm or adjustment is not None:
        raise ValueError("batch_weights, zero_debias_moving_mean, renorm and adjustment are not supported; omit them")
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    begin: dict[str, Any] = param_initializers or {}
    cost: dict[str, Any] = param_regularizers or {}
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse, custom_getter=layer_variables()) as entered:
        inputs = convert_to_tensor(inputs)
        flat = len(inputs.dims or ()) == 2 and fused is not False
        axis = 1 if data_format == "NCHW" and not flat else -1
        layer = BatchNormalization(
            axis=axis,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            beta_initializer=begin.get("beta", ZEROS),
            gamma_initializer=begin.get("gamma", ONES),
            moving_mean_initializer=begin.get("moving_mean", ZEROS),
            moving_variance_initializer=begin.get("moving_variance", ONES),
            beta_regularizer=cost.get("beta"),
            gamma_regularizer=cost.get("gamma"),
            trainable=trainable,
            fused=None if flat else fused,
            name=entered.name,
            _scope=entered,
            _reuse=reuse,
            dtype=inputs.dtype.base_dtype,
            _collect_updates=False,
            _beta_first=flat,
        )
        # Treat rows as images of one pixel: the moving averages of images keep the unbiased variance.
        images = arrays.reshape(inputs, [-1, 1, 1, inputs.dims[-1]]) if flat and inputs.dims else inputs
        outputs = layer(images, training=is_training)
        if flat:
            outputs = arrays.reshape(outputs, arrays.shape(inputs))
            outputs.set_shape(inputs.dims)
        for name in ("beta", "gamma", "moving_mean", "moving_variance"):
            if getattr(layer, name) is not None:
                collect_variable(getattr(layer, name), variables_collections, name)
        if updates_collections is None:
            outputs = with_dependencies(layer.updates, outputs)
        else:
            for update in layer.updates:
                get_default_graph().add_to_collections(updates_collections, update)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return collect_named_outputs(outputs_collections, entered.name, outputs)


@add_arg_scope
def layer_norm(
    inputs: TensorLike,
    center: bool = True,
    scale: bool = True,
    activation_fn: Callable[[Tensor], Tensor] | None = None,
    reuse: Reuse | None = None,
    variables_collections: Sequence[str] | None = None,
    outputs_collections: Sequence[str] | None = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: str | VariableScope | None = None,
) -> Tensor:
    """Normalises each example by its own mean and variance (Ba, Kiros and Hinton, 2016).

    Args:
      center, scale: whether there are a ``beta`` and a ``gamma``.
      begin_norm_axis: the first of the dimensions that are normalized together.
      begin_params_axis: the first of the dimensions that beta and gamma have.

    Raises:
      ValueError: an axis that the inputs do not have, or a size that is not known.
    """
    with variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as entered:
        inputs = convert_to_tensor(inputs)
        rank = len(inputs.dims or ())
        begin = begin_norm_axis + rank if begin_norm_axis < 0 else begin_norm_axis
        if begin_params_axis >= rank or begin >= rank:
            raise ValueError(f"begin_params_axis ({begin_params_axis}) and begin_norm_axis ({begin}) must be < {rank}")
        size = inputs.shape[begin_params_axis:]
        if not size.is_fully_defined():
            raise ValueError(f"Inputs {inputs.name}: shape(inputs)[{begin_params_axis}:] is not fully defined: {size}")
        kind = inputs.dtype.base_dtype
        beta = gamma = None
        if center:
            beta = _parameter("beta", size, kind, ZEROS, variables_collections, trainable)
        if scale:
            gamma = _parameter("gamma", size, kind, ONES, variables_collections, trainable)
        mean, variance = nn.moments(inputs, list(range(begin, rank)), keep_dims=True)
        epsilon = 1e-3 if kind == dtypes.float16 else 1e-12
        outputs = nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.dims)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return collect_named_outputs(outputs_collections, entered.name, outputs)


def _parameter(
    name: str, size: TensorLike, kind: object, initializer: object, collections: Any, trainable: bool
) -> Any:
    made = model_variable(name, size, kind, initializer=initializer, trainable=trainable)
    collect_variable(made, collections, name)
    return made


@add_arg_scope
def instance_norm(
    inputs: TensorLike,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Callable[[Tensor], Tensor] | None = None,
    param_initializers: Any = None,
    reuse: Reuse | None = None,
    variables_collections: Sequence[str] | None = None,
    outputs_collections: Sequence[str] | None = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: str | VariableScope | None = None,
) -> Tensor:
    """Normalises each channel of each example by its own mean and variance (Ulyanov et al., 2016)."""
    begin: dict[str, Any] = param_initializers or {}
    with variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as entered:
        inputs = convert_to_tensor(inputs)
        rank = len(inputs.dims or ())
        axis = 1 if data_format.startswith("NC") else rank - 1
        size, kind = inputs.shape[axis : axis + 1], inputs.dtype.base_dtype
        shape = [inputs.dims[axis] if inputs.dims and i == axis else 1 for i in range(rank)]
        beta = gamma = None
        if center:
            made = _parameter("beta", size, kind, begin.get("beta", ZEROS), variables_collections, trainable)
            beta = arrays.reshape(made, shape)
        if scale:
            made = _parameter("gamma", size, kind, begin.get("gamma", ONES), variables_collections, trainable)
            gamma = arrays.reshape(made, shape)
        along = [i for i in range(1, rank) if i != axis]
        mean, variance = nn.moments(inputs, along, keep_dims=True)
        outputs = nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.dims)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return collect_named_outputs(outputs_collections, entered.name, outputs)


@add_arg_scope
def unit_norm(inputs: TensorLike, dim: int, epsilon: float = 1e-7, scope: str | VariableScope | None = None) -> Tensor:
    """inputs / √(Σ inputs² + epsilon), the sum along ``dim``."""
    with variable_scope(scope, "UnitNorm", [inputs]):
        inputs = convert_to_tensor(inputs)
        squares = reductions.reduce_sum(math.square(inputs), dim, keepdims=True)
        return math.div(inputs, math.sqrt(epsilon + squares))
