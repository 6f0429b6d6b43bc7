"""Networks of small convolutions (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.tf1.contrib.slim import plain
from headwater.tf1.contrib.slim.arg_scope import Scope, arg_scope
from headwater.tf1.contrib.slim.layers import convolution2d, fully_connected
from headwater.tf1.contrib.slim.nets.resnet_utils import sized
from headwater.tf1.contrib.slim.utils import convert_collection_to_dict
from headwater.tf1.functional import arrays, nn
from headwater.tf1.variables.initializers import ZEROS
from headwater.tf1.variables.regularizers import l2_regularizer
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


def vgg_arg_scope(weight_decay: float = 0.0005) -> Scope:
    """Returns the settings of the layers, for `arg_scope`."""
    with (
        arg_scope(
            [convolution2d, fully_connected],
            activation_fn=nn.relu,
            weights_regularizer=l2_regularizer(weight_decay),
            biases_initializer=ZEROS,
        ),
        arg_scope([convolution2d], padding="SAME") as settings,
    ):
        return settings


def _network(name: str, layers: int, repetitions: Sequence[int]) -> Callable[..., tuple[Any, dict[str, Any]]]:
    def function(
        inputs: TensorLike,
        num_classes: int = 1000,
        is_training: object = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: str | None = name,
    ) -> tuple[Any, dict[str, Any]]:
        with variable_scope(scope, name, [inputs]) as entered:
            collection = f"{entered.original_name_scope}_end_points"
            net: Any = inputs
            with arg_scope([convolution2d, fully_connected, plain.max_pool2d], outputs_collections=collection):
                for number, (depth, count) in enumerate(zip((64, 128, 256, 512, 512), repetitions, strict=True), 1):
                    net = plain.repeat(net, count, convolution2d, depth, [3, 3], scope=f"conv{number}")
                    net = plain.max_pool2d(net, [2, 2], scope=f"pool{number}")
                net = convolution2d(net, 4096, [7, 7], padding="VALID", scope="fc6")
                net = plain.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                net = convolution2d(net, 4096, [1, 1], scope="fc7")
                net = plain.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                net = convolution2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8")
                end_points: dict[str, Any] = convert_collection_to_dict(collection)
                if spatial_squeeze:
                    net = end_points[f"{entered.name}/fc8"] = arrays.squeeze(net, [1, 2], name="fc8/squeezed")
                return net, end_points

    doc = f"The network with {layers} layers: logits [batch, num_classes], and results of layers by scope."
    return sized(function, name, doc)


vgg_a = _network("vgg_a", 11, (1, 1, 2, 2, 2))
vgg_d = vgg_16 = _network("vgg_16", 16, (2, 2, 3, 3, 3))
vgg_e = vgg_19 = _network("vgg_19", 19, (2, 2, 4, 4, 4))
