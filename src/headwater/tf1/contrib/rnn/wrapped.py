"""Cells that wrap another cell: attention to past outputs, highways, compilation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.graph.operation import Tensor
from headwater.tf1.contrib.rnn.base import SizedCell, WrappingCell, known_columns
from headwater.tf1.contrib.rnn.projections import linear
from headwater.tf1.functional import arrays, linalg, math, nest, nn, reductions
from headwater.tf1.functional.compilation import jit_scope
from headwater.tf1.functional.convolution import conv2d
from headwater.tf1.rnn.cells import RNNCell
from headwater.tf1.rnn.networks import require_cell
from headwater.tf1.variables.initializers import Constant
from headwater.tf1.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import Structure
    from headwater.tf1.variables.scope_settings import VariableScope


class AttentionCellWrapper(SizedCell):
    """Attention of a cell to its last outputs (Bahdanau et al., 2015).

    Args:
      attn_length: number of past outputs to which it attends.
      attn_size: the size of an output; the cell's if None.
      attn_vec_size: the size of the features that are compared; ``attn_size`` if None.
      input_size: the size of the cell's inputs; the inputs' size if None.
      state_is_tuple: the state is a triple of the cell's state, the attention, and the last outputs; not one tensor.
      reuse: see `Layer`.

    Raises:
      TypeError: ``cell`` is not a cell.
      ValueError: ``attn_length`` is not positive, or the cell has a tuple as state while ``state_is_tuple`` is False.
    """

    def __init__(
        self,
        cell: RNNCell,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        require_cell("cell", cell)
        if nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(
                f"Cell returns tuple of states, but the flag state_is_tuple is not set: its sizes are {cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._cell = cell
        self._length = attn_length
        self._attn_size: int = cell.output_size if attn_size is None else attn_size
        self._features = self._attn_size if attn_vec_size is None else attn_vec_size
        self._input_size = input_size
        self._state_is_tuple = state_is_tuple
        self._parts = [cell.state_size, self._attn_size, self._attn_size * attn_length]
        self._state_size = tuple(self._parts) if state_is_tuple else sum(self._parts)
        self._output_size = self._attn_size

    def call(self, inputs: Tensor, state: Structure) -> tuple[Tensor, Structure]:
        before, attention, past = state if self._state_is_tuple else arrays.split(state, self._parts, 1)
        past = arrays.reshape(past, [-1, self._length, self._attn_size])
        size = self._input_size or known_columns(inputs)
        output, after = self._cell(linear([inputs, attention], size, True), before)
        query = arrays.concat(nest.flatten(after), 1) if self._state_is_tuple else after
        attention = self._attend(query, past)
        with variable_scope("attn_output_projection"):
            output = linear([output, attention], self._attn_size, True)
        past = arrays.concat([past[:, 1:], arrays.expand_dims(output, 1)], 1)
        past = arrays.reshape(past, [-1, self._length * self._attn_size])
        found = (after, attention, past)
        return output, found if self._state_is_tuple else arrays.concat(list(found), 1)

    def _attend(self, query: Tensor, past: Tensor) -> Tensor:
        """Returns the sum of past outputs, weighted by their similarity to the query: [batch, attn_size]."""
        with variable_scope("attention"):
            kernel = get_variable("attn_w", [1, 1, self._attn_size, self._features])
            vector = get_variable("attn_v", [self._features])
            hidden = arrays.reshape(past, [-1, self._length, 1, self._attn_size])
            seen = conv2d(hidden, kernel, [1, 1, 1, 1], "SAME")
            wanted = arrays.reshape(linear(query, self._features, True), [-1, 1, 1, self._features])
            weights = nn.softmax(reductions.reduce_sum(vector * math.tanh(seen + wanted), [2, 3]))
            weighted = arrays.reshape(weights, [-1, self._length, 1, 1]) * hidden
            return arrays.reshape(reductions.reduce_sum(weighted, [1, 2]), [-1, self._attn_size])


class HighwayWrapper(WrappingCell):
    """Outputs mixed with inputs by a learned gate (Srivastava et al., 2015).

    carry = sigmoid(x W + b); output := carry x + (1 - carry) output.

    Args:
      cell: the cell, whose outputs have the shapes of its inputs.
      couple_carry_transform_gates: the weight of outputs is 1 - carry, instead of a separate gate.
      carry_bias_init: the initial bias of ``carry``; the other gate's initial bias is its negative.

    Raises:
      ValueError: outputs have different shapes than inputs.
    """

    def __init__(self, cell: RNNCell, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0) -> None:
        super().__init__(cell)
        self._coupled = couple_carry_transform_gates
        self._carry_bias_init = carry_bias_init

    def __call__(
        self,
        inputs: Structure,
        state: Structure = None,
        scope: str | VariableScope | None = None,
        *args: object,
        **kwargs: object,
    ) -> Structure:
        outputs, after = self._cell(inputs, state, scope, *args, **kwargs)
        if not nest.same_structure(inputs, outputs):
            raise ValueError(f"Outputs are nested differently than inputs: {outputs}, {inputs}")
        for given, found in zip(nest.flatten(inputs), nest.flatten(outputs), strict=True):
            given.shape.assert_is_compatible_with(found.shape)
        return nest.map_structure(self._mixed, inputs, outputs), after

    def _gate(self, name: str, inputs: Tensor, bias: float) -> Tensor:
        size = known_columns(inputs)
        weights = get_variable(f"{name}_w", [size, size])
        return math.sigmoid(
            nn.bias_add(linalg.matmul(inputs, weights), get_variable(f"{name}_b", [size], initializer=Constant(bias)))
        )

    def _mixed(self, inputs: Tensor, output: Tensor) -> Tensor:
        carry = self._gate("carry", inputs, self._carry_bias_init)
        transform = 1 - carry if self._coupled else self._gate("transform", inputs, -self._carry_bias_init)
        return inputs * carry + output * transform


class CompiledWrapper(WrappingCell):
    """A cell that is compiled by XLA, as steps are in any case.

    Args:
      compile_stateful: see `jit_scope`.
    """

    def __init__(self, cell: RNNCell, compile_stateful: bool = False) -> None:
        super().__init__(cell)
        self._compile_stateful = compile_stateful

    def __call__(
        self,
        inputs: Structure,
        state: Structure = None,
        scope: str | VariableScope | None = None,
        *args: object,
        **kwargs: object,
    ) -> Structure:
        with jit_scope(self._compile_stateful):
            return self._cell(inputs, state, scope, *args, **kwargs)
