"""Layers without weights: pooling, dropout, flattening, one-hot encoding, and repeated layers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import dimension_value
from headwater.tf1.contrib.slim.arg_scope import add_arg_scope
from headwater.tf1.contrib.slim.utils import collect_named_outputs
from headwater.tf1.functional import arrays, indexing, nest, nn
from headwater.tf1.layers import core, pooling
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.scope_settings import VariableScope


def _pooling(cls: Any, default: str, order: str, doc: str) -> Callable[..., Tensor]:
    def function(
        inputs: Tensor,
        kernel_size: TensorLike,
        stride: TensorLike = 2,
        padding: str = "VALID",
        data_format: str = order,
        outputs_collections: Sequence[str] | None = None,
        scope: str | None = None,
    ) -> Tensor:
        if data_format not in (order, f"NC{order[1:-1]}"):
            raise ValueError(f"data_format has to be either NC{order[1:-1]} or {order}.")
        channels = "channels_first" if data_format.startswith("NC") else "channels_last"
        with name_scope(scope, default, [inputs]) as entered:
            layer = cls(
                pool_size=kernel_size, strides=stride, padding=padding, data_format=channels, _scope=entered.rstrip("/")
            )
            outputs = layer.call(convert_to_tensor(inputs))
            return collect_named_outputs(outputs_collections, entered, outputs)

    function.__name__ = function.__qualname__ = default.lower()
    function.__doc__ = doc
    return add_arg_scope(function)


max_pool2d: Callable[..., object] = _pooling(
    pooling.MaxPooling2D, "MaxPool2D", "NHWC", "The maximum of each window of an image."
)
max_pool3d: Callable[..., object] = _pooling(
    pooling.MaxPooling3D, "MaxPool3D", "NDHWC", "The maximum of each window of a volume."
)
avg_pool2d: Callable[..., object] = _pooling(
    pooling.AveragePooling2D, "AvgPool2D", "NHWC", "The mean of each window of an image."
)
avg_pool3d: Callable[..., object] = _pooling(
    pooling.AveragePooling3D, "AvgPool3D", "NDHWC", "The mean of each window of a volume."
)


@add_arg_scope
def dropout(
    inputs: TensorLike,
    keep_prob: Any = 0.5,
    noise_shape: TensorLike | ShapeLike | None = None,
    is_training: object = True,
    outputs_collections: Sequence[str] | None = None,
    scope: str | VariableScope | None = None,
    seed: int | None = None,
) -> Tensor:
    """In training, keeps elements with probability ``keep_prob``, divided by it, and sets the others to 0."""
    with variable_scope(scope, "Dropout", [inputs]) as entered:
        layer = core.Dropout(rate=1 - keep_prob, noise_shape=noise_shape, seed=seed, name=entered.name, _scope=entered)
        return collect_named_outputs(outputs_collections, entered.name, layer(inputs, training=is_training))


@add_arg_scope
def flatten(inputs: TensorLike, outputs_collections: object = None, scope: str | None = None) -> Tensor:
    """Flattens all dimensions but the first."""
    with name_scope(scope, "Flatten", [inputs]) as entered:
        return collect_named_outputs(outputs_collections, entered, core.flatten(inputs))


@add_arg_scope
def one_hot_encoding(
    labels: TensorLike,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: object = None,
    scope: str | None = None,
) -> Tensor:
    """One-hot encodes class numbers to rows with ``on_value`` at the class, and ``off_value`` elsewhere."""
    with name_scope(scope, "OneHotEncoding", [labels, num_classes]) as entered:
        labels = convert_to_tensor(labels)
        outputs = indexing.one_hot(labels, num_classes, on_value=on_value, off_value=off_value)
        return collect_named_outputs(outputs_collections, entered, outputs)


@add_arg_scope
def softmax(logits: TensorLike, scope: str | VariableScope | None = None) -> Tensor:
    """Probabilities along the last dimension."""
    with variable_scope(scope, "softmax", [logits]):
        logits = convert_to_tensor(logits)
        # Published graphs are read by the names of these reshapes.
        rows = nn.softmax(arrays.reshape(logits, [-1, dimension_value(logits.shape[-1])]))
        found = arrays.reshape(rows, arrays.shape(logits))
        found.set_shape(logits.dims)
        return found


def repeat(inputs: TensorLike, repetitions: int, layer: Callable[..., object], *args: object, **kwargs: object) -> Any:
    """Applies ``layer`` this number of times, in scopes ``name/name_1``, ``name/name_2`` …"""
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Repeat", [inputs]):
        outputs = convert_to_tensor(inputs)
        name = scope or _name_of(layer)
        for index in range(repetitions):
            outputs = layer(outputs, *args, **kwargs, scope=f"{name}_{index + 1}")
        return outputs


def stack(inputs: TensorLike, layer: Callable[..., object], stack_args: Sequence[object], **kwargs: object) -> Any:
    """Applies ``layer`` once for each of ``stack_args``, in scopes ``name/name_1``, ``name/name_2`` …"""
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Stack", [inputs]):
        outputs = convert_to_tensor(inputs)
        name = scope or _name_of(layer)
        for index, own in enumerate(stack_args):
            more: list[object] = nest.flatten(own)
            outputs = layer(outputs, *more, **kwargs, scope=f"{name}_{index + 1}")
        return outputs


def _name_of(layer: object) -> str:
    if isinstance(layer, functools.partial):
        return _name_of(layer.func)  # pyright: ignore[reportUnknownMemberType]
    return getattr(layer, "__name__", "stack")
