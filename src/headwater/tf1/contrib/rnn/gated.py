"""Cells with fewer gates than an LSTM, or with gates of another kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.graph.operation import Tensor
from headwater.tf1.contrib.rnn.base import Activation, SizedCell, SizedLayerCell, known_columns
from headwater.tf1.contrib.rnn.projections import linear
from headwater.tf1.functional import arrays, linalg, math, nn
from headwater.tf1.layers.configuration import activation_of
from headwater.tf1.rnn.cells import BIAS, KERNEL
from headwater.tf1.rnn.lstm import LSTMStateTuple
from headwater.tf1.variables.initializers import ZEROS
from headwater.tf1.variables.variable_scope import get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.types import InitializerLike
    from headwater.tf1.variables.variables import Variable

_NAS_PARTS = 8


class UGRNNCell(SizedCell):
    """Update gate recurrent network (Collins, Sohl-Dickstein and Sussillo, 2016).

    g, c = [x, h] K + b; h := sigmoid(g + forget_bias) h + (1 - sigmoid(g + forget_bias)) activation(c).

    Args:
      num_units: the size of the state.
      initializer: the initializer of the kernel.
      forget_bias: added to the gate.
      activation: the activation of the candidate.
      reuse: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        initializer: InitializerLike | None = None,
        forget_bias: float = 1.0,
        activation: Activation = math.tanh,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = self._state_size = self._output_size = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = activation

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        known_columns(inputs)
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            gate, candidate = arrays.split(linear(arrays.concat([inputs, state], 1), 2 * self._num_units, True), 2, 1)
        update = math.sigmoid(gate + self._forget_bias)
        result = update * state + (1.0 - update) * self._activation(candidate)
        return result, result


class IntersectionRNNCell(SizedCell):
    """Intersection recurrent network (Collins, Sohl-Dickstein and Sussillo, 2016), for deep stacks.

    With g, p, f, q = [x, h] K + b: h := sigmoid(g + forget_bias) h + (1 - sigmoid(g + forget_bias)) tanh(p), and the
    output is sigmoid(f + forget_bias) x + (1 - sigmoid(f + forget_bias)) y_activation(q).

    Args:
      num_units: the size of state and output, and of the input unless it is projected.
      num_in_proj: not zero: an input of another size is projected to ``num_units``.
      initializer: the initializer of the kernels.
      forget_bias: added to both gates.
      y_activation: the activation of the output's candidate.
      reuse: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: InitializerLike | None = None,
        forget_bias: float = 1.0,
        y_activation: Activation = nn.relu,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = self._state_size = self._output_size = num_units
        self._num_input_proj = num_in_proj
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._y_activation = y_activation

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        columns = known_columns(inputs)
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            if columns != self._num_units:
                if not self._num_input_proj:
                    raise ValueError(
                        "Must have input size == output size for Intersection RNN; num_in_proj projects inputs "
                        f"(the input has {columns} columns, the cell {self._num_units} units)"
                    )
                with variable_scope("in_projection"):
                    inputs = linear(inputs, self._num_units, True)
            product = linear(arrays.concat([inputs, state], 1), 4 * self._num_units, True)
        state_gate, state_new, output_gate, output_new = arrays.split(product, 4, 1)
        keep, carry = math.sigmoid(state_gate + self._forget_bias), math.sigmoid(output_gate + self._forget_bias)
        after = keep * state + (1.0 - keep) * math.tanh(state_new)
        return carry * inputs + (1.0 - carry) * self._y_activation(output_new), after


class SRUCell(SizedLayerCell):
    """Simple recurrent unit (Lei, Zhang and Artzi, 2017): gates depend on the input only.

    x̃, f, r, y = x K; f, r = sigmoid([f, r] + b); c := f c + (1 - f) x̃; output r activation(c) + (1 - r) y.

    Args:
      num_units: the size of the state.
      activation: tanh if None.
      reuse, name: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Activation | None = None,
        reuse: bool | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self._num_units = self._state_size = self._output_size = num_units
        self._activation = activation_of(activation) or math.tanh
        self._kernel: Variable | None = None
        self._bias: Variable | None = None

    def build(self, input_shape: ShapeLike) -> None:
        self._kernel = self.add_variable(KERNEL, shape=[self._depth(input_shape), 4 * self._num_units])
        self._bias = self.add_variable(BIAS, shape=[2 * self._num_units], initializer=ZEROS)
        self.built = True

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        candidate, forget, reset, highway = arrays.split(linalg.matmul(inputs, self._kernel), 4, 1)
        gates = math.sigmoid(nn.bias_add(arrays.concat([forget, reset], 1), self._bias))
        forget, reset = arrays.split(gates, 2, 1)
        after = forget * state + (1.0 - forget) * candidate
        return reset * self._activation(after) + (1.0 - reset) * highway, after


class NASCell(SizedLayerCell):
    """The cell that neural architecture search found for language models (Zoph and Le, 2017).

    Args:
      num_units: the size of c.
      num_proj: the size of h, which is then a projection.
      use_bias: whether the product with h has a bias.
      reuse: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units = num_units
        self._num_proj = num_proj
        self._use_bias = use_bias
        self._set_lstm_sizes(num_units, num_proj)
        self._kernels: tuple[Variable | None, Variable | None] = (None, None)
        self._bias: Variable | None = None
        self._projection: Variable | None = None

    def build(self, input_shape: ShapeLike) -> None:
        columns = _NAS_PARTS * self._num_units
        recurrent = self.add_variable("recurrent_kernel", [self._output_size, columns])
        self._kernels = (self.add_variable(KERNEL, [self._depth(input_shape), columns]), recurrent)
        if self._use_bias:
            self._bias = self.add_variable(BIAS, shape=[columns], initializer=ZEROS)
        if self._num_proj is not None:
            self._projection = self.add_variable("projection_weights", [self._num_units, self._num_proj])
        self.built = True

    def call(self, inputs: Tensor, state: LSTMStateTuple) -> tuple[Tensor, LSTMStateTuple]:
        c, h = state
        from_h = linalg.matmul(h, self._kernels[1])
        if self._bias is not None:
            from_h = nn.bias_add(from_h, self._bias)
        x = arrays.split(linalg.matmul(inputs, self._kernels[0]), _NAS_PARTS, 1)
        m = arrays.split(from_h, _NAS_PARTS, 1)
        first = math.tanh(math.sigmoid(x[0] + m[0]) * nn.relu(x[1] + m[1]))
        second = math.tanh(math.sigmoid(x[2] + m[2]) + nn.relu(x[3] * m[3]))
        third = math.tanh(math.tanh(x[4] + m[4]) * math.sigmoid(x[5] + m[5]))
        fourth = math.sigmoid(math.tanh(x[6] + m[6]) + math.sigmoid(x[7] + m[7]))
        new_c = math.tanh(first + c) * second
        new_h = math.tanh(new_c * math.tanh(third + fourth))
        if self._projection is not None:
            new_h = linalg.matmul(new_h, self._projection)
        return new_h, LSTMStateTuple(new_c, new_h)
