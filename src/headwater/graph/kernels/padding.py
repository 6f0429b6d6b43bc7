"""Padding of images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headwater.graph.kernels.registry import NoKernel

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

Pairs = Sequence[tuple[int, int]]


def pads_of(sizes: Sequence[int], reach: Sequence[int], strides: Sequence[int], padding: str) -> list[tuple[int, int]]:
    """Returns the padding before and after each dimension; see `headwater.graph.ops.convolution`."""
    if padding == "VALID":
        if any(size - window + stride < 0 for size, window, stride in zip(sizes, reach, strides, strict=True)):
            raise NoKernel  # the executable explains the error
        return [(0, 0)] * len(sizes)
    if padding != "SAME":
        raise NoKernel
    totals = [
        max((-(-size // stride) - 1) * stride + window - size, 0)
        for size, window, stride in zip(sizes, reach, strides, strict=True)
    ]
    return [(total // 2, total - total // 2) for total in totals]


def padded_by(x: HostArray, pads: Pairs, value: object = 0) -> HostArray:
    """Returns ``x`` with ``value`` around it; ``x`` itself if there is no padding."""
    if not any(before or after for before, after in pads):
        return x
    sizes = [before + size + after for (before, after), size in zip(pads, x.shape, strict=True)]
    result = np.full(sizes, value, x.dtype)
    result[within(pads, x.shape)] = x
    return result


def within(pads: Pairs, sizes: Sequence[int]) -> tuple[slice, ...]:
    """Returns the slices of a padded array that are not padding."""
    return tuple(slice(before, before + size) for (before, _), size in zip(pads, sizes, strict=True))
