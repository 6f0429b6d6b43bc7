"""Layers of images: key points, rows as sequences, filters shared by all channels, the greatest of several channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import dimension_value
from headwater.tf1.contrib.slim.arg_scope import add_arg_scope
from headwater.tf1.contrib.slim.initializers import xavier_initializer
from headwater.tf1.contrib.slim.layers import activated
from headwater.tf1.contrib.slim.utils import collect_named_outputs, get_variable_collections, last_dimension
from headwater.tf1.contrib.slim.variables import model_variable
from headwater.tf1.functional import arrays, convolution, grids, nn, reductions
from headwater.tf1.variables.initializers import ONES, ZEROS, Constant
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.tf1.variables.scope_settings import VariableScope
    from headwater.tf1.variables.types import Reuse


def _check_order(data_format: str) -> None:
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError(f"data_format has to be either NCHW or NHWC, not {data_format}")


@add_arg_scope
def maxout(inputs: TensorLike, num_units: int, axis: int = -1, scope: str | VariableScope | None = None) -> Tensor:
    """Returns the maximum of each ``num_units``-th part of a dimension (Goodfellow et al., 2013).

    Raises:
      ValueError: the size of the dimension is not known, or not a multiple of ``num_units``.
    """
    with variable_scope(scope, "MaxOut", [inputs]):
        inputs = convert_to_tensor(inputs)
        sizes = inputs.shape.as_list()
        features = sizes[axis]
        if features is None or features % num_units:
            raise ValueError(f"number of features({features}) is not a multiple of num_units({num_units})")
        sizes[axis] = num_units
        sizes.append(features // num_units)
        shape = [arrays.shape(inputs)[i] if size is None else size for i, size in enumerate(sizes)]
        return reductions.reduce_max(arrays.reshape(inputs, shape), -1)


@add_arg_scope
def spatial_softmax(
    features: Tensor,
    temperature: float | None = None,
    name: str | VariableScope | None = None,
    variables_collections: object = None,
    trainable: bool = True,
    data_format: str = "NHWC",
) -> Tensor:
    """Returns the expected position of each channel under a softmax over the image (Levine et al., 2016).

    Args:
      features: images.
      temperature: the initial temperature of the softmax, a variable; 1 if None.
      name: of the variable scope.
      variables_collections: see `headwater.tf1.contrib.slim.layers`.
      trainable: whether optimizers change the temperature.
      data_format: ``NHWC`` or ``NCHW``.

    Returns:
      [batch, 2 channels]: the position in the height and in the width, from -1 to 1.

    Raises:
      ValueError: the number of channels is unknown, or a bad ``data_format``.
    """
    _check_order(data_format)
    with variable_scope(name, "spatial_softmax"):
        first = data_format == "NCHW"
        channels = dimension_value(features.shape[1 if first else 3])
        if channels is None:
            raise ValueError("The num_channels dimension of the inputs to `spatial_softmax` should be defined.")
        height, width = (arrays.shape(features)[i] for i in ((2, 3) if first else (1, 2)))
        rows, columns = (grids.lin_space(-1.0, 1.0, size) for size in (height, width))
        grid = [arrays.reshape(part, [-1]) for part in grids.meshgrid(rows, columns, indexing="ij")]
        scale = model_variable(
            "temperature",
            (),
            dtypes.float32,
            initializer=ONES if temperature is None else Constant(temperature),
            collections=get_variable_collections(variables_collections, "temperature") if trainable else None,
            trainable=trainable,
        )
        planes = features if first else arrays.transpose(features, [0, 3, 1, 2])
        share = nn.softmax(arrays.reshape(planes, [-1, height * width]) / scale)
        expected = [reductions.reduce_sum(part * share, [1], keepdims=True) for part in grid]
        points = arrays.reshape(arrays.concat(expected, 1), [-1, channels * 2])
        points.set_shape([None, channels * 2])
        return points


@add_arg_scope
def images_to_sequence(
    inputs: TensorLike,
    data_format: str = "NHWC",
    outputs_collections: Sequence[str] | None = None,
    scope: str | None = None,
) -> Tensor:
    """Returns [width, batch height, channels]: each row of an image as a sequence, time first.

    Raises:
      ValueError: ``data_format`` is unknown.
    """
    _check_order(data_format)
    with name_scope(scope, "ImagesToSequence", [inputs]) as entered:
        inputs = convert_to_tensor(inputs)
        if data_format == "NCHW":
            inputs = arrays.transpose(inputs, [0, 2, 3, 1])
        _, _, width, depth = inputs.shape.as_list()
        sizes = arrays.shape(inputs)
        outputs = arrays.reshape(arrays.transpose(inputs, [2, 0, 1, 3]), [width, sizes[0] * sizes[1], depth])
        return collect_named_outputs(outputs_collections, entered, outputs)


@add_arg_scope
def sequence_to_images(
    inputs: TensorLike,
    height: int,
    output_data_format: str = "channels_last",
    outputs_collections: Sequence[str] | None = None,
    scope: str | None = None,
) -> Tensor:
    """The inverse of `images_to_sequence`, for images of ``height`` rows."""
    with name_scope(scope, "SequenceToImages", [inputs]) as entered:
        inputs = convert_to_tensor(inputs)
        width, rows, depth = inputs.shape.as_list()
        count = -1 if rows is None else rows // height
        parted = arrays.reshape(inputs, [width, count, height, depth])
        order = [1, 3, 2, 0] if output_data_format == "channels_first" else [1, 2, 0, 3]
        return collect_named_outputs(outputs_collections, entered, arrays.transpose(parted, order))


@add_arg_scope
def convolution2d_in_plane(
    inputs: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: str = "SAME",
    activation_fn: Callable[[Tensor], Tensor] | None = nn.relu,
    normalizer_fn: Callable[..., Tensor] | None = None,
    normalizer_params: Mapping[str, object] | None = None,
    weights_initializer: object = xavier_initializer(),
    weights_regularizer: object = None,
    biases_initializer: object = ZEROS,
    biases_regularizer: object = None,
    reuse: Reuse | None = None,
    variables_collections: object = None,
    outputs_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: str | VariableScope | None = None,
) -> Tensor:
    """Convolves each channel of images with the same filter.

    Args:
      inputs: [batch, height, width, channels].
      kernel_size, stride: one number, or height and width.
      others: see `headwater.tf1.contrib.slim.layers`.
    """
    with variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse) as entered:
        channels = last_dimension(inputs.shape)
        height, width = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
        down, right = (stride, stride) if isinstance(stride, int) else stride

        def variable(name: str, shape: Sequence[int | None], initializer: object, regularizer: object) -> Any:
            return model_variable(
                name,
                shape,
                inputs.dtype.base_dtype,
                initializer=initializer,
                regularizer=regularizer,
                collections=get_variable_collections(variables_collections, name),
                trainable=trainable,
            )

        weights = variable("weights", [height, width, 1, 1], weights_initializer, weights_regularizer)
        filters = arrays.tile(weights, [1, 1, channels, 1])
        outputs = convolution.depthwise_conv2d(inputs, filters, [1, down, right, 1], padding)
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        elif biases_initializer is not None:
            outputs = nn.bias_add(outputs, variable("biases", [channels], biases_initializer, biases_regularizer))
        return activated(outputs, activation_fn, outputs_collections, entered)
