"""Conversion between cuDNN's buffer of parameters and the variables of platform-independent cells.

The buffer contains all matrices, then all biases, by layer and direction. A layer in one direction has a matrix
[units, input's size] for each gate, then a matrix [units, units] for each gate; and a bias [units] for each of these
matrices. The gates are i, f, c, o of an LSTM, and r, u, c of a GRU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from headwater.tf1.functional import arrays

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike

UNIDIRECTION, BIDIRECTION = "unidirectional", "bidirectional"
LINEAR_INPUT: Final = "linear_input"
_INPUT_MODES = (LINEAR_INPUT, "skip_input", "auto_select")


def directions(direction: str) -> int:
    """Returns the number of directions.

    Raises:
      ValueError: ``direction`` is unknown.
    """
    if direction not in (UNIDIRECTION, BIDIRECTION):
        raise ValueError(f"Invalid direction: {direction}, expecting {UNIDIRECTION} or {BIDIRECTION}")
    return 1 if direction == UNIDIRECTION else 2


def check_input_mode(input_mode: str) -> None:
    """Raises ValueError if ``input_mode`` is unknown, or may omit the first matrices, which cells cannot do."""
    if input_mode not in _INPUT_MODES:
        raise ValueError(f"Invalid input_mode: {input_mode}, expect one of {_INPUT_MODES}")
    if input_mode != LINEAR_INPUT:
        raise ValueError(f"input_mode {input_mode!r} is not supported: use {LINEAR_INPUT!r}")


class CudnnParamsFormatConverter:
    """Base of the converters of one kind of network.

    Args:
      num_layers: the number of layers.
      num_units: the size of the state.
      input_size: the size of the first layer's inputs.
      num_proj: the size of h if it is a projection; None and 0 for none.
      input_mode: ``"linear_input"``.
      direction: ``"unidirectional"`` or ``"bidirectional"``.
    """

    rnn_mode: ClassVar[str]
    gates: ClassVar[int]
    _joint: ClassVar[tuple[int, ...]]
    """The gates whose parameters on inputs and on states are one variable, in its order."""

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_size: int,
        num_proj: int | None = None,
        input_mode: str = LINEAR_INPUT,
        direction: str = UNIDIRECTION,
    ) -> None:
        check_input_mode(input_mode)
        self._num_units = num_units
        self._num_proj = num_proj or 0
        self._num_dirs = directions(direction)
        self._width = self._num_proj or num_units
        later = self._width * self._num_dirs
        # The inputs' size of every layer and direction.
        self._depths = [size for size in (input_size, *[later] * (num_layers - 1)) for _ in range(self._num_dirs)]

    @property
    def weight_shapes(self) -> list[tuple[int, int]]:
        """Shapes of the buffer's matrices."""
        units, width = self._num_units, self._width
        projection = [(width, units)] if self._num_proj else []
        return [
            shape
            for depth in self._depths
            for shape in [*[(units, depth)] * self.gates, *[(units, width)] * self.gates, *projection]
        ]

    @property
    def bias_shapes(self) -> list[list[int]]:
        """Shapes of the buffer's biases."""
        return [[self._num_units]] * (2 * self.gates * len(self._depths))

    def tf_canonical_to_opaque(
        self, tf_canonicals: Sequence[Tensor], weights_proj: Sequence[Tensor] | None = None
    ) -> Tensor:
        """Returns the buffer.

        Args:
          tf_canonicals: kernels of cells, by layer and direction; then their biases.
          weights_proj: kernels of the projections.
        """
        return to_opaque(*self._tf_canonical_to_cu_canonical(tf_canonicals, weights_proj))

    def opaque_to_tf_canonical(self, opaque_param: TensorLike) -> tuple[list[Tensor], ...]:
        """Returns the kernels of cells, their biases, and the projections' kernels if there are projections."""
        shapes, biases = self.weight_shapes, self.bias_shapes
        parts = arrays.split(opaque_param, [*(rows * columns for rows, columns in shapes), *(n for (n,) in biases)])
        weights = [arrays.reshape(part, shape) for part, shape in zip(parts, shapes, strict=False)]
        return self._cu_canonical_to_tf_canonical(weights, parts[len(shapes) :])

    def by_direction(self, opaque: TensorLike) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Yields, by layer and direction, parameters of all gates.

        Matrices on inputs [gates * units, depth] and on states [gates * units, units], and their biases
        [gates * units].
        """
        rows = self.gates * self._num_units
        sizes = [rows * columns for depth in self._depths for columns in (depth, self._width)]
        parts = arrays.split(opaque, [*sizes, *[rows] * len(sizes)])
        for index, depth in enumerate(self._depths):
            on_inputs, on_states = parts[2 * index : 2 * index + 2]
            bias, state_bias = parts[len(sizes) + 2 * index : len(sizes) + 2 * index + 2]
            matrix, state_matrix = arrays.reshape(on_inputs, [rows, depth]), arrays.reshape(on_states, [rows, -1])
            yield matrix, state_matrix, bias, state_bias

    def _cu_canonical_to_tf_canonical(
        self, cu_weights: Sequence[Tensor], cu_biases: Sequence[Tensor]
    ) -> tuple[list[Tensor], ...]:
        count, projections = 2 * self.gates, int(self._num_proj > 0)
        weights: list[Tensor] = []
        biases: list[Tensor] = []
        projected: list[Tensor] = []
        for index in range(len(self._depths)):
            of_layer = cu_weights[index * (count + projections) :][: count + projections]
            weights += self._cell_weights(of_layer[: self.gates], of_layer[self.gates : count])
            projected += [arrays.transpose(matrix) for matrix in of_layer[count:]]
            of_layer = cu_biases[index * count : (index + 1) * count]
            biases += self._cell_biases(of_layer[: self.gates], of_layer[self.gates :])
        return (weights, biases, projected) if projections else (weights, biases)

    def _tf_canonical_to_cu_canonical(
        self, tf_canonicals: Sequence[Tensor], weights_proj: Sequence[Tensor] | None = None
    ) -> tuple[list[Tensor], list[Tensor]]:
        half = len(tf_canonicals) // 2
        count = half // len(self._depths)
        weights: list[Tensor] = []
        biases: list[Tensor] = []
        for index, depth in enumerate(self._depths):
            here = slice(index * count, (index + 1) * count)
            weights += self._cudnn_weights(depth, *tf_canonicals[:half][here])
            if weights_proj is not None:
                weights.append(arrays.transpose(weights_proj[index]))
            biases += self._cudnn_biases(*tf_canonicals[half:][here])
        return weights, biases

    def _cell_weights(self, on_inputs: Sequence[Tensor], on_states: Sequence[Tensor]) -> list[Tensor]:
        """Returns the kernels of a cell for the matrices of one layer in one direction."""
        rows = [arrays.concat([on_inputs[gate], on_states[gate]], 1) for gate in self._joint]
        return [arrays.transpose(arrays.concat(rows, 0))]

    def _cudnn_weights(self, depth: int, *kernels: Tensor) -> list[Tensor]:
        """Returns the matrices of one layer in one direction for the kernels of a cell."""
        parts = arrays.split(arrays.transpose(kernels[0]), len(self._joint), 0)
        pairs = [arrays.split(parts[self._joint.index(gate)], [depth, self._width], 1) for gate in sorted(self._joint)]
        return [pair[0] for pair in pairs] + [pair[1] for pair in pairs]

    def _cell_biases(self, on_inputs: Sequence[Tensor], on_states: Sequence[Tensor]) -> list[Tensor]:
        """Returns the biases of a cell, which are the sums of both biases of its gates."""
        return [arrays.concat([on_inputs[gate] + on_states[gate] for gate in self._joint], 0)]

    def _cudnn_biases(self, *biases: Tensor) -> list[Tensor]:
        """Returns the biases of one layer in one direction: both of a gate are half of the cell's bias."""
        parts = arrays.split(biases[0], len(self._joint), 0)
        halves = [parts[self._joint.index(gate)] * 0.5 for gate in sorted(self._joint)]
        return halves + halves


def to_opaque(weights: Sequence[TensorLike], biases: Sequence[TensorLike]) -> Tensor:
    """Returns the buffer with these matrices and biases."""
    return arrays.concat([*(arrays.reshape(matrix, [-1]) for matrix in weights), *biases], 0)


class CudnnParamsFormatConverterLSTM(CudnnParamsFormatConverter):
    """Converter of a `CudnnLSTM`; the variables are a `CudnnCompatibleLSTMCell`'s, with the gates i, c, f, o."""

    rnn_mode = "lstm"
    gates = 4
    _joint = (0, 2, 1, 3)


class CudnnParamsFormatConverterGRU(CudnnParamsFormatConverter):
    """Converter of a `CudnnGRU`; the variables are a `CudnnCompatibleGRUCell`'s."""

    rnn_mode = "gru"
    gates = 3
    _joint = (0, 1)

    def _cell_weights(self, on_inputs: Sequence[Tensor], on_states: Sequence[Tensor]) -> list[Tensor]:
        candidate = [arrays.transpose(on_inputs[2]), arrays.transpose(on_states[2])]
        return [*super()._cell_weights(on_inputs, on_states), *candidate]

    def _cudnn_weights(self, depth: int, *kernels: Tensor) -> list[Tensor]:
        joint = super()._cudnn_weights(depth, kernels[0])
        on_input, on_state = (arrays.transpose(kernel) for kernel in kernels[1:])
        return [*joint[:2], on_input, *joint[2:], on_state]

    def _cell_biases(self, on_inputs: Sequence[Tensor], on_states: Sequence[Tensor]) -> list[Tensor]:
        return [*super()._cell_biases(on_inputs, on_states), on_inputs[2], on_states[2]]

    def _cudnn_biases(self, *biases: Tensor) -> list[Tensor]:
        joint = super()._cudnn_biases(biases[0])
        return [*joint[:2], biases[1], *joint[2:], biases[2]]


class CudnnParamsFormatConverterTanh(CudnnParamsFormatConverter):
    """Converter of a `CudnnRNNTanh`; the variables are a `BasicRNNCell`'s."""

    rnn_mode = "rnn_tanh"
    gates = 1
    _joint = (0,)


class CudnnParamsFormatConverterRelu(CudnnParamsFormatConverterTanh):
    """Converter of a `CudnnRNNRelu`; the variables are a `BasicRNNCell`'s."""

    rnn_mode = "rnn_relu"
