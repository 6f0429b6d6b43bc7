"""Fake quantization: numbers rounded to a few bits, for quantization-aware training."""

from __future__ import annotations

from typing import NamedTuple

from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.apply import apply, one


class Gradients(NamedTuple):
    """The gradients for inputs and both bounds."""

    backprops_wrt_input: Tensor
    backprop_wrt_min: Tensor
    backprop_wrt_max: Tensor


def fake_quant_with_min_max_args(
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Rounds inputs to ``num_bits`` bits between two bounds, which are adjusted so that 0 is representable.

    Args:
      inputs: float32.
      min: the lower bound.
      max: the upper bound.
      num_bits: 2 to 16.
      narrow_range: without the lowest number.
    """
    attrs = {"min": float(min), "max": float(max), "num_bits": num_bits, "narrow_range": narrow_range}
    return one("FakeQuantWithMinMaxArgs", inputs, name=name, **attrs)


def fake_quant_with_min_max_args_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """The gradient of `fake_quant_with_min_max_args` for its inputs."""
    attrs = {"min": float(min), "max": float(max), "num_bits": num_bits, "narrow_range": narrow_range}
    return one("FakeQuantWithMinMaxArgsGradient", gradients, inputs, name=name, **attrs)


def fake_quant_with_min_max_vars(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Like `fake_quant_with_min_max_args`, with bounds that are tensors and have gradients."""
    return one("FakeQuantWithMinMaxVars", inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_vars_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Gradients:
    """The gradients of `fake_quant_with_min_max_vars`."""
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    op = apply("FakeQuantWithMinMaxVarsGradient", gradients, inputs, min, max, name=name, **attrs)
    return Gradients(*op.outputs)


def fake_quant_with_min_max_vars_per_channel(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Like `fake_quant_with_min_max_vars`, with bounds for each element of the last dimension."""
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    return one("FakeQuantWithMinMaxVarsPerChannel", inputs, min, max, name=name, **attrs)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Gradients:
    """The gradients of `fake_quant_with_min_max_vars_per_channel`."""
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    op = apply("FakeQuantWithMinMaxVarsPerChannelGradient", gradients, inputs, min, max, name=name, **attrs)
    return Gradients(*op.outputs)
