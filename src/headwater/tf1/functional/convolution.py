"""Convolutions and pooling. `headwater.graph.ops.convolution` explains paddings and data formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import Ints, TensorLike
from headwater.tf1.functional import arrays
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.reductions import either


def _spread(value: Any, count: int, data_format: str, what: str) -> tuple[int, ...]:
    """Expands a number for all spatial dimensions, or one number for each, to one number for each dimension of the
    tensor.

    Raises:
      ValueError: the number of values is wrong.
    """
    given = [1] if value is None else [int(v) for v in np.ravel(value)]
    space = count - 2
    if len(given) == count:
        return tuple(given)
    if len(given) not in (1, space):
        raise ValueError(f"{what} should be of length 1, {space} or {count} but was {len(given)}")
    inner = given * space if len(given) == 1 else given
    return (1, 1, *inner) if data_format.startswith("NC") else (1, *inner, 1)


def _padding(padding: Any, data_format: str) -> dict[str, Any]:
    """Returns the attributes of a padding: a name, or pairs for every dimension."""
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            raise ValueError(f"Unknown padding: {padding!r}")
        return {"padding": padding, "explicit_paddings": ()}
    pairs = [tuple(int(v) for v in pair) for pair in padding]
    if len(pairs) != len(data_format) or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"When padding is a list, it must hold {len(data_format)} pairs, not {padding!r}")
    for letter, pair in zip(data_format, pairs, strict=True):
        if letter in "NC" and pair != (0, 0):
            raise ValueError(f"Non-zero padding in the batch or channel dimension is not supported: {padding!r}")
    return {"padding": "EXPLICIT", "explicit_paddings": tuple(v for pair in pairs for v in pair)}


def _geometry(
    count: int, data_format: str, strides: Any, dilations: Any, dilations_name: str = "dilations"
) -> dict[str, Any]:
    """Returns the attributes that all convolutions of tensors with ``count`` dimensions have."""
    return {
        "strides": _spread(strides, count, data_format, "strides"),
        "dilations": _spread(dilations, count, data_format, dilations_name),
        "data_format": data_format,
    }


def conv2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: TensorLike | None = None,
    padding: object = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: TensorLike = (1, 1, 1, 1),
    name: str | None = None,
    filters: object = None,
) -> Tensor:
    """Cross-correlation of images with a filter of shape [height, width, channels in, channels out].

    Args:
      strides: one number, one for height and width each, or one for each dimension.
      padding: ``SAME``, ``VALID``, or pairs for each dimension.
      dilations: like ``strides``; the distance between the filter's elements.

    Raises:
      ValueError: shapes, strides or paddings do not match.
    """
    kernel = either(filter, filters, "filter", "filters")
    data_format = data_format or "NHWC"
    attrs = _geometry(4, data_format, strides, dilations) | _padding(padding, data_format)
    return one("Conv2D", input, kernel, use_cudnn_on_gpu=use_cudnn_on_gpu, name=name, **attrs)


def conv3d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: TensorLike | None = None,
    padding: str | None = None,
    data_format: str = "NDHWC",
    dilations: TensorLike = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: object = None,
) -> Tensor:
    """Cross-correlation of volumes with a filter of shape [depth, height, width, channels in, channels out]."""
    kernel = either(filter, filters, "filter", "filters")
    if padding is None:
        raise ValueError("padding must be SAME or VALID, not None")
    return one("Conv3D", input, kernel, padding=padding, name=name, **_geometry(5, data_format, strides, dilations))


def conv1d(
    value: TensorLike | None = None,
    filters: TensorLike | None = None,
    stride: Ints | None = None,
    padding: str | None = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
    dilations: Ints | None = None,
) -> Tensor:
    """Cross-correlation of sequences [batch, width, channels] with a filter [width, channels in, channels out]."""
    del use_cudnn_on_gpu
    value = either(value, input, "value", "input")
    with name_scope(name, "conv1d", [value, filters]):
        data_format = data_format or "NWC"
        if data_format not in ("NWC", "NHWC", "NCW", "NCHW"):
            raise ValueError('data_format must be "NWC" or "NCW".')
        first = data_format.startswith("NC")
        height, format_2d = (2, "NCHW") if first else (1, "NHWC")
        step, rate = (int(np.ravel(1 if v is None else v)[-1]) for v in (stride, dilations))
        image = arrays.expand_dims(value, height)
        kernel = arrays.expand_dims(filters, 0)
        result = conv2d(image, kernel, [1, step], padding, data_format=format_2d, dilations=[1, rate])
        return arrays.squeeze(result, [height])


def conv2d_transpose(
    value: object = None,
    filter: TensorLike | None = None,
    output_shape: object = None,
    strides: TensorLike | None = None,
    padding: str = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: object = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of `conv2d`, as its gradient computes it; filter's shape is [height, width, out, in]."""
    value = either(value, input, "value", "input")
    kernel = either(filter, filters, "filter", "filters")
    with name_scope(name, "conv2d_transpose", [value, kernel, output_shape]) as scope:
        return conv2d_backprop_input(
            output_shape, kernel, value, strides, padding, data_format=data_format, dilations=dilations, name=scope
        )


def conv3d_transpose(
    value: TensorLike,
    filter: TensorLike | None = None,
    output_shape: Any = None,
    strides: TensorLike | None = None,
    padding: str = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: object = None,
    dilations: TensorLike | None = None,
) -> Tensor:
    """The transpose of `conv3d`, as its gradient computes it; filter's shape is [depth, height, width, out, in]."""
    value = either(value, input, "value", "input")
    kernel = either(filter, filters, "filter", "filters")
    with name_scope(name, "conv3d_transpose", [value, kernel, output_shape]) as scope:
        attrs = _geometry(5, data_format, strides, dilations)
        return one("Conv3DBackpropInputV2", output_shape, kernel, value, padding=padding, name=scope, **attrs)


def conv2d_backprop_input(
    input_sizes: Any,
    filter: TensorLike | None = None,
    out_backprop: Any = None,
    strides: TensorLike | None = None,
    padding: object = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Ints = (1, 1, 1, 1),
    name: str | None = None,
    filters: object = None,
) -> Tensor:
    """The gradient of `conv2d` for its input, of shape ``input_sizes``."""
    kernel = either(filter, filters, "filter", "filters")
    attrs = _geometry(4, data_format, strides, dilations) | _padding(padding, data_format)
    attrs["use_cudnn_on_gpu"] = use_cudnn_on_gpu
    return one("Conv2DBackpropInput", input_sizes, kernel, out_backprop, name=name, **attrs)


def conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: Ints,
    out_backprop: TensorLike,
    strides: TensorLike,
    padding: object,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: TensorLike = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` for its filter, of shape ``filter_sizes``."""
    attrs = _geometry(4, data_format, strides, dilations) | _padding(padding, data_format)
    attrs["use_cudnn_on_gpu"] = use_cudnn_on_gpu
    return one("Conv2DBackpropFilter", input, filter_sizes, out_backprop, name=name, **attrs)


def conv3d_backprop_filter(
    input: TensorLike,
    filter_sizes: Ints,
    out_backprop: TensorLike,
    strides: Sequence[int],
    padding: str,
    data_format: str = "NDHWC",
    dilations: Sequence[int] = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv3d` for its filter, of shape ``filter_sizes``."""
    attrs = {"strides": list(strides), "dilations": list(dilations), "padding": padding, "data_format": data_format}
    return one("Conv3DBackpropFilterV2", input, filter_sizes, out_backprop, name=name, **attrs)


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: TensorLike,
    padding: str,
    rate: object = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: TensorLike | None = None,
) -> Tensor:
    """A convolution of each channel with its own filters; filter's shape is [height, width, channels, multiplier]."""
    spread = either(rate, dilations, "rate", "dilations")
    kind = data_format or "NHWC"
    with name_scope(name, "depthwise", [input, filter]) as scope:
        tensor, kernel = convert_to_tensor(input, name="tensor_in"), convert_to_tensor(filter, name="filter_in")
        attrs = _geometry(4, kind, strides, spread, "rate")
        return one("DepthwiseConv2dNative", tensor, kernel, padding=padding, name=scope, **attrs)


def depthwise_conv2d_native(
    input: TensorLike,
    filter: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str = "NHWC",
    dilations: TensorLike = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The operation that `depthwise_conv2d` adds, without its name scope."""
    attrs = _geometry(4, data_format, strides, dilations)
    return one("DepthwiseConv2dNative", input, filter, padding=padding, name=name, **attrs)


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Ints,
    padding: str,
    rate: object = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Ints | None = None,
) -> Tensor:
    """`depthwise_conv2d`, then a convolution with a 1×1 filter that mixes the channels."""
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        parts = depthwise_conv2d(
            input, depthwise_filter, strides, padding, rate, "depthwise", data_format, dilations=dilations
        )
        return conv2d(parts, pointwise_filter, 1, "VALID", data_format=data_format or "NHWC", name=scope)


# Pooling ----------------------------------------------------------------------------------------------------------


def _pool(
    op_type: str,
    value: TensorLike,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str,
    name: str | None,
    default: str,
) -> Tensor:
    count = len(data_format)
    with name_scope(name, default, [value]) as scope:
        return one(
            op_type,
            convert_to_tensor(value, name="input"),
            ksize=_spread(ksize, count, data_format, "ksize"),
            strides=_spread(strides, count, data_format, "strides"),
            padding=padding,
            data_format=data_format,
            name=scope,
        )


def max_pool(
    value: TensorLike,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The maximum of each window of an image.

    Args:
      ksize: the window: one number, one for height and width each, or one for each dimension.
      strides: the distance between windows, in the same form.
      padding: ``SAME`` or ``VALID``.
    """
    value = either(value, input, "value", "input")
    return _pool("MaxPool", value, ksize, strides, padding, data_format, name, "MaxPool")


def avg_pool(
    value: TensorLike,
    ksize: TensorLike,
    strides: TensorLike,
    padding: str,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The mean of each window of an image; padding does not count."""
    value = either(value, input, "value", "input")
    return _pool("AvgPool", value, ksize, strides, padding, data_format, name, "AvgPool")


def max_pool2d(
    input: TensorLike, ksize: Ints, strides: Ints, padding: str, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Same as `max_pool`."""
    return _pool("MaxPool", input, ksize, strides, padding, data_format, name, "max_pool2d")


def max_pool3d(
    input: TensorLike, ksize: Ints, strides: Ints, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The maximum of each window of a volume."""
    return _pool("MaxPool3D", input, ksize, strides, padding, data_format, name, "MaxPool3D")


def max_pool_v2(
    input: TensorLike, ksize: Ints, strides: Ints, padding: str, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The maximum of each window in one, two or three spatial dimensions.

    Raises:
      ValueError: ``input`` does not have 3, 4 or 5 dimensions.
    """
    return _pool_of_any_rank("MaxPool", input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: TensorLike, ksize: Ints, strides: Ints, padding: str, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The mean of each window in one, two or three spatial dimensions; see `max_pool_v2`."""
    return _pool_of_any_rank("AvgPool", input, ksize, strides, padding, data_format, name)


def _pool_of_any_rank(
    kind: str, input: TensorLike, ksize: Ints, strides: Ints, padding: str, data_format: str | None, name: str | None
) -> Tensor:
    value = convert_to_tensor(input, name="input")
    first = (data_format or "").startswith("NC")
    rank = value.shape.ndims if data_format is None or value.shape.ndims is not None else len(data_format)
    if rank not in (3, 4, 5):
        raise ValueError(f"Input tensor must be of rank 3, 4 or 5 but was {rank}.")
    if rank == 5:
        return _pool(f"{kind}3D", value, ksize, strides, padding, "NCDHW" if first else "NDHWC", name, f"{kind}3D")
    if rank == 4:
        return _pool(kind, value, ksize, strides, padding, "NCHW" if first else "NHWC", name, kind)
    with name_scope(name, f"{kind}1d", [value]):
        window, step = (
            int(_spread(given, 3, data_format or "NWC", what)[2 if first else 1])
            for given, what in ((ksize, "ksize"), (strides, "strides"))
        )
        place = 2 if first else 1
        image = arrays.expand_dims(value, place)
        pooled = _pool(kind, image, [1, window], [1, step], padding, "NCHW" if first else "NHWC", None, kind)
        return arrays.squeeze(pooled, [place])


def avg_pool3d(
    input: TensorLike, ksize: Ints, strides: Ints, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The mean of each window of a volume; padding does not count."""
    return _pool("AvgPool3D", input, ksize, strides, padding, data_format, name, "AvgPool3D")
