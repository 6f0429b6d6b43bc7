"""Convolution layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape
from headwater.tf1.functional import arrays, convolution, nn, space_to_batch
from headwater.tf1.layers.affine import AffineLayer, WeightOptions
from headwater.tf1.layers.base import InputSpec, functional
from headwater.tf1.layers.spatial import (
    channels_first,
    format_of,
    known_channels,
    output_size,
    padding_name,
    per_dimension,
    space_of,
    transposed_size,
    with_space,
)
from headwater.tf1.variables.initializers import ZEROS

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.types import Constraint


class Convolution(AffineLayer):
    """Base of all convolution layers: activation(kernel * inputs + bias).

    Args:
      filters: the number of output channels.
      kernel_size: the window: one number, or one for each spatial dimension.
      strides: the distance between windows, in the same form.
      padding: ``valid`` or ``same``.
      data_format: ``channels_last`` or ``channels_first``.
      dilation_rate: the distance between a window's elements, in the same form.
      activation: applied to the result; None leaves the result unchanged.
      use_bias: whether there is a bias.
      kernel_initializer, bias_initializer: initial values; the variable scope's if None.
      kernel_regularizer, bias_regularizer: functions that return losses.
      activity_regularizer: a function that returns a loss of the output.
      kernel_constraint, bias_constraint: see `Variable`.
      trainable, name: see `Layer`.

    Raises:
      ValueError: an argument has the wrong length, or is not one of the names above.
    """

    rank: ClassVar[int] = 0

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: TensorLike = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: TensorLike = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        kernel = WeightOptions(kernel_initializer, kernel_regularizer, kernel_constraint)
        bias = WeightOptions(bias_initializer, bias_regularizer, bias_constraint)
        super().__init__(activation, use_bias, kernel, bias, activity_regularizer, trainable, name, **kwargs)
        self.filters = filters
        self.kernel_size: tuple[int, ...] = per_dimension(kernel_size, self.rank, "kernel_size")
        self.strides: tuple[int, ...] = per_dimension(strides, self.rank, "strides")
        self.padding: str = padding_name(padding, *(["causal"] if self.rank == 1 else []))
        self.data_format = data_format
        self._first = channels_first(data_format)
        self.dilation_rate: tuple[int, ...] = per_dimension(dilation_rate, self.rank, "dilation_rate")
        self.input_spec: Any = InputSpec(ndim=self.rank + 2)

    def build(self, input_shape: ShapeLike) -> None:
        channels = self._set_input_spec(input_shape)
        self.kernel: Any = self.add_weight(
            "kernel",
            self._kernel_shape(channels),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            trainable=True,
        )
        self._build_bias()
        self.built = True

    def _set_input_spec(self, input_shape: TensorLike | ShapeLike) -> int:
        channels = known_channels(input_shape, self._first)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={1 if self._first else -1: channels})
        return channels

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, channels, self.filters]

    def _build_bias(self) -> None:
        if self.use_bias:
            self.bias: Any = self.add_weight(
                "bias",
                [self.filters],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                trainable=True,
            )

    def call(self, inputs: Structure) -> Tensor:
        padding = self.padding
        if padding == "causal":
            before = (self.kernel_size[0] - 1) * self.dilation_rate[0]
            inputs = arrays.pad(inputs, [[0, 0], [0, 0], [before, 0]] if self._first else [[0, 0], [before, 0], [0, 0]])
            padding = "valid"
        order, padding = format_of(self.rank, self._first), padding.upper()
        if self.rank == 2:
            outputs = convolution.conv2d(
                inputs, self.kernel, self.strides, padding, data_format=order, dilations=self.dilation_rate
            )
        elif self.rank == 3:
            outputs = convolution.conv3d(inputs, self.kernel, self.strides, padding, order, self.dilation_rate)
        else:
            outputs = space_to_batch.convolution_(
                inputs, self.kernel, padding, self.strides, self.dilation_rate, "conv1d", data_format=order
            )
        return self._finished(outputs)

    def _finished(self, outputs: Tensor) -> Tensor:
        if self.use_bias:
            outputs = nn.bias_add(outputs, self.bias, format_of(self.rank, self._first))
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        numbers = zip(
            space_of(input_shape, self._first), self.kernel_size, self.strides, self.dilation_rate, strict=True
        )
        space = [output_size(size, window, self.padding, step, rate) for size, window, step, rate in numbers]
        return with_space(input_shape, self._first, space, self.filters)


class Conv1D(Convolution):
    """A convolution of sequences."""

    rank = 1


class Conv2D(Convolution):
    """A convolution of images."""

    rank = 2


class Conv3D(Convolution):
    """A convolution of volumes."""

    rank = 3


class _Transposed(Convolution):
    """The transpose of a convolution: the gradient of a convolution with respect to its input."""

    def __init__(
        self,
        filters: int,
        kernel_size: object,
        strides: TensorLike = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        activation: object = None,
        use_bias: bool = True,
        kernel_initializer: object = None,
        bias_initializer: object = ZEROS,
        kernel_regularizer: object = None,
        bias_regularizer: object = None,
        activity_regularizer: object = None,
        kernel_constraint: Constraint | None = None,
        bias_constraint: Constraint | None = None,
        trainable: bool = True,
        name: object = None,
        **kwargs: object,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            1,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            trainable,
            name,
            **kwargs,
        )

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, self.filters, channels]

    def call(self, inputs: Structure) -> Tensor:
        known = self.compute_output_shape(inputs.shape)
        sizes = arrays.shape(inputs)
        begin = 2 if self._first else 1
        space = [
            size if size is not None else transposed_size(sizes[begin + i], kernel, self.padding, step)
            for i, (size, kernel, step) in enumerate(
                zip(space_of(known, self._first), self.kernel_size, self.strides, strict=True)
            )
        ]
        shape = arrays.stack([sizes[0], self.filters, *space] if self._first else [sizes[0], *space, self.filters])
        outputs = self._transpose(inputs, shape, format_of(self.rank, self._first))
        outputs.set_shape(known)
        return self._finished(outputs)

    def _transpose(self, inputs: Tensor, shape: Tensor, order: str) -> Tensor:
        raise NotImplementedError

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        numbers = zip(space_of(input_shape, self._first), self.kernel_size, self.strides, strict=True)
        space = [
            None if size is None else transposed_size(size, kernel, self.padding, step)
            for size, kernel, step in numbers
        ]
        return with_space(input_shape, self._first, space, self.filters)


class Conv2DTranspose(_Transposed):
    """The transpose of a convolution of images."""

    rank = 2

    def _transpose(self, inputs: Tensor, shape: Tensor, order: str) -> Tensor:
        return convolution.conv2d_transpose(
            inputs, self.kernel, shape, self.strides, self.padding.upper(), data_format=order
        )


class Conv3DTranspose(_Transposed):
    """The transpose of a convolution of volumes."""

    rank = 3

    def _transpose(self, inputs: Tensor, shape: Tensor, order: str) -> Tensor:
        return convolution.conv3d_transpose(
            inputs, self.kernel, shape, self.strides, self.padding.upper(), data_format=order
        )


class SeparableConvolution(Convolution):
    """A depthwise convolution of each channel, followed by a pointwise one that mixes the channels.

    Args:
      depth_multiplier: number of depthwise outputs of each channel.
      depthwise_initializer, depthwise_regularizer, depthwise_constraint: of the depthwise kernel.
      pointwise_initializer, pointwise_regularizer, pointwise_constraint: of the pointwise kernel.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: object,
        strides: TensorLike = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: TensorLike = 1,
        depth_multiplier: int = 1,
        activation: object = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: object = ZEROS,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: object = None,
        activity_regularizer: object = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: object = None,
        trainable: bool = True,
        name: object = None,
        **kwargs: object,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )
        self.depth_multiplier = depth_multiplier
        self._depthwise = {
            "initializer": depthwise_initializer,
            "regularizer": depthwise_regularizer,
            "constraint": depthwise_constraint,
        }
        self._pointwise = {
            "initializer": pointwise_initializer,
            "regularizer": pointwise_regularizer,
            "constraint": pointwise_constraint,
        }
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def build(self, input_shape: ShapeLike) -> None:
        channels = self._set_input_spec(input_shape)
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel", [*self.kernel_size, channels, self.depth_multiplier], trainable=True, **self._depthwise
        )
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel",
            [*[1] * self.rank, self.depth_multiplier * channels, self.filters],
            trainable=True,
            **self._pointwise,
        )
        self._build_bias()
        self.built = True

    def call(self, inputs: Structure) -> Tensor:
        # A sequence is an image of one row.
        axis = None if self.rank == 2 else 2 if self._first else 1
        image, depthwise, pointwise = inputs, self.depthwise_kernel, self.pointwise_kernel
        if axis is not None:
            image = arrays.expand_dims(image, axis)
            depthwise, pointwise = arrays.expand_dims(depthwise, 0), arrays.expand_dims(pointwise, 0)
        outputs = convolution.separable_conv2d(
            image,
            depthwise,
            pointwise,
            self._in_plane(self.strides),
            self.padding.upper(),
            self._in_plane(self.dilation_rate),
            data_format=format_of(2, self._first),
        )
        if axis is None:
            return self._finished(outputs)
        if self.use_bias:
            outputs = nn.bias_add(outputs, self.bias, format_of(2, self._first))
        outputs = arrays.squeeze(outputs, [axis])
        return outputs if self.activation is None else self.activation(outputs)

    def _in_plane(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        return numbers if self.rank == 2 else numbers * 2


class SeparableConv1D(SeparableConvolution):
    """A separable convolution of sequences."""

    rank = 1


class SeparableConv2D(SeparableConvolution):
    """A separable convolution of images."""

    rank = 2


conv1d: Callable[..., Tensor] = functional(Conv1D, "One call of a `Conv1D` layer.")
conv2d: Callable[..., Tensor] = functional(Conv2D, "One call of a `Conv2D` layer.")
conv3d: Callable[..., Tensor] = functional(Conv3D, "One call of a `Conv3D` layer.")
conv2d_transpose: Callable[..., Tensor] = functional(Conv2DTranspose, "One call of a `Conv2DTranspose` layer.")
conv3d_transpose: Callable[..., Tensor] = functional(Conv3DTranspose, "One call of a `Conv3DTranspose` layer.")
separable_conv1d: Callable[..., Tensor] = functional(SeparableConv1D, "One call of a `SeparableConv1D` layer.")
separable_conv2d: Callable[..., Tensor] = functional(SeparableConv2D, "One call of a `SeparableConv2D` layer.")
