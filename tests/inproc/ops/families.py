"""As `cases`, for the families beside the core: classes drawn, transposed convolutions, and others."""

from __future__ import annotations

import numpy as np

_random = np.random.RandomState(11)


def _normal(*shape):
    return _random.standard_normal(shape).astype(np.float32)


# name: (value, dimensions that the placeholder leaves open)
INPUTS = {
    "images": (_normal(2, 4, 5, 2), (0,)),
    "wide": (_normal(2, 6, 3), (1,)),
    "filter1": (_normal(3, 4, 3), ()),
    "filter2": (_normal(2, 3, 3, 2), ()),
    "kernel": (_normal(2, 2, 2), ()),
    "ints": (np.arange(2 * 3 * 3 * 1).reshape(2, 3, 3, 1).astype(np.int32) % 7, ()),
    "weights": (_normal(6, 3), ()),
    "biases": (_normal(6), ()),
    "rows": (_normal(2, 3), (0,)),
    "labels": (np.array([[1, 4], [2, 2]], np.int64), ()),
    "drawn": (np.array([2, 0, 5], np.int64), ()),
    "expected": (np.array([[0.5, 0.25], [0.75, 0.75]], np.float32), ()),
    "likely": (np.array([0.5, 0.9, 0.2], np.float32), ()),
}

_TRANSPOSED = [
    "tf.nn.conv1d_transpose(wide, filter1, [2, 6, 4], 1)",
    "tf.nn.conv1d_transpose(wide, filter1, [2, 12, 4], 2)",
    "tf.nn.conv1d_transpose(wide, filter1, [2, 13, 4], 2, 'VALID')",
    "tf.nn.conv1d_transpose(wide, filter1, tf.stack([2, 12, 4]), [1, 2, 1], name='n')",
    "tf.nn.conv_transpose(wide, filter1, [2, 12, 4], 2)",
    "tf.nn.conv_transpose(images, filter2, [2, 8, 10, 3], 2)",
    "tf.nn.conv_transpose(images[:, :, :, tf.newaxis], filter2[tf.newaxis], [2, 4, 10, 1, 3], [1, 2, 1])",
    "tf.nn.atrous_conv2d_transpose(images, filter2, [2, 4, 5, 3], 2, 'SAME')",
    "tf.nn.atrous_conv2d_transpose(images, filter2, [2, 6, 9, 3], 2, 'VALID')",
    "tf.nn.depthwise_conv2d_backprop_input([2, 4, 5, 3], filter2, tf.tile(images, [1, 1, 1, 3]), [1, 1, 1, 1], 'SAME')",
    "tf.nn.depthwise_conv2d_backprop_filter(images, [2, 2, 2, 1], images, [1, 1, 1, 1], 'SAME')",
]
_MORPHOLOGY = [
    "tf.nn.dilation2d(images, kernel, [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
    "tf.nn.dilation2d(images, kernel, [1, 2, 1, 1], [1, 1, 2, 1], 'VALID', name='n')",
    "tf.nn.dilation2d(ints, [[[1], [2]], [[3], [-9]]], [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
    "tf.nn.erosion2d(images, kernel, [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
    "tf.nn.max_pool_with_argmax(images, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')",
    "tf.nn.max_pool_with_argmax(ints, [1, 2, 2, 1], [1, 1, 1, 1], 'SAME', include_batch_in_index=True)",
    "tf.nn.batch_norm_with_global_normalization(images, [1, 2.], tf.constant([3., 4.]), [0.5, 0.], [2., 1.], 1., True)",
    "tf.nn.batch_norm_with_global_normalization(images, [1, 2.], tf.constant([3., 4.]), [0.5, 0.], [2., 1.], 1, 0)",
]
_DRAWN = [
    "tf.nn.uniform_candidate_sampler(labels, 2, 5, False, 7)[1:]",
    "tf.sort(tf.nn.uniform_candidate_sampler(labels, 2, 7, True, 7)[0])",
    "tf.nn.log_uniform_candidate_sampler(labels, 2, 5, False, 7)[1]",
    "tf.sort(tf.nn.log_uniform_candidate_sampler(labels, 2, 7, True, 7)[0])",
    "tf.nn.fixed_unigram_candidate_sampler(labels, 2, 5, False, 5, unigrams=[1., 2., 3., 4., 5.])[1]",
    "tf.nn.fixed_unigram_candidate_sampler(labels, 2, 5, False, 5, unigrams=[1., 2., 3.], num_reserved_ids=2, "
    "distortion=0.5)[1]",
    "tf.nn.all_candidate_sampler(labels, 2, 5, True)",
    "tf.nn.compute_accidental_hits(labels, drawn, 2)",
    "tf.nn.compute_accidental_hits(labels, drawn[:0], 2)",
    "tf.nn.uniform_candidate_sampler(labels, 2, 8, True, 7)[0]",
]
_SAMPLED = [
    "tf.nn.nce_loss(weights, biases, labels, rows, 3, 6, 2, (drawn, expected, likely))",
    "tf.nn.sampled_softmax_loss(weights, biases, labels, rows, 3, 6, 2, (drawn, expected, likely))",
    "tf.nn.nce_loss(weights, biases, labels, rows, 3, 6, 2, (drawn, expected, likely), True)",
    "tf.nn.sampled_softmax_loss(weights, biases, labels, rows, 3, 6, 2, (drawn, expected, likely), False)",
    "tf.nn.sampled_softmax_loss([weights[0::2], weights[1::2]], [biases[:3], biases[3:]], labels[:, :1], rows, 3, 6, "
    "1, (drawn, expected[:, :1], likely))",
]

CASES = _TRANSPOSED + _MORPHOLOGY + _DRAWN + _SAMPLED

ERRORS = [
    "tf.nn.compute_accidental_hits(labels[:, :1], drawn, 2)",
    "tf.nn.conv1d_transpose(wide, filter1, [2, 6, 4], 1, data_format='X')",
    "tf.nn.conv_transpose(images, filter2, [2, 8], 2)",
    "tf.nn.atrous_conv2d_transpose(images, filter2, [2, 4, 5, 3], 0, 'SAME')",
    "tf.nn.dilation2d(images, kernel[:, :, :1], [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
    "tf.nn.max_pool_with_argmax(images, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME', data_format='NCHW')",
    "tf.nn.uniform_candidate_sampler(drawn, 2, 5, False, 7)",
    "tf.nn.uniform_candidate_sampler(rows, 2, 5, False, 7)",
    "tf.nn.batch_norm_with_global_normalization(images, [1.], [1.], [0.], [1.], 0.1, True, input=images)",
]
