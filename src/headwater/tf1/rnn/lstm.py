"""Long short-term memory (Hochreiter and Schmidhuber, 1997).

With the gates i, j, f, o = [x, h] K + b:

  c := sigmoid(f + forget_bias) c + sigmoid(i) activation(j)
  h := sigmoid(o) activation(c)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.tf1.functional import arrays, linalg, math, nn
from headwater.tf1.functional.clip import clip_by_value
from headwater.tf1.layers.configuration import activation_of
from headwater.tf1.rnn.cells import BIAS, KERNEL, LayerCell
from headwater.tf1.variables.initializers import ZEROS
from headwater.tf1.variables.partitioned import fixed_size_partitioner

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.operation import Tensor
    from headwater.graph.types import Structure
    from headwater.shapes import ShapeLike
    from headwater.tf1.layers.base import Layer
    from headwater.tf1.variables.scope_settings import VariableScope
    from headwater.tf1.variables.types import InitializerLike
    from headwater.tf1.variables.variables import Variable


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM cell: ``c``, the cell state, and ``h``, the output."""

    c: Any
    h: Any

    @property
    def dtype(self) -> Any:
        if self.c.dtype != self.h.dtype:
            raise TypeError(f"Inconsistent internal state: {self.c.dtype} vs {self.h.dtype}")
        return self.c.dtype


def lstm_step(
    gates: Tensor,
    c: Tensor,
    forget_bias: float,
    peepholes: Sequence[Variable] = (),
    clip: Callable[[Tensor], Tensor] | None = None,
    activation: Callable[[Tensor], Tensor] = math.tanh,
) -> tuple[Tensor, Tensor]:
    """Returns the next c, and h before a projection.

    Args:
      gates: i, j, f and o, concatenated.
      c: the present c.
      forget_bias: added to f.
      peepholes: the diagonal weights of f, i and o; none by default.
      clip: limits the elements of the next c.
      activation: the activation of the candidate and of c.
    """
    i, j, f, o = arrays.split(gates, 4, 1)
    if peepholes:
        f, i = f + peepholes[0] * c, i + peepholes[1] * c
    new_c = math.sigmoid(f + forget_bias) * c + math.sigmoid(i) * activation(j)
    if clip is not None:
        new_c = clip(new_c)
    if peepholes:
        o = o + peepholes[2] * new_c
    return new_c, math.sigmoid(o) * activation(new_c)


def clip_elements(c: Tensor, limit: float) -> Tensor:
    """Returns ``c`` with elements between ``-limit`` and ``limit``."""
    return clip_by_value(c, -limit, limit)


def block_clip(limit: float) -> Callable[[Tensor], Tensor] | None:
    """Returns the clipping of TensorFlow's LSTM operations, whose gradient ignores it; None unless ``limit`` > 0."""
    if limit <= 0:
        return None
    return lambda c: arrays.stop_gradient(clip_elements(c, limit)) + (c - arrays.stop_gradient(c))


def block_peepholes(layer: Layer, units: int) -> list[Variable]:
    """Creates the diagonal weights of TensorFlow's LSTM operations; returns them in the order of `lstm_step`."""
    i, f, o = (layer.add_variable(name, shape=[units]) for name in ("w_i_diag", "w_f_diag", "w_o_diag"))
    return [f, i, o]


class _LSTM(LayerCell):
    """Base of both cells: a state of two parts, as a tuple or concatenated."""

    _sizes: tuple[int, int]
    _state_is_tuple: bool

    @property
    def state_size(self) -> LSTMStateTuple | int:
        return LSTMStateTuple(*self._sizes) if self._state_is_tuple else sum(self._sizes)

    @property
    def output_size(self) -> int:
        return self._sizes[1]

    def _split_state(self, state: Structure) -> tuple[Any, Any]:
        if self._state_is_tuple:
            return state[0], state[1]
        c, h = arrays.split(state, list(self._sizes), 1)
        return c, h

    def _join_state(self, c: object, h: object) -> Any:
        return LSTMStateTuple(c, h) if self._state_is_tuple else arrays.concat([c, h], 1)


class BasicLSTMCell(_LSTM):
    """An LSTM cell without peepholes, clipping or projection.

    Args:
      num_units: the size of each part of the state.
      forget_bias: added to the forget gate.
      state_is_tuple: the state is an `LSTMStateTuple`, not c and h concatenated.
      activation: tanh if None.
      reuse, name, dtype: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | VariableScope | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units = num_units
        self._sizes = (num_units, num_units)
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation_of(activation) or math.tanh
        self._kernel: Variable | None = None
        self._bias: Variable | None = None

    def build(self, input_shape: ShapeLike) -> None:
        rows = self._depth(input_shape) + self._num_units
        self._kernel = self.add_variable(KERNEL, shape=[rows, 4 * self._num_units])
        self._bias = self.add_variable(BIAS, shape=[4 * self._num_units], initializer=ZEROS)
        self.built = True

    def call(self, inputs: Structure, state: Structure) -> tuple[Any, Any]:
        c, h = self._split_state(state)
        gates = nn.bias_add(linalg.matmul(arrays.concat([inputs, h], 1), self._kernel), self._bias)
        new_c, new_h = lstm_step(gates, c, self._forget_bias, activation=self._activation)
        return new_h, self._join_state(new_c, new_h)


class LSTMCell(_LSTM):
    """An LSTM cell with peepholes (Gers and Schmidhuber, 2000), clipping and projection (Sak et al., 2014).

    Args:
      num_units: the size of c.
      use_peepholes: the gates also see c, through diagonal weights.
      cell_clip: the largest size of c's elements.
      initializer: the initializer of the weights.
      num_proj: the size of h, which is then a projection.
      proj_clip: the largest size of h's elements then.
      num_unit_shards, num_proj_shards: number of parts of the kernels.
      forget_bias, state_is_tuple, activation, reuse, name, dtype: see `BasicLSTMCell`.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: Any = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units = num_units
        self._num_proj = num_proj
        self._sizes = (num_units, num_proj or num_units)
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation_of(activation) or math.tanh
        self._kernel: Any = None
        self._bias: Variable | None = None
        self._projection: Any = None
        self._peepholes: list[Any] = []

    def build(self, input_shape: ShapeLike) -> None:
        rows = self._depth(input_shape) + self._sizes[1]
        self._kernel = self.add_variable(
            KERNEL,
            shape=[rows, 4 * self._num_units],
            initializer=self._initializer,
            partitioner=_shards(self._num_unit_shards),
        )
        self._bias = self.add_variable(BIAS, shape=[4 * self._num_units], initializer=ZEROS)
        if self._use_peepholes:
            names = ("w_f_diag", "w_i_diag", "w_o_diag")
            self._peepholes = [
                self.add_variable(name, shape=[self._num_units], initializer=self._initializer) for name in names
            ]
        if self._num_proj is not None:
            self._projection = self.add_variable(
                f"projection/{KERNEL}",
                shape=[self._num_units, self._num_proj],
                initializer=self._initializer,
                partitioner=_shards(self._num_proj_shards),
            )
        self.built = True

    def call(self, inputs: Structure, state: Structure) -> tuple[Any, Any]:
        c, h = self._split_state(state)
        gates = nn.bias_add(linalg.matmul(arrays.concat([inputs, h], 1), self._kernel), self._bias)
        clip = None if self._cell_clip is None else partial(clip_elements, limit=self._cell_clip)
        new_c, new_h = lstm_step(gates, c, self._forget_bias, self._peepholes, clip, self._activation)
        if self._num_proj is not None:
            new_h = linalg.matmul(new_h, self._projection)
            if self._proj_clip is not None:
                new_h = clip_by_value(new_h, -self._proj_clip, self._proj_clip)
        return new_h, self._join_state(new_c, new_h)


def _shards(count: int | None) -> Any:
    return None if count is None else fixed_size_partitioner(count)


class LSTMBlockCell(_LSTM):
    """An LSTM cell; in TensorFlow one operation, here compiled like any other.

    Args:
      num_units: the size of each part of the state.
      forget_bias: added to the forget gate.
      cell_clip: the largest size of c's elements; -1 and None for any.
      use_peephole: the gates also see c, through diagonal weights.
      dtype, reuse, name: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: DTypeLike | None = None,
        reuse: Any = None,
        name: Any = "lstm_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = num_units
        self._sizes = (num_units, num_units)
        self._state_is_tuple = True
        self._forget_bias = forget_bias
        self._cell_clip = -1 if cell_clip is None else cell_clip
        self._use_peephole = use_peephole
        self._kernel: Variable | None = None
        self._bias: Variable | None = None
        self._peepholes: list[Any] = []

    def build(self, input_shape: ShapeLike) -> None:
        rows = self._depth(input_shape) + self._num_units
        self._kernel = self.add_variable(KERNEL, shape=[rows, 4 * self._num_units])
        self._bias = self.add_variable(BIAS, shape=[4 * self._num_units], initializer=ZEROS)
        if self._use_peephole:
            self._peepholes = block_peepholes(self, self._num_units)
        self.built = True

    def call(self, inputs: Structure, state: Structure) -> tuple[Tensor, LSTMStateTuple]:
        c, h = state
        gates = nn.bias_add(linalg.matmul(arrays.concat([inputs, h], 1), self._kernel), self._bias)
        new_c, new_h = lstm_step(gates, c, self._forget_bias, self._peepholes, block_clip(self._cell_clip))
        return new_h, LSTMStateTuple(new_c, new_h)
