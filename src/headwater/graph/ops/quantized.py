"""Conversion between numbers in a range and integers of few bits. Each mode rounds as TensorFlow 1.15 does."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from headwater.dtypes import DType, float32, qint8, qint16, qint32, quint8, quint16
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.convolution import conv2d, max_pool, pool_spec, summed_windows
from headwater.graph.ops.define import host, pure
from headwater.graph.registry import HostArray, Inference, Spec, lookup
from headwater.lazy_jax import custom_vjp, jax, jnp

#: The smallest and the largest number of each type.
_BOUNDS: Final[dict[DType, tuple[int, int]]] = {
    qint8: (-128, 127),
    quint8: (0, 255),
    qint16: (-32768, 32767),
    quint16: (0, 65535),
    qint32: (-(2**31), 2**31 - 1),
}


def _bounds(dtype: DType) -> tuple[int, int]:
    return _BOUNDS[dtype.base_dtype]


def _three(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["T"], inference.inputs[0].dims), Spec(float32, ()), Spec(float32, ())]


def _as_floats(inference: Inference) -> Sequence[Spec]:
    return [Spec(float32, inference.inputs[0].dims)]


def _away(values: Any) -> Any:
    """Rounds to the nearest integer, halves away from zero."""
    return np.sign(values) * np.floor(np.abs(values) + 0.5)


@host("QuantizeV2", inputs="input:float32, min_range:float32, max_range:float32", infer=_three)
def quantize(
    input: HostArray,
    min_range: HostArray,
    max_range: HostArray,
    *,
    T: Any,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
) -> tuple[HostArray, HostArray, HostArray]:
    """Returns the nearest integers of type ``T``, and the bounds of the range that the integers represent.

    ``MIN_COMBINED`` and ``MIN_FIRST`` spread the numbers evenly over the range, which is extended to include 0.
    ``SCALED`` multiplies by a factor, so that 0 represents 0, and does not use the lowest number of a signed type.

    Raises:
      InvalidArgumentError: ``min_range`` is above ``max_range``, or the mode does not support ``round_mode``.
    """
    if mode != "SCALED" and round_mode != "HALF_AWAY_FROM_ZERO":
        raise InvalidArgumentError(f"Round mode '{round_mode}' only supported for mode 'SCALED', but mode is '{mode}'.")
    low, high = float(min_range), float(max_range)
    if low > high:
        raise InvalidArgumentError("input_max_range must be larger than input_min_range.")
    epsilon = max(1.0, abs(low), abs(high)) / 100.0
    low, high = min(0.0, low), max(0.0, max(high, low + epsilon))
    least, most = _bounds(T)
    x = np.asarray(input, np.float32)
    if mode == "SCALED":
        return _scaled(x, low, high, T, round_mode)
    clipped = np.clip(x, np.float32(low), np.float32(high))
    if mode == "MIN_COMBINED":
        spread = np.float32((most - least) / (high - low))
        found = (clipped - np.float32(low)) * spread
        if least < 0:
            found = found - np.float32((most - least + 1) / 2)
        rounded = _away(found.astype(np.float64))
    else:
        spread = np.float64(most - least) / (high - low)
        rounded = _away(clipped.astype(np.float64) * spread) - (_away(low * spread) - least)
    return (
        np.clip(rounded, least, most).astype(T.numpy_dtype),
        np.asarray(low, np.float32),
        np.asarray(high, np.float32),
    )


def _scaled(x: HostArray, low: float, high: float, dtype: DType, round_mode: str) -> Any:
    least, most = _bounds(dtype)
    signed = least < 0
    largest = float(np.finfo(np.float32).max)
    scale = min(least / low if signed and low < 0 else largest, most / high if high > 0 else largest)
    bounds = (least / scale if signed else 0.0, most / scale)
    scaled = np.clip(x, np.float32(bounds[0]), np.float32(bounds[1])) * np.float32(scale)
    rounded = np.rint(scaled) if round_mode == "HALF_TO_EVEN" else _away(scaled.astype(np.float64))
    return rounded.astype(dtype.numpy_dtype), np.asarray(bounds[0], np.float32), np.asarray(bounds[1], np.float32)


@host("Dequantize", inputs="input:T|quantized, min_range:float32, max_range:float32", infer=_as_floats)
def dequantize(
    input: HostArray, min_range: HostArray, max_range: HostArray, *, T: Any, mode: str = "MIN_COMBINED"
) -> HostArray:
    """Restores the input of `quantize`, float32, from its integers and bounds."""
    low, high = np.float32(min_range), np.float32(max_range)
    least, most = _bounds(T)
    x = np.asarray(input).astype(np.float32)
    if mode == "SCALED":
        scale = max(low / np.float32(least), high / np.float32(most)) if least < 0 else high / np.float32(most)
        return x * np.float32(scale)
    step = (high - low) / np.float32(most - least)
    if mode == "MIN_COMBINED":
        middle = np.float32((most - least + 1) / 2 if least < 0 else 0)
        return (x + middle) * step + low
    nearest = np.float32(round(float(low) / float(step)) * float(step)) if step else low
    return nearest + (x - np.float32(least)) * step


@functools.partial(custom_vjp, nondiff_argnums=(3, 4, 5, 6, 7))
def _through(
    x: jax.Array, low: jax.Array, high: jax.Array, signed: bool, bits: int, given: bool, mode: str, narrow: bool
) -> jax.Array:
    if not given:
        low, high = jnp.min(x), jnp.max(x)
    least = (-(2 ** (bits - 1)) + narrow if signed else int(narrow)) * 1.0
    most = (2 ** (bits - 1) - 1 if signed else 2**bits - 1) * 1.0
    of_low = jnp.where(least * low > 0, least / low, jnp.inf)
    of_high = jnp.where(most * high > 0, most / high, jnp.inf)
    scale = jnp.minimum(of_low, of_high)
    scale = jnp.where(jnp.isfinite(scale), scale, 1.0).astype(x.dtype)
    bottom, top = jnp.where(of_low < of_high, low, least / scale), jnp.where(of_low < of_high, most / scale, high)
    scaled = (jnp.clip(x, bottom, top) if given else x) * scale
    rounded = jnp.round(scaled) if mode == "HALF_TO_EVEN" else jnp.floor(scaled + 0.5)
    return (rounded / scale).astype(x.dtype)


def _through_forward(
    x: jax.Array, low: jax.Array, high: jax.Array, signed: bool, bits: int, given: bool, mode: str, narrow: bool
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return _through(x, low, high, signed, bits, given, mode, narrow), (low, high)


def _through_backward(
    signed: bool, bits: int, given: bool, mode: str, narrow: bool, kept: tuple[jax.Array, jax.Array], grad: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    del signed, bits, given, mode, narrow
    return grad, jnp.zeros_like(kept[0]), jnp.zeros_like(kept[1])


_through.defvjp(_through_forward, _through_backward)


def _first(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.inputs[0].dtype.base_dtype, inference.inputs[0].dims)]


@pure("QuantizeAndDequantizeV2", inputs="input:T|floating, input_min:T, input_max:T", infer=_first)
def quantize_and_dequantize(
    input: jax.Array,
    input_min: jax.Array,
    input_max: jax.Array,
    *,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    narrow_range: bool = False,
) -> jax.Array:
    """Rounds to the nearest numbers that ``num_bits`` bits can represent, scaled so that 0 is among them; the gradient
    is passed unchanged."""
    return _through(
        jnp.asarray(input),
        jnp.asarray(input_min),
        jnp.asarray(input_max),
        signed_input,
        num_bits,
        range_given,
        round_mode,
        narrow_range,
    )


# Layers on quantised numbers -----------------------------------------------------------------------------------------

_POOLED: Final = "input:T|quantized, min_input:float32, max_input:float32"


def _with_range(spec: Spec) -> Sequence[Spec]:
    return [spec, Spec(float32, ()), Spec(float32, ())]


def _pooled(inference: Inference) -> Sequence[Spec]:
    return _with_range(pool_spec(inference)[0])


def _of_8_bits(what: str, *arrays: jax.Array) -> None:
    """Raises InvalidArgumentError for an array that is not ``quint8``, the only type that TensorFlow's kernels
    support."""
    if any(np.dtype(array.dtype) != np.uint8 for array in arrays):
        raise InvalidArgumentError(f"No OpKernel was registered to support Op '{what}' of other than quint8")


@pure("QuantizedAvgPool", inputs=_POOLED, infer=_pooled)
def quantized_avg_pool(
    input: jax.Array,
    min_input: jax.Array,
    max_input: jax.Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns the mean of each window, rounded down; the range is unchanged."""
    _of_8_bits("QuantizedAvgPool", input)
    total, counts = summed_windows(jnp.asarray(input, jnp.int32), ksize, strides, padding)
    return (total // counts).astype(input.dtype), min_input, max_input


@pure("QuantizedMaxPool", inputs=_POOLED, infer=_pooled)
def quantized_max_pool(
    input: jax.Array,
    min_input: jax.Array,
    max_input: jax.Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns the maximum of each window; the range is unchanged."""
    _of_8_bits("QuantizedMaxPool", input)
    return max_pool(input, ksize=ksize, strides=strides, padding=padding), min_input, max_input


def _scale(low: jax.Array, high: jax.Array) -> jax.Array:
    """Returns the number of steps of ``quint8`` that represent a difference of 1."""
    return 255.0 / (high - low)


def _rounded(values: jax.Array) -> jax.Array:
    return jnp.sign(values) * jnp.floor(jnp.abs(values) + 0.5)


def _zero(low: jax.Array, high: jax.Array) -> jax.Array:
    """Returns the integer that represents 0, outside of ``quint8`` if the range does not include 0."""
    return -_rounded(low * _scale(low, high)).astype(jnp.int32)


def _activated(inference: Inference) -> Sequence[Spec]:
    return _with_range(Spec(inference.attrs["out_type"], inference.inputs[0].dims))


@pure(
    "QuantizedReluX",
    inputs="features:Tinput|quantized, max_value:float32, min_features:float32, max_features:float32",
    infer=_activated,
)
def quantized_relu_x(
    features: jax.Array,
    max_value: jax.Array,
    min_features: jax.Array,
    max_features: jax.Array,
    *,
    out_type: DType = quint8,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Clips integers to the numbers for 0 and ``max_value``; the range is unchanged."""
    _of_8_bits("QuantizedReluX", features)
    if out_type.base_dtype != quint8:
        raise InvalidArgumentError(f"QuantizedReluX gives quint8, not {out_type.name}")
    zero = _zero(min_features, max_features)
    most = jnp.clip(zero + _rounded(max_value * _scale(min_features, max_features)), 0, 255).astype(jnp.int32)
    kept = jnp.clip(jnp.asarray(features, jnp.int32), jnp.clip(zero, 0, 255), most)
    return kept.astype(features.dtype), min_features, max_features


def _convolved(inference: Inference) -> Sequence[Spec]:
    (found,) = lookup("Conv2D").infer(dataclasses.replace(inference, inputs=inference.inputs[:2]))
    return _with_range(Spec(inference.attrs["out_type"], found.dims))


@pure(
    "QuantizedConv2D",
    inputs=(
        "input:Tinput|quantized, filter:Tfilter|quantized, min_input:float32, max_input:float32, "
        "min_filter:float32, max_filter:float32"
    ),
    infer=_convolved,
)
def quantized_conv2d(
    input: jax.Array,
    filter: jax.Array,
    min_input: jax.Array,
    max_input: jax.Array,
    min_filter: jax.Array,
    max_filter: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    out_type: DType = qint32,
    dilations: Sequence[int] = (1, 1, 1, 1),
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns a convolution of the integers minus their zero points, and the range represented by all of int32."""
    _of_8_bits("QuantizedConv2D", input, filter)
    if out_type.base_dtype != qint32:
        raise InvalidArgumentError(f"QuantizedConv2D gives qint32, not {out_type.name}")
    if tuple(dilations) != (1, 1, 1, 1):
        raise InvalidArgumentError("Current implementation only supports dilations of 1")
    found = conv2d(
        jnp.asarray(input, jnp.int32) - _zero(min_input, max_input),
        jnp.asarray(filter, jnp.int32) - _zero(min_filter, max_filter),
        strides=strides,
        padding=padding,
    )
    step = (max_input - min_input) / 255.0 * ((max_filter - min_filter) / 255.0)
    return found, step * -(2.0**31), step * (2.0**31 - 1)
