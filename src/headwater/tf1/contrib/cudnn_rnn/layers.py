"""Layers with cuDNN's parameters, computed by one scan for each layer and direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from headwater import dtypes
from headwater.dtypes import as_dtype
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import as_shape, dimension_value
from headwater.tf1.contrib.cudnn_rnn import saveables
from headwater.tf1.contrib.cudnn_rnn.converters import LINEAR_INPUT, UNIDIRECTION, directions, to_opaque
from headwater.tf1.functional import arrays, indexing, linalg, math, nn
from headwater.tf1.functional.scans import scan_over
from headwater.tf1.layers.base import InputSpec, Layer
from headwater.tf1.variables.initializers import ZEROS, GlorotUniform
from headwater.tf1.variables.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.contrib.cudnn_rnn.converters import CudnnParamsFormatConverter
    from headwater.tf1.variables.variables import Variable

_States: TypeAlias = "Sequence[Tensor]"
_Initializer: TypeAlias = "Callable[..., TensorLike]"


class _CudnnRNN(Layer):
    """Base of the layers.

    Args:
      num_layers: the number of layers.
      num_units: the size of the state.
      input_mode: ``"linear_input"``.
      direction: ``"unidirectional"`` or ``"bidirectional"``.
      dropout: the fraction of a layer's outputs that is set to 0 in training before the next layer.
      seed: seed of the dropout and of the default ``kernel_initializer``.
      dtype: float16, float32 or float64.
      kernel_initializer: the initializer of each matrix; Glorot's uniform one if None.
      bias_initializer: the initializer of each bias; 0 if None.
      name: see `Layer`.

    Raises:
      ValueError: the direction, input mode or type is not supported.
    """

    _saveable_class: ClassVar[type[saveables.CudnnOpaqueParamsSaveable]]
    _states: ClassVar[int] = 1

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = LINEAR_INPUT,
        direction: str = UNIDIRECTION,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
        kernel_initializer: _Initializer | None = None,
        bias_initializer: _Initializer | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        self._kind = as_dtype(dtype)
        if self._kind not in (dtypes.float16, dtypes.float32, dtypes.float64):
            raise ValueError(f"Only support float16, float32, float64, provided {self._kind.name}")
        self.num_dirs = directions(direction)
        self.num_layers = num_layers
        self.num_units = num_units
        self.input_mode = input_mode
        self.direction = direction
        self._dropout = dropout
        self._seed = seed
        self._kernel_initializer: _Initializer = kernel_initializer or GlorotUniform(seed=seed)
        self._bias_initializer: _Initializer = bias_initializer or ZEROS
        self._built: tuple[Variable, CudnnParamsFormatConverter, int] | None = None
        self.saveable: saveables.CudnnOpaqueParamsSaveable | None = None
        self._new_converter(1)  # checks the input mode

    def _new_converter(self, input_size: int) -> CudnnParamsFormatConverter:
        return self._saveable_class.converter(
            self.num_layers, self.num_units, input_size, input_mode=self.input_mode, direction=self.direction
        )

    def _parts(self) -> tuple[Variable, CudnnParamsFormatConverter, int]:
        if self._built is None:
            raise ValueError(f"'input_size' is unknown since layer {self.name} has not been built.")
        return self._built

    @property
    def kernel(self) -> Variable:
        """The variable with cuDNN's buffer of parameters."""
        return self._parts()[0]

    @property
    def input_size(self) -> int:
        """The size of the inputs."""
        return self._parts()[2]

    @property
    def rnn_mode(self) -> str:
        """``"lstm"``, ``"gru"``, ``"rnn_tanh"`` or ``"rnn_relu"``."""
        return self._saveable_class.converter.rnn_mode

    @property
    def canonical_weight_shapes(self) -> list[tuple[int, int]]:
        """Shapes of the buffer's matrices."""
        return self._parts()[1].weight_shapes

    @property
    def canonical_bias_shapes(self) -> list[list[int]]:
        """Shapes of the buffer's biases."""
        return self._new_converter(1).bias_shapes

    def state_shape(self, batch_size: TensorLike) -> tuple[list[TensorLike], ...]:
        """Shapes of the states: h and c of an LSTM, otherwise h."""
        return ([self.num_layers * self.num_dirs, batch_size, self.num_units],) * self._states

    def build(self, input_shape: ShapeLike) -> None:
        """Creates the variable, and adds the saveable to the collection ``SAVEABLE_OBJECTS``.

        Raises:
          ValueError: the shape has not three dimensions, or the last one is unknown.
        """
        if self.built:
            return
        shape = as_shape(input_shape)
        if len(shape) != 3:
            raise ValueError(f"Expecting input_shape with 3 dims, got {len(shape)}")
        size = dimension_value(shape[2])
        if size is None:
            raise ValueError("The last dimension of the inputs to `CudnnRNN` should be defined. Found `None`.")
        self.input_spec = InputSpec(ndim=3, axes={-1: size})
        converter = self._new_converter(size)
        self._set_scope()
        with variable_scope(self._scope, reuse=self._reuse):
            first = to_opaque(
                [self._kernel_initializer(list(shape), dtype=self._kind) for shape in converter.weight_shapes],
                [self._bias_initializer(shape, dtype=self._kind) for shape in converter.bias_shapes],
            )
            kernel = get_variable("opaque_kernel", dtype=self._kind, initializer=first)
        self._trainable_weights.append(kernel)
        self._built = (kernel, converter, size)
        if get_variable_scope().reuse is not True:
            self.saveable = self._saveable_class(
                kernel,
                self.num_layers,
                self.num_units,
                size,
                self.input_mode,
                self.direction,
                get_variable_scope(),
                f"{kernel.op.name}_saveable",
            )
            get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self.saveable)
        self.built = True

    def call(
        self,
        inputs: Tensor,
        initial_state: tuple[TensorLike, ...] | None = None,
        sequence_lengths: TensorLike | None = None,
        time_major: bool = True,
        training: bool = True,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Runs all layers.

        Args:
          inputs: [time, batch, input_size], or [batch, time, input_size] unless ``time_major``.
          initial_state: h and c of an LSTM, otherwise h: [layers * directions, batch, units], or
            [batch, layers * directions, units] unless ``time_major``; zeros if None.
          sequence_lengths: number of steps of each example, after which outputs are 0; None for all.
          time_major: see ``inputs``.
          training: whether outputs are dropped between layers.

        Returns:
          The outputs [time, batch, directions * units], and the last states; both in the order of their arguments.

        Raises:
          TypeError: ``initial_state`` is not a tuple.
        """
        if initial_state is not None and not isinstance(initial_state, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Invalid initial_state type: {initial_state}, expecting tuple.")
        value = convert_to_tensor(inputs, self._kind)
        if not time_major:
            value = arrays.transpose(value, [1, 0, 2])
        if initial_state is None:
            states = [arrays.zeros(shape, self._kind) for shape in self.state_shape(arrays.shape(value)[1])]
        else:
            states = [convert_to_tensor(state, self._kind) for state in initial_state]
            if not time_major:
                states = [arrays.transpose(state, [1, 0, 2]) for state in states]
        lengths = None if sequence_lengths is None else convert_to_tensor(sequence_lengths)
        outputs, states = self._run_layers(value, states, lengths, training)
        if not time_major:
            outputs, *states = (arrays.transpose(each, [1, 0, 2]) for each in (outputs, *states))
        return outputs, tuple(states)

    def _run_layers(
        self, value: Tensor, states: _States, lengths: Tensor | None, training: bool
    ) -> tuple[Tensor, list[Tensor]]:
        kernel, converter, _ = self._parts()
        parameters = list(converter.by_direction(kernel))
        rows = [arrays.unstack(state, self.num_layers * self.num_dirs) for state in states]
        last: list[_States] = []
        for layer in range(self.num_layers):
            if layer and self._dropout and training:
                value = nn.dropout(value, 1 - self._dropout, seed=self._seed)
            outputs: list[Tensor] = []
            for way in range(self.num_dirs):
                index = layer * self.num_dirs + way
                turned = value if way == 0 else _backwards(value, lengths)
                output, after = self._run(turned, [row[index] for row in rows], lengths, parameters[index])
                outputs.append(output if way == 0 else _backwards(output, lengths))
                last.append(after)
            value = outputs[0] if len(outputs) == 1 else arrays.concat(outputs, 2)
        return value, [arrays.stack(parts) for parts in zip(*last, strict=True)]

    def _run(
        self, value: Tensor, states: _States, lengths: Tensor | None, parameters: Sequence[Tensor]
    ) -> tuple[Tensor, _States]:
        """Returns the outputs [time, batch, units] of one layer in one direction, and its last states."""
        matrix, state_matrix, bias, state_bias = parameters
        depth = dimension_value(value.shape[2])
        flat = nn.bias_add(linalg.matmul(arrays.reshape(value, [-1, depth]), matrix, transpose_b=True), bias)
        time, batch = arrays.unstack(arrays.shape(value)[:2])
        products = arrays.reshape(flat, arrays.stack([time, batch, dimension_value(bias.shape[0])]))
        products.set_shape([*value.shape.as_list()[:2], dimension_value(bias.shape[0])])
        sequences = [products]
        if lengths is not None:
            sequences.append(arrays.transpose(indexing.sequence_mask(lengths, time), [1, 0]))

        def step(states: _States, slices: _States) -> tuple[_States, _States]:
            on_state = nn.bias_add(linalg.matmul(states[0], state_matrix, transpose_b=True), state_bias)
            after = self._step(slices[0], on_state, states)
            if len(slices) == 1:
                return after, [after[0]]
            kept = [indexing.where(slices[1], new, old) for new, old in zip(after, states, strict=True)]
            return kept, [indexing.where(slices[1], after[0], arrays.zeros_like(after[0]))]

        last, (outputs,) = scan_over(step, states, sequences)
        return outputs, last

    def _step(self, on_input: Tensor, on_state: Tensor, states: _States) -> _States:
        """Returns the next states, h first, for the gates' products [batch, gates * units]."""
        raise NotImplementedError(f"{type(self).__name__} does not define _step")


def _backwards(steps: Tensor, lengths: Tensor | None) -> Tensor:
    return arrays.reverse(steps, [0]) if lengths is None else indexing.reverse_sequence(steps, lengths, 0, 1)


class CudnnLSTM(_CudnnRNN):
    """Long short-term memory: its states are h and c, and it has no forget bias."""

    _saveable_class = saveables.CudnnLSTMSaveable
    _states = 2

    def _step(self, on_input: Tensor, on_state: Tensor, states: _States) -> _States:
        i, f, candidate, o = arrays.split(on_input + on_state, 4, 1)
        c = math.sigmoid(f) * states[1] + math.sigmoid(i) * math.tanh(candidate)
        return [math.sigmoid(o) * math.tanh(c), c]


class CudnnGRU(_CudnnRNN):
    """Gated recurrent units: the computation of `CudnnCompatibleGRUCell`."""

    _saveable_class = saveables.CudnnGRUSaveable

    def _step(self, on_input: Tensor, on_state: Tensor, states: _States) -> _States:
        input_reset, input_update, candidate = arrays.split(on_input, 3, 1)
        state_reset, state_update, from_state = arrays.split(on_state, 3, 1)
        update = math.sigmoid(input_update + state_update)
        candidate = math.tanh(candidate + math.sigmoid(input_reset + state_reset) * from_state)
        return [(1 - update) * candidate + update * states[0]]


class CudnnRNNTanh(_CudnnRNN):
    """The network of `BasicRNNCell`: h := tanh(x W + b_W + h R + b_R)."""

    _saveable_class = saveables.CudnnRNNTanhSaveable

    def _step(self, on_input: Tensor, on_state: Tensor, states: _States) -> _States:
        del states
        return [math.tanh(on_input + on_state)]


class CudnnRNNRelu(_CudnnRNN):
    """The network of `BasicRNNCell` with another activation: h := max(0, x W + b_W + h R + b_R)."""

    _saveable_class = saveables.CudnnRNNReluSaveable

    def _step(self, on_input: Tensor, on_state: Tensor, states: _States) -> _States:
        del states
        return [nn.relu(on_input + on_state)]
