"""``tf.keras.backend``: convolutions, pooling, losses and recurrences, the operations of layers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import keras
import numpy as np

from headwater.graph.operation import Tensor
from headwater.keras.backend import graph_functions
from headwater.keras.graphs.calls import has_graph_value
from headwater.keras.graphs.phase import learning_phase_of_program
from headwater.keras.internals import backend as keras_backend
from headwater.keras.internals import keras_rnn
from headwater.keras.types import Value
from headwater.tf1.functional import conditions

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.graph.sparse_tensor import SparseTensor

_keras: Any = keras
ops: Any = keras.ops
"""A JAX array, a variable or a symbolic tensor of Keras, or Python or NumPy values."""
Pair = tuple[int, int]


# Convolutions and pooling ---------------------------------------------------------------------------------------


def _convolution(x: Value, kernel: Value, strides: object, padding: str, data_format: str | None, rate: Any) -> Value:
    if padding != "causal":
        return ops.conv(x, kernel, strides, padding, data_format, rate)
    left = int(rate if isinstance(rate, int) else rate[0]) * (kernel.shape[0] - 1)
    return ops.conv(temporal_padding(x, (left, 0)), kernel, strides, "valid", data_format, rate)


def conv1d(
    x: Value,
    kernel: Value,
    strides: int = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int = 1,
) -> Value:
    """A convolution along one dimension; with ``padding="causal"``, no result depends on later steps."""
    return _convolution(x, kernel, strides, padding, data_format, dilation_rate)


def conv2d(
    x: Value,
    kernel: Value,
    strides: Pair = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Pair = (1, 1),
) -> Value:
    """A convolution along two dimensions."""
    return ops.conv(x, kernel, strides, padding, data_format, dilation_rate)


def conv3d(
    x: Value,
    kernel: Value,
    strides: tuple[int, int, int] = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: tuple[int, int, int] = (1, 1, 1),
) -> Value:
    """A convolution along three dimensions."""
    return ops.conv(x, kernel, strides, padding, data_format, dilation_rate)


def conv2d_transpose(
    x: Value,
    kernel: Value,
    output_shape: Sequence[int | None],
    strides: Pair = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Pair = (1, 1),
) -> Value:
    """The gradient of a two-dimensional convolution with respect to an input of shape ``output_shape``."""
    strides = (strides[0], strides[1])
    first = 2 if (data_format or _keras.config.image_data_format()) == "channels_first" else 1
    extra: list[int] = []
    for place in range(2):
        size, wanted = x.shape[first + place], output_shape[first + place]
        reach = (kernel.shape[place] - 1) * dilation_rate[place] + 1
        least = (size - 1) * strides[place] + (reach if padding == "valid" else reach - 2 * (reach // 2))
        extra.append(int(wanted or 0) - least)
    return ops.conv_transpose(x, kernel, strides, padding, tuple(extra), data_format, dilation_rate)


def separable_conv2d(
    x: Value,
    depthwise_kernel: Value,
    pointwise_kernel: Value,
    strides: Pair = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Pair = (1, 1),
) -> Value:
    """A depthwise convolution, followed by a pointwise (1 x 1) convolution."""
    strides = (strides[0], strides[1])
    return ops.separable_conv(x, depthwise_kernel, pointwise_kernel, strides, padding, data_format, dilation_rate)


def _pool(x: Value, size: object, strides: object, padding: str, data_format: str | None, mode: str) -> Value:
    if mode not in ("max", "avg"):
        raise ValueError(f"Invalid pooling mode: {mode!r}; it is 'max' or 'avg'.")
    return (ops.max_pool if mode == "max" else ops.average_pool)(x, size, strides, padding, data_format)


def pool2d(
    x: Value,
    pool_size: Pair,
    strides: Pair = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Value:
    """The maximum, or the mean (``"avg"``), of each two-dimensional window."""
    return _pool(x, pool_size, strides, padding, data_format, pool_mode)


def pool3d(
    x: Value,
    pool_size: tuple[int, int, int],
    strides: tuple[int, int, int] = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Value:
    """The maximum, or the mean (``"avg"``), of each three-dimensional window."""
    return _pool(x, pool_size, strides, padding, data_format, pool_mode)


def local_conv1d(
    inputs: Value, kernel: Value, kernel_size: Sequence[int], strides: Sequence[int], data_format: str | None = None
) -> Value:
    """A convolution along one dimension with separate weights at each position.

    Args:
      inputs: [batch, steps, channels], or channels before steps.
      kernel: [output steps, window times channels, filters].
      kernel_size: the length of the window, in a sequence of one.
      strides: the distance of windows, in a sequence of one.
    """
    return _local(inputs, kernel, kernel_size, strides, (kernel.shape[0],), data_format)


def local_conv2d(
    inputs: Value,
    kernel: Value,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    output_shape: Sequence[int],
    data_format: str | None = None,
) -> Value:
    """A convolution along two dimensions with separate weights at each position.

    Args:
      inputs: [batch, rows, columns, channels], or channels before rows.
      kernel: [output rows times columns, window times channels, filters].
      output_shape: output rows and columns.
    """
    return _local(inputs, kernel, kernel_size, strides, output_shape, data_format)


def _local(
    inputs: Value,
    kernel: Value,
    window: Sequence[int],
    strides: Sequence[int],
    places: Sequence[int],
    data_format: str | None,
) -> Value:
    channels_first = (data_format or _keras.config.image_data_format()) == "channels_first"
    features: list[Value] = []
    for place in np.ndindex(*places):
        cut = tuple(slice(p * s, p * s + w) for p, s, w in zip(place, strides, window, strict=True))
        part = inputs[(slice(None), slice(None), *cut) if channels_first else (slice(None), *cut)]
        features.append(ops.reshape(part, (1, -1, kernel.shape[1])))
    outputs = ops.matmul(ops.concatenate(features, axis=0), kernel)
    outputs = ops.reshape(ops.transpose(outputs, (1, 0, 2)), (-1, *places, kernel.shape[-1]))
    return ops.moveaxis(outputs, -1, 1) if channels_first else outputs


def bias_add(x: Value, bias: Value, data_format: str | None = None) -> Value:
    """Adds a bias for each channel, or for each position and channel.

    Raises:
      ValueError: the bias has neither one dimension nor one less than ``x``.
    """
    rank, bias_rank = len(x.shape), len(bias.shape)
    if bias_rank not in (1, rank - 1):
        raise ValueError(f"Unexpected bias dimensions {bias_rank}, expect to be 1 or {rank - 1} dimensions")
    if (data_format or _keras.config.image_data_format()) == "channels_last" or rank < 3:
        return cast("Value", x + bias)
    if bias_rank == 1:
        return x + ops.reshape(bias, (1, -1) + (1,) * (rank - 2))
    return x + ops.moveaxis(bias, -1, 0)[None]


def resize_images(
    x: Value, height_factor: int, width_factor: int, data_format: str, interpolation: str = "nearest"
) -> Value:
    """Enlarges images by whole factors.

    Raises:
      ValueError: the interpolation is neither ``"nearest"`` nor ``"bilinear"``.
    """
    rows = 2 if data_format == "channels_first" else 1
    if interpolation == "nearest":
        return ops.repeat(ops.repeat(x, height_factor, axis=rows), width_factor, axis=rows + 1)
    if interpolation != "bilinear":
        raise ValueError('interpolation should be one of "nearest" or "bilinear".')
    size = (x.shape[rows] * height_factor, x.shape[rows + 1] * width_factor)
    return ops.image.resize(x, size, "bilinear", data_format=data_format)


def resize_volumes(x: Value, depth_factor: int, height_factor: int, width_factor: int, data_format: str) -> Value:
    """Enlarges volumes by whole factors, by repeating each element."""
    first = 2 if data_format == "channels_first" else 1
    for place, factor in enumerate((depth_factor, height_factor, width_factor)):
        x = ops.repeat(x, factor, axis=first + place)
    return x


def _padded(x: Value, padding: Sequence[Pair], data_format: str | None) -> Value:
    widths = [(0, 0), *(tuple(pair) for pair in padding)]
    first = (data_format or _keras.config.image_data_format()) == "channels_first"
    return ops.pad(x, [(0, 0), *widths] if first and len(padding) > 1 else [*widths, (0, 0)])


def temporal_padding(x: Value, padding: Pair = (1, 1)) -> Value:
    """Adds zeros before and after the elements of the second of three dimensions."""
    return _padded(x, [padding], None)


def spatial_2d_padding(
    x: Value, padding: tuple[Pair, Pair] = ((1, 1), (1, 1)), data_format: str | None = None
) -> Value:
    """Adds zeros around images."""
    return _padded(x, padding, data_format)


def spatial_3d_padding(
    x: Value, padding: tuple[Pair, Pair, Pair] = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None
) -> Value:
    """Adds zeros around volumes."""
    return _padded(x, padding, data_format)


# Normalisation, dropout, phases -----------------------------------------------------------------------------------


def batch_normalization(
    x: Value, mean: Value, var: Value, beta: Value | None, gamma: Value | None, axis: int = -1, epsilon: float = 1e-3
) -> Value:
    """``(x - mean) / sqrt(var + epsilon) * gamma + beta``; statistics broadcast, or belong to dimension ``axis``."""
    if len(mean.shape) == 1 and axis not in (-1, len(x.shape) - 1):
        dims = [1] * len(x.shape)
        dims[axis] = -1
        mean, var = ops.reshape(mean, dims), ops.reshape(var, dims)
        beta, gamma = (None if v is None else ops.reshape(v, dims) for v in (beta, gamma))
    scale = ops.rsqrt(var + epsilon)
    scale = scale if gamma is None else scale * gamma
    shift = -mean * scale
    return x * scale + (shift if beta is None else shift + beta)


def normalize_batch_in_training(
    x: Value, gamma: Value | None, beta: Value | None, reduction_axes: Sequence[int], epsilon: float = 1e-3
) -> tuple[Value, Value, Value]:
    """Normalises a batch by its mean and variance over dimensions; returns the result, and the mean and variance."""
    axes = list(reduction_axes)
    mean, variance = ops.moments(x, axes, keepdims=True)
    sizes = keras_backend.standardize_shape(x.shape)
    dims = [1 if place in axes else -1 if size is None else size for place, size in enumerate(sizes)]
    scale = None if gamma is None else ops.reshape(gamma, dims)
    shift = None if beta is None else ops.reshape(beta, dims)
    normalised = batch_normalization(x, mean, variance, shift, scale, epsilon=epsilon)
    variance = ops.squeeze(variance, axes)
    if len(sizes) == 4 and len(axes) == 3:
        # For images TensorFlow's kernel returns the unbiased variance, which moving averages need.
        counts = ops.shape(x)
        count = ops.cast(functools.reduce(operator.mul, [counts[axis] for axis in axes]), variance.dtype)
        variance = variance * (count / ops.maximum(count - 1, 1))
    return normalised, ops.squeeze(mean, axes), variance


def dropout(x: Value, level: float, noise_shape: Sequence[int] | None = None, seed: int | None = None) -> Value:
    """Sets a share ``level`` of the elements to zero at random, and scales the remaining elements to keep the expected
    sum."""
    return _keras.random.dropout(x, level, noise_shape, seed)


def _chosen(x: Value, alt: Value, training: bool | int | None) -> Value:
    phase = learning_phase_of_program() if training is None else training

    def value_of(chosen: Any) -> Any:
        return chosen() if callable(chosen) else chosen

    if isinstance(phase, Tensor):
        return conditions.cond(phase, lambda: value_of(x), lambda: value_of(alt))
    return value_of(x if phase else alt)


def in_train_phase(x: Value, alt: Value, training: bool | int | None = None) -> Value:
    """Returns ``x`` in training, else ``alt``; both may be functions. ``training`` defaults to the learning phase."""
    return _chosen(x, alt, training)


def in_test_phase(x: Value, alt: Value, training: bool | int | None = None) -> Value:
    """Returns ``alt`` in training, else ``x``; both may be functions. ``training`` defaults to the learning phase."""
    return _chosen(alt, x, training)


# Losses ---------------------------------------------------------------------------------------------------------


def binary_crossentropy(target: Value, output: Value, from_logits: bool = False) -> Value:
    """The cross entropy of truth values, for each element; ``output`` holds probabilities, or their logits."""
    return ops.binary_crossentropy(target, output, from_logits)


def categorical_crossentropy(target: Value, output: Value, from_logits: bool = False, axis: int = -1) -> Value:
    """The cross entropy of two distributions over a dimension."""
    return ops.categorical_crossentropy(target, output, from_logits, axis)


def sparse_categorical_crossentropy(target: Value, output: Value, from_logits: bool = False, axis: int = -1) -> Value:
    """The cross entropy of classes, given by their numbers, and a distribution over a dimension."""
    return ops.sparse_categorical_crossentropy(ops.cast(target, "int32"), output, from_logits, axis)


def ctc_label_dense_to_sparse(labels: Value, label_lengths: Value) -> tuple[HostArray, ...] | SparseTensor:
    """Returns each row's labels up to the row's length, as indices, values and shape of a sparse tensor."""
    if has_graph_value((labels, label_lengths)):
        return graph_functions.ctc_label_dense_to_sparse(labels, label_lengths)
    rows, lengths = np.asarray(labels), np.asarray(label_lengths).reshape(-1)
    places = np.argwhere(np.arange(rows.shape[1])[None, :] < lengths[:, None]).astype(np.int64)
    return places, rows[tuple(places.T)], np.array(rows.shape, np.int64)


def ctc_batch_cost(y_true: Value, y_pred: Value, input_length: Value, label_length: Value) -> Value | Tensor:
    """The loss of connectionist temporal classification for each example, [batch, 1]; the last class is blank.

    Args:
      y_true: labels, [batch, longest label].
      y_pred: probabilities, [batch, steps, classes].
      input_length: steps of each example, [batch, 1].
      label_length: labels of each example, [batch, 1].
    """
    if has_graph_value((y_true, y_pred, input_length, label_length)):
        return graph_functions.ctc_batch_cost(y_true, y_pred, input_length, label_length)
    lengths, steps = ops.cast(label_length, "int32")[:, 0], ops.cast(input_length, "int32")[:, 0]
    logits, labels = ops.log(y_pred + _keras.config.epsilon()), ops.cast(y_true, "int32")
    return ops.expand_dims(ops.ctc_loss(labels, logits, lengths, steps, mask_index=y_pred.shape[-1] - 1), 1)


def ctc_decode(
    y_pred: Value, input_length: Value, greedy: bool = True, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[Any], Any]:
    """The most probable labels of each example, filled up with -1, and their negative log probabilities.

    Args:
      y_pred: probabilities, [batch, steps, classes]; the last class is blank.
      input_length: steps of each example, [batch].
      greedy: whether to take the most probable class of each step; otherwise, a beam search of ``beam_width``.
      top_paths: number of results of a search.
    """
    if has_graph_value((y_pred, input_length)):
        return graph_functions.ctc_decode(y_pred, input_length, greedy, beam_width, top_paths)
    scores = ops.log(y_pred + _keras.config.epsilon())
    blank = y_pred.shape[-1] - 1
    strategy = "greedy" if greedy else "beam_search"
    paths, score = ops.ctc_decode(
        scores, ops.cast(input_length, "int32"), strategy, beam_width, top_paths, mask_index=blank
    )
    longest = [int(np.max(np.sum(np.asarray(path) >= 0, axis=1), initial=0)) for path in paths]
    return [path[:, :length] for path, length in zip(paths, longest, strict=True)], score


# Loops over time ------------------------------------------------------------------------------------------------


def rnn(
    step_function: Callable[[Value, list[Value]], tuple[Value, list[Value]]],
    inputs: Value,
    initial_states: Sequence[Value],
    go_backwards: bool = False,
    mask: Value | None = None,
    constants: Sequence[Value] | None = None,
    unroll: bool = False,
    input_length: int | None = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
) -> tuple[Value, Value, list[Value]]:
    """Runs a function for each time step, and returns the last output, all outputs and the last states.

    Args:
      step_function: maps the input of a step and the states (followed by ``constants``) to the output and the new
        states.
      inputs: [batch, steps, ...], or steps first with ``time_major``.
      initial_states: the initial states of the first step.
      go_backwards: from the last step to the first.
      mask: [batch, steps]; where it is false, output and states stay unchanged.
      constants: values that are passed to each step after its states.
      unroll: compiles each step separately instead of a loop.
      input_length: the number of steps, if the shape does not define it; unused in graphs.
      zero_output_for_mask: outputs are zero where the mask is false.
    """
    if has_graph_value((_keras.tree.flatten(inputs), initial_states, mask, constants)):
        return graph_functions.rnn(
            step_function, inputs, initial_states, go_backwards, mask, constants or (), time_major, zero_output_for_mask
        )
    return keras_rnn(
        step_function,
        inputs,
        list(initial_states),
        go_backwards=go_backwards,
        mask=mask,
        constants=None if constants is None else list(constants),
        unroll=unroll,
        input_length=input_length,
        time_major=time_major,
        zero_output_for_mask=zero_output_for_mask,
    )
