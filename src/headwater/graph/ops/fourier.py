"""Fourier transforms, over the last one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headwater.dtypes import DType, complex64, complex128, float32, float64
from headwater.graph.ops.common import as_ints, constant_ints
from headwater.graph.ops.define import pure, unary
from headwater.graph.registry import Inference, Spec
from headwater.lazy_jax import deferred, jnp

if TYPE_CHECKING:
    import jax


def _complex(op_type: str, compute: Callable[..., jax.Array], rank: int) -> None:
    axes = tuple(range(-rank, 0))

    def lower(input: jax.Array) -> jax.Array:
        return compute(input, axes=axes).astype(input.dtype)

    pure(op_type, inputs="input:Tcomplex|complex", infer=unary)(lower)


def _real_spec(inference: Inference) -> Sequence[Spec]:
    dims, lengths = inference.inputs[0].dims, constant_ints(inference, 1)
    forward = not inference.op_type.startswith("I")
    dtype = complex64 if forward else float32
    if dims is None or lengths is None:
        return [Spec(dtype, None if dims is None else (None,) * len(dims))]
    last = lengths[-1] // 2 + 1 if forward and lengths[-1] else lengths[-1]
    return [Spec(dtype, (*dims[: len(dims) - len(lengths)], *lengths[:-1], last))]


def _real(op_type: str, compute: Callable[..., jax.Array], rank: int, dtype: type[np.generic]) -> None:
    """Registers a transform between real numbers and the non-redundant half of their spectrum; ``fft_length`` has the
    sizes of the real array."""
    axes = tuple(range(-rank, 0))

    def lower(input: jax.Array, fft_length: object) -> object:
        lengths = as_ints(fft_length)
        if 0 in lengths:  # which XLA refuses
            last = lengths[-1] // 2 + 1 if lengths[-1] and dtype is np.complex64 else lengths[-1]
            return jnp.zeros((*input.shape[:-rank], *lengths[:-1], last), dtype)
        return compute(input, lengths, axes=axes).astype(dtype)

    kind = "complex64" if op_type.startswith("I") else "float32"
    pure(op_type, inputs=f"input:{kind}, fft_length:int32", static=(1,), infer=_real_spec)(lower)


def _real_type(dtype: DType) -> DType:
    return float64 if dtype.base_dtype in (float64, complex128) else float32


def _many_spec(inference: Inference) -> Sequence[Spec]:
    dims, dtype = inference.inputs[0].dims, inference.inputs[0].dtype.base_dtype
    lengths, axes = constant_ints(inference, 1), constant_ints(inference, 2)
    op_type = inference.op_type
    if op_type == "RFFTND":
        dtype = complex128 if dtype == float64 else complex64
    elif op_type == "IRFFTND":
        dtype = _real_type(dtype)
    if dims is None or lengths is None or axes is None:
        return [Spec(dtype, None if dims is None else (None,) * len(dims))]
    if len(axes) != len(lengths):
        raise ValueError(f"fft_length has {len(lengths)} elements, but axes has {len(axes)}")
    sizes = list(dims)
    for axis, length in zip(axes, lengths, strict=True):
        sizes[axis] = length
    if op_type == "RFFTND" and axes:
        sizes[axes[-1]] = lengths[-1] // 2 + 1
    return [Spec(dtype, tuple(sizes))]


def _many(op_type: str, compute: Callable[..., jax.Array], allowed: str) -> None:
    """Registers a transform along ``axes``, after cutting or padding them to ``fft_length``."""

    def lower(input: jax.Array, fft_length: object, axes: object) -> jax.Array:
        return compute(input, as_ints(fft_length), axes=as_ints(axes))

    inputs = f"input:T|{allowed}, fft_length:int32, axes:int32"
    pure(op_type, inputs=inputs, static=(1, 2), infer=_many_spec)(lower)


for _type, _allowed in {"fftn": "complex", "ifftn": "complex", "rfftn": "floating", "irfftn": "complex"}.items():
    _many(f"{_type.upper()}D", deferred(jnp, f"fft.{_type}"), _allowed)
for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _complex(f"FFT{_suffix}", deferred(jnp, "fft.fftn"), _rank)
    _complex(f"IFFT{_suffix}", deferred(jnp, "fft.ifftn"), _rank)
    _real(f"RFFT{_suffix}", deferred(jnp, "fft.rfftn"), _rank, np.complex64)
    _real(f"IRFFT{_suffix}", deferred(jnp, "fft.irfftn"), _rank, np.float32)
