"""Cells whose variables are the canonical parameters of cuDNN's layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, linalg, math, nn
from headwater.tf1.rnn.cells import BIAS, KERNEL, GRUCell
from headwater.tf1.rnn.lstm import LSTMBlockCell
from headwater.tf1.variables.initializers import ZEROS, Constant

if TYPE_CHECKING:
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.types import InitializerLike
    from headwater.tf1.variables.variables import Variable


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """The cell of a `CudnnLSTM`: an `LSTMBlockCell` without forget bias, clipping and peepholes.

    Args:
      num_units: the size of each part of the state.
      reuse: see `Layer`.
    """

    def __init__(self, num_units: int, reuse: bool | None = None) -> None:
        super().__init__(num_units, forget_bias=0, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(GRUCell):
    """The cell of a `CudnnGRU`, which resets the product of its state instead of the state.

    r, u = sigmoid([x, h] K + b); c = tanh(x W + b_W + r (h R + b_R)); h := u h + (1 - u) c.

    Args:
      num_units: the size of the state.
      reuse: see `Layer`.
      kernel_initializer: the initializer of the kernels.
    """

    def __init__(
        self, num_units: int, reuse: bool | None = None, kernel_initializer: InitializerLike | None = None
    ) -> None:
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer)
        self._projections: tuple[tuple[Variable, Variable], ...] = ()

    def build(self, inputs_shape: ShapeLike) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] -- its name
        depth, units, first = self._depth(inputs_shape), self._num_units, self._kernel_initializer
        self._gates = (
            self.add_variable(f"gates/{KERNEL}", shape=[depth + units, 2 * units], initializer=first),
            self.add_variable(f"gates/{BIAS}", shape=[2 * units], initializer=Constant(1.0)),
        )
        scopes = (("candidate/input_projection", depth), ("candidate/hidden_projection", units))
        kernels = [self.add_variable(f"{s}/{KERNEL}", shape=[rows, units], initializer=first) for s, rows in scopes]
        biases = [self.add_variable(f"{s}/{BIAS}", shape=[units], initializer=ZEROS) for s, _ in scopes]
        self._projections = tuple(zip(kernels, biases, strict=True))
        self.built = True

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        kernel, bias = self._gates
        gates = math.sigmoid(nn.bias_add(linalg.matmul(arrays.concat([inputs, state], 1), kernel), bias))
        reset, update = arrays.split(gates, 2, 1)
        from_inputs, from_state = (
            nn.bias_add(linalg.matmul(value, kernel), bias)
            for value, (kernel, bias) in zip((inputs, state), self._projections, strict=True)
        )
        candidate = self._activation(from_inputs + reset * from_state)
        result = (1 - update) * candidate + update * state
        return result, result
