"""Pooling layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.functional import arrays, convolution
from headwater.tf1.layers.base import InputSpec, Layer, functional
from headwater.tf1.layers.spatial import (
    channels_first,
    format_of,
    output_size,
    padding_name,
    per_dimension,
    space_of,
    with_space,
)

if TYPE_CHECKING:
    from headwater.graph.types import Ints, Structure
    from headwater.shapes import ShapeLike


class Pooling(Layer):
    """The maximum or mean of each window.

    Args:
      pool_size: the window: one number, or one for each spatial dimension.
      strides: the distance between windows, in the same form.
      padding: ``valid`` or ``same``.
      data_format: ``channels_last`` or ``channels_first``.
      name: see `Layer`.
    """

    rank: ClassVar[int] = 0
    compute: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        pool_size: Ints,
        strides: object,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: object = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size: tuple[int, ...] = per_dimension(pool_size, self.rank, "pool_size")
        self.strides: tuple[int, ...] = per_dimension(pool_size if strides is None else strides, self.rank, "strides")
        self.padding: str = padding_name(padding)
        self.data_format = data_format
        self._first = channels_first(data_format)
        self.input_spec: object = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Structure) -> Tensor:
        compute = type(self).compute
        padding = self.padding.upper()
        if self.rank > 1:
            order = format_of(self.rank, self._first)
            return compute(inputs, self.pool_size, self.strides, padding, data_format=order)
        axis = 3 if self._first else 2
        wide = arrays.expand_dims(inputs, axis)
        order = format_of(2, self._first)
        result = compute(wide, (*self.pool_size, 1), (*self.strides, 1), padding, data_format=order)
        return arrays.squeeze(result, [axis])

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        sizes = zip(space_of(input_shape, self._first), self.pool_size, self.strides, strict=True)
        space = [output_size(size, window, self.padding, stride) for size, window, stride in sizes]
        return with_space(input_shape, self._first, space, as_shape(input_shape)[1 if self._first else -1])


class MaxPooling1D(Pooling):
    """The maximum of each window of a sequence."""

    rank = 1
    compute: ClassVar[Callable[..., Tensor]] = staticmethod(convolution.max_pool)


class MaxPooling2D(Pooling):
    """The maximum of each window of an image."""

    rank = 2
    compute: ClassVar[Callable[..., Tensor]] = staticmethod(convolution.max_pool)


class MaxPooling3D(Pooling):
    """The maximum of each window of a volume."""

    rank = 3
    compute: ClassVar[Callable[..., Tensor]] = staticmethod(convolution.max_pool3d)


class AveragePooling1D(Pooling):
    """The mean of each window of a sequence; padding does not count."""

    rank = 1
    compute: ClassVar[Callable[..., Tensor]] = staticmethod(convolution.avg_pool)


class AveragePooling2D(Pooling):
    """The mean of each window of an image; padding does not count."""

    rank = 2
    compute: ClassVar[Callable[..., Tensor]] = staticmethod(convolution.avg_pool)


class AveragePooling3D(Pooling):
    """The mean of each window of a volume; padding does not count."""

    rank = 3
    compute: ClassVar[Callable[..., Tensor]] = staticmethod(convolution.avg_pool3d)


max_pooling1d: Callable[..., Tensor] = functional(MaxPooling1D, "One call of a `MaxPooling1D` layer.")
max_pooling2d: Callable[..., Tensor] = functional(MaxPooling2D, "One call of a `MaxPooling2D` layer.")
max_pooling3d: Callable[..., Tensor] = functional(MaxPooling3D, "One call of a `MaxPooling3D` layer.")
average_pooling1d: Callable[..., Tensor] = functional(AveragePooling1D, "One call of an `AveragePooling1D` layer.")
average_pooling2d: Callable[..., Tensor] = functional(AveragePooling2D, "One call of an `AveragePooling2D` layer.")
average_pooling3d: Callable[..., Tensor] = functional(AveragePooling3D, "One call of an `AveragePooling3D` layer.")
