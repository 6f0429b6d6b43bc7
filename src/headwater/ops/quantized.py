"""Numbers as integers of few bits between two bounds, and back. How TensorFlow 1.15 rounds is said at each mode."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from headwater.dtypes import DType, float32, qint8, qint16, qint32, quint8, quint16
from headwater.errors import InvalidArgumentError
from headwater.ops.define import host, pure
from headwater.registry import HostArray, Inference, Spec
from headwater.resources.host_context import HostContext

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
    """To the next integer, halves away from zero."""
    return np.sign(values) * np.floor(np.abs(values) + 0.5)


@host("QuantizeV2", inputs="input:float32, min_range:float32, max_range:float32", infer=_three)
def quantize(
    context: HostContext,
    input: HostArray,
    min_range: HostArray,
    max_range: HostArray,
    *,
    T: Any,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
) -> tuple[HostArray, HostArray, HostArray]:
    """The nearest of the numbers of type ``T``, which stand for a range of others, and the bounds of that range.

    ``MIN_COMBINED`` and ``MIN_FIRST`` spread the numbers evenly over the range, which is widened to hold 0; ``SCALED``
    multiplies, so that 0 is 0, and leaves out the lowest number of a signed type.

    Raises:
      InvalidArgumentError: the range is empty the wrong way round, or a way to round that the mode does not have.
    """
    del context
    if mode != "SCALED" and round_mode != "HALF_AWAY_FROM_ZERO":
        raise InvalidArgumentError(
            None, None, f"Round mode '{round_mode}' only supported for mode 'SCALED', but mode is '{mode}'."
        )
    low, high = float(min_range), float(max_range)
    if low > high:
        raise InvalidArgumentError(None, None, "input_max_range must be larger than input_min_range.")
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
    context: HostContext,
    input: HostArray,
    min_range: HostArray,
    max_range: HostArray,
    *,
    T: Any,
    mode: str = "MIN_COMBINED",
) -> HostArray:
    """What `quantize` made integers of, float32. The bounds are those that it gave."""
    del context
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


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4, 5, 6, 7))
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
    input: Any,
    input_min: Any,
    input_max: Any,
    *,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    narrow_range: bool = False,
) -> jax.Array:
    """The nearest numbers that ``num_bits`` bits can hold, scaled so that 0 is one; the gradient passes as it is."""
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
