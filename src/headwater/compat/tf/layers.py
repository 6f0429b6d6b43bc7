"""``tf.layers``: layers with variables of their own."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.layers.base": "InputSpec Layer",
    "headwater.layers.core": "Dense Dropout Flatten dense dropout flatten",
    "headwater.layers.convolution": """
        Conv1D Conv2D Conv2DTranspose Conv3D Conv3DTranspose SeparableConv1D SeparableConv2D conv1d conv2d
        conv2d_transpose conv3d conv3d_transpose separable_conv1d separable_conv2d""",
    "headwater.layers.pooling": """
        AveragePooling1D AveragePooling2D AveragePooling3D MaxPooling1D MaxPooling2D MaxPooling3D average_pooling1d
        average_pooling2d average_pooling3d max_pooling1d max_pooling2d max_pooling3d""",
    "headwater.layers.normalization": "BatchNormalization batch_normalization",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
