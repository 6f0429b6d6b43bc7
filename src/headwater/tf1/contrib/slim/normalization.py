"""Normalization of batches, layers, and vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import TensorShape
from headwater.tf1.contrib.slim.arg_scope import add_arg_scope
from headwater.tf1.contrib.slim.layers import activated, collect_variable, layer_variables
from headwater.tf1.contrib.slim.variables import model_variable
from headwater.tf1.functional import arrays, math, nn, reductions
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.layers.normalization import BatchNormalization
from headwater.tf1.variables.initializers import ONES, ZEROS
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DType
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
    renorm_clipping: Any = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
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
      renorm, renorm_clipping, adjustment: see `BatchNormalization`; ``renorm_decay`` is its ``renorm_momentum``.
      reuse, variables_collections, outputs_collections, trainable, scope: see `headwater.tf1.contrib.slim.layers`.

    Raises:
      ValueError: batch weights or debiasing are requested, or ``data_format`` is unknown.
    """
    if batch_weights is not None or zero_debias_moving_mean:
        raise ValueError("batch_weights and zero_debias_moving_mean are not supported; omit them")
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    begin: dict[str, Any] = param_initializers or {}
    cost: dict[str, Any] = param_regularizers or {}
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse, custom_getter=layer_variables()) as entered:
        inputs = convert_to_tensor(inputs)
        special = renorm or adjustment is not None
        flat = len(inputs.dims or ()) == 2 and fused is not False and not special
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
            renorm=renorm,
            renorm_clipping=renorm_clipping,
            renorm_momentum=renorm_decay,
            adjustment=adjustment,
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
        return activated(outputs, activation_fn, outputs_collections, entered)


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
        beta, gamma = _parameters(center, scale, size, kind, {}, variables_collections, trainable)
        mean, variance = nn.moments(inputs, list(range(begin, rank)), keep_dims=True)
        epsilon = 1e-3 if kind == dtypes.float16 else 1e-12
        outputs = nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.dims)
        return activated(outputs, activation_fn, outputs_collections, entered)


def _parameters(
    center: bool,
    scale: bool,
    size: TensorShape,
    kind: DType,
    initializers: Mapping[str, Any],
    collections: Any,
    trainable: bool,
    shape: Sequence[Any] | None = None,
) -> list[Any]:
    """Returns beta and gamma in ``shape``; None in place of a parameter without ``center`` or ``scale``."""
    found: list[Any] = [None, None]
    for index, (name, wanted, default) in enumerate((("beta", center, ZEROS), ("gamma", scale, ONES))):
        if wanted:
            made = model_variable(name, size, kind, initializer=initializers.get(name, default), trainable=trainable)
            collect_variable(made, collections, name)
            found[index] = made if shape is None else arrays.reshape(made, shape)
    return found


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
        beta, gamma = _parameters(center, scale, size, kind, begin, variables_collections, trainable, shape)
        along = [i for i in range(1, rank) if i != axis]
        mean, variance = nn.moments(inputs, along, keep_dims=True)
        outputs = nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.dims)
        return activated(outputs, activation_fn, outputs_collections, entered)


@add_arg_scope
def group_norm(
    inputs: TensorLike,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Sequence[int] = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Callable[[Tensor], Tensor] | None = None,
    param_initializers: Mapping[str, object] | None = None,
    reuse: Reuse | None = None,
    variables_collections: Sequence[str] | None = None,
    outputs_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: str | VariableScope | None = None,
    mean_close_to_zero: bool = False,
) -> Tensor:
    """Normalises groups of channels of each example by their own mean and variance (Wu and He, 2018).

    Args:
      groups: number of groups; the number of channels is a multiple of it.
      channels_axis: the dimension of the channels.
      reduction_axes: dimensions that are normalised together with the channels of a group.
      center, scale: whether there are a ``beta`` and a ``gamma``, one number for each channel.
      mean_close_to_zero: compute the variance as the mean of squares minus the squared mean.

    Raises:
      ValueError: a size that must be known is not, an axis is wrong, or the groups do not divide the channels.
    """
    begin = param_initializers or {}
    inputs = convert_to_tensor(inputs)
    if inputs.dims is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    rank = len(inputs.dims)
    if channels_axis >= rank:
        raise ValueError("Axis is out of bounds.")
    axis = channels_axis % rank
    along = [each + rank if each < 0 else each for each in reduction_axes]
    channels = inputs.dims[axis]
    if channels is None or any(each >= rank or inputs.dims[each] is None for each in along):
        raise ValueError(f"Inputs {inputs.name} has an undefined dimension: {inputs.shape}, axes {[axis, *along]}")
    if axis in along:
        raise ValueError("reduction_axis must be mutually exclusive with channels_axis")
    if groups > channels or channels % groups:
        raise ValueError(f"{channels} channels cannot be divided into {groups} groups")
    sizes = [arrays.shape(inputs)[i] if size is None else size for i, size in enumerate(inputs.dims)]
    parted = arrays.reshape(inputs, [*sizes[:axis], groups, channels // groups, *sizes[axis + 1 :]])
    flat = [1] * axis + [groups, channels // groups] + [1] * (rank - axis - 1)
    with variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as entered:
        size, kind = TensorShape([channels]), inputs.dtype.base_dtype
        beta, gamma = _parameters(center, scale, size, kind, begin, variables_collections, trainable, flat)
        together = [axis + 1, *(each + 1 if each > axis else each for each in along)]
        if mean_close_to_zero:
            count, total, squares, _ = nn.sufficient_statistics(parted, together, keep_dims=True)
            mean, variance = nn.normalize_moments(count, total, squares, shift=None)
        else:
            mean, variance = nn.moments(parted, together, keep_dims=True)
        outputs = arrays.reshape(nn.batch_normalization(parted, mean, variance, beta, gamma, epsilon), sizes)
        outputs.set_shape(inputs.dims)
        return activated(outputs, activation_fn, outputs_collections, entered)


@add_arg_scope
def unit_norm(inputs: TensorLike, dim: int, epsilon: float = 1e-7, scope: str | VariableScope | None = None) -> Tensor:
    """inputs / √(Σ inputs² + epsilon), the sum along ``dim``."""
    with variable_scope(scope, "UnitNorm", [inputs]):
        inputs = convert_to_tensor(inputs)
        squares = reductions.reduce_sum(math.square(inputs), dim, keepdims=True)
        return math.div(inputs, math.sqrt(epsilon + squares))
