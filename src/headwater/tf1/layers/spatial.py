"""Helpers of spatial layers: numbers for each dimension, orders of dimensions, sizes of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headwater.shapes import Dimension, TensorShape, as_shape, dimension_value

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.shapes import ShapeLike


def per_dimension(value: Any, rank: int, name: str) -> tuple[int, ...]:
    """Expands a number for all spatial dimensions to one for each.

    Raises:
      ValueError: anything else; the message names the argument.
    """
    if isinstance(value, TensorShape):
        value = value.as_list()
    sizes: list[Any] = [value] * rank if np.isscalar(value) or isinstance(value, Dimension) else list(value)
    found: list[Any] = [size.value if isinstance(size, Dimension) else size for size in sizes]
    if len(found) != rank or not all(isinstance(n, int | np.integer) for n in found):
        raise ValueError(f"The `{name}` argument must be a tuple of {rank} integers. Received: {value}")
    return tuple(int(n) for n in found)


def channels_first(data_format: str) -> bool:
    """Returns whether the channels come second.

    Raises:
      ValueError: neither ``channels_first`` nor ``channels_last``.
    """
    if data_format.lower() not in ("channels_first", "channels_last"):
        raise ValueError(
            f'The `data_format` argument must be one of "channels_first", "channels_last". Received: {data_format}'
        )
    return data_format.lower() == "channels_first"


def padding_name(padding: str, *more: str) -> str:
    """Returns a padding, ``valid``, ``same`` or one of ``more``, in lower case.

    Raises:
      ValueError: anything else.
    """
    found = padding.lower()
    if found not in ("valid", "same", *more):
        raise ValueError(f'The `padding` argument must be one of "valid", "same". Received: {padding}')
    return found


def format_of(rank: int, first: bool) -> str:
    """Returns the operations' name of an order of dimensions, such as ``NHWC``."""
    space = "DHW"[3 - rank :] if rank > 1 else "W"
    return f"NC{space}" if first else f"N{space}C"


def output_size(size: int | None, kernel: int, padding: str, stride: int, dilation: int = 1) -> int | None:
    """Returns the number of positions of a window of ``kernel`` elements along a dimension."""
    if size is None:
        return None
    places = size if padding in ("same", "causal") else size - (kernel - 1) * dilation
    return -(-places // stride)


_Size = TypeVar("_Size", int, "Tensor")


def transposed_size(size: _Size, kernel: int, padding: str, stride: int) -> _Size:
    """Returns the size of the input from which a convolution produces ``size``."""
    return size * stride + (max(kernel - stride, 0) if padding == "valid" else 0)


def with_space(input_shape: ShapeLike, first: bool, space: Sequence[int | None], channels: Any) -> TensorShape:
    """Returns the shape of an output with these spatial sizes and this number of channels."""
    batch = as_shape(input_shape)[0]
    return TensorShape([batch, channels, *space] if first else [batch, *space, channels])


def space_of(input_shape: ShapeLike, first: bool) -> list[int | None]:
    """Returns the spatial sizes."""
    dims = as_shape(input_shape).as_list()
    return dims[2:] if first else dims[1:-1]


def known_channels(input_shape: Any, first: bool) -> int:
    """The number of channels.

    Raises:
      ValueError: it is not known.
    """
    size = dimension_value(as_shape(input_shape)[1 if first else -1])
    if size is None:
        raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
    return size
