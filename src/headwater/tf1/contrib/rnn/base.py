"""Bases of the cells: sizes of states, and matrices whose rows are divided among several variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from headwater.graph.convert import name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import Structure
from headwater.shapes import dimension_value
from headwater.tf1.contrib.slim.normalization import layer_norm
from headwater.tf1.functional import arrays
from headwater.tf1.rnn.cells import LayerCell, RNNCell
from headwater.tf1.rnn.lstm import LSTMStateTuple
from headwater.tf1.variables.initializers import Constant
from headwater.tf1.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DType, DTypeLike
    from headwater.graph.types import TensorLike

Activation: TypeAlias = Callable[[Tensor], Tensor]


class _Sized:
    """The sizes of a cell's state and output, stored by its ``__init__``."""

    _state_size: Structure
    _output_size: Structure

    @property
    def state_size(self) -> Structure:
        return self._state_size

    @property
    def output_size(self) -> Structure:
        return self._output_size

    def _set_lstm_sizes(self, num_units: int, num_proj: int | None = None, state_is_tuple: bool = True) -> None:
        """Sets the sizes of an LSTM cell, whose output may be a projection."""
        self._output_size = num_proj or num_units
        state = LSTMStateTuple(num_units, self._output_size)
        self._state_size = state if state_is_tuple else sum(state)


class WrappingCell(RNNCell):
    """A cell that wraps another cell and has its sizes."""

    def __init__(self, cell: RNNCell, reuse: bool | None = None) -> None:
        super().__init__(_reuse=reuse)
        self._cell = cell

    @property
    def state_size(self) -> Structure:
        return self._cell.state_size

    @property
    def output_size(self) -> Structure:
        return self._cell.output_size

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike | None) -> Structure:
        with name_scope(f"{type(self).__name__}ZeroState", None, [batch_size]):
            return self._cell.zero_state(batch_size, dtype)


class SizedCell(_Sized, RNNCell):
    """A cell whose `call` creates variables by `get_variable`."""


class SizedLayerCell(_Sized, LayerCell):
    """A cell whose `build` creates the variables."""


def known_columns(inputs: Tensor) -> int:
    """Returns the number of columns of a matrix.

    Raises:
      ValueError: ``inputs`` has not two dimensions, or the number of its columns is unknown.
    """
    columns = dimension_value(inputs.shape.with_rank(2)[1])
    if columns is None:
        raise ValueError(f"Could not infer input size from inputs.get_shape()[-1]: {inputs.name} is {inputs.shape}")
    return columns


def sharded_variable(name: str, shape: Sequence[int], dtype: DType, shards: int) -> Tensor:
    """Returns a matrix whose rows are divided among the variables ``name_0``, ``name_1``, ….

    Raises:
      ValueError: there are more parts than rows.
    """
    rows = shape[0]
    if shards > rows:
        raise ValueError(f"Too many shards: shape={list(shape)}, num_shards={shards}")
    sizes = [rows // shards + (index < rows % shards) for index in range(shards)]
    parts = [get_variable(f"{name}_{index}", [size, *shape[1:]], dtype=dtype) for index, size in enumerate(sizes)]
    return parts[0].value() if len(parts) == 1 else arrays.concat(parts, 0, name=f"{name}/concat")


def normed(inputs: Tensor, gain: float, shift: float, scope: str) -> Tensor:
    """Normalises a layer; ``gain`` and ``shift`` are the initial values of ``gamma`` and ``beta``."""
    shape, dtype = inputs.shape[-1:], inputs.dtype.base_dtype
    with variable_scope(scope):
        get_variable("gamma", shape=shape, initializer=Constant(gain), dtype=dtype)
        get_variable("beta", shape=shape, initializer=Constant(shift), dtype=dtype)
    return layer_norm(inputs, reuse=True, scope=scope)
