"""``tf.quantization``: numbers as integers of few bits, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headwater.dtypes import DTypeLike, as_dtype, qint32, quint8
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, reductions
from headwater.tf1.functional.apply import apply, one


class QuantizeV2(NamedTuple):
    """Result of `quantize`: integers and the range that they represent."""

    output: Tensor
    output_min: Tensor
    output_max: Tensor


class QuantizedConcat(QuantizeV2):
    """Result of `quantized_concat`."""


class QuantizedConv2D(NamedTuple):
    """Result of `quantized_conv2d`: integers and the range that they represent."""

    output: Tensor
    min_output: Tensor
    max_output: Tensor


class QuantizedAvgPool(QuantizedConv2D):
    """Result of `quantized_avg_pool`."""


class QuantizedMaxPool(QuantizedConv2D):
    """Result of `quantized_max_pool`."""


class QuantizedReluX(NamedTuple):
    """Result of `quantized_relu_x`."""

    activations: Tensor
    min_activations: Tensor
    max_activations: Tensor


_MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")


def _check(name: str, given: object, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise ValueError(f"Value for attr '{name}' of \"{given}\" is not in the list of allowed values: {allowed}")


def quantize(
    input: TensorLike,
    min_range: TensorLike,
    max_range: TensorLike,
    T: DTypeLike,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
) -> QuantizeV2:
    """Quantises numbers between ``min_range`` and ``max_range`` to the nearest integers of type ``T``.

    Args:
      input: float32.
      min_range, max_range: scalars; the range is widened to include 0.
      T: ``tf.qint8``, ``quint8``, ``qint16``, ``quint16`` or ``qint32``.
      mode: ``MIN_COMBINED``, ``MIN_FIRST`` or ``SCALED``.
      round_mode: ``HALF_AWAY_FROM_ZERO``, or with ``SCALED`` also ``HALF_TO_EVEN``.

    Returns:
      The integers, and the range that they represent.

    Raises:
      TypeError: ``T`` is the wrong type.
      ValueError: the mode is unknown.
    """
    _check("mode", mode, _MODES)
    _check("round_mode", round_mode, ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"))
    dtype = as_dtype(T)
    if not dtype.is_quantized:
        raise TypeError(
            f"Value passed to parameter 'T' has DataType {dtype.name} not in list of allowed values: "
            "qint8, quint8, qint32, qint16, quint16"
        )
    op = apply("QuantizeV2", input, min_range, max_range, T=dtype, mode=mode, round_mode=round_mode, name=name)
    return QuantizeV2(*op.outputs)


def quantize_v2(
    input: TensorLike,
    min_range: TensorLike,
    max_range: TensorLike,
    T: DTypeLike,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
) -> QuantizeV2:
    """Same as `quantize`."""
    return quantize(input, min_range, max_range, T, mode, round_mode, name)


def dequantize(
    input: TensorLike, min_range: TensorLike, max_range: TensorLike, mode: str = "MIN_COMBINED", name: str | None = None
) -> Tensor:
    """Converts integers of `quantize` back to float32.

    Args:
      input: a tensor of a quantised type.
      min_range, max_range: the range that the integers represent.
      mode: the mode of `quantize`.
    """
    _check("mode", mode, _MODES)
    tensor = convert_to_tensor(input)
    return one("Dequantize", tensor, min_range, max_range, T=tensor.dtype.base_dtype, mode=mode, name=name)


def quantize_and_dequantize(
    input: TensorLike,
    input_min: TensorLike,
    input_max: TensorLike,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
) -> Tensor:
    """Rounds numbers to values representable in ``num_bits`` bits; the gradient passes unchanged.

    Args:
      input: floating.
      input_min, input_max: the range if ``range_given``; otherwise the range of ``input`` is used.
      signed_input: whether there are negative numbers.
      num_bits: number of bits.
      round_mode: ``HALF_TO_EVEN`` or ``HALF_UP``.
      narrow_range: do not use the lowest number.
    """
    _check("round_mode", round_mode, ("HALF_TO_EVEN", "HALF_UP"))
    tensor = convert_to_tensor(input)
    bounds = (convert_to_tensor(bound, tensor.dtype) for bound in (input_min, input_max))
    attrs = {"signed_input": signed_input, "num_bits": num_bits, "range_given": range_given}
    attrs |= {"round_mode": round_mode, "narrow_range": narrow_range}
    return one("QuantizeAndDequantizeV2", tensor, *bounds, name=name, **attrs)


def quantized_concat(
    concat_dim: TensorLike,
    values: list[TensorLike],
    input_mins: list[TensorLike],
    input_maxes: list[TensorLike],
    name: str | None = None,
) -> QuantizedConcat:
    """Concatenates quantised tensors over the union of their ranges.

    Args:
      concat_dim: the dimension, a scalar.
      values: tensors of one quantised type.
      input_mins, input_maxes: the range of each.
    """
    with name_scope(name, "QuantizedConcat", [concat_dim, *values]):
        tensors = [convert_to_tensor(value) for value in values]
        low = reductions.reduce_min(arrays.stack([convert_to_tensor(each, "float32") for each in input_mins]))
        high = reductions.reduce_max(arrays.stack([convert_to_tensor(each, "float32") for each in input_maxes]))
        dtype = tensors[0].dtype.base_dtype
        requantized = [
            quantize(dequantize(tensor, least, most), low, high, dtype).output
            for tensor, least, most in zip(tensors, input_mins, input_maxes, strict=True)
        ]
        return QuantizedConcat(arrays.concat(requantized, concat_dim), low, high)


def quantized_conv2d(
    input: TensorLike,
    filter: TensorLike,
    min_input: TensorLike,
    max_input: TensorLike,
    min_filter: TensorLike,
    max_filter: TensorLike,
    strides: Sequence[int],
    padding: str,
    out_type: DTypeLike = qint32,
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> QuantizedConv2D:
    """Convolves quantised numbers; returns the results and the range that they represent.

    Args:
      input: ``quint8``, of shape [batch, rows, columns, channels].
      filter: ``quint8``, of shape [rows, columns, channels, new channels].
      min_input, max_input, min_filter, max_filter: the ranges that they represent.
      strides: one for each dimension.
      padding: ``SAME`` or ``VALID``.
      out_type: ``tf.qint32``.
      dilations: ones.

    Raises:
      InvalidArgumentError: when it runs, with other types or dilations, for which TensorFlow has no kernels either.
    """
    _check("padding", padding, ("SAME", "VALID"))
    settings = {"strides": list(strides), "padding": padding, "dilations": list(dilations)}
    bounds = (min_input, max_input, min_filter, max_filter)
    op = apply("QuantizedConv2D", input, filter, *bounds, out_type=as_dtype(out_type), name=name, **settings)
    return QuantizedConv2D(*op.outputs)


def quantized_avg_pool(
    input: TensorLike,
    min_input: TensorLike,
    max_input: TensorLike,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    name: str | None = None,
) -> QuantizedAvgPool:
    """Returns the mean of each window of quantised numbers, rounded down, and the unchanged range.

    Args:
      input: ``quint8``, of shape [batch, rows, columns, channels].
      min_input, max_input: the range that it represents.
      ksize, strides: one for each dimension.
      padding: ``SAME`` or ``VALID``.
    """
    _check("padding", padding, ("SAME", "VALID"))
    settings = {"ksize": list(ksize), "strides": list(strides), "padding": padding}
    return QuantizedAvgPool(*apply("QuantizedAvgPool", input, min_input, max_input, name=name, **settings).outputs)


def quantized_max_pool(
    input: TensorLike,
    min_input: TensorLike,
    max_input: TensorLike,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    name: str | None = None,
) -> QuantizedMaxPool:
    """Returns the maximum of each window of quantised numbers; arguments as for `quantized_avg_pool`."""
    _check("padding", padding, ("SAME", "VALID"))
    settings = {"ksize": list(ksize), "strides": list(strides), "padding": padding}
    return QuantizedMaxPool(*apply("QuantizedMaxPool", input, min_input, max_input, name=name, **settings).outputs)


def quantized_relu_x(
    features: TensorLike,
    max_value: TensorLike,
    min_features: TensorLike,
    max_features: TensorLike,
    out_type: DTypeLike = quint8,
    name: str | None = None,
) -> QuantizedReluX:
    """Clips quantised numbers to the representations of 0 and ``max_value``.

    TensorFlow 1.15 defines this operation without a kernel; here it computes QuantizedRelu6 with another maximum.

    Args:
      features: ``quint8``.
      max_value: a scalar.
      min_features, max_features: the range that ``features`` represent.
      out_type: ``tf.quint8``.
    """
    dtype = as_dtype(out_type)
    op = apply("QuantizedReluX", features, max_value, min_features, max_features, out_type=dtype, name=name)
    return QuantizedReluX(*op.outputs)
