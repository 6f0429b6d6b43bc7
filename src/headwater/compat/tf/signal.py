"""``tf.signal``: Fourier transforms."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.fourier": """
        fft fft2d fft3d ifft ifft2d ifft3d irfft irfft2d irfft3d rfft rfft2d rfft3d""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
