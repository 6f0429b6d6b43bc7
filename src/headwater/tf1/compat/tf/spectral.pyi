# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.signal import dct as dct
from headwater.tf1.functional.signal import idct as idct

def fft(input: TensorLike, name: str | None = ...) -> Tensor:
    """The discrete Fourier transform along the last dimension."""
def fft2d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The discrete Fourier transform along the last two dimensions."""
def fft3d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The discrete Fourier transform along the last three dimensions."""
def ifft(input: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse of `fft`."""
def ifft2d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse of `fft2d`."""
def ifft3d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse of `fft3d`."""
def irfft(input_tensor: Tensor, fft_length: TensorLike | None = ..., name: str | None = ...) -> Tensor:
    """The inverse of `rfft`. ``fft_length`` : the sizes of the real side; by default determined by the input."""
def irfft2d(input_tensor: Tensor, fft_length: TensorLike | None = ..., name: str | None = ...) -> Tensor:
    """The inverse of `rfft2d`. ``fft_length`` : the sizes of the real side; by default determined by the input."""
def irfft3d(input_tensor: Tensor, fft_length: TensorLike | None = ..., name: str | None = ...) -> Tensor:
    """The inverse of `rfft3d`. ``fft_length`` : the sizes of the real side; by default determined by the input."""
def rfft(input_tensor: Tensor, fft_length: TensorLike | None = ..., name: str | None = ...) -> Tensor:
    """Half of the spectrum of real numbers along the last dimension; the rest mirrors it. ``fft_length`` : the sizes of the real side; by default determined by the input."""
def rfft2d(input_tensor: Tensor, fft_length: TensorLike | None = ..., name: str | None = ...) -> Tensor:
    """Half of the spectrum of real numbers along the last two dimensions. ``fft_length`` : the sizes of the real side; by default determined by the input."""
def rfft3d(input_tensor: Tensor, fft_length: TensorLike | None = ..., name: str | None = ...) -> Tensor:
    """Half of the spectrum of real numbers along the last three dimensions. ``fft_length`` : the sizes of the real side; by default determined by the input."""
__all__ = [
    "dct",
    "fft",
    "fft2d",
    "fft3d",
    "idct",
    "ifft",
    "ifft2d",
    "ifft3d",
    "irfft",
    "irfft2d",
    "irfft3d",
    "rfft",
    "rfft2d",
    "rfft3d",
]
