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
from headwater.tf1.functional.signal import fftshift as fftshift
from headwater.tf1.functional.signal import frame as frame
from headwater.tf1.functional.signal import hamming_window as hamming_window
from headwater.tf1.functional.signal import hann_window as hann_window
from headwater.tf1.functional.signal import idct as idct
from headwater.tf1.functional.signal import ifftshift as ifftshift
from headwater.tf1.functional.signal import inverse_stft as inverse_stft
from headwater.tf1.functional.signal import inverse_stft_window_fn as inverse_stft_window_fn
from headwater.tf1.functional.signal import linear_to_mel_weight_matrix as linear_to_mel_weight_matrix
from headwater.tf1.functional.signal import mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms
from headwater.tf1.functional.signal import overlap_and_add as overlap_and_add
from headwater.tf1.functional.signal import stft as stft

__all__ = [
    "dct",
    "fft",
    "fft2d",
    "fft3d",
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "idct",
    "ifft",
    "ifft2d",
    "ifft3d",
    "ifftshift",
    "inverse_stft",
    "inverse_stft_window_fn",
    "irfft",
    "irfft2d",
    "irfft3d",
    "linear_to_mel_weight_matrix",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "rfft",
    "rfft2d",
    "rfft3d",
    "stft",
]
