"""Cells applied to all steps of a sequence at once, and cells that are a single operation in TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import as_shape, dimension_value
from headwater.tf1.contrib.rnn.base import SizedLayerCell
from headwater.tf1.functional import arrays, indexing, linalg, math, nn
from headwater.tf1.functional.scans import scan_over
from headwater.tf1.layers.base import InputSpec, Layer
from headwater.tf1.rnn.cells import BIAS, KERNEL, RNNCell
from headwater.tf1.rnn.lstm import LSTMStateTuple, block_clip, block_peepholes, lstm_step
from headwater.tf1.rnn.networks import dynamic_rnn, static_rnn
from headwater.tf1.variables.initializers import Constant

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.scope_settings import VariableScope
    from headwater.tf1.variables.variables import Variable


class FusedRNNCell:
    """Base of objects that apply a cell along a sequence: ``outputs, state = fused(inputs)``."""

    def __call__(
        self,
        inputs: Structure,
        initial_state: Structure = None,
        dtype: DTypeLike | None = None,
        sequence_length: TensorLike | None = None,
        scope: str | VariableScope | None = None,
    ) -> tuple[Structure, Structure]:
        """Runs all steps.

        Args:
          inputs: [time, batch, …], or a list of [batch, …] for each step.
          initial_state: the state before the first step; zeros of type ``dtype`` if None.
          dtype: see ``initial_state``.
          sequence_length: number of steps of each example, after which outputs are 0; None for all.

        Returns:
          The outputs, in the form of the inputs, and the last state.
        """
        return self._run(inputs, initial_state, dtype, sequence_length, scope)

    def _run(self, inputs: Any, initial_state: Any, dtype: Any, lengths: Any, scope: Any) -> tuple[Any, Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


class FusedRNNCellAdaptor(FusedRNNCell):
    """Applies a cell along a sequence by `dynamic_rnn` with ``use_dynamic_rnn``, else by `static_rnn`."""

    def __init__(self, cell: RNNCell, use_dynamic_rnn: bool = False) -> None:
        self._cell = cell
        self._use_dynamic_rnn = use_dynamic_rnn

    def _run(self, inputs: Any, initial_state: Any, dtype: Any, lengths: Any, scope: Any) -> tuple[Any, Any]:
        is_list = isinstance(inputs, list)
        if self._use_dynamic_rnn:
            whole = arrays.stack(inputs) if is_list else inputs
            outputs, state = dynamic_rnn(self._cell, whole, lengths, initial_state, dtype, time_major=True, scope=scope)
            return (arrays.unstack(outputs) if is_list else outputs), state
        steps: Any = inputs
        if not is_list:
            steps = arrays.unstack(inputs)
        listed, state = static_rnn(self._cell, steps, initial_state, dtype, lengths, scope)
        return (listed if is_list else arrays.stack(listed)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """Applies a fused cell to the reversed sequence, and reverses its outputs.

    Args:
      cell: a `FusedRNNCell` or an `LSTMBlockWrapper`.
    """

    def __init__(self, cell: FusedRNNCell) -> None:
        self._cell = cell

    def _run(self, inputs: Any, initial_state: Any, dtype: Any, lengths: Any, scope: Any) -> tuple[Any, Any]:
        outputs, state = self._cell(
            _backwards(inputs, lengths), initial_state, dtype=dtype, sequence_length=lengths, scope=scope
        )
        return _backwards(outputs, lengths), state


def _backwards(steps: list[Tensor] | Tensor, lengths: TensorLike | None) -> list[Tensor] | Tensor:
    if isinstance(steps, list):
        return steps[::-1]
    if lengths is None:
        return arrays.reverse(steps, [0])
    return indexing.reverse_sequence(steps, lengths, 0, 1)


class LSTMBlockWrapper(Layer):
    """Base of layers that run an LSTM along a sequence; a subclass defines `num_units` and ``_call_cell``."""

    @property
    def num_units(self) -> int:
        """The size of an output."""
        raise NotImplementedError(f"{type(self).__name__} does not define num_units")

    def _call_cell(
        self,
        inputs: Tensor,
        initial_cell_state: Tensor,
        initial_output: Tensor,
        dtype: DTypeLike | None,
        sequence_length: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Returns the c and the outputs of all steps: [time, batch, num_units] each."""
        raise NotImplementedError(f"{type(self).__name__} does not define _call_cell")

    def call(
        self,
        inputs: Tensor | list[Tensor],
        initial_state: Sequence[TensorLike] | None = None,
        dtype: DTypeLike | None = None,
        sequence_length: TensorLike | None = None,
    ) -> tuple[Tensor | list[Tensor], LSTMStateTuple]:
        """Runs all steps; arguments and results as for `FusedRNNCell`.

        Raises:
          ValueError: neither ``initial_state`` nor ``dtype`` is given, or the size of an input is unknown.
        """
        whole = arrays.stack(inputs) if isinstance(inputs, list) else inputs
        shape = whole.shape.with_rank(3)
        if not dimension_value(shape[2]):
            raise ValueError(f"Expecting inputs_shape[2] to be set: {shape}")
        time, batch = (
            arrays.shape(whole)[axis] if size is None else size for axis, size in enumerate(shape.as_list()[:2])
        )
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            zeros = arrays.zeros(arrays.stack([batch, self.num_units]), dtype)
            initial_state = (zeros, zeros)
        if len(initial_state) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        c, h = (convert_to_tensor(part) for part in initial_state)
        lengths = None if sequence_length is None else convert_to_tensor(sequence_length)
        cells, outputs = self._call_cell(whole, c, h, dtype or c.dtype, lengths)
        if lengths is None:
            last = (cells[-1], outputs[-1])
        else:
            mask = arrays.transpose(indexing.sequence_mask(lengths, time, dtype=outputs.dtype), [1, 0])
            outputs = outputs * arrays.expand_dims(mask, 2)
            rows = arrays.stack([lengths, math.cast(arrays.range(batch), lengths.dtype)], axis=1)
            # The state before the first step is at index 0, for examples without steps.
            pairs = ((c, cells), (h, outputs))
            states = [arrays.concat([arrays.expand_dims(first, 0), rest], 0) for first, rest in pairs]
            last = (indexing.gather_nd(states[0], rows), indexing.gather_nd(states[1], rows))
        return arrays.unstack(outputs) if isinstance(inputs, list) else outputs, LSTMStateTuple(*last)


class LSTMBlockFusedCell(LSTMBlockWrapper):
    """An LSTM along a sequence with the variables of an `LSTMBlockCell`; inputs are multiplied for all steps at once.

    Args:
      num_units: the size of each part of the state.
      forget_bias: added to the forget gate.
      cell_clip: the largest size of c's elements; -1 and None for any.
      use_peephole: the gates also see c, through diagonal weights.
      reuse, dtype, name: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: DTypeLike | None = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = -1 if cell_clip is None else cell_clip
        self._use_peephole = use_peephole
        self._kernel: Variable | None = None
        self._bias: Variable | None = None
        self._peepholes: list[Variable] = []
        self.input_spec: object = InputSpec(ndim=3)

    @property
    def num_units(self) -> int:
        return self._num_units

    def build(self, input_shape: ShapeLike) -> None:
        rows = int(as_shape(input_shape)[2]) + self._num_units
        self._kernel = self.add_variable(KERNEL, [rows, 4 * self._num_units])
        self._bias = self.add_variable(BIAS, [4 * self._num_units], initializer=Constant(0.0))
        if self._use_peephole:
            self._peepholes = block_peepholes(self, self._num_units)
        self.built = True

    def _call_cell(
        self,
        inputs: Tensor,
        initial_cell_state: Tensor,
        initial_output: Tensor,
        dtype: DTypeLike | None,
        sequence_length: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        del dtype, sequence_length  # steps after an example's last one are discarded by `call`
        units, columns = self._num_units, int(inputs.shape[2])
        assert self._kernel is not None, "call is called after build"
        kernel = convert_to_tensor(self._kernel)
        from_inputs, recurrent = kernel[:columns], kernel[columns:]
        flat = nn.bias_add(linalg.matmul(arrays.reshape(inputs, [-1, columns]), from_inputs), self._bias)
        time, batch = arrays.unstack(arrays.shape(inputs)[:2])
        products = arrays.reshape(flat, arrays.stack([time, batch, 4 * units]))
        products.set_shape([*inputs.shape.as_list()[:2], 4 * units])
        clip = block_clip(self._cell_clip)

        def step(states: Sequence[Tensor], slices: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
            gates = slices[0] + linalg.matmul(states[1], recurrent)
            found = lstm_step(gates, states[0], self._forget_bias, self._peepholes, clip)
            return found, found

        _, (cells, outputs) = scan_over(step, [initial_cell_state, initial_output], [products])
        return cells, outputs


class GRUBlockCell(SizedLayerCell):
    """A `GRUCell` with other names of variables. One operation in TensorFlow; here it is compiled like other cells.

    Args:
      num_units, cell_size: the size of the state; exactly one of them.
      reuse, name: see `Layer`.

    Raises:
      ValueError: both sizes are given, or neither.
    """

    _names: tuple[str, str, str, str] = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: bool | None = None,
        name: str = "gru_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name)
        units = cell_size if num_units is None else num_units
        if units is None or None not in (num_units, cell_size):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        self._num_units = self._state_size = self._output_size = units
        self._weights: list[Variable] = []

    def build(self, input_shape: ShapeLike) -> None:
        rows, units = self._depth(input_shape) + self._num_units, self._num_units
        shapes = ([rows, 2 * units], [2 * units], [rows, units], [units])
        first = (None, Constant(1.0), None, Constant(0.0))
        self._weights = [
            self.add_variable(name, shape, initializer=initializer)
            for name, shape, initializer in zip(self._names, shapes, first, strict=True)
        ]
        self.built = True

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        size = dimension_value(state.shape.with_rank(2)[1])
        if size != self._num_units:
            raise ValueError(f"Shape of h_prev[1] incorrect: cell_size {self._num_units} vs {size}")
        kernel, bias, candidate_kernel, candidate_bias = self._weights
        gates = math.sigmoid(nn.bias_add(linalg.matmul(arrays.concat([inputs, state], 1), kernel), bias))
        reset, update = arrays.split(gates, 2, 1)
        candidate = linalg.matmul(arrays.concat([inputs, reset * state], 1), candidate_kernel)
        output = update * state + (1 - update) * math.tanh(nn.bias_add(candidate, candidate_bias))
        return output, output


class GRUBlockCellV2(GRUBlockCell):
    """`GRUBlockCell` with the names of a `GRUCell`'s variables."""

    _names = (f"gates/{KERNEL}", f"gates/{BIAS}", f"candidate/{KERNEL}", f"candidate/{BIAS}")
