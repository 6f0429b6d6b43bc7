"""Signals: frames, windows, short-time Fourier transforms, cosine transforms, mel spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwater import dtypes
from headwater.dtypes import DType, DTypeLike, as_dtype
from headwater.errors import InvalidArgumentError
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, fourier, indexing, math, reductions, special
from headwater.tf1.functional.sizes import Size, ceiling, greater, known, size_of

if TYPE_CHECKING:
    from headwater.graph.types import Ints


Window = Callable[..., Tensor]
Floats = npt.NDArray[np.float64]
_MEL_HERTZ = 700.0
_MEL_SCALE = 1127.0
"""A frequency of f hertz is ``1127 ln(1 + f / 700)`` mel (O'Shaughnessy; HTK)."""


def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: Ints = -1,
    name: str | None = None,
) -> Tensor:
    """Parts of a signal that overlap: dimension ``axis`` becomes two, [frames, frame_length].

    Args:
      signal: a tensor of any rank above 0.
      frame_length: elements of each frame.
      frame_step: distance between the beginnings of two frames.
      pad_end: whether to include frames that extend beyond the end, padded with ``pad_value``.
      pad_value: a scalar.
      axis: the dimension that is cut.

    Raises:
      ValueError: an argument that must be a scalar is not.
    """
    with name_scope(name, "frame", [signal, frame_length, frame_step, pad_value]):
        signal = convert_to_tensor(signal, name="signal")
        for each in (frame_length, frame_step, pad_value, axis):
            if np.ndim(each) if not isinstance(each, Tensor) else (each.dims or ()):
                raise ValueError(
                    f"Shape of frame_length, frame_step, pad_value and axis must be (), but {each} is not a scalar"
                )
        if not signal.dims:
            raise ValueError("The rank of the signal must be known and not 0")
        place = int(known(axis)) % len(signal.dims)
        length, step, count = known(frame_length), known(frame_step), size_of(signal, place)
        _check_step(step)
        if pad_end:
            frames = greater(0, ceiling(count, step))
            behind = greater(0, length + step * (frames - 1) - count)
            padding: list[list[Size]] = [[0, 0] for _ in signal.dims]
            padding[place][1] = behind
            signal = arrays.pad(signal, padding, constant_values=pad_value)
        else:
            frames = greater(0, (count - length + step) // step)
        if isinstance(frames, int) and isinstance(length, int) and isinstance(step, int):
            places: Any = np.arange(frames)[:, None] * step + np.arange(length)
        else:
            places = arrays.expand_dims(arrays.range(frames) * step, 1) + arrays.range(length)
        return indexing.gather(signal, places, axis=place)


def _check_step(step: Size) -> None:
    if isinstance(step, int) and step < 1:
        raise InvalidArgumentError(f"frame_step must be positive, not {step}")


def _raised_cosine(
    name: str | None, default: str, length: TensorLike, periodic: bool, dtype: DTypeLike, a: float, b: float
) -> Tensor:
    kind: DType = as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"dtype must be a floating point type, and is {kind}")
    with name_scope(name, default, [length, periodic]):
        size = known(length)
        if isinstance(size, int):
            even = int(periodic) * (1 - size % 2)
            # One element has no period: it is 1.
            turns = np.arange(size) / max(size + even - 1, 1)
            window = a - b * np.cos(2 * np.pi * turns) if size > 1 else np.ones(size)
            return convert_to_tensor(window.astype(kind.numpy_dtype))
        even = math.cast(periodic, dtypes.int32) * (1 - size % 2)
        turns = math.cast(arrays.range(size), kind) / math.cast(math.maximum(size + even - 1, 1), kind)
        window = a - b * math.cos(2 * np.pi * turns)
        return indexing.where(arrays.fill(arrays.shape(window), math.equal(size, 1)), arrays.ones_like(window), window)


def hann_window(
    window_length: TensorLike, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Hann's window of ``window_length`` elements: ``0.5 - 0.5 cos``; periodic, or symmetric.

    Raises:
      ValueError: ``dtype`` is not a floating type.
    """
    return _raised_cosine(name, "hann_window", window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(
    window_length: TensorLike, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Hamming's window of ``window_length`` elements: ``0.54 - 0.46 cos``; periodic, or symmetric.

    Raises:
      ValueError: ``dtype`` is not a floating type.
    """
    return _raised_cosine(name, "hamming_window", window_length, periodic, dtype, 0.54, 0.46)


def kaiser_window(
    window_length: TensorLike, beta: TensorLike = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Kaiser's symmetric window of ``window_length`` elements; a larger ``beta`` makes it narrower."""
    with name_scope(name, "kaiser_window", [window_length, beta]):
        size, beta = convert_to_tensor(window_length), convert_to_tensor(beta, dtype)
        places = math.cast(arrays.range(size), dtype)
        half = math.cast(math.maximum(size - 1, 1), dtype) / 2
        # One element is the middle of its window.
        distance = math.cast(math.greater(size, 1), dtype) * (places / half - 1)
        return special.bessel_i0(beta * math.sqrt(1 - math.square(distance))) / special.bessel_i0(beta)


def kaiser_bessel_derived_window(
    window_length: TensorLike, beta: TensorLike = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """The window of ``window_length`` elements, an even number, that is derived from Kaiser's for an MDCT."""
    with name_scope(name, "kaiser_bessel_derived_window", [window_length, beta]):
        sums = reductions.cumsum(kaiser_window(convert_to_tensor(window_length) // 2 + 1, beta, dtype))
        half = math.sqrt(sums[:-1] / sums[-1])
        return arrays.concat([half, arrays.reverse(half, [0])], 0)


def vorbis_window(window_length: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Vorbis's power-complementary window of ``window_length`` elements."""
    with name_scope(name, "vorbis_window", [window_length]):
        size = convert_to_tensor(window_length)
        angles = np.pi * (math.cast(arrays.range(size), dtype) + 0.5) / math.cast(size, dtype)
        return math.sin(np.pi / 2 * math.square(math.sin(angles)))


def _power_of_two(size: Size) -> Size:
    """The least power of two that is not below ``size``."""
    if isinstance(size, int):
        return 1 << max(size - 1, 0).bit_length()
    exponent = math.ceil(math.log(math.cast(size, dtypes.float32)) / float(np.log(2.0)))
    return math.cast(math.pow(2.0, exponent), dtypes.int32)


def stft(
    signals: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    fft_length: TensorLike | None = None,
    window_fn: Window | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The short-time Fourier transform of signals along the last dimension.

    Args:
      signals: float32, [..., samples].
      frame_length: samples of each frame.
      frame_step: samples between the beginnings of two frames.
      fft_length: length of the transform; else the least power of two that holds a frame.
      window_fn: makes the window that each frame is multiplied by, from its length and ``dtype``; without it, frames
      are not multiplied.
      pad_end: whether to include frames that extend beyond the end, padded with zeros.

    Returns:
      complex64, [..., frames, fft_length // 2 + 1].
    """
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        frames = frame(signals, frame_length, frame_step, pad_end=pad_end)
        length = known(frame_length)
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype)
        return fourier.rfft(frames, [_power_of_two(length) if fft_length is None else known(fft_length)])


def inverse_stft(
    stfts: TensorLike,
    frame_length: TensorLike,
    frame_step: object,
    fft_length: TensorLike | None = None,
    window_fn: Window | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """Returns the signals with the given short-time Fourier transforms. See `inverse_stft_window_fn` for the window.

    Args:
      stfts: complex64, [..., frames, fft_length // 2 + 1].
      frame_length: samples of each frame.
      frame_step: samples between the beginnings of two frames.
      fft_length: length of the transform; by default the least power of two not below ``frame_length``.
      window_fn: makes the window by which each frame is multiplied: see `inverse_stft_window_fn`; without it, frames
      are not multiplied.

    Returns:
      float32, [..., samples].
    """
    with name_scope(name, "inverse_stft", [stfts]):
        stfts = convert_to_tensor(stfts, name="stfts")
        length = known(frame_length)
        transform = _power_of_two(length) if fft_length is None else known(fft_length)
        frames = fourier.irfft(stfts, [transform])
        assert frames.dims is not None, "the rank of stfts must be known"
        outer = len(frames.dims) - 1
        # Windows may be shorter than the transform, or longer.
        kept = length if not isinstance(transform, int) or not isinstance(length, int) else min(length, transform)
        frames = frames[..., :kept]
        if isinstance(transform, int) and isinstance(length, int) and transform < length:
            frames = arrays.pad(frames, [[0, 0]] * outer + [[0, length - transform]])
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype)
        return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(
    frame_step: TensorLike, forward_window_fn: Window = hann_window, name: str | None = None
) -> Window:
    """Returns a window function with which `inverse_stft` inverts `stft` (Griffin and Lim, 1984).

    Args:
      frame_step: samples between the beginnings of two frames.
      forward_window_fn: the ``window_fn`` of `stft`.
    """

    def window_fn(frame_length: TensorLike, dtype: DTypeLike) -> Tensor:
        with name_scope(name, "inverse_stft_window_fn", [forward_window_fn]):
            length, step = known(frame_length), known(frame_step)
            forward = forward_window_fn(length, dtype=dtype)
            overlaps = ceiling(length, step)
            squares = arrays.pad(math.square(forward), [[0, overlaps * step - length]])
            total = reductions.reduce_sum(arrays.reshape(squares, [overlaps, step]), 0, keepdims=True)
            total = arrays.reshape(arrays.tile(total, [overlaps, 1]), [overlaps * step])
            return forward / total[:length]

    return window_fn


def overlap_and_add(signal: TensorLike, frame_step: object, name: str | None = None) -> Tensor:
    """Adds overlapping frames, each ``frame_step`` after the previous one.

    Args:
      signal: [..., frames, frame_length].
      frame_step: distance between the beginnings of two frames.

    Returns:
      [..., (frames - 1) * frame_step + frame_length].

    Raises:
      ValueError: there are less than two dimensions, or ``frame_step`` is not an integer.
    """
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        signal = convert_to_tensor(signal, name="signal")
        if signal.dims is None or len(signal.dims) < 2:
            raise ValueError("Shape must be at least rank 2")
        step = known(frame_step)
        if isinstance(step, Tensor) and not step.dtype.is_integer:
            raise ValueError(f"frame_step must be an integer. Got {step.dtype}")
        _check_step(step)
        frames, length = size_of(signal, -2), size_of(signal, -1)
        outer: list[Size] = [size_of(signal, place) for place in range(len(signal.dims) - 2)]
        parts = ceiling(length, step)
        none = [[0, 0]] * len(outer)
        # Divide each frame into parts of one step, and order the parts by their number within the frame. Each number
        # gets one row of zeros too many, so that the parts with the next number begin one step later.
        cut = arrays.pad(signal, [*none, [0, parts], [0, parts * step - length]])
        cut = arrays.reshape(cut, [*outer, frames + parts, parts, step])
        order = [*range(len(outer)), len(outer) + 1, len(outer), len(outer) + 2]
        rows = arrays.reshape(arrays.transpose(cut, order), [*outer, (frames + parts) * parts, step])
        rows = rows[..., : (frames + parts - 1) * parts, :]
        shifted = arrays.reshape(rows, [*outer, parts, frames + parts - 1, step])
        total = arrays.reshape(reductions.reduce_sum(shifted, -3), [*outer, (frames + parts - 1) * step])
        return total[..., : (frames - 1) * step + length]


def _axes(x: Tensor, axes: Ints | None) -> list[int]:
    if axes is None:
        return list(range(len(x.dims or ())))
    return [int(axis) for axis in np.atleast_1d(np.asarray(axes))]


def _shifted(name: str | None, default: str, x: Any, axes: int, forward: bool) -> Tensor:
    with name_scope(name, default, [x]):
        x = convert_to_tensor(x)
        places = _axes(x, axes)
        halves = [size_of(x, place) // 2 for place in places]
        return arrays.roll(x, halves if forward else [-half for half in halves], places)


def fftshift(x: object, axes: Any = None, name: str | None = None) -> Tensor:
    """Moves the zero frequency to the middle, of all dimensions or of some."""
    return _shifted(name, "fftshift", x, axes, True)


def ifftshift(x: object, axes: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(name, "ifftshift", x, axes, False)


# Cosine transforms ----------------------------------------------------------------------------------------------


def _check_dct(type: int, n: int | None, axis: int, norm: str | None) -> None:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if type not in (1, 2, 3):
        raise ValueError("Only Types I, II and III (I)DCT are supported.")
    if type == 1 and norm == "ortho":
        raise ValueError("Normalization is not supported for the Type-I DCT.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")


def dct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform along the last dimension, as SciPy defines it.

    Args:
      input: float32, [..., samples].
      type: 1, 2 or 3.
      n: length of the transform: the samples are cut, or filled up with zeros.
      axis: -1.
      norm: None, or ``"ortho"`` for an orthonormal transform (of types 2 and 3).

    Raises:
      ValueError: an argument has an invalid value.
      NotImplementedError: ``axis`` is not -1.
    """
    _check_dct(type, n, axis, norm)
    with name_scope(name, "dct", [input]):
        x = convert_to_tensor(input, dtypes.float32)
        assert x.dims is not None, "the rank of the input must be known"
        count = size_of(x, -1)
        none = [[0, 0]] * (len(x.dims) - 1)
        if n is not None:
            x = x[..., :n]
            x = arrays.pad(x, [*none, [0, n - size_of(x, -1)]])
            count = n
        if type == 1:
            if isinstance(count, int) and count < 2:
                raise ValueError("DCT-I requires the dimension to be greater than one.")
            there_and_back = arrays.concat([x, arrays.reverse(x, [-1])[..., 1:-1]], -1)
            return math.real(fourier.rfft(there_and_back))
        root = _of_size(count, math.sqrt, np.sqrt)
        angles = _of_size(count, _half_angles, lambda size: np.pi / 2 * np.arange(size) / size)
        turn = math.complex(math.cos(angles), math.sin(angles))
        if type == 2:
            spectrum = fourier.rfft(x, [2 * count])[..., :count]
            found = 2.0 * math.real(spectrum * math.conj(turn))
            if norm == "ortho":
                found = found * (0.5 / root * _first(count, 1.0, float(np.sqrt(2.0))))
            return found
        if norm == "ortho":
            x = x * (root * _first(count, 1.0, float(np.sqrt(0.5))))
        spectrum = arrays.pad(math.complex(x, arrays.zeros_like(x)) * turn, [*none, [0, 1]])
        found = fourier.irfft(spectrum, [2 * count])[..., :count]
        return found * (2.0 if norm == "ortho" else 2.0 * _of_size(count, lambda size: size, float))


def _of_size(size: Size, of_tensor: Callable[[Tensor], Tensor], of_number: Callable[[int], TensorLike]) -> Tensor:
    """Applies a function of a size as float32; computed immediately if the size is known."""
    if isinstance(size, int):
        return convert_to_tensor(np.asarray(of_number(size), np.float32))
    return of_tensor(math.cast(size, dtypes.float32))


def _half_angles(size: Tensor) -> Tensor:
    return float(np.pi / 2) / size * arrays.range(size)


def _first(count: Size, first: float, others: float) -> Tensor:
    """Returns a vector of ``count`` numbers: ``first``, then ``others``."""
    return math.cast(math.equal(arrays.range(count), 0), dtypes.float32) * (first - others) + others


def idct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of `dct`, up to a factor of 2 ``samples`` (type 1: 2 (``samples`` - 1)) if ``norm`` is None.

    Raises:
      ValueError: an argument is not supported by `dct`.
      NotImplementedError: ``axis`` is not -1.
    """
    _check_dct(type, n, axis, norm)
    return dct(input, {1: 1, 2: 3, 3: 2}[type], n, axis, norm, name)


# Speech ---------------------------------------------------------------------------------------------------------


def _mel(hertz: float | Floats) -> Floats:
    return _MEL_SCALE * np.log1p(np.asarray(hertz, np.float64) / _MEL_HERTZ)


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: TensorLike = 129,
    sample_rate: float = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Returns the matrix that converts a spectrum to mel bins: triangles over the mel scale.

    Args:
      num_mel_bins: number of columns of the matrix.
      num_spectrogram_bins: number of rows, for frequencies from zero to half of the sample rate.
      sample_rate: samples per second.
      lower_edge_hertz: the lower end of the first triangle, in Hz.
      upper_edge_hertz: where the last triangle ends.
      dtype: a type of floats.

    Raises:
      ValueError: an argument is out of range.
    """
    kind: DType = as_dtype(dtype)
    if num_mel_bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {num_mel_bins}")
    if lower_edge_hertz < 0.0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {lower_edge_hertz}")
    if lower_edge_hertz >= upper_edge_hertz:
        raise ValueError(f"lower_edge_hertz {lower_edge_hertz} >= upper_edge_hertz {upper_edge_hertz}")
    if sample_rate <= 0.0:
        raise ValueError(f"sample_rate must be positive. Got: {sample_rate}")
    if upper_edge_hertz > sample_rate / 2:
        raise ValueError(
            f"upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). Got {upper_edge_hertz} "
            f"for sample_rate: {sample_rate}"
        )
    if not kind.is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {kind}")
    with name_scope(name, "linear_to_mel_weight_matrix"):
        bins = known(num_spectrogram_bins)
        edges: Floats = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
        lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
        if isinstance(bins, int):
            mel = _mel(np.linspace(0.0, sample_rate / 2, bins))[1:, None]
            slopes = np.minimum((mel - lower) / (center - lower), (upper - mel) / (upper - center))
            weights: Floats = np.pad(np.maximum(0.0, slopes), [[1, 0], [0, 0]])
            return convert_to_tensor(weights.astype(kind.numpy_dtype))
        share = math.cast(arrays.range(1, bins), kind) / math.cast(bins - 1, kind)
        mels = arrays.expand_dims(_MEL_SCALE * math.log1p(share * (sample_rate / 2 / _MEL_HERTZ)), 1)
        rising, falling = (mels - lower) / (center - lower), (upper - mels) / (upper - center)
        return arrays.pad(math.maximum(math.minimum(rising, falling), 0.0), [[1, 0], [0, 0]])


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients: the orthonormal cosine transform of log-mel spectra, as HTK scales it.

    Raises:
      ValueError: there are no mel bins.
    """
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        spectra = convert_to_tensor(log_mel_spectrograms, dtypes.float32)
        bins = size_of(spectra, -1)
        if bins == 0:
            raise ValueError(f"num_mel_bins must be positive. Got: {bins}")
        return dct(spectra, 2) * _of_size(bins, lambda size: math.rsqrt(size * 2.0), lambda size: (2 * size) ** -0.5)
