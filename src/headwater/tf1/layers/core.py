"""Dense layers, dropout, flattening."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, as_shape, dimension_value
from headwater.tf1.functional import arrays, linalg, nn
from headwater.tf1.functional.conditions import smart_cond
from headwater.tf1.layers.affine import AffineLayer, WeightOptions
from headwater.tf1.layers.base import InputSpec, Layer, functional
from headwater.tf1.variables.initializers import ZEROS

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.scope_settings import VariableScope


class Dense(AffineLayer):
    """activation(inputs kernel + bias), over the last dimension.

    Args:
      units: the size of the output's last dimension.
      activation: applied to the result; None leaves the result unchanged.
      use_bias: whether there is a bias.
      kernel_initializer, bias_initializer: initial values; the variable scope's if None.
      kernel_regularizer, bias_regularizer: functions that return losses.
      activity_regularizer: a function that returns a loss of the output.
      kernel_constraint, bias_constraint: see `Variable`.
      trainable, name: see `Layer`.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        kernel = WeightOptions(kernel_initializer, kernel_regularizer, kernel_constraint)
        bias = WeightOptions(bias_initializer, bias_regularizer, bias_constraint)
        super().__init__(activation, use_bias, kernel, bias, activity_regularizer, trainable, name, **kwargs)
        self.units: int = int(units)
        self.input_spec: object = InputSpec(min_ndim=2)

    def build(self, input_shape: ShapeLike) -> None:
        if self._dtype is not None and not (self._dtype.is_floating or self._dtype.is_complex):
            raise TypeError(f"Unable to build `Dense` layer with non-floating point dtype {self._dtype.name}")
        size = dimension_value(as_shape(input_shape)[-1])
        if size is None:
            raise ValueError("The last dimension of the inputs to `Dense` should be defined. Found `None`.")
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.kernel: Any = self.add_weight(
            "kernel",
            [size, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            trainable=True,
        )
        if self.use_bias:
            self.bias: object = self.add_weight(
                "bias",
                [self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                trainable=True,
            )
        self.built = True

    def call(self, inputs: Structure) -> Tensor:
        rank = len(inputs.dims or ())
        if rank > 2:
            outputs = linalg.tensordot(inputs, self.kernel, [[rank - 1], [0]])
            outputs.set_shape([*inputs.dims[:-1], self.units])
        else:
            outputs = linalg.matmul(inputs, self.kernel)
        if self.use_bias:
            outputs = nn.bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        shape = as_shape(input_shape).with_rank_at_least(2)
        if dimension_value(shape[-1]) is None:
            raise ValueError(f"The innermost dimension of input_shape must be defined, but saw: {input_shape}")
        return shape[:-1].concatenate([self.units])


class Dropout(Layer):
    """In training, sets elements to 0 with probability ``rate`` and divides the remaining elements by 1 - ``rate``.

    Args:
      rate: the probability.
      noise_shape: shape of the random choice, which is broadcast; the shape of the input if None.
      seed: the seed of the choice.
    """

    def __init__(
        self,
        rate: TensorLike = 0.5,
        noise_shape: TensorLike | ShapeLike | None = None,
        seed: int | None = None,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def call(self, inputs: Structure, training: TensorLike = False) -> Tensor:
        def dropped() -> Tensor:
            return nn.dropout(inputs, noise_shape=self.noise_shape, seed=self.seed, rate=self.rate)

        return smart_cond(training, dropped, lambda: arrays.identity(inputs))

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        return as_shape(input_shape)


class Flatten(Layer):
    """Flattens all dimensions but the first.

    Args:
      data_format: ``channels_last``, or ``channels_first``: channels are moved last before.
    """

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format: str = data_format or "channels_last"
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Structure) -> Tensor:
        rank = len(inputs.dims or ())
        if self.data_format == "channels_first" and rank > 1:
            inputs = arrays.transpose(inputs, [0, *range(2, rank), 1])
        count = inputs.dims[0]
        result = arrays.reshape(inputs, [arrays.shape(inputs)[0] if count is None else count, -1])
        result.set_shape(self.compute_output_shape(inputs.shape))
        return result

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        shape = as_shape(input_shape)
        size = 1
        for dim in shape.as_list()[1:]:
            if dim is None:
                return TensorShape([shape[0], None])
            size *= dim
        return TensorShape([shape[0], size])


dense: Callable[..., Tensor] = functional(Dense, "One call of a `Dense` layer.")
dropout: Callable[..., Tensor] = functional(
    Dropout, "One call of a `Dropout` layer; ``training`` may be a tensor.", call=["training"]
)


def flatten(inputs: TensorLike, name: str | VariableScope | None = None, data_format: str = "channels_last") -> Tensor:
    """Calls a new `Flatten` layer."""
    return Flatten(name=name, data_format=data_format)(convert_to_tensor(inputs))
