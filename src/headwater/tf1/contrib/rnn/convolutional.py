"""LSTM cells whose products are convolutions (Shi et al., 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape
from headwater.tf1.contrib.rnn.base import SizedCell
from headwater.tf1.functional import arrays, convolution, math
from headwater.tf1.rnn.cells import KERNEL
from headwater.tf1.rnn.lstm import LSTMStateTuple
from headwater.tf1.variables.initializers import Constant
from headwater.tf1.variables.variable_scope import get_variable


def _convolved(inputs: Tensor, kernel_shape: Sequence[int], channels: int, bias: bool) -> Tensor:
    """A convolution with the variable ``kernel``, at each position, plus ``biases``."""
    dims, dtype = inputs.shape.as_list(), inputs.dtype.base_dtype
    kernel = get_variable(KERNEL, [*kernel_shape, dims[-1], channels], dtype=dtype)
    if len(dims) == 3:
        product = convolution.conv1d(inputs, kernel, 1, "SAME")
    else:
        convolve = convolution.conv2d if len(dims) == 4 else convolution.conv3d
        product = convolve(inputs, kernel, [1] * len(dims), "SAME")
    if not bias:
        return product
    return product + get_variable("biases", [channels], dtype=dtype, initializer=Constant(0.0))


class ConvLSTMCell(SizedCell):
    """An LSTM cell on inputs [batch, …, channels] with one to three spatial dimensions.

    Args:
      conv_ndims: the number of spatial dimensions.
      input_shape: the shape of an input, without the batch.
      output_channels: the number of channels of each part of the state.
      kernel_shape: the spatial sizes of the kernel.
      use_bias: whether the convolution has a bias.
      skip_connection: appends the inputs' channels to the output's.
      forget_bias: added to the forget gate.
      initializers: accepted, as in TensorFlow.
      name: see `Layer`.

    Raises:
      ValueError: ``input_shape`` has the wrong number of dimensions.
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: object = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        del initializers
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        if not 1 <= conv_ndims <= 3:
            raise ValueError(f"conv_ndims must be 1, 2 or 3: {conv_ndims}")
        self._channels = output_channels
        self._kernel_shape = list(kernel_shape)
        self._use_bias = use_bias
        self._skip_connection = skip_connection
        self._forget_bias = forget_bias
        space = list(input_shape[:-1])
        size = TensorShape([*space, output_channels])
        self._state_size = LSTMStateTuple(size, size)
        self._output_size = TensorShape([*space, output_channels + (input_shape[-1] if skip_connection else 0)])

    def call(self, inputs: Tensor, state: LSTMStateTuple) -> tuple[Tensor, LSTMStateTuple]:
        c, h = state
        joined = arrays.concat([inputs, h], -1)
        gates = _convolved(joined, self._kernel_shape, 4 * self._channels, self._use_bias)
        i, j, f, o = arrays.split(gates, 4, -1)
        new_c = math.sigmoid(f + self._forget_bias) * c + math.sigmoid(i) * math.tanh(j)
        output = math.tanh(new_c) * math.sigmoid(o)
        if self._skip_connection:
            output = arrays.concat([output, inputs], -1)
        return output, LSTMStateTuple(new_c, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` with one spatial dimension."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` with two spatial dimensions."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` with three spatial dimensions."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(3, name=name, **kwargs)
