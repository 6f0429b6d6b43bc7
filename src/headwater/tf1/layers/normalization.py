"""Batch normalization."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.functional import arrays, math, nn
from headwater.tf1.functional.conditions import smart_cond, smart_constant_value
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.reductions import reduce_mean
from headwater.tf1.layers.base import InputSpec, Layer, functional
from headwater.tf1.variables.initializers import ONES, ZEROS
from headwater.tf1.variables.state import assign, assign_sub

if TYPE_CHECKING:
    from headwater.dtypes import DType
    from headwater.graph.types import Ints, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.variables import Variable

_Transform = tuple[Any, Any]


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
      renorm: correct the normalised values of training to moving averages of the statistics, x r + d with
        r = σ / σ_moving and d = (mean - mean_moving) / σ_moving (Ioffe, 2017); evaluation is the same.
      renorm_clipping: limits of the correction: numbers or tensors ``rmin``, ``rmax`` and ``dmax``; no limits by
      default.
      renorm_momentum: the momentum of the moving averages of the correction.
      fused: normalise images in one operation, if possible; False: do not.
      virtual_batch_size: in training, normalise each group of this number of examples by the group's statistics; it
        must divide the size of the batch.
      adjustment: a function of the shape of the inputs that returns factors and summands, which are applied to the
        normalised values in training.
      trainable, name: see `Layer`.

    Raises:
      ValueError: ``renorm_clipping`` has another key, or virtual batches of no examples, along the dimension of the
        statistics, or with an adjustment are requested.
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
        renorm_clipping: Mapping[str, TensorLike] | None = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Callable[..., tuple[Tensor, Tensor]] | None = None,
        name: object = None,
        **kwargs: Any,
    ) -> None:
        self._beta_first = bool(kwargs.pop("_beta_first", False))
        super().__init__(trainable=trainable, name=name, **kwargs)
        self.renorm = renorm
        self.renorm_clipping = dict(renorm_clipping or {})
        if renorm and not self.renorm_clipping.keys() <= {"rmin", "rmax", "dmax"}:
            raise ValueError(f"renorm_clipping may contain rmin, rmax and dmax, not {sorted(self.renorm_clipping)}")
        self.renorm_momentum = renorm_momentum
        self.virtual_batch_size = virtual_batch_size
        self.adjustment = adjustment
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
        self.moving_stddev: Any = None
        self.renorm_mean: Any = None
        self.renorm_stddev: Any = None
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
        virtual = self.virtual_batch_size
        if virtual is not None and (virtual <= 0 or 0 in self._axes or self.adjustment is not None):
            raise ValueError(
                f"virtual_batch_size must be positive, without axis 0 and without an adjustment: {virtual}, "
                f"axes {self._axes}"
            )
        special = self.renorm or virtual is not None or self.adjustment is not None
        self.fused = rank == 4 and self._axes in ([1], [3]) and not special and self.fused is not False
        self.input_spec: object = InputSpec(ndim=rank, axes=dict(zip(self._axes, sizes, strict=True)))
        several = len(sizes) > 1 or virtual is not None
        size = [dims[i] if i in self._axes else 1 for i in range(rank)] if several else sizes
        if virtual is not None:
            size.insert(1, 1)
        narrow = self._dtype in (dtypes.float16, dtypes.bfloat16)
        kind = dtypes.float32 if narrow else self._dtype or dtypes.float32
        made = [("gamma", self.scale, self._gamma), ("beta", self.center, self._beta)]
        for name, wanted, settings in reversed(made) if self._beta_first else made:
            if wanted:
                setattr(self, name, self.add_weight(name, size, kind, trainable=True, **settings))
        with self._undivided():
            self.moving_mean = self.add_weight(
                "moving_mean", size, kind, initializer=self.moving_mean_initializer, trainable=False
            )
            self.moving_variance = self.add_weight(
                "moving_variance", size, kind, initializer=self.moving_variance_initializer, trainable=False
            )
            if self.renorm:
                self._build_renorm(size, kind)
        self.built = True

    @contextlib.contextmanager
    def _undivided(self) -> Generator[None]:
        """Makes variables without the partitioner of the layer's scope: averages are assigned as a whole."""
        self._set_scope()
        scope: Any = self._scope
        partitioner = scope.partitioner
        scope.set_partitioner(None)
        try:
            yield
        finally:
            scope.set_partitioner(partitioner)

    def _build_renorm(self, size: Sequence[int | None], kind: DType) -> None:
        """Creates the averages of the standard deviation, which renormalisation uses in place of the variance."""
        variance = self.moving_variance_initializer

        def deviation(*args: Any, **options: Any) -> Tensor:
            return math.sqrt(variance(*args, **options))

        initializers = {
            "moving_stddev": deviation,
            "renorm_mean": self.moving_mean_initializer,
            "renorm_stddev": deviation,
        }
        for name, initializer in initializers.items():
            setattr(self, name, self.add_weight(name, size, kind, initializer=initializer, trainable=False))

    def call(self, inputs: Any, training: Any = False) -> Tensor:
        if self.fused:
            outputs, mean, variance = self._fused(inputs, training)
        else:
            outputs, mean, variance = self._parted(inputs, training)
        outputs.set_shape(inputs.shape)
        known = smart_constant_value(training)
        if known is not False and self.trainable:
            momentum = _if_training(training, self.momentum)
            self.add_update(_moved(self.moving_mean, mean, momentum), inputs=inputs)
            if not self.renorm:
                self.add_update(_moved(self.moving_variance, variance, momentum), inputs=inputs)
            else:
                deviation = _moved(self.moving_stddev, math.sqrt(variance + self.epsilon), momentum)
                found = math.maximum(deviation * deviation - self.epsilon, 0.0)
                found = smart_cond(training, lambda: found, lambda: convert_to_tensor(self.moving_variance))
                self.add_update(assign(self.moving_variance, found), inputs=inputs)
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
        """Returns the normalised inputs, and the mean and variance for the moving averages."""
        dims, axes, virtual = list(inputs.dims or ()), self._axes, self.virtual_batch_size
        values = inputs
        if virtual is not None:
            values = arrays.reshape(inputs, [virtual, -1, *(-1 if size is None else size for size in dims[1:])])
            dims, axes = [virtual, None, *dims[1:]], [axis + 1 for axis in axes]
        others = [axis for axis in range(len(dims)) if axis not in axes]
        several = len(axes) > 1 or virtual is not None
        if virtual is not None:
            others.remove(1)

        def shaped(value: Any) -> Any:
            if value is None or several or axes == [len(dims) - 1]:
                return value
            return arrays.reshape(value, [dims[i] if i in axes else 1 for i in range(len(dims))])

        def of_batch() -> list[Tensor]:
            wide = math.cast(values, self.moving_mean.dtype.base_dtype)
            return list(nn.moments(wide, others, keep_dims=several))

        def of_averages() -> list[Tensor]:
            return [convert_to_tensor(self.moving_mean), convert_to_tensor(self.moving_variance)]

        mean, variance = smart_cond(training, of_batch, of_averages)
        transform = (shaped(self.gamma), shaped(self.beta))
        new_mean, new_variance = mean, variance
        if smart_constant_value(training) is not False:
            if self.adjustment is not None:
                factor, summand = self.adjustment(arrays.shape(values))
                factor = smart_cond(training, lambda: factor, lambda: arrays.ones_like(factor))
                summand = smart_cond(training, lambda: summand, lambda: arrays.zeros_like(summand))
                transform = _composed((factor, summand), transform)
            if virtual is not None:
                new_mean, new_variance = (reduce_mean(value, 1, keepdims=True) for value in (mean, variance))
            if self.renorm:
                correction, new_mean, new_variance = self._renorm(new_mean, new_variance, training)
                transform = _composed(tuple(shaped(arrays.stop_gradient(each)) for each in correction), transform)
        outputs = nn.batch_normalization(
            values, shaped(mean), shaped(variance), transform[1], transform[0], self.epsilon
        )
        return outputs if virtual is None else arrays.reshape(outputs, arrays.shape(inputs)), new_mean, new_variance

    def _renorm(self, mean: Tensor, variance: Tensor, training: TensorLike) -> tuple[_Transform, Tensor, Tensor]:
        """Returns the correction r and d, and the statistics, which wait until the averages have been updated."""
        average = math.maximum(self.renorm_stddev, self.epsilon**0.5)
        deviation = math.sqrt(variance + self.epsilon)
        r = deviation / average
        d = (mean - self.renorm_mean) / average
        limits = self.renorm_clipping
        with control_dependencies([r, d]):
            momentum = _if_training(training, self.renorm_momentum)
            updates = [_moved(self.renorm_mean, mean, momentum), _moved(self.renorm_stddev, deviation, momentum)]
        if limits.get("rmin") is not None:
            r = math.maximum(r, limits["rmin"])
        if limits.get("rmax") is not None:
            r = math.minimum(r, limits["rmax"])
        if limits.get("dmax") is not None:
            d = math.maximum(math.minimum(d, limits["dmax"]), math.negative(limits["dmax"]))
        r = smart_cond(training, lambda: r, lambda: arrays.ones_like(r))
        d = smart_cond(training, lambda: d, lambda: arrays.zeros_like(d))
        with control_dependencies(updates):
            return (r, d), arrays.identity(mean), arrays.identity(variance)

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        return as_shape(input_shape)


def _composed(first: _Transform, then: _Transform) -> _Transform:
    """Returns the factor and the summand of ``first``, followed by ``then``, whose parts may be None."""
    factor, summand = first
    if then[0] is not None:
        factor, summand = factor * then[0], summand * then[0]
    return factor, summand if then[1] is None else summand + then[1]


def _if_training(training: TensorLike, momentum: TensorLike) -> Tensor:
    """Returns ``momentum``; if ``training`` is false, 1, which leaves an average unchanged."""
    return smart_cond(training, lambda: convert_to_tensor(momentum), lambda: constant(1.0))


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
