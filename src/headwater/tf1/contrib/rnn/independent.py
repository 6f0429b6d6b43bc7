"""Cells whose units see only their own state (Li et al., 2018): the recurrent weights are vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.graph.operation import Tensor
from headwater.tf1.contrib.rnn.base import Activation, SizedLayerCell
from headwater.tf1.functional import arrays, linalg, math, nn
from headwater.tf1.layers.configuration import activation_of
from headwater.tf1.rnn.cells import BIAS, KERNEL
from headwater.tf1.rnn.lstm import LSTMStateTuple
from headwater.tf1.variables.initializers import ZEROS, Constant, RandomUniform

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.types import InitializerLike
    from headwater.tf1.variables.variables import Variable


class _Independent(SizedLayerCell):
    """Base of the cells, which computes x W + u h + b for one or several gates."""

    def __init__(
        self,
        num_units: int,
        activation: Activation | None = None,
        reuse: bool | None = None,
        kernel_initializer: InitializerLike | None = None,
        bias_initializer: InitializerLike | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = self._state_size = self._output_size = num_units
        self._activation = activation_of(activation) or math.tanh
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer
        self._weights: list[tuple[Variable, Variable, Variable]] = []

    def _add(self, kernel: str, recurrent: str, bias: str, gates: int, depth: int, first_bias: InitializerLike) -> None:
        """Adds the variables of one product."""
        columns, given = gates * self._num_units, self._bias_initializer
        self._weights.append(
            (
                self.add_variable(kernel, shape=[depth, columns], initializer=self._kernel_initializer),
                self.add_variable(recurrent, shape=[1, columns], initializer=RandomUniform(-1.0, 1.0)),
                self.add_variable(bias, shape=[columns], initializer=first_bias if given is None else given),
            )
        )

    def _product(self, index: int, inputs: Tensor, state: Tensor) -> Tensor:
        kernel, recurrent, bias = self._weights[index]
        gates = int(recurrent.shape[1]) // self._num_units
        repeated = state if gates == 1 else arrays.tile(state, [1, gates])
        return nn.bias_add(linalg.matmul(inputs, kernel) + repeated * recurrent, bias)


class IndRNNCell(_Independent):
    """output = state = activation(x W + u state + b).

    Args:
      num_units: the size of the state.
      activation: tanh if None.
      reuse, name, dtype: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Activation | None = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name=name, dtype=dtype)

    def build(self, input_shape: ShapeLike) -> None:
        self._add(f"{KERNEL}_w", f"{KERNEL}_u", BIAS, 1, self._depth(input_shape), ZEROS)
        self.built = True

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        output = self._activation(self._product(0, inputs, state))
        return output, output


class IndyGRUCell(_Independent):
    """A `GRUCell` with independent units.

    Args:
      num_units: the size of the state.
      activation: tanh if None.
      reuse, name, dtype: see `Layer`.
      kernel_initializer: the initializer of the products with inputs.
      bias_initializer: the initializer of both biases; 1 for the gates and 0 for the candidate if None.
    """

    def build(self, input_shape: ShapeLike) -> None:
        depth = self._depth(input_shape)
        self._add(f"gates/{KERNEL}_w", f"gates/{KERNEL}_u", f"gates/{BIAS}", 2, depth, Constant(1.0))
        self._add(f"candidate/{KERNEL}", f"candidate/{KERNEL}_u", f"candidate/{BIAS}", 1, depth, ZEROS)
        self.built = True

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        reset, update = arrays.split(math.sigmoid(self._product(0, inputs, state)), 2, 1)
        candidate = self._activation(self._product(1, inputs, reset * state))
        output = update * state + (1 - update) * candidate
        return output, output


class IndyLSTMCell(_Independent):
    """A `BasicLSTMCell` with independent units (Gonnet and Deselaers, 2019).

    Args:
      num_units: the size of each part of the state.
      forget_bias: added to the forget gate.
      activation: tanh if None.
      reuse, name, dtype: see `Layer`.
      kernel_initializer: the initializer of the product with inputs.
      bias_initializer: the initializer of the bias; 0 if None.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Activation | None = None,
        reuse: bool | None = None,
        kernel_initializer: InitializerLike | None = None,
        bias_initializer: InitializerLike | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, kernel_initializer, bias_initializer, name, dtype)
        self._forget_bias = forget_bias
        self._set_lstm_sizes(num_units)

    def build(self, input_shape: ShapeLike) -> None:
        self._add(f"{KERNEL}_w", f"{KERNEL}_u", BIAS, 4, self._depth(input_shape), ZEROS)
        self.built = True

    def call(self, inputs: Tensor, state: LSTMStateTuple) -> tuple[Tensor, LSTMStateTuple]:
        c, h = state
        i, j, f, o = arrays.split(self._product(0, inputs, h), 4, 1)
        new_c = c * math.sigmoid(f + self._forget_bias) + math.sigmoid(i) * self._activation(j)
        new_h = self._activation(new_c) * math.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)
