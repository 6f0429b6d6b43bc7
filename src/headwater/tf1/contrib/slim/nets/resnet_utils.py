"""Residual networks (He et al., 2015 and 2016): blocks of units, and settings of their layers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.graph.collections import GraphKeys
from headwater.graph.convert import convert_to_tensor
from headwater.tf1.contrib.slim import plain
from headwater.tf1.contrib.slim.arg_scope import Scope, add_arg_scope, arg_scope
from headwater.tf1.contrib.slim.initializers import variance_scaling_initializer
from headwater.tf1.contrib.slim.layers import convolution2d
from headwater.tf1.contrib.slim.normalization import batch_norm
from headwater.tf1.contrib.slim.utils import collect_named_outputs, convert_collection_to_dict
from headwater.tf1.functional import arrays, nn, reductions
from headwater.tf1.variables.regularizers import l2_regularizer
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike
    from headwater.tf1.variables.types import Reuse

_ROOT_STRIDE = 4
#: Number of units in the four blocks of each published network.
_DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}


class Block(NamedTuple):
    """One block: the function of its units, and the arguments of each."""

    scope: str
    unit_fn: Callable[..., Any]
    args: Sequence[Mapping[str, Any]]


def subsample(inputs: Tensor, factor: int, scope: str | None = None) -> Any:
    """Takes every ``factor``-th row and column of images [batch, height, width, channels]."""
    return inputs if factor == 1 else plain.max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: TensorLike, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: str | None = None
) -> Any:
    """A convolution whose strided result equals `subsample` of the result with stride 1, for even sizes also."""
    if stride == 1:
        return convolution2d(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    total = (kernel_size - 1) * rate
    sides = [total // 2, total - total // 2]
    padded = arrays.pad(inputs, [[0, 0], sides, sides, [0, 0]])
    return convolution2d(padded, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


@add_arg_scope
def stack_blocks_dense(
    net: object, blocks: Sequence[Block], output_stride: int | None = None, outputs_collections: object = None
) -> Any:
    """Applies blocks in turn; units beyond ``output_stride`` dilate their convolutions instead of striding.

    Args:
      output_stride: input size / output size; None for the product of all strides.

    Raises:
      ValueError: the units' strides do not multiply to ``output_stride``.
    """
    stride = rate = 1
    for block in blocks:
        with variable_scope(block.scope, "block", [net]) as entered:
            for number, unit in enumerate(block.args, 1):
                if output_stride is not None and stride > output_stride:
                    raise ValueError("The target output_stride cannot be reached.")
                own = unit.get("stride", 1)
                with variable_scope(f"unit_{number}", values=[net]):
                    if stride == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= own
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        stride *= own
            net = collect_named_outputs(outputs_collections, entered.name, net)
    if output_stride is not None and stride != output_stride:
        raise ValueError("The target output_stride cannot be reached.")
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Scope:
    """Returns the settings of the layers in residual networks, for `arg_scope`."""
    norm = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": GraphKeys.UPDATE_OPS,
    }
    with (
        arg_scope(
            [convolution2d],
            weights_regularizer=l2_regularizer(weight_decay),
            weights_initializer=variance_scaling_initializer(),
            activation_fn=nn.relu,
            normalizer_fn=batch_norm,
            normalizer_params=norm,
        ),
        arg_scope([batch_norm], **norm),
        arg_scope([plain.max_pool2d], padding="SAME") as settings,
    ):
        return settings


# Versions of the network ---------------------------------------------------------------------------------------------


class Version(NamedTuple):
    """One of the two orders of layers: activation after the convolutions (1), or before them (2)."""

    name: str
    bottleneck: Callable[..., Any]
    activation_first: bool

    def block(self, scope: str, base_depth: int, num_units: int, stride: int) -> Block:
        """Returns a block of bottleneck units; the last one has the stride."""
        sizes = {"depth": 4 * base_depth, "depth_bottleneck": base_depth}
        strides = [1] * (num_units - 1) + [stride]
        return Block(scope, self.bottleneck, [{**sizes, "stride": each} for each in strides])

    def network(
        self,
        inputs: Any,
        blocks: Sequence[Block],
        num_classes: int | None = None,
        is_training: object = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        include_root_block: bool = True,
        reuse: Reuse | None = None,
        scope: str | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """A residual network of images [batch, height, width, channels].

        Args:
          num_classes: number of logits; None omits the layer of logits.
          global_pool: average over height and width.
          output_stride: input size / output size, by dilated convolutions; None for the product of the strides.
          include_root_block: begin with a convolution of stride 2 and a pool of stride 2.

        Returns:
          The logits or features [batch, height, width, channels], and results of layers and blocks by scope.

        Raises:
          ValueError: ``output_stride`` cannot be reached.
        """
        with variable_scope(scope, self.name, [inputs], reuse=reuse) as entered:
            collection = f"{entered.original_name_scope}_end_points"
            collecting = [convolution2d, self.bottleneck, stack_blocks_dense]
            with (
                arg_scope(collecting, outputs_collections=collection),
                arg_scope([batch_norm], is_training=is_training),
            ):
                net = convert_to_tensor(inputs)
                if include_root_block:
                    if output_stride is not None:
                        if output_stride % _ROOT_STRIDE:
                            raise ValueError("The output_stride needs to be a multiple of 4.")
                        output_stride //= _ROOT_STRIDE
                    plainly = {"activation_fn": None, "normalizer_fn": None} if self.activation_first else {}
                    with arg_scope([convolution2d], **plainly):
                        net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
                    net = plain.max_pool2d(net, [3, 3], stride=2, scope="pool1")
                net = stack_blocks_dense(net, blocks, output_stride)
                if self.activation_first:
                    net = batch_norm(net, activation_fn=nn.relu, scope="postnorm")
                if global_pool:
                    net = reductions.reduce_mean(net, [1, 2], name="pool5", keepdims=True)
                if num_classes is not None:
                    net = convolution2d(
                        net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits"
                    )
                end_points: dict[str, Any] = convert_collection_to_dict(collection)
                if num_classes is not None:
                    end_points["predictions"] = plain.softmax(net, scope="predictions")
                return net, end_points

    def of_depth(self, depth: int) -> Callable[..., tuple[Any, dict[str, Any]]]:
        """Returns the function of a published network with this many layers; it takes `network`'s arguments."""
        sizes = zip((64, 128, 256, 512), _DEPTHS[depth], (2, 2, 2, 1), strict=True)
        blocks = [self.block(f"block{number}", *each) for number, each in enumerate(sizes, 1)]
        name = f"{self.name}_{depth}"

        def function(
            inputs: TensorLike,
            num_classes: int | None = None,
            is_training: object = True,
            global_pool: bool = True,
            output_stride: int | None = None,
            reuse: Reuse | None = None,
            scope: str | None = name,
        ) -> tuple[Any, dict[str, Any]]:
            return self.network(
                inputs, blocks, num_classes, is_training, global_pool, output_stride, reuse=reuse, scope=scope
            )

        return sized(function, name, f"The residual network with {depth} layers; see `Version.network`.")


def sized(function: Callable[..., Any], name: str, doc: str, size: int = 224) -> Callable[..., Any]:
    """Names a network's function and gives it the ``default_image_size`` of its published checkpoint."""
    named: Any = functools.wraps(function)(lambda *args, **kwargs: function(*args, **kwargs))
    named.__name__ = named.__qualname__ = name
    named.__doc__ = doc
    named.default_image_size = size
    return named
