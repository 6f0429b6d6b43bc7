"""Windows that TensorFlow's kernels refuse: windows that extend over the batch or, except for pooling of images, over
the channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater.errors import InvalidArgumentError, OpError, OutOfRangeError, UnimplementedError

_CONVOLUTIONS: Final = (
    *(f"Conv2D{kind}" for kind in ("", "BackpropFilter", "BackpropInput")),
    *(f"Conv3D{kind}" for kind in ("", "BackpropFilterV2", "BackpropInputV2")),
    *(f"DepthwiseConv2dNative{kind}" for kind in ("", "BackpropFilter", "BackpropInput")),
)
_POOLS: Final = ("AvgPool", "AvgPool3D", "MaxPool", "MaxPool3D", "MaxPoolWithArgmax")
_TYPES: Final = {*_CONVOLUTIONS, *_POOLS, "Dilation2D", "ExtractImagePatches"}
_NOT_YET: Final = "Current implementation does not yet support"


def unsupported(op_type: str, attrs: Mapping[str, Any]) -> OpError | None:
    """Returns the error that TensorFlow's kernel raises for the windows of an operation; None if it supports them."""
    if op_type not in _TYPES:
        return None
    if op_type in _CONVOLUTIONS:
        return _convolution(op_type, attrs)
    if op_type in _POOLS:
        return _pool(op_type, attrs)
    return _spatial(op_type, attrs)


def _extends(windows: Sequence[int], axis: int) -> bool:
    return len(windows) > 0 and windows[axis] != 1


def _convolution(op_type: str, attrs: Mapping[str, Any]) -> OpError | None:
    channels = attrs.get("data_format", "NDHWC" if "3D" in op_type else "NHWC").index("C")
    rates = "dilation rates" if "3D" in op_type else "dilations"
    for name, windows in (("strides", attrs["strides"]), (rates, attrs.get("dilations", ()))):
        if _extends(windows, 0) or _extends(windows, channels):
            return InvalidArgumentError(f"{_NOT_YET} {name} in the batch and depth dimensions.")
    return None


def _pool(op_type: str, attrs: Mapping[str, Any]) -> OpError | None:
    both = (attrs["ksize"], attrs["strides"])
    if any(_extends(windows, 0) for windows in both):
        return UnimplementedError("Pooling is not yet supported on the batch dimension.")
    if "3D" in op_type and any(_extends(windows, attrs.get("data_format", "NDHWC").index("C")) for windows in both):
        return UnimplementedError("Pooling is not yet supported on the depth dimension.")
    return None


def _spatial(op_type: str, attrs: Mapping[str, Any]) -> OpError | None:
    names = ("strides", "rates") if op_type == "Dilation2D" else ("ksizes", "strides", "rates")
    for name in names:
        windows = attrs[name]
        if _extends(windows, 0) or _extends(windows, -1):
            said = f"Only support {name} across space."
            if op_type == "Dilation2D":
                said = f"{name.capitalize()[:-1]} is only supported across spatial dimensions."
            return UnimplementedError(said)
        if min(windows) < 1:
            return OutOfRangeError(f"{name} is out of range.")
    return None
