# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from typing import Any
from collections.abc import Callable
from headwater.tf1.variables.types import Constraint
from headwater.graph.types import Ints
from collections.abc import Mapping
from headwater.shapes import ShapeLike
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.compat.tf.layers import experimental as experimental
from headwater.tf1.layers.base import InputSpec as InputSpec
from headwater.tf1.layers.base import Layer as Layer
from headwater.tf1.layers.convolution import Conv1D as Conv1D
from headwater.tf1.layers.convolution import Conv2D as Conv2D
from headwater.tf1.layers.convolution import Conv2DTranspose as Conv2DTranspose
from headwater.tf1.layers.convolution import Conv3D as Conv3D
from headwater.tf1.layers.convolution import Conv3DTranspose as Conv3DTranspose
from headwater.tf1.layers.convolution import SeparableConv1D as SeparableConv1D
from headwater.tf1.layers.convolution import SeparableConv2D as SeparableConv2D
from headwater.tf1.layers.core import Dense as Dense
from headwater.tf1.layers.core import Dropout as Dropout
from headwater.tf1.layers.core import Flatten as Flatten
from headwater.tf1.layers.core import flatten as flatten
from headwater.tf1.layers.normalization import BatchNormalization as BatchNormalization
from headwater.tf1.layers.pooling import AveragePooling1D as AveragePooling1D
from headwater.tf1.layers.pooling import AveragePooling2D as AveragePooling2D
from headwater.tf1.layers.pooling import AveragePooling3D as AveragePooling3D
from headwater.tf1.layers.pooling import MaxPooling1D as MaxPooling1D
from headwater.tf1.layers.pooling import MaxPooling2D as MaxPooling2D
from headwater.tf1.layers.pooling import MaxPooling3D as MaxPooling3D

def average_pooling1d(inputs: TensorLike, pool_size: Ints, strides: object, padding: str = ..., data_format: str = ..., name: object = ..., reuse: bool | None = ...) -> Tensor:
    """One call of an `AveragePooling1D` layer."""
def average_pooling2d(inputs: TensorLike, pool_size: Ints, strides: object, padding: str = ..., data_format: str = ..., name: object = ..., reuse: bool | None = ...) -> Tensor:
    """One call of an `AveragePooling2D` layer."""
def average_pooling3d(inputs: TensorLike, pool_size: Ints, strides: object, padding: str = ..., data_format: str = ..., name: object = ..., reuse: bool | None = ...) -> Tensor:
    """One call of an `AveragePooling3D` layer."""
def batch_normalization(inputs: TensorLike, axis: Ints = ..., momentum: TensorLike = ..., epsilon: float = ..., center: bool = ..., scale: bool = ..., beta_initializer: Any = ..., gamma_initializer: Any = ..., moving_mean_initializer: Any = ..., moving_variance_initializer: Any = ..., beta_regularizer: Any = ..., gamma_regularizer: Any = ..., beta_constraint: Any = ..., gamma_constraint: Any = ..., training: Any = ..., trainable: bool = ..., name: object = ..., reuse: bool | None = ..., renorm: bool = ..., renorm_clipping: Mapping[str, TensorLike] | None = ..., renorm_momentum: float = ..., fused: bool | None = ..., virtual_batch_size: int | None = ..., adjustment: Callable[..., tuple[Tensor, Tensor]] | None = ...) -> Tensor:
    """One call of a `BatchNormalization` layer; ``training`` may be a tensor."""
def conv1d(inputs: TensorLike, filters: int, kernel_size: Any, strides: TensorLike = ..., padding: str = ..., data_format: str = ..., dilation_rate: TensorLike = ..., activation: Any = ..., use_bias: bool = ..., kernel_initializer: Any = ..., bias_initializer: Any = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., kernel_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: Any = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `Conv1D` layer."""
def conv2d(inputs: TensorLike, filters: int, kernel_size: Any, strides: TensorLike = ..., padding: str = ..., data_format: str = ..., dilation_rate: TensorLike = ..., activation: Any = ..., use_bias: bool = ..., kernel_initializer: Any = ..., bias_initializer: Any = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., kernel_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: Any = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `Conv2D` layer."""
def conv2d_transpose(inputs: TensorLike, filters: int, kernel_size: object, strides: TensorLike = ..., padding: str = ..., data_format: str = ..., activation: object = ..., use_bias: bool = ..., kernel_initializer: object = ..., bias_initializer: object = ..., kernel_regularizer: object = ..., bias_regularizer: object = ..., activity_regularizer: object = ..., kernel_constraint: Constraint | None = ..., bias_constraint: Constraint | None = ..., trainable: bool = ..., name: object = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `Conv2DTranspose` layer."""
def conv3d(inputs: TensorLike, filters: int, kernel_size: Any, strides: TensorLike = ..., padding: str = ..., data_format: str = ..., dilation_rate: TensorLike = ..., activation: Any = ..., use_bias: bool = ..., kernel_initializer: Any = ..., bias_initializer: Any = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., kernel_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: Any = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `Conv3D` layer."""
def conv3d_transpose(inputs: TensorLike, filters: int, kernel_size: object, strides: TensorLike = ..., padding: str = ..., data_format: str = ..., activation: object = ..., use_bias: bool = ..., kernel_initializer: object = ..., bias_initializer: object = ..., kernel_regularizer: object = ..., bias_regularizer: object = ..., activity_regularizer: object = ..., kernel_constraint: Constraint | None = ..., bias_constraint: Constraint | None = ..., trainable: bool = ..., name: object = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `Conv3DTranspose` layer."""
def dense(inputs: TensorLike, units: int, activation: Any = ..., use_bias: bool = ..., kernel_initializer: Any = ..., bias_initializer: Any = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., kernel_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: Any = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `Dense` layer."""
def dropout(inputs: TensorLike, rate: TensorLike = ..., noise_shape: TensorLike | ShapeLike | None = ..., seed: int | None = ..., training: TensorLike = ..., name: Any = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `Dropout` layer; ``training`` may be a tensor."""
def max_pooling1d(inputs: TensorLike, pool_size: Ints, strides: object, padding: str = ..., data_format: str = ..., name: object = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `MaxPooling1D` layer."""
def max_pooling2d(inputs: TensorLike, pool_size: Ints, strides: object, padding: str = ..., data_format: str = ..., name: object = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `MaxPooling2D` layer."""
def max_pooling3d(inputs: TensorLike, pool_size: Ints, strides: object, padding: str = ..., data_format: str = ..., name: object = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `MaxPooling3D` layer."""
def separable_conv1d(inputs: TensorLike, filters: int, kernel_size: object, strides: TensorLike = ..., padding: str = ..., data_format: str = ..., dilation_rate: TensorLike = ..., depth_multiplier: int = ..., activation: object = ..., use_bias: bool = ..., depthwise_initializer: Any = ..., pointwise_initializer: Any = ..., bias_initializer: object = ..., depthwise_regularizer: Any = ..., pointwise_regularizer: Any = ..., bias_regularizer: object = ..., activity_regularizer: object = ..., depthwise_constraint: Any = ..., pointwise_constraint: Any = ..., bias_constraint: object = ..., trainable: bool = ..., name: object = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `SeparableConv1D` layer."""
def separable_conv2d(inputs: TensorLike, filters: int, kernel_size: object, strides: TensorLike = ..., padding: str = ..., data_format: str = ..., dilation_rate: TensorLike = ..., depth_multiplier: int = ..., activation: object = ..., use_bias: bool = ..., depthwise_initializer: Any = ..., pointwise_initializer: Any = ..., bias_initializer: object = ..., depthwise_regularizer: Any = ..., pointwise_regularizer: Any = ..., bias_regularizer: object = ..., activity_regularizer: object = ..., depthwise_constraint: Any = ..., pointwise_constraint: Any = ..., bias_constraint: object = ..., trainable: bool = ..., name: object = ..., reuse: bool | None = ...) -> Tensor:
    """One call of a `SeparableConv2D` layer."""
__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "BatchNormalization",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dense",
    "Dropout",
    "Flatten",
    "InputSpec",
    "Layer",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "SeparableConv1D",
    "SeparableConv2D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "batch_normalization",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "dense",
    "dropout",
    "experimental",
    "flatten",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
    "separable_conv1d",
    "separable_conv2d",
]
