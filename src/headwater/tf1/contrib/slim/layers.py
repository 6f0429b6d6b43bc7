"""Layers with weights: fully connected, convolutions, biases, embeddings.

Their variables are called ``weights`` and ``biases``, are in ``MODEL_VARIABLES``, and take their settings from
`arg_scope`. All take these arguments:

  activation_fn: applied to the result; by default relu; None leaves the result unchanged.
  normalizer_fn, normalizer_params: applied before the activation, in place of a bias.
  weights_initializer, biases_initializer: initial values; no bias if the latter is None.
  weights_regularizer, biases_regularizer: functions that return losses.
  reuse, scope: of the variables.
  variables_collections: where the variables are added: a list, or a dictionary of lists by their names.
  outputs_collections: where the result is added.
  trainable: whether optimizers change the variables.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.graph.types import Ints, TensorLike
from headwater.shapes import dimension_value
from headwater.tf1.contrib.slim.arg_scope import add_arg_scope
from headwater.tf1.contrib.slim.initializers import xavier_initializer
from headwater.tf1.contrib.slim.utils import collect_named_outputs, get_variable_collections
from headwater.tf1.contrib.slim.variables import model_variable
from headwater.tf1.functional import convolution, nn
from headwater.tf1.layers.convolution import Conv1D, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose, SeparableConv2D
from headwater.tf1.layers.core import Dense
from headwater.tf1.variables import embedding
from headwater.tf1.variables.initializers import ZEROS
from headwater.tf1.variables.variable_scope import get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headwater.tf1.variables.regularizers import Regularizer
    from headwater.tf1.variables.scope_settings import VariableScope
    from headwater.tf1.variables.types import AnyVariable, InitializerLike, Reuse


XAVIER = xavier_initializer()
_NAMES = {"kernel": "weights", "bias": "biases"}


def layer_variables(names: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """Returns the custom getter that makes a layer's variables model variables, under other names."""

    def getter(getter: Callable[..., object], name: str, *args: object, **kwargs: object) -> Any:
        scope, _, last = name.rpartition("/")
        renamed = (names or {}).get(last, last)
        kwargs.pop("reuse", None)
        kwargs.pop("use_resource", None)
        kwargs.pop("validate_shape", None)
        kwargs.pop("constraint", None)
        return model_variable(f"{scope}/{renamed}" if scope else renamed, *args, custom_getter=getter, **kwargs)

    return getter


def collect_variable(
    variable: AnyVariable, collections: Mapping[str, Sequence[str]] | Sequence[str] | None, name: str
) -> None:
    """Adds a layer's variable to its collections."""
    graph = get_default_graph()
    for key in get_variable_collections(collections, name) or ():
        for part in variable if hasattr(variable, "as_tensor") else [variable]:
            if all(part is not other for other in graph.get_collection(key)):
                graph.add_to_collection(key, part)


def finished(outputs: object, layer: object, arguments: Mapping[str, Any], scope: VariableScope) -> Any:
    """Applies the steps after a layer: collections, normalizer, activation."""
    collections = arguments["variables_collections"]
    for attribute, name in (
        ("kernel", "weights"),
        ("depthwise_kernel", "weights"),
        ("pointwise_kernel", "weights"),
        ("bias", "biases"),
    ):
        held = getattr(layer, attribute, None)
        if held is not None:
            collect_variable(held, collections, name)
    if arguments["normalizer_fn"] is not None:
        outputs = arguments["normalizer_fn"](outputs, **(arguments["normalizer_params"] or {}))
    return activated(outputs, arguments["activation_fn"], arguments["outputs_collections"], scope)


def activated(outputs: object, activation_fn: Any, collections: object, scope: VariableScope) -> Any:
    """Applies an activation if there is one, and adds the result to ``collections``."""
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    return collect_named_outputs(collections, scope.name, outputs)


def _common(
    normalizer: object,
    biases_initializer: object,
    biases_regularizer: object,
    trainable: bool,
    reuse: Reuse | None,
    inputs: Tensor,
    scope: VariableScope,
) -> dict[str, Any]:
    """Returns the arguments that the classes of all layers have."""
    return {
        "use_bias": not normalizer and biases_initializer is not None,
        "bias_initializer": biases_initializer,
        "bias_regularizer": biases_regularizer,
        "trainable": trainable,
        "name": scope.name,
        "dtype": inputs.dtype.base_dtype,
        "_scope": scope,
        "_reuse": reuse,
    }


@add_arg_scope
def fully_connected(
    inputs: TensorLike,
    num_outputs: int,
    activation_fn: object = nn.relu,
    normalizer_fn: object = None,
    normalizer_params: object = None,
    weights_initializer: object = XAVIER,
    weights_regularizer: object = None,
    biases_initializer: object = ZEROS,
    biases_regularizer: object = None,
    reuse: Reuse | None = None,
    variables_collections: object = None,
    outputs_collections: object = None,
    trainable: bool = True,
    scope: str | VariableScope | None = None,
) -> Tensor:
    """inputs weights + biases, over the last dimension.

    Raises:
      ValueError: ``num_outputs`` is not a number.
    """
    if not isinstance(num_outputs, int) and not hasattr(num_outputs, "__index__"):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"num_outputs type should be one of integers, got {num_outputs!r}.")
    arguments = dict(locals())
    with variable_scope(
        scope, "fully_connected", [inputs], reuse=reuse, custom_getter=layer_variables(_NAMES)
    ) as entered:
        inputs = convert_to_tensor(inputs)
        layer = Dense(
            units=int(num_outputs),
            kernel_initializer=weights_initializer,
            kernel_regularizer=weights_regularizer,
            **_common(normalizer_fn, biases_initializer, biases_regularizer, trainable, reuse, inputs, entered),
        )
        return finished(layer(inputs), layer, arguments, entered)


def _channels(data_format: str | None) -> str:
    if data_format not in (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise ValueError(f"Invalid data_format: {data_format!r}")
    return "channels_first" if data_format and data_format.startswith("NC") else "channels_last"


@add_arg_scope
def convolution_layer(
    inputs: TensorLike,
    num_outputs: int,
    kernel_size: Ints,
    stride: Ints = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Ints = 1,
    activation_fn: object = nn.relu,
    normalizer_fn: object = None,
    normalizer_params: object = None,
    weights_initializer: object = XAVIER,
    weights_regularizer: object = None,
    biases_initializer: object = ZEROS,
    biases_regularizer: object = None,
    reuse: Reuse | None = None,
    variables_collections: object = None,
    outputs_collections: object = None,
    trainable: bool = True,
    scope: str | VariableScope | None = None,
    conv_dims: int | None = None,
) -> Tensor:
    """A convolution over one, two or three spatial dimensions.

    Args:
      kernel_size, stride, rate: one number, or one for each spatial dimension; at most one of the latter beyond 1.
      conv_dims: the number of spatial dimensions that there must be.

    Raises:
      ValueError: the inputs have the wrong number of dimensions, or ``data_format`` is unknown.
    """
    arguments = dict(locals())
    channels = _channels(data_format)
    with variable_scope(scope, "Conv", [inputs], reuse=reuse, custom_getter=layer_variables(_NAMES)) as entered:
        inputs = convert_to_tensor(inputs)
        rank = len(inputs.dims or ())
        if conv_dims is not None and conv_dims + 2 != rank:
            raise ValueError(f"Convolution expects input with rank {conv_dims + 2}, got {rank}")
        if rank not in (3, 4, 5):
            raise ValueError("Convolution not supported for input with rank", rank)
        layer = {3: Conv1D, 4: Conv2D, 5: Conv3D}[rank](
            filters=num_outputs,
            kernel_size=kernel_size,
            strides=stride,
            padding=padding,
            data_format=channels,
            dilation_rate=rate,
            kernel_initializer=weights_initializer,
            kernel_regularizer=weights_regularizer,
            **_common(normalizer_fn, biases_initializer, biases_regularizer, trainable, reuse, inputs, entered),
        )
        return finished(layer(inputs), layer, arguments, entered)


def _of_rank(dims: int, name: str, doc: str) -> Callable[..., Any]:
    @functools.wraps(convolution_layer)
    def function(inputs: object, num_outputs: int, kernel_size: TensorLike, *args: object, **kwargs: object) -> Tensor:
        return convolution_layer(inputs, num_outputs, kernel_size, *args, **kwargs, conv_dims=dims)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return add_arg_scope(function)


convolution1d: Callable[..., object] = _of_rank(
    1, "convolution1d", "A convolution of sequences; see `convolution_layer`."
)
convolution2d: Callable[..., Any] = _of_rank(2, "convolution2d", "A convolution of images; see `convolution_layer`.")
convolution3d: Callable[..., object] = _of_rank(
    3, "convolution3d", "A convolution of volumes; see `convolution_layer`."
)


def _transposed(cls: Any, default: str, data_format_default: str, doc: str) -> Callable[..., Any]:
    def function(
        inputs: TensorLike,
        num_outputs: int,
        kernel_size: TensorLike,
        stride: TensorLike = 1,
        padding: str = "SAME",
        data_format: str = data_format_default,
        activation_fn: object = nn.relu,
        normalizer_fn: Callable[[Tensor], Tensor] | None = None,
        normalizer_params: object = None,
        weights_initializer: InitializerLike = XAVIER,
        weights_regularizer: Regularizer | None = None,
        biases_initializer: InitializerLike = ZEROS,
        biases_regularizer: Regularizer | None = None,
        reuse: Reuse | None = None,
        variables_collections: object = None,
        outputs_collections: object = None,
        trainable: bool = True,
        scope: str | VariableScope | None = None,
    ) -> Tensor:
        arguments = dict(locals())
        channels = _channels(data_format)
        with variable_scope(scope, default, [inputs], reuse=reuse, custom_getter=layer_variables(_NAMES)) as entered:
            inputs = convert_to_tensor(inputs)
            layer = cls(
                filters=num_outputs,
                kernel_size=kernel_size,
                strides=stride,
                padding=padding,
                data_format=channels,
                kernel_initializer=weights_initializer,
                kernel_regularizer=weights_regularizer,
                **_common(normalizer_fn, biases_initializer, biases_regularizer, trainable, reuse, inputs, entered),
            )
            return finished(layer(inputs), layer, arguments, entered)

    function.__name__ = function.__qualname__ = default.lower()
    function.__doc__ = doc
    return add_arg_scope(function)


convolution2d_transpose: Callable[..., object] = _transposed(
    Conv2DTranspose, "Conv2d_transpose", "NHWC", "The transpose of a convolution of images."
)
convolution3d_transpose: Callable[..., object] = _transposed(
    Conv3DTranspose, "Conv3d_transpose", "NDHWC", "The transpose of a convolution of volumes."
)


@add_arg_scope
def separable_convolution2d(
    inputs: TensorLike,
    num_outputs: int | None,
    kernel_size: Ints,
    depth_multiplier: int = 1,
    stride: Ints = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    rate: Ints = 1,
    activation_fn: object = nn.relu,
    normalizer_fn: object = None,
    normalizer_params: object = None,
    weights_initializer: object = XAVIER,
    pointwise_initializer: object = None,
    weights_regularizer: object = None,
    biases_initializer: object = ZEROS,
    biases_regularizer: object = None,
    reuse: Reuse | None = None,
    variables_collections: object = None,
    outputs_collections: object = None,
    trainable: bool = True,
    scope: str | VariableScope | None = None,
) -> Tensor:
    """Convolves each channel, and then mixes the channels unless ``num_outputs`` is None.

    Args:
      depth_multiplier: number of depthwise outputs of each channel.
    """
    arguments = dict(locals())
    channels = _channels(data_format)
    names = {"bias": "biases", "depthwise_kernel": "depthwise_weights", "pointwise_kernel": "pointwise_weights"}
    getter = layer_variables(names)
    with variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse, custom_getter=getter) as entered:
        inputs = convert_to_tensor(inputs)
        if num_outputs is not None:
            layer = SeparableConv2D(
                filters=num_outputs,
                kernel_size=kernel_size,
                strides=stride,
                padding=padding,
                data_format=channels,
                dilation_rate=rate,
                depth_multiplier=depth_multiplier,
                depthwise_initializer=weights_initializer,
                pointwise_initializer=pointwise_initializer or weights_initializer,
                depthwise_regularizer=weights_regularizer,
                pointwise_regularizer=weights_regularizer,
                **_common(normalizer_fn, biases_initializer, biases_regularizer, trainable, reuse, inputs, entered),
            )
            return finished(layer(inputs), layer, arguments, entered)
        first = channels == "channels_first"
        depth = int(inputs.shape[1 if first else 3])
        height, width = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
        weights = model_variable(
            "depthwise_weights",
            [height, width, depth, depth_multiplier],
            inputs.dtype.base_dtype,
            initializer=weights_initializer,
            regularizer=weights_regularizer,
            trainable=trainable,
            collections=get_variable_collections(variables_collections, "weights"),
        )
        outputs = convolution.depthwise_conv2d(inputs, weights, stride, padding, rate=rate, data_format=data_format)
        if not normalizer_fn and biases_initializer is not None:
            biases = model_variable(
                "biases",
                [depth * depth_multiplier],
                inputs.dtype.base_dtype,
                initializer=biases_initializer,
                regularizer=biases_regularizer,
                trainable=trainable,
                collections=get_variable_collections(variables_collections, "biases"),
            )
            outputs = nn.bias_add(outputs, biases, data_format=data_format)
        return finished(outputs, None, arguments, entered)


@add_arg_scope
def bias_add(
    inputs: TensorLike,
    activation_fn: Callable[[Tensor], Tensor] | None = None,
    initializer: object = ZEROS,
    regularizer: object = None,
    reuse: Reuse | None = None,
    variables_collections: object = None,
    outputs_collections: Sequence[str] | None = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: str | VariableScope | None = None,
) -> Tensor:
    """inputs + biases, one for each channel."""
    with variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as entered:
        inputs = convert_to_tensor(inputs)
        size = dimension_value(inputs.shape[1 if data_format.startswith("NC") else -1])
        biases = model_variable(
            "biases",
            [size],
            inputs.dtype.base_dtype,
            initializer=initializer,
            regularizer=regularizer,
            collections=get_variable_collections(variables_collections, "biases"),
            trainable=trainable,
        )
        outputs = nn.bias_add(inputs, biases, data_format=data_format)
        return activated(outputs, activation_fn, outputs_collections, entered)


def embed_sequence(
    ids: TensorLike,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: InitializerLike | None = None,
    regularizer: object = None,
    trainable: bool = True,
    scope: str | VariableScope | None = None,
    reuse: Reuse | None = None,
) -> Tensor:
    """Looks up ids in a table ``embeddings`` of shape [vocab_size, embed_dim].

    Raises:
      ValueError: a size is missing, and the table does not exist yet.
    """
    del unique
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            f"Must specify vocab size and embedding dimension when not reusing. Got {vocab_size}, {embed_dim}"
        )
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = None if (vocab_size is None or embed_dim is None) else [vocab_size, embed_dim]
        if reuse and shape is None:
            get_variable_scope().reuse_variables()
        table = model_variable(
            "embeddings", shape=shape, initializer=initializer, regularizer=regularizer, trainable=trainable
        )
        return embedding.embedding_lookup(table, ids)


def _fixed_activation(activation: object, name: str) -> Callable[..., Any]:
    def function(inputs: object, num_outputs: int, **kwargs: object) -> Tensor:
        return fully_connected(inputs, num_outputs, **({"activation_fn": activation} | kwargs))

    function.__name__ = name
    function.__doc__ = f"`fully_connected` with the activation {name}."
    return function


linear: Callable[..., object] = _fixed_activation(None, "linear")
relu: Callable[..., Tensor] = _fixed_activation(nn.relu, "relu")
relu6: Callable[..., object] = _fixed_activation(nn.relu6, "relu6")
elu: Callable[..., Tensor] = _fixed_activation(nn.elu, "elu")
