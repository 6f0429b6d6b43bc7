"""Resizing of images, and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, ints
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray


def scale_of(count: int, size: int, align_corners: bool) -> np.float32:
    """Returns the distance, in ``size`` source pixels, between two of ``count`` pixels."""
    return np.float32((size - 1) / (count - 1) if align_corners and count > 1 else size / count)


def places(count: int, size: int, align_corners: bool, half_pixel_centers: bool) -> HostArray:
    """Returns the source place, within ``size`` pixels, of each of ``count`` pixels."""
    scale = scale_of(count, size, align_corners)
    steps = np.arange(count, dtype=np.float32)
    return (steps + np.float32(0.5)) * scale - np.float32(0.5) if half_pixel_centers else steps * scale


def neighbors(
    count: int, size: int, align_corners: bool, half_pixel_centers: bool
) -> tuple[HostArray, HostArray, HostArray]:
    """Returns, for each of ``count`` pixels, the source pixels before and after its place, and the weight of the
    latter."""
    at = places(count, size, align_corners, half_pixel_centers)
    floor = np.floor(at)
    low, high = (np.clip(value, 0, size - 1).astype(np.intp) for value in (floor, floor + 1))
    return low, high, at - floor


def nearest(count: int, size: int, align_corners: bool, half_pixel_centers: bool) -> HostArray:
    """Returns the source pixel for each of ``count`` pixels: with ``align_corners``, the pixel nearest to its place,
    with halves rounded away from zero; otherwise the pixel that contains its place."""
    scale = scale_of(count, size, align_corners)
    steps = np.arange(count, dtype=np.float32) + np.float32(0.5 if half_pixel_centers else 0.0)
    at = steps * scale
    return np.clip(np.floor(at + np.float32(0.5) if align_corners else at), 0, size - 1).astype(np.intp)


def _output_size(size: HostArray) -> tuple[int, ...]:
    sizes = ints(size)
    if min(sizes) < 1:
        raise NoKernel
    return sizes


def _weights(count: int, size: int, align_corners: bool, half_pixel_centers: bool) -> HostArray:
    """Returns the matrix [count, size] that resizes one dimension."""
    low, high, share = neighbors(count, size, align_corners, half_pixel_centers)
    weights, rows = np.zeros((count, size), np.float32), np.arange(count)
    np.add.at(weights, (rows, low), 1 - share)
    np.add.at(weights, (rows, high), share)
    return weights


def _between(values: HostArray, low: HostArray, high: HostArray, share: HostArray) -> HostArray:
    below = values[:, low]
    return below + (values[:, high] - below) * share[:, None]


@kernel("ResizeBilinear")
def resize_bilinear(
    images: HostArray, size: HostArray, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> HostArray:
    """Computes each pixel from the four pixels around its source place."""
    height, width = _output_size(size)
    count, rows, columns, channels = images.shape
    values = images.astype(np.float32, copy=False).reshape(count, rows, columns * channels)
    values = _between(values, *neighbors(height, rows, align_corners, half_pixel_centers))
    values = values.reshape(count * height, columns, channels)
    values = _between(values, *neighbors(width, columns, align_corners, half_pixel_centers))
    return values.reshape(count, height, width, channels)


def _transposed(
    weights: Callable[[int, int, bool, bool], HostArray], images: HostArray, g: HostArray, attrs: Attrs
) -> Arrays:
    """Returns the gradient of the images: the transposed matrix of each dimension times ``g``."""
    if images.dtype.kind != "f" or not g.size or not images.size:
        raise NoKernel
    settings = attrs.get("align_corners", False), attrs.get("half_pixel_centers", False)
    rows, columns = (weights(g.shape[axis], images.shape[axis], *settings) for axis in (1, 2))
    by_row = np.matmul(rows.T, g.reshape(len(g), g.shape[1], -1))
    by_row = by_row.reshape(len(g) * images.shape[1], g.shape[2], g.shape[3])
    return np.matmul(columns.T, by_row).reshape(images.shape).astype(images.dtype), None


@gradient_kernel("ResizeBilinear")
def resize_bilinear_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """Returns the gradient of the images, by the transposed interpolation along each dimension."""
    return _transposed(_weights, inputs[0], grads[0], attrs)


@kernel("ResizeNearestNeighbor")
def resize_nearest(
    images: HostArray, size: HostArray, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> HostArray:
    """Computes each pixel as the pixel nearest to its source place."""
    height, width = _output_size(size)
    rows = nearest(height, images.shape[1], align_corners, half_pixel_centers)
    columns = nearest(width, images.shape[2], align_corners, half_pixel_centers)
    return images[:, rows[:, None], columns]


def _choices(count: int, size: int, align_corners: bool, half_pixel_centers: bool) -> HostArray:
    return np.eye(size, dtype=np.float32)[nearest(count, size, align_corners, half_pixel_centers)]


@gradient_kernel("ResizeNearestNeighbor")
def resize_nearest_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """Returns, for each source pixel, the sum of the gradients of its copies."""
    return _transposed(_choices, inputs[0], grads[0], attrs)
