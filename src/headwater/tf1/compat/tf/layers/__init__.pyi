# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
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
from headwater.tf1.layers.convolution import conv1d as conv1d
from headwater.tf1.layers.convolution import conv2d as conv2d
from headwater.tf1.layers.convolution import conv2d_transpose as conv2d_transpose
from headwater.tf1.layers.convolution import conv3d as conv3d
from headwater.tf1.layers.convolution import conv3d_transpose as conv3d_transpose
from headwater.tf1.layers.convolution import separable_conv1d as separable_conv1d
from headwater.tf1.layers.convolution import separable_conv2d as separable_conv2d
from headwater.tf1.layers.core import Dense as Dense
from headwater.tf1.layers.core import Dropout as Dropout
from headwater.tf1.layers.core import Flatten as Flatten
from headwater.tf1.layers.core import dense as dense
from headwater.tf1.layers.core import dropout as dropout
from headwater.tf1.layers.core import flatten as flatten
from headwater.tf1.layers.normalization import BatchNormalization as BatchNormalization
from headwater.tf1.layers.normalization import batch_normalization as batch_normalization
from headwater.tf1.layers.pooling import AveragePooling1D as AveragePooling1D
from headwater.tf1.layers.pooling import AveragePooling2D as AveragePooling2D
from headwater.tf1.layers.pooling import AveragePooling3D as AveragePooling3D
from headwater.tf1.layers.pooling import MaxPooling1D as MaxPooling1D
from headwater.tf1.layers.pooling import MaxPooling2D as MaxPooling2D
from headwater.tf1.layers.pooling import MaxPooling3D as MaxPooling3D
from headwater.tf1.layers.pooling import average_pooling1d as average_pooling1d
from headwater.tf1.layers.pooling import average_pooling2d as average_pooling2d
from headwater.tf1.layers.pooling import average_pooling3d as average_pooling3d
from headwater.tf1.layers.pooling import max_pooling1d as max_pooling1d
from headwater.tf1.layers.pooling import max_pooling2d as max_pooling2d
from headwater.tf1.layers.pooling import max_pooling3d as max_pooling3d

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
