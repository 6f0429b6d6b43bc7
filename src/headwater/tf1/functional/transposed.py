"""Transposed convolutions of any rank, morphology of grey images, and max pooling with positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import as_dtype, int64
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.convolution import conv2d_backprop_input, conv2d_transpose, conv3d_transpose
from headwater.tf1.functional.reductions import either

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Ints
    from headwater.shapes import ShapeLike


def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: TensorLike,
    padding: str = "SAME",
    data_format: str = "NWC",
    dilations: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `conv1d`, as its gradient computes it; the shape of ``filters`` is [width, out, in].

    Raises:
      ValueError: ``data_format`` is unknown, or shapes do not match.
    """
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]) as scope:
        kind = data_format or "NWC"
        if kind not in ("NWC", "NHWC", "NCW", "NCHW"):
            raise ValueError(f"data_format must be NWC or NCW, not {data_format!r}")
        first = kind.startswith("NC")
        height, format_2d = (2, "NCHW") if first else (1, "NHWC")
        step, rate = (_of_width(value, 2 if first else 1) for value in (strides, dilations))
        sizes = convert_to_tensor(output_shape, name="output_shape")
        whole = arrays.concat([sizes[:height], [1], sizes[height:]], 0)
        result = conv2d_backprop_input(
            whole,
            arrays.expand_dims(filters, 0),
            arrays.expand_dims(input, height),
            [1, step],
            padding,
            data_format=format_2d,
            dilations=[1, rate],
        )
        return arrays.squeeze(result, [height], name=scope)


def _of_width(value: Any, place: int) -> int:
    """A stride or rate given as one number, or as one for each of batch, width and channels."""
    given = np.ravel(1 if value is None else value)
    return int(given[place] if given.size == 3 else given[0])


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Transposed convolution over one, two or three spatial dimensions, with the given ``output_shape``.

    Raises:
      ValueError: the number of dimensions is wrong.
    """
    with name_scope(name, "conv_transpose", [input, filters, output_shape]) as scope:
        dims = output_shape.dims if isinstance(output_shape, Tensor) else np.shape(output_shape)
        count = dims[0] if dims else None
        if count not in (3, 4, 5):
            raise ValueError(f"output_shape must have 3 to 5 elements, not {count}")
        if count == 3:
            kind = data_format or "NWC"
            return conv1d_transpose(input, filters, output_shape, strides, padding, kind, dilations, scope)
        function, kind = (conv2d_transpose, "NHWC") if count == 4 else (conv3d_transpose, "NDHWC")
        return function(
            input, filters, output_shape, strides, padding, data_format or kind, name=scope, dilations=dilations
        )


def atrous_conv2d_transpose(
    value: TensorLike, filters: TensorLike, output_shape: ShapeLike, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """The transpose of `atrous_conv2d`; the shape of ``filters`` is [height, width, out, in].

    Raises:
      ValueError: a rate is below 1, or shapes do not match.
    """
    if rate < 1:
        raise ValueError(f"rate {rate} cannot be less than one")
    with name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]) as scope:
        return conv2d_backprop_input(output_shape, filters, value, 1, padding, dilations=[rate, rate], name=scope)


def depthwise_conv2d_native_backprop_input(
    input_sizes: TensorLike,
    filter: TensorLike,
    out_backprop: TensorLike,
    strides: Sequence[int],
    padding: str,
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d` for its input, of shape ``input_sizes``."""
    attrs = {"strides": tuple(strides), "padding": padding, "data_format": data_format, "dilations": tuple(dilations)}
    return one("DepthwiseConv2dNativeBackpropInput", input_sizes, filter, out_backprop, name=name, **attrs)


def depthwise_conv2d_native_backprop_filter(
    input: TensorLike,
    filter_sizes: Ints,
    out_backprop: TensorLike,
    strides: Sequence[int],
    padding: str,
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d` for its filter, of shape ``filter_sizes``."""
    attrs = {"strides": tuple(strides), "padding": padding, "data_format": data_format, "dilations": tuple(dilations)}
    return one("DepthwiseConv2dNativeBackpropFilter", input, filter_sizes, out_backprop, name=name, **attrs)


def dilation2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: Any = None,
    rates: TensorLike | None = None,
    padding: str | None = None,
    name: str | None = None,
    filters: object = None,
    dilations: TensorLike | None = None,
) -> Tensor:
    """Grey-scale dilation: the maximum of input + filter over each window.

    Args:
      input: [batch, height, width, channels].
      filter, filters: [height, width, channels].
      strides, rates, dilations: four numbers, the first and the last 1.
      padding: ``SAME`` or ``VALID``.
    """
    kernel = either(filter, filters, "filter", "filters")
    spacing = tuple(either(rates, dilations, "rates", "dilations"))
    return one("Dilation2D", input, kernel, strides=tuple(strides), rates=spacing, padding=padding, name=name)


def erosion2d(
    value: TensorLike, kernel: TensorLike, strides: TensorLike, rates: TensorLike, padding: str, name: str | None = None
) -> Tensor:
    """Grey-scale erosion: the minimum of value - kernel over a window. Arguments as for `dilation2d`."""
    with name_scope(name, "erosion2d", [value, kernel]) as scope:
        turned = arrays.reverse(kernel, [0, 1])
        return math.negative(dilation2d(math.negative(value), turned, strides, rates, padding), name=scope)


def max_pool_with_argmax(
    input: TensorLike,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str = "NHWC",
    Targmax: DTypeLike | None = None,
    name: str | None = None,
    output_dtype: DTypeLike | None = None,
    include_batch_in_index: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window, and its place in the flattened image.

    Args:
      ksize, strides: four numbers, the first and the last 1.
      Targmax, output_dtype: int32 or int64, of the places; int64 if None.
      include_batch_in_index: count places in the whole batch.

    Raises:
      ValueError: ``data_format`` is not ``NHWC``.
    """
    if data_format != "NHWC":
        raise ValueError("Data formats other than 'NHWC' are not yet supported")
    kind = either(Targmax, output_dtype, "Targmax", "output_dtype")
    op = apply(
        "MaxPoolWithArgmax",
        input,
        ksize=tuple(ksize),
        strides=tuple(strides),
        padding=padding,
        Targmax=int64 if kind is None else as_dtype(kind),
        include_batch_in_index=include_batch_in_index,
        name=name,
    )
    return op.outputs[0], op.outputs[1]
