"""What layers with a kernel, a bias and an activation have in common."""

from __future__ import annotations

from typing import Any

from headwater.layers.base import Layer


class AffineLayer(Layer):
    """activation(op(inputs, kernel) + bias), whatever the operation is.

    Args:
      activation: applied to the result; None for none.
      use_bias: whether there is a bias.
      kernel_initializer, bias_initializer: initial values; the variable scope's when None.
      kernel_regularizer, bias_regularizer: give losses.
      kernel_constraint, bias_constraint: see `Variable`.
      **kwargs: see `Layer`.
    """

    def __init__(
        self,
        activation: Any,
        use_bias: bool,
        kernel_initializer: Any,
        bias_initializer: Any,
        kernel_regularizer: Any,
        bias_regularizer: Any,
        kernel_constraint: Any,
        bias_constraint: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.activation = activation
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.kernel: Any = None
        self.bias: Any = None
