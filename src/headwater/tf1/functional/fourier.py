"""Fourier transforms, over the last one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headwater import dtypes
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.apply import of_input, one

Function = Callable[..., Tensor]


fft: Function = of_input("FFT", "The discrete Fourier transform along the last dimension.")
ifft: Function = of_input("IFFT", "The inverse of `fft`.")
fft2d: Function = of_input("FFT2D", "The discrete Fourier transform along the last two dimensions.")
ifft2d: Function = of_input("IFFT2D", "The inverse of `fft2d`.")
fft3d: Function = of_input("FFT3D", "The discrete Fourier transform along the last three dimensions.")
ifft3d: Function = of_input("IFFT3D", "The inverse of `fft3d`.")


def _real(op_type: str, rank: int, doc: str) -> Function:
    inverse = op_type.startswith("I")

    def function(input_tensor: Tensor, fft_length: TensorLike | None = None, name: str | None = None) -> Tensor:
        with name_scope(name, op_type.lower(), [input_tensor, fft_length]) as scope:
            kind = dtypes.complex64 if inverse else dtypes.float32
            tensor = convert_to_tensor(input_tensor, kind, name="input")
            length = _lengths(tensor, rank, inverse) if fft_length is None else fft_length
            return one(op_type, tensor, length, name=scope)

    function.__doc__ = f"{doc} ``fft_length`` : the sizes of the real side; by default determined by the input."
    return function


def _lengths(tensor: Tensor, rank: int, inverse: bool) -> Tensor:
    if tensor.dims is not None and None not in tensor.dims[-rank:]:
        sizes = np.array(tensor.dims[-rank:], np.int32)
        if inverse:
            sizes[-1] = max(0, 2 * (sizes[-1] - 1))
        return constant(sizes)
    sizes = arrays.shape(tensor)[-rank:]
    return sizes if not inverse else arrays.concat([sizes[:-1], 2 * (sizes[-1:] - 1)], 0)


rfft: Function = _real("RFFT", 1, "Half of the spectrum of real numbers along the last dimension; the rest mirrors it.")
irfft: Function = _real("IRFFT", 1, "The inverse of `rfft`.")
rfft2d: Function = _real("RFFT2D", 2, "Half of the spectrum of real numbers along the last two dimensions.")
irfft2d: Function = _real("IRFFT2D", 2, "The inverse of `rfft2d`.")
rfft3d: Function = _real("RFFT3D", 3, "Half of the spectrum of real numbers along the last three dimensions.")
irfft3d: Function = _real("IRFFT3D", 3, "The inverse of `rfft3d`.")


def _many(op_type: str, doc: str) -> Function:
    inverse, real = op_type.startswith("I"), op_type == "RFFTND"

    def function(
        input_tensor: TensorLike,
        fft_length: TensorLike | None = None,
        axes: TensorLike | None = None,
        norm: str | None = None,
        name: str | None = None,
    ) -> Tensor:
        with name_scope(name, op_type.lower(), [input_tensor, fft_length, axes]) as scope:
            tensor = convert_to_tensor(input_tensor, preferred_dtype=dtypes.float32 if real else dtypes.complex64)
            rank = len(tensor.shape.as_list())
            along = math.floormod(convert_to_tensor(np.arange(rank) if axes is None else axes, dtypes.int32), rank)
            if fft_length is None:
                length = indexing.gather(_lengths(tensor, rank, op_type == "IRFFTND"), along)
            else:
                length = convert_to_tensor(fft_length, dtypes.int32)
            drawn = one(op_type, tensor, length, along, name=scope if norm in (None, "backward") else None)
            if norm in (None, "backward"):
                return drawn
            count = math.cast(reductions.reduce_prod(length), drawn.dtype)
            scale = {"forward": count, "ortho": math.sqrt(count)}[norm]
            return math.multiply(drawn, scale if inverse else 1 / scale, name=scope)

    function.__doc__ = f"""{doc}

    Args:
      input_tensor: of any rank.
      fft_length: the sizes of the real side along ``axes``; by default determined by the input.
      axes: the dimensions, by default all.
      norm: the side that is scaled: ``backward`` (default), ``forward``, or ``ortho`` for both.
    """
    return function


fftnd: Function = _many("FFTND", "The discrete Fourier transform along any dimensions.")
ifftnd: Function = _many("IFFTND", "The inverse of `fftnd`.")
rfftnd: Function = _many("RFFTND", "Half of the spectrum of real numbers; the rest mirrors it.")
irfftnd: Function = _many("IRFFTND", "The inverse of `rfftnd`.")
