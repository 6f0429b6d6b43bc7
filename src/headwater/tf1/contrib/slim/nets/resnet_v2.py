"""Residual networks with activations before the convolutions (He et al., 2016)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from headwater.tf1.contrib.slim.arg_scope import add_arg_scope
from headwater.tf1.contrib.slim.layers import convolution2d
from headwater.tf1.contrib.slim.nets import resnet_utils
from headwater.tf1.contrib.slim.normalization import batch_norm
from headwater.tf1.contrib.slim.utils import collect_named_outputs, last_dimension
from headwater.tf1.functional import nn
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.graph.operation import Tensor


@add_arg_scope
def bottleneck(
    inputs: Tensor,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: object = None,
    scope: str | None = None,
) -> Any:
    """A unit of three convolutions, around ``depth_bottleneck`` channels, beside a shortcut.

    Args:
      depth: number of channels of the result.
      stride, rate: of the middle convolution.
    """
    with variable_scope(scope, "bottleneck_v2", [inputs]) as entered:
        activated = batch_norm(inputs, activation_fn=nn.relu, scope="preact")
        plainly = functools.partial(convolution2d, activation_fn=None, normalizer_fn=None)
        if depth == last_dimension(inputs.shape, min_rank=4):
            shortcut = resnet_utils.subsample(inputs, stride, "shortcut")
        else:
            shortcut = plainly(activated, depth, [1, 1], stride=stride, scope="shortcut")
        residual = convolution2d(activated, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = resnet_utils.conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual: Any = plainly(residual, depth, [1, 1], stride=1, scope="conv3")
        return collect_named_outputs(outputs_collections, entered.name, shortcut + residual)


_VERSION = resnet_utils.Version("resnet_v2", bottleneck, activation_first=True)

resnet_arg_scope = resnet_utils.resnet_arg_scope
resnet_v2_block = _VERSION.block
resnet_v2: Callable[..., Any] = resnet_utils.sized(
    _VERSION.network, "resnet_v2", "A residual network of given blocks; see `headwater.tf1.contrib.slim.nets`."
)
resnet_v2_50 = _VERSION.of_depth(50)
resnet_v2_101 = _VERSION.of_depth(101)
resnet_v2_152 = _VERSION.of_depth(152)
resnet_v2_200 = _VERSION.of_depth(200)
