"""Variants of the LSTM cell: coupled gates, normalised layers, groups, and rhythmic gates."""

from __future__ import annotations

import math as python_math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater import dtypes
from headwater.graph.operation import Tensor
from headwater.tf1.contrib.rnn.base import Activation, SizedCell, known_columns, normed, sharded_variable
from headwater.tf1.contrib.rnn.projections import linear
from headwater.tf1.functional import arrays, indexing, linalg, math, nn, random
from headwater.tf1.functional.clip import clip_by_value
from headwater.tf1.rnn.cells import BIAS, KERNEL
from headwater.tf1.rnn.lstm import LSTMStateTuple
from headwater.tf1.variables.initializers import ZEROS, Constant
from headwater.tf1.variables.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure, TensorLike
    from headwater.tf1.variables.types import InitializerLike


class _NormedCell(SizedCell):
    """A cell with layer normalisation on request: ``_norm`` contains the initial gain and shift."""

    _layer_norm: bool
    _norm: tuple[float, float]

    def _normed(self, value: Tensor, scope: str) -> Tensor:
        return normed(value, *self._norm, scope) if self._layer_norm else value


class CoupledInputForgetGateLSTMCell(_NormedCell):
    """An LSTM cell whose input gate is 1 minus its forget gate (Greff et al., 2015).

    Args:
      num_units: the size of c.
      use_peepholes: the gates also see c, through diagonal weights.
      initializer: the initializer of the weights.
      num_proj: the size of h, which is then a projection.
      proj_clip: the largest size of h's elements then.
      num_unit_shards, num_proj_shards: number of parts of the kernels.
      forget_bias: added to the forget gate.
      state_is_tuple: the state is an `LSTMStateTuple`, not c and h concatenated.
      activation: the activation of the candidate and of c.
      reuse: see `Layer`.
      layer_norm: normalises the gates and c, in place of the bias.
      norm_gain, norm_shift: initial values of the normalisation's ``gamma`` and ``beta``.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: InitializerLike | None = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation = math.tanh,
        reuse: bool | None = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._initializer = initializer
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._shards = (num_unit_shards, num_proj_shards)
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation
        self._layer_norm = layer_norm
        self._norm = (norm_gain, norm_shift)
        self._set_lstm_sizes(num_units, num_proj, state_is_tuple)

    def call(self, inputs: Tensor, state: Structure) -> tuple[Tensor, Structure]:
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            return self._step(inputs, state)

    def _step(self, inputs: Tensor, state: Structure) -> tuple[Tensor, Structure]:
        units, dtype = self._num_units, inputs.dtype.base_dtype
        c, h = state if self._state_is_tuple else arrays.split(state, [units, self._output_size], 1)
        rows = known_columns(inputs) + self._output_size
        kernel = sharded_variable("W", [rows, 3 * units], dtype, self._shards[0])
        bias = get_variable("B", shape=[3 * units], initializer=ZEROS, dtype=dtype)
        product = linalg.matmul(arrays.concat([inputs, h], 1), kernel)
        if not self._layer_norm:
            product = nn.bias_add(product, bias)
        j, f, o = arrays.split(product, 3, 1)
        j, f, o = self._normed(j, "transform"), self._normed(f, "forget"), self._normed(o, "output")
        if self._use_peepholes:
            f_diag = get_variable("W_F_diag", shape=[units], dtype=dtype)
            f = f + f_diag * c
        forget = math.sigmoid(f + self._forget_bias)
        new_c = self._normed(forget * c + (1 - forget) * self._activation(j), "state")
        if self._use_peepholes:
            o = o + get_variable("W_O_diag", shape=[units], dtype=dtype) * new_c
        new_h = math.sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            new_h = linalg.matmul(new_h, sharded_variable("W_P", [units, self._num_proj], dtype, self._shards[1]))
            if self._proj_clip is not None:
                new_h = clip_by_value(new_h, -self._proj_clip, self._proj_clip)
        return new_h, LSTMStateTuple(new_c, new_h) if self._state_is_tuple else arrays.concat([new_c, new_h], 1)


class LayerNormBasicLSTMCell(_NormedCell):
    """An LSTM cell with layer normalisation (Ba et al., 2016) and dropout of candidates (Semeniuta et al., 2016).

    Args:
      num_units: the size of each part of the state.
      forget_bias: added to the forget gate.
      input_size: ignored; deprecated in TensorFlow.
      activation: the activation of the candidate and of c.
      layer_norm: normalises the gates and c, in place of the bias.
      norm_gain, norm_shift: initial values of the normalisation's ``gamma`` and ``beta``.
      dropout_keep_prob: the share of candidates that are kept: a number or a tensor.
      dropout_prob_seed: seed of the dropout.
      reuse: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: object = None,
        activation: Activation = math.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: TensorLike = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ) -> None:
        del input_size
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._activation = activation
        self._layer_norm = layer_norm
        self._norm = (norm_gain, norm_shift)
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed
        self._set_lstm_sizes(num_units)

    def call(self, inputs: Tensor, state: LSTMStateTuple) -> tuple[Tensor, LSTMStateTuple]:
        c, h = state
        joined = arrays.concat([inputs, h], 1)
        dtype, columns = joined.dtype.base_dtype, 4 * self._num_units
        product = linalg.matmul(joined, get_variable(KERNEL, [known_columns(joined), columns], dtype=dtype))
        if not self._layer_norm:
            product = nn.bias_add(product, get_variable(BIAS, [columns], dtype=dtype))
        names = ("input", "transform", "forget", "output")
        i, j, f, o = (self._normed(part, name) for part, name in zip(arrays.split(product, 4, 1), names, strict=True))
        candidate = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            candidate = nn.dropout(candidate, self._keep_prob, seed=self._seed)
        new_c = self._normed(c * math.sigmoid(f + self._forget_bias) + math.sigmoid(i) * candidate, "state")
        new_h = self._activation(new_c) * math.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


class GLSTMCell(SizedCell):
    """An LSTM cell with groups of inputs and states, each with a separate kernel (Kuchaiev and Ginsburg, 2017).

    Args:
      num_units: the size of c.
      initializer: the initializer of the kernels.
      num_proj: the size of h, which is then a projection.
      number_of_groups: the number of groups, which divides the sizes of inputs, c and h.
      forget_bias: added to the forget gate.
      activation: the activation of c.
      reuse: see `Layer`.

    Raises:
      ValueError: a size is not a multiple of the number of groups.
    """

    def __init__(
        self,
        num_units: int,
        initializer: InitializerLike | None = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Activation = math.tanh,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        for name, size in (("num_units", num_units), ("num_proj", num_proj or 0)):
            if size % number_of_groups:
                raise ValueError(f"{name} must be divisible by number_of_groups: {size}, {number_of_groups}")
        self._num_units = num_units
        self._initializer = initializer
        self._num_proj = num_proj
        self._groups = number_of_groups
        self._forget_bias = forget_bias
        self._activation = activation
        self._set_lstm_sizes(num_units, num_proj)

    def call(self, inputs: Tensor, state: LSTMStateTuple) -> tuple[Tensor, LSTMStateTuple]:
        c, h = state
        columns, dtype = known_columns(inputs), inputs.dtype.base_dtype
        if columns % self._groups:
            raise ValueError(f"input size ({columns}) must be divisible by number_of_groups ({self._groups})")
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            parts: list[list[Tensor]] = []
            pairs = zip(arrays.split(inputs, self._groups, 1), arrays.split(h, self._groups, 1), strict=True)
            for group, pair in enumerate(pairs):
                with variable_scope(f"group{group}"):
                    product = linear(arrays.concat(list(pair), 1), 4 * self._num_units // self._groups, False)
                    parts.append(arrays.split(product, 4, 1))
            i, j, f, o = (
                nn.bias_add(
                    arrays.concat([part[index] for part in parts], 1),
                    get_variable(f"bias_{gate}", shape=[self._num_units], dtype=dtype, initializer=Constant(0.0)),
                )
                for index, gate in enumerate("ijfo")
            )
        new_c = math.sigmoid(f + self._forget_bias) * c + math.sigmoid(i) * math.tanh(j)
        new_h = math.sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            with variable_scope("projection"):
                new_h = linear(new_h, self._num_proj, False)
        return new_h, LSTMStateTuple(new_c, new_h)


class PhasedLSTMCell(SizedCell):
    """An LSTM cell whose units are open in a part of a period only (Neil, Pfeiffer and Liu, 2016).

    Its inputs are a pair: times [batch, 1], and the inputs at these times.

    Args:
      num_units: the size of each part of the state.
      use_peepholes: the gates also see c.
      leak: the openness of closed units.
      ratio_on: the share of a period in which units are open.
      trainable_ratio_on: whether optimizers change ``ratio_on``.
      period_init_min, period_init_max: bounds of initial periods, which are uniform by their logarithm.
      reuse: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._leak = leak
        self._ratio_on = ratio_on
        self._trainable_ratio_on = trainable_ratio_on
        self._period_logs = (python_math.log(period_init_min), python_math.log(period_init_max))
        self._set_lstm_sizes(num_units)

    def _linear(self, scope: str, parts: list[Tensor], count: int) -> Tensor:
        with variable_scope(scope):
            return linear(parts, count * self._num_units, True)

    def call(self, inputs: Sequence[Tensor], state: LSTMStateTuple) -> tuple[Tensor, LSTMStateTuple]:
        c, h = state
        time, x = inputs
        peep = self._use_peepholes
        gates = math.sigmoid(self._linear("mask_gates", [x, h, c] if peep else [x, h], 2))
        input_gate, forget_gate = arrays.split(gates, 2, 1)
        new_c = c * forget_gate + input_gate * math.tanh(self._linear("new_input", [x, h], 1))
        output_gate = math.sigmoid(self._linear("output_gate", [x, h, new_c] if peep else [x, h], 1))
        new_h = math.tanh(new_c) * output_gate
        openness = self._openness(time)
        new_c = openness * new_c + (1 - openness) * c
        new_h = openness * new_h + (1 - openness) * h
        return new_h, LSTMStateTuple(new_c, new_h)

    def _openness(self, time: Tensor) -> Tensor:
        """The openness of each unit [batch, units]: rises and falls within ``ratio_on`` of the period; otherwise the
        leak."""
        shape = [self._num_units]
        period = get_variable("period", shape, initializer=self._first_periods)

        def first_phases(shape: TensorLike, dtype: DTypeLike = dtypes.float32, partition_info: object = None) -> Tensor:
            del partition_info
            return random.random_uniform(shape, 0.0, period.initial_value, dtype)

        phase = get_variable("phase", shape, initializer=first_phases)
        ratio_on = get_variable(
            "ratio_on", shape, initializer=Constant(self._ratio_on), trainable=self._trainable_ratio_on
        )
        shifted, own_period = time - math.cast(phase, time.dtype), math.cast(period, time.dtype)
        # The gradient of a remainder in its dividend is 1; in the period it is taken as 0.
        remainder = arrays.stop_gradient(math.floormod(shifted, own_period) - shifted) + shifted
        cycle = math.cast(remainder / own_period, dtypes.float32)
        up = 2 * cycle / ratio_on
        openness = indexing.where(cycle < ratio_on, 2 - up, self._leak * cycle)
        return indexing.where(cycle < 0.5 * ratio_on, up, openness)

    def _first_periods(
        self, shape: TensorLike, dtype: DTypeLike = dtypes.float32, partition_info: object = None
    ) -> Tensor:
        del partition_info
        return math.exp(random.random_uniform(shape, *self._period_logs, dtype))
