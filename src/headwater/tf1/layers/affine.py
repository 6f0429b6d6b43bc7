"""Base of layers with a kernel, a bias and an activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.tf1.layers.base import Layer
from headwater.tf1.layers.configuration import activation_of

if TYPE_CHECKING:
    from headwater.tf1.variables.regularizers import Regularizer
    from headwater.tf1.variables.types import Constraint, InitializerLike


class WeightOptions(NamedTuple):
    """Initializer, regularizer and constraint of a weight."""

    initializer: InitializerLike
    """The initial value; the variable scope's if None."""
    regularizer: Regularizer
    """A function that returns a loss; None for no loss."""
    constraint: Constraint
    """See `Variable`."""


class AffineLayer(Layer):
    """activation(op(inputs, kernel) + bias), for any operation.

    Args:
      activation: applied to the result; None leaves the result unchanged.
      use_bias: whether there is a bias.
      kernel, bias: the options of the two weights.
      activity_regularizer: a function that returns a loss of the output.
      trainable, name, **kwargs: see `Layer`.
    """

    def __init__(
        self,
        activation: Any,
        use_bias: bool,
        kernel: WeightOptions,
        bias: WeightOptions,
        activity_regularizer: Any,
        trainable: bool,
        name: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.activation = activation_of(activation)
        self.use_bias = use_bias
        self.kernel_initializer: InitializerLike | None
        self.kernel_regularizer: Regularizer | None
        self.kernel_constraint: Constraint | None
        self.bias_initializer: InitializerLike | None
        self.bias_regularizer: Regularizer | None
        self.bias_constraint: Constraint | None
        self.kernel_initializer, self.kernel_regularizer, self.kernel_constraint = kernel
        self.bias_initializer, self.bias_regularizer, self.bias_constraint = bias
        self.kernel: Any = None
        self.bias: object = None
