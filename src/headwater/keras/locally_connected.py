"""Locally connected layers: convolutions with separate weights at each position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from headwater.keras.backend import layers as backend
from headwater.keras.types import Value

_keras: Any = keras
ops: Any = keras.ops
"""A JAX array or a symbolic tensor of Keras."""


class _LocallyConnected(_keras.layers.Layer):
    _rank = 0

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str = "valid",
        data_format: str | None = None,
        activation: object = None,
        use_bias: bool = True,
        kernel_initializer: object = "glorot_uniform",
        bias_initializer: object = "zeros",
        kernel_regularizer: object = None,
        bias_regularizer: object = None,
        activity_regularizer: object = None,
        kernel_constraint: object = None,
        bias_constraint: object = None,
        implementation: int = 1,
        **kwargs: object,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        if padding.lower() != "valid":
            raise ValueError(f"Invalid border mode for {type(self).__name__} (only 'valid' is supported): {padding}")
        if implementation not in (1, 2, 3):
            raise ValueError(f"Unrecognized implementation mode: {implementation}.")
        self.filters = filters
        self.kernel_size = self._tuple(kernel_size)
        self.strides = self._tuple(strides)
        self.data_format = data_format or _keras.config.image_data_format()
        self.activation = _keras.activations.get(activation)
        self.use_bias = use_bias
        self._kernel = {
            "initializer": _keras.initializers.get(kernel_initializer),
            "regularizer": _keras.regularizers.get(kernel_regularizer),
            "constraint": _keras.constraints.get(kernel_constraint),
        }
        self._bias = {
            "initializer": _keras.initializers.get(bias_initializer),
            "regularizer": _keras.regularizers.get(bias_regularizer),
            "constraint": _keras.constraints.get(bias_constraint),
        }
        self.implementation = implementation

    def _tuple(self, value: int | Sequence[int]) -> tuple[int, ...]:
        return (value,) * self._rank if isinstance(value, int) else tuple(value)

    def _places(self, input_shape: Sequence[int | None]) -> tuple[int, ...]:
        sizes = input_shape[2:] if self.data_format == "channels_first" else input_shape[1:-1]
        if None in sizes:
            raise ValueError(f"{type(self).__name__} needs inputs of known sizes, but got {tuple(input_shape)}.")
        pairs = zip(sizes, self.kernel_size, self.strides, strict=True)
        return tuple((int(size or 0) - window) // stride + 1 for size, window, stride in pairs)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Makes the weights.

        Raises:
          ValueError: a size of the inputs is unknown.
        """
        places = self._places(input_shape)
        channels = input_shape[1 if self.data_format == "channels_first" else -1]
        if channels is None:
            raise ValueError(f"The channel dimension of the inputs of {type(self).__name__} should be defined.")
        window = count = 1
        for size, place in zip(self.kernel_size, places, strict=True):
            window, count = window * size, count * place
        self.kernel = self.add_weight(shape=(count, window * channels, self.filters), name="kernel", **self._kernel)
        self.bias = self.add_weight(shape=(*places, self.filters), name="bias", **self._bias) if self.use_bias else None

    def call(self, inputs: Value) -> Value:
        """Multiplies each window of the inputs by its own weights."""
        places = self._places(inputs.shape)
        if self._rank == 1:
            outputs = backend.local_conv1d(inputs, self.kernel, self.kernel_size, self.strides, self.data_format)
        else:
            outputs = backend.local_conv2d(
                inputs, self.kernel, self.kernel_size, self.strides, places, self.data_format
            )
        if self.bias is not None:
            bias = ops.convert_to_tensor(self.bias)
            outputs = outputs + (ops.moveaxis(bias, -1, 0) if self.data_format == "channels_first" else bias)
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """The shape of the outputs."""
        places = self._places(input_shape)
        if self.data_format == "channels_first":
            return (input_shape[0], self.filters, *places)
        return (input_shape[0], *places, self.filters)

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this layer."""
        of = _keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "data_format": self.data_format,
            "activation": of(self.activation),
            "use_bias": self.use_bias,
            **{f"kernel_{name}": of(value) for name, value in self._kernel.items()},
            **{f"bias_{name}": of(value) for name, value in self._bias.items()},
            "implementation": self.implementation,
        }


class LocallyConnected1D(_LocallyConnected):
    """A convolution along time with separate weights at each step."""

    _rank = 1


class LocallyConnected2D(_LocallyConnected):
    """A convolution of images with separate weights at each position."""

    _rank = 2
