"""Layers, cells, initialisers and constraints of TensorFlow 1.15's ``tf.keras`` that Keras 3 has removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from headwater.keras.types import Value

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_keras: Any = keras
ops: Any = keras.ops
"""A JAX array or a symbolic tensor of Keras."""


class ThresholdedReLU(_keras.layers.Layer):
    """``x`` where it is greater than ``theta``, elsewhere 0.

    Raises:
      ValueError: ``theta`` is negative.
    """

    def __init__(self, theta: float = 1.0, **kwargs: object) -> None:
        super().__init__(**kwargs)
        if theta is None or theta < 0:  # pyright: ignore[reportUnnecessaryComparison] - programs pass None
            raise ValueError(f"Theta of a Thresholded ReLU layer cannot be None or negative, and is {theta}.")
        self.theta = theta

    def call(self, inputs: Value) -> Value:
        """Returns elements greater than ``theta``, and 0 for others."""
        return inputs * ops.cast(inputs > self.theta, inputs.dtype)

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this layer."""
        return {**super().get_config(), "theta": self.theta}

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The shape of the outputs."""
        return input_shape


class CuDNNLSTM(_keras.layers.LSTM):
    """An LSTM with cuDNN's activations; it runs on every device."""

    def __init__(self, units: int, **kwargs: object) -> None:
        super().__init__(units, **kwargs)

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this layer."""
        return _without_activations(super().get_config())


class CuDNNGRU(_keras.layers.GRU):
    """A GRU with cuDNN's activations; it runs on every device."""

    def __init__(self, units: int, **kwargs: object) -> None:
        super().__init__(units, reset_after=True, **kwargs)

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this layer."""
        return _without_activations(super().get_config())


def _without_activations(config: dict[str, object]) -> dict[str, object]:
    left_out = ("activation", "recurrent_activation", "use_bias", "dropout", "recurrent_dropout", "unroll")
    return {name: value for name, value in config.items() if name not in (*left_out, "reset_after")}


class AbstractRNNCell(_keras.layers.Layer):
    """The base class of cells of recurrent networks: ``call(inputs, states)`` returns the output and the new states."""

    @property
    def state_size(self) -> Tree:
        """The size of the state, or of each of its parts."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Tree:
        """The size of the output."""
        raise NotImplementedError("Abstract method")

    def call(self, inputs: Value, states: object) -> tuple[Value, Any]:
        """One step."""
        raise NotImplementedError("Abstract method")

    def get_initial_state(
        self, batch_size: int | None = None, inputs: Value | None = None, dtype: str | None = None
    ) -> Tree:
        """States of zeros."""
        size = batch_size if inputs is None else ops.shape(inputs)[0]
        return _keras.tree.map_structure(
            lambda units: ops.zeros((size, units), dtype or self.compute_dtype), self.state_size
        )


class PeepholeLSTMCell(_keras.layers.LSTMCell):
    """An LSTM cell with peephole connections from its memory to its gates (Gers and others, 2002)."""

    def build(self, input_shape: object) -> None:
        """Makes the weights."""
        super().build(input_shape)
        self.input_gate_peephole_weights, self.forget_gate_peephole_weights, self.output_gate_peephole_weights = (
            self.add_weight(
                shape=(self.units,), name=f"{gate}_gate_peephole_weights", initializer=self.kernel_initializer
            )
            for gate in ("input", "forget", "output")
        )

    def call(self, inputs: Value, states: Any, training: bool = False) -> tuple[Value, list[Value]]:
        """One step."""
        del training
        before, memory = states
        sums = ops.matmul(inputs, self.kernel) + ops.matmul(before, self.recurrent_kernel)
        if self.bias is not None:
            sums = sums + self.bias
        into, forget, fresh, out = ops.split(sums, 4, axis=1)
        into = self.recurrent_activation(into + self.input_gate_peephole_weights * memory)
        forget = self.recurrent_activation(forget + self.forget_gate_peephole_weights * memory)
        memory = forget * memory + into * self.activation(fresh)
        output = self.recurrent_activation(out + self.output_gate_peephole_weights * memory) * self.activation(memory)
        return output, [output, memory]


class RadialConstraint(_keras.constraints.Constraint):
    """Constrains kernels of convolutions to be invariant under rotation by 90 degrees."""

    def __call__(self, value: Value) -> Value:
        """The kernel with all weights of a ring equal; the rings take elements of the diagonal, as in TensorFlow 1.15.

        Raises:
          ValueError: there are not four dimensions, or the windows are not square.
        """
        if len(value.shape) != 4 or value.shape[0] != value.shape[1]:
            raise ValueError(
                f"The weight tensor must be of rank 4, with windows that are square, but is of shape {value.shape}"
            )
        size = int(value.shape[0])
        middle, odd = divmod(size, 2)
        rings = [middle - 1, *(middle + ring - odd for ring in range(1, middle + odd))]
        depth = [min(place, size - 1 - place) for place in range(size)]
        deepest = max(depth)
        places = [rings[deepest - min(row, column)] for row in depth for column in depth]
        diagonal = ops.stack([value[place, place] for place in range(size)])
        return ops.reshape(ops.take(diagonal, ops.array(places), axis=0), value.shape)


class normal(_keras.initializers.RandomNormal):
    """Numbers of a normal distribution."""

    def __init__(
        self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None, dtype: str = "float32"
    ) -> None:
        super().__init__(mean, stddev, seed)
        self._dtype = dtype

    def __call__(self, shape: object, dtype: str | None = None) -> Value:
        """Numbers of this shape."""
        return super().__call__(shape, dtype or self._dtype)


class uniform(_keras.initializers.RandomUniform):
    """Numbers drawn evenly."""

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None, dtype: str = "float32"
    ) -> None:
        super().__init__(minval, maxval, seed)
        self._dtype = dtype

    def __call__(self, shape: object, dtype: str | None = None) -> Value:
        """Numbers of this shape."""
        return super().__call__(shape, dtype or self._dtype)
