"""Batch normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.functional import arrays, math, nn
from headwater.tf1.functional.conditions import smart_cond, smart_constant_value
from headwater.tf1.layers.base import InputSpec, Layer, functional
from headwater.tf1.variables.initializers import ONES, ZEROS
from headwater.tf1.variables.state import assign_sub

if TYPE_CHECKING:
    from headwater.graph.types import Ints, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.variables import Variable


class BatchNormalization(Layer):
    """Batch normalization: gamma (x - mean) / √(variance + epsilon) + beta (Ioffe and Szegedy, 2015).

    In training, mean and variance are the batch's, over all dimensions but ``axis``; otherwise the moving averages
    m := momentum m + (1 - momentum) batch's, whose updates are in the collection ``UPDATE_OPS``: a training operation
    must run after them.

    Args:
      axis: the dimension, or dimensions, with separate statistics.
      momentum: the momentum of the moving averages.
      epsilon: added to the variance.
      center, scale: whether there are a beta and a gamma.
      beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer: initial values.
      beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint: see `Layer.add_weight`.
      renorm, renorm_clipping, renorm_momentum, virtual_batch_size, adjustment: only the defaults are supported.
      fused: normalise images in one operation; None: if possible.
      trainable, name: see `Layer`.

    Raises:
      ValueError: renormalisation, virtual batches or an adjustment is requested.
    """

    def __init__(
        self,
        axis: Ints = -1,
        momentum: TensorLike = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = ZEROS,
        gamma_initializer: Any = ONES,
        moving_mean_initializer: Any = ZEROS,
        moving_variance_initializer: Any = ONES,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: object = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: object = None,
        name: object = None,
        **kwargs: Any,
    ) -> None:
        self._beta_first = bool(kwargs.pop("_beta_first", False))
        super().__init__(trainable=trainable, name=name, **kwargs)
        if renorm or virtual_batch_size is not None or adjustment is not None:
            raise ValueError("renorm, virtual_batch_size and adjustment are not supported; omit them")
        del renorm_clipping, renorm_momentum
        self.axis: Ints = list(axis) if isinstance(axis, list | tuple) else axis  # pyright: ignore[reportUnknownArgumentType]
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.fused = fused
        self._beta = {"initializer": beta_initializer, "regularizer": beta_regularizer, "constraint": beta_constraint}
        self._gamma = {
            "initializer": gamma_initializer,
            "regularizer": gamma_regularizer,
            "constraint": gamma_constraint,
        }
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta: Variable | None = None
        self.gamma: Variable | None = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None
        self._axes: list[int] = []

    def build(self, input_shape: ShapeLike) -> None:
        shape = as_shape(input_shape)
        if shape.ndims is None:
            raise ValueError(f"Input has undefined rank: {shape}")
        rank, dims = shape.ndims, shape.as_list()
        given: list[int] = [self.axis] if isinstance(self.axis, int) else list(self.axis)
        self._axes = [axis + rank if axis < 0 else axis for axis in given]
        if any(not 0 <= axis < rank for axis in self._axes) or len(set(self._axes)) != len(self._axes):
            raise ValueError(f"Invalid axis: {self.axis}")
        sizes = [dims[axis] for axis in self._axes]
        if None in sizes:
            raise ValueError(f"Input has undefined `axis` dimension. Input shape: {shape}")
        possible = rank == 4 and self._axes in ([1], [3])
        if self.fused and not possible:
            raise ValueError("Batch normalization layers with fused=True only support 4D input over axis 1 or 3")
        self.fused = possible if self.fused is None else self.fused
        self.input_spec: object = InputSpec(ndim=rank, axes=dict(zip(self._axes, sizes, strict=True)))
        size = sizes if len(sizes) == 1 else [dims[i] if i in self._axes else 1 for i in range(rank)]
        narrow = self._dtype in (dtypes.float16, dtypes.bfloat16)
        kind = dtypes.float32 if narrow else self._dtype or dtypes.float32
        made = [("gamma", self.scale, self._gamma), ("beta", self.center, self._beta)]
        for name, wanted, settings in reversed(made) if self._beta_first else made:
            if wanted:
                setattr(self, name, self.add_weight(name, size, kind, trainable=True, **settings))
        self.moving_mean = self.add_weight(
            "moving_mean", size, kind, initializer=self.moving_mean_initializer, trainable=False
        )
        self.moving_variance = self.add_weight(
            "moving_variance", size, kind, initializer=self.moving_variance_initializer, trainable=False
        )
        self.built = True

    def call(self, inputs: Any, training: Any = False) -> Tensor:
        if self.fused:
            outputs, mean, variance = self._fused(inputs, training)
        else:
            outputs, mean, variance = self._parted(inputs, training)
        outputs.set_shape(inputs.shape)
        known = smart_constant_value(training)
        if known is not False and self.trainable:
            momentum = (
                constant(self.momentum)
                if known
                else smart_cond(training, lambda: convert_to_tensor(self.momentum), lambda: constant(1.0))
            )
            self.add_update(_moved(self.moving_mean, mean, momentum), inputs=inputs)
            self.add_update(_moved(self.moving_variance, variance, momentum), inputs=inputs)
        return outputs

    def _fused(self, inputs: Tensor, training: Any) -> tuple[Tensor, Tensor, Tensor]:
        size = self.moving_mean.shape
        gamma = self.gamma if self.scale else constant(1.0, self.moving_mean.dtype, size)
        beta = self.beta if self.center else constant(0.0, self.moving_mean.dtype, size)
        order = "NCHW" if self._axes == [1] else "NHWC"

        def of_batch() -> list[Tensor]:
            return list(nn.fused_batch_norm(inputs, gamma, beta, epsilon=self.epsilon, data_format=order))

        def of_averages() -> list[Tensor]:
            mean, variance = self.moving_mean, self.moving_variance
            found = nn.fused_batch_norm(
                inputs, gamma, beta, mean, variance, self.epsilon, data_format=order, is_training=False
            )
            return list(found)

        outputs, mean, variance = smart_cond(training, of_batch, of_averages)
        return outputs, mean, variance

    def _parted(self, inputs: Tensor, training: Any) -> tuple[Tensor, Tensor, Tensor]:
        rank = len(inputs.dims or ())
        others = [axis for axis in range(rank) if axis not in self._axes]
        several = len(self._axes) > 1

        def of_batch() -> list[Tensor]:
            wide = math.cast(inputs, self.moving_mean.dtype.base_dtype)
            return list(nn.moments(wide, others, keep_dims=several))

        def of_averages() -> list[Tensor]:
            return [convert_to_tensor(self.moving_mean), convert_to_tensor(self.moving_variance)]

        mean, variance = smart_cond(training, of_batch, of_averages)
        dims = [size if axis in self._axes else 1 for axis, size in enumerate(inputs.dims or ())]

        def shaped(value: Any) -> Any:
            return value if value is None or several or self._axes == [rank - 1] else arrays.reshape(value, dims)

        outputs = nn.batch_normalization(
            inputs, shaped(mean), shaped(variance), shaped(self.beta), shaped(self.gamma), self.epsilon
        )
        return outputs, mean, variance

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        return as_shape(input_shape)


def _moved(variable: Variable, value: Tensor, momentum: Tensor) -> Tensor:
    """Moves ``variable`` the fraction 1 - ``momentum`` towards ``value``."""
    with name_scope("AssignMovingAvg", None, [value]) as scope, get_default_graph().colocate_with(variable.op):
        decay = math.cast(1.0 - momentum, variable.dtype.base_dtype)
        return assign_sub(variable, (variable - math.cast(value, variable.dtype.base_dtype)) * decay, name=scope)


batch_normalization: Callable[..., Tensor] = functional(
    BatchNormalization,
    "One call of a `BatchNormalization` layer; ``training`` may be a tensor.",
    call=["training"],
    before="trainable",
    last=["renorm", "renorm_clipping", "renorm_momentum", "fused", "virtual_batch_size", "adjustment"],
)
