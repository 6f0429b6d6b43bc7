"""Convolutions, expressed in the way that XLA runs fastest: on GPUs as one operation; on CPUs, for some shapes, as
products of matrices or of slices.

XLA's code for CPUs has naive loops for convolutions of single channels, for convolutions with a window that is larger
than the image, and for volumes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headwater.graph.ops.by_platform import by_platform
from headwater.lazy_jax import jax, jnp, lax

# Pyright finds the types of these functions of JAX in part only.
_lax: Any = lax

Sizes = tuple[int, ...]

_MAX_SHIFTS: Final = 64
"""Maximum number of elements in a window for a sum of shifted images: XLA takes long to compile longer sums."""
_BLOCKS: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Windows:
    """The windows of a convolution; each field has one entry for each spatial dimension.

    Attributes:
      strides: distance from one window to the next.
      pads: padding before and after the image.
      rates: distance from one element of a window to the next.
    """

    strides: Sizes
    pads: tuple[tuple[int, int], ...]
    rates: Sizes

    def counts(self, sizes: Sequence[int], window: Sequence[int]) -> list[int]:
        """Returns the number of windows along each dimension."""
        return [
            max((size + sum(pad) - (reach - 1) * rate - 1) // stride + 1, 0)
            for size, reach, stride, pad, rate in zip(sizes, window, self.strides, self.pads, self.rates, strict=True)
        ]

    def offsets(self, sizes: Sequence[int], window: Sequence[int]) -> list[Sizes]:
        """Returns the positions in a window that are inside the image for at least one window."""
        counts = self.counts(sizes, window)
        inside = [
            [
                place
                for place in range(reach)
                if any(0 <= index * stride + place * rate - pad[0] < size for index in range(count))
            ]
            for reach, count, stride, rate, pad, size in zip(
                window, counts, self.strides, self.rates, self.pads, sizes, strict=True
            )
        ]
        return list(itertools.product(*inside))

    def taken(self, padded: jax.Array, offset: Sequence[int], counts: Sequence[int]) -> jax.Array:
        """Returns the elements at an offset of all windows of a padded image, channels last."""
        first = [place * rate for place, rate in zip(offset, self.rates, strict=True)]
        ends = [
            start + (count - 1) * stride + 1 for start, count, stride in zip(first, counts, self.strides, strict=True)
        ]
        batch, channels = padded.shape[0], padded.shape[-1]
        return lax.slice(padded, (0, *first, 0), (batch, *ends, channels), (1, *self.strides, 1))


def convolve(image: jax.Array, filter: jax.Array, windows: Windows, data_format: str, groups: int) -> Any:
    """Returns the cross-correlation of images with a filter of shape [*window, channels in, channels out].

    Args:
      image: batch, spatial dimensions and channels in the order of ``data_format``.
      windows: the windows along the spatial dimensions.
      groups: number of groups of channels; each group has separate filters.
    """
    if image.size and filter.size:
        sizes = [image.shape[i] for i, letter in enumerate(data_format) if letter in "DHW"]
        form = _form(sizes, filter.shape, windows, groups, image.shape[data_format.index("C")])
        if form is not None:
            return _formed(form, windows, data_format, groups)(image, filter)
    return _plain(image, filter, windows, data_format, groups)


def _form(sizes: Sequence[int], filter: Sequence[int], windows: Windows, groups: int, channels: int) -> object:
    """Selects the implementation for CPUs; None if XLA's own operation is fast."""
    window = filter[:-2]
    if 0 in windows.counts(sizes, window):
        return None
    if groups == channels > 1 and len(sizes) == 2 and math.prod(window) <= _MAX_SHIFTS:
        return _Shifted
    if groups > 1:
        return None
    if math.prod(window) == 1 and not any(map(any, windows.pads)):
        return _Product
    if len(sizes) == 3:
        return _Volume
    if math.prod(window) > min(math.prod(sizes), math.prod(windows.counts(sizes, window))):
        return _Columns
    return None


@functools.lru_cache(maxsize=1024)
def _formed(form: Any, windows: Windows, data_format: str, groups: int) -> Any:
    first = data_format.index("C") == 1

    def last(image: jax.Array) -> jax.Array:
        return jnp.moveaxis(image, 1, -1) if first else image

    def back(image: jax.Array) -> jax.Array:
        return jnp.moveaxis(image, -1, 1) if first else image

    def on_cpus(image: jax.Array, filter: jax.Array) -> jax.Array:
        return back(form.value(last(image), filter, windows))

    def plain(image: jax.Array, filter: jax.Array) -> jax.Array:
        return _plain(image, filter, windows, data_format, groups)

    def pull(inputs: tuple[jax.Array, jax.Array], slope: jax.Array) -> Any:
        image, filter = inputs
        for_image, for_filter = form.slopes(last(image), filter, last(slope), windows)
        return back(for_image), for_filter

    return by_platform(plain, on_cpus, pull if hasattr(form, "slopes") else None)


def _plain(image: jax.Array, filter: jax.Array, windows: Windows, data_format: str, groups: int) -> jax.Array:
    letters = data_format.replace("N", "").replace("C", "")
    return lax.conv_general_dilated(
        image,
        filter,
        windows.strides,
        windows.pads,
        rhs_dilation=windows.rates,
        dimension_numbers=(data_format, f"{letters}IO", data_format),
        feature_group_count=groups,
    )


class _Product:
    """Windows of one element, computed as a product of matrices."""

    @staticmethod
    def value(image: jax.Array, filter: jax.Array, windows: Windows) -> jax.Array:
        taken = image[:, *(slice(None, None, stride) for stride in windows.strides)]
        return jnp.matmul(taken.reshape(-1, image.shape[-1]), filter.reshape(filter.shape[-2:])).reshape(
            *taken.shape[:-1], filter.shape[-1]
        )


class _Columns:
    """Few windows with many elements, computed as one product of matrices after gathering the elements of all
    windows."""

    @staticmethod
    def value(image: jax.Array, filter: jax.Array, windows: Windows) -> jax.Array:
        sizes, window = image.shape[1:-1], filter.shape[:-2]
        counts, offsets = windows.counts(sizes, window), windows.offsets(sizes, window)
        padded = _padded(image, windows.pads)
        if not offsets:
            return jnp.zeros((len(image), *counts, filter.shape[-1]), image.dtype)
        columns = jnp.concatenate([windows.taken(padded, offset, counts) for offset in offsets], axis=-1)
        used = jnp.concatenate([filter[offset] for offset in offsets])
        return jnp.matmul(columns.reshape(-1, len(used)), used).reshape(*columns.shape[:-1], filter.shape[-1])


class _Volume:
    """A convolution of volumes, computed as a sum of convolutions of images: one for each position along the depth of a
    window."""

    @staticmethod
    def value(image: jax.Array, filter: jax.Array, windows: Windows) -> Any:
        deep = Windows(strides=windows.strides[:1], pads=windows.pads[:1], rates=windows.rates[:1])
        flat = Windows(strides=windows.strides[1:], pads=windows.pads[1:], rates=windows.rates[1:])
        (count,) = deep.counts(image.shape[1:2], filter.shape[:1])
        padded = _padded(image, (*deep.pads, (0, 0), (0, 0)))
        total: Any = None
        for (place,) in deep.offsets(image.shape[1:2], filter.shape[:1]):
            start = place * deep.rates[0]
            layers = padded[:, start : start + (count - 1) * deep.strides[0] + 1 : deep.strides[0]]
            images = layers.reshape(-1, *image.shape[2:])
            part = convolve(images, filter[place], flat, "NHWC", 1)
            total = part if total is None else total + part
        space = flat.counts(image.shape[2:4], filter.shape[1:3])
        shape = (len(image), count, *space, filter.shape[-1])
        return jnp.zeros(shape, image.dtype) if total is None else total.reshape(shape)


class _Shifted:
    """A convolution of each channel with its own filters, computed as a sum of products with shifted images."""

    @staticmethod
    def value(image: jax.Array, filter: jax.Array, windows: Windows) -> jax.Array:
        """``filter``: [*window, 1, channels * multiplier]."""
        sizes, window = image.shape[1:-1], filter.shape[:-2]
        times = filter.shape[-1] // image.shape[-1]
        counts = windows.counts(sizes, window)
        padded = _apart(_padded(image, windows.pads))
        total: Any = None
        for offset in np.ndindex(*window):
            taken = windows.taken(padded, offset, counts)
            part = (jnp.repeat(taken, times, -1) if times > 1 else taken) * filter[offset]
            total = part if total is None else total + part
        return total

    @staticmethod
    def slopes(image: jax.Array, filter: jax.Array, slope: jax.Array, windows: Windows) -> Any:
        """Returns the slopes of the image and of the filter, by shifted products."""
        window, channels = filter.shape[:-2], image.shape[-1]
        times = filter.shape[-1] // channels
        reach = [(size - 1) * rate for size, rate in zip(window, windows.rates, strict=True)]
        pads = [
            (far - before, size + before - 1 - (count - 1) * stride)
            for far, (before, _), size, count, stride in zip(
                reach, windows.pads, image.shape[1:-1], slope.shape[1:-1], windows.strides, strict=True
            )
        ]
        spread = lax.pad(
            slope,
            jnp.zeros((), slope.dtype),
            [(0, 0, 0), *((*pad, stride - 1) for pad, stride in zip(pads, windows.strides, strict=True)), (0, 0, 0)],
        )
        spread = _apart(spread)
        ones = Windows(strides=(1,) * len(window), pads=((0, 0),) * len(window), rates=windows.rates)
        total: Any = None
        for offset in np.ndindex(*window):
            mirrored = tuple(size - 1 - place for size, place in zip(window, offset, strict=True))
            part = ones.taken(spread, offset, image.shape[1:-1]) * filter[mirrored]
            total = part if total is None else total + part
        if times > 1:
            total = total.reshape(*image.shape, times).sum(-1)

        return total, _Shifted._for_filter(image, window, times, slope, windows)

    @staticmethod
    def _for_filter(image: jax.Array, window: Sizes, times: int, slope: jax.Array, windows: Windows) -> jax.Array:
        counts = windows.counts(image.shape[1:-1], window)
        padded = _apart(_padded(image, windows.pads))
        sums: list[Any] = []
        for offset in np.ndindex(*window):
            taken = windows.taken(padded, offset, counts)
            sums.append(_summed((jnp.repeat(taken, times, -1) if times > 1 else taken) * slope))
        return jnp.stack(sums).reshape(*window, 1, slope.shape[-1])


def _summed(array: jax.Array) -> jax.Array:
    """Returns the sum along all dimensions but the last.

    The sum is computed in a few large blocks, because XLA's code for CPUs uses vector instructions for these, but not
    for sums of many rows.
    """
    rows = array.reshape(-1, array.shape[-1])
    while len(rows) % _BLOCKS == 0 and len(rows) > _BLOCKS:
        blocks = rows.reshape(_BLOCKS, -1, array.shape[-1])
        rows = _apart(functools.reduce(lax.add, [blocks[i] for i in range(_BLOCKS)]))
    return rows.sum(0)


def _apart(array: object) -> Any:
    """Forces XLA to store ``array`` before it is used. Otherwise XLA fuses the padding into the sum of slices, which
    makes each slice slow."""
    return _lax.optimization_barrier(array)


def _padded(image: jax.Array, pads: Sequence[tuple[int, int]]) -> jax.Array:
    return jnp.pad(image, ((0, 0), *pads, (0, 0))) if any(map(any, pads)) else image
