# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.fourier import fft as fft
from headwater.tf1.functional.fourier import fft2d as fft2d
from headwater.tf1.functional.fourier import fft3d as fft3d
from headwater.tf1.functional.fourier import ifft as ifft
from headwater.tf1.functional.fourier import ifft2d as ifft2d
from headwater.tf1.functional.fourier import ifft3d as ifft3d
from headwater.tf1.functional.fourier import irfft as irfft
from headwater.tf1.functional.fourier import irfft2d as irfft2d
from headwater.tf1.functional.fourier import irfft3d as irfft3d
from headwater.tf1.functional.fourier import rfft as rfft
from headwater.tf1.functional.fourier import rfft2d as rfft2d
from headwater.tf1.functional.fourier import rfft3d as rfft3d
from headwater.tf1.functional.signal import dct as dct
from headwater.tf1.functional.signal import idct as idct

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
