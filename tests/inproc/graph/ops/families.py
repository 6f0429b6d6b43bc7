"""Further expressions, as in `cases`, for families of functions outside the core: sampled classes, transposed
convolutions, and others.
"""

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
    "moments": (_normal(6, 2, 4), ()),
    "boxes": (
        np.array(
            [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 11.1, 0, 10.1], [0, 9, 0.5, 9.5]],
            np.float32,
        ),
        (),
    ),
    "scores": (np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32), ()),
    "cuts": (np.array([[0.1, 0.2, 0.7, 0.9], [0.9, -0.3, 0.2, 1.2], [0, 0, 1, 1]], np.float32), ()),
    "pictures": (np.abs(np.tanh(_normal(2, 12, 13, 3))), ()),
    "square": (_normal(3, 4), ()),
    "words": (np.array([[b"a", b"bc", b""], [b"d", b"e", b"fg"]], object), (0,)),
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

# Sparse tensors of the expressions below.
_A = "tf.SparseTensor([[0, 0], [0, 2], [2, 0], [2, 1]], [3, 1, 4, 4], [3, 3])"
_B = "tf.SparseTensor([[0, 0], [1, 1], [2, 0]], [1, 5, 4], [3, 2])"
_EMPTY = "tf.SparseTensor(np.zeros([0, 2], np.int64), np.zeros([0], np.int32), [3, 2])"
_C = "tf.constant([[3, 1, 1], [0, 2, 0], [4, 4, 4]])"
_WORDS = "tf.constant([[b'b', b'a'], [b'c', b'c']])"
_SETS = [
    f"tf.sets.{name}({a}, {b})"
    for name in ("intersection", "union", "difference")
    for a, b in ((_A, _B), (_A, _C), (_C, _A), (_C, _C), (_A, _EMPTY), (_EMPTY, _EMPTY))
] + [
    f"tf.sets.difference({_A}, {_C}, aminusb=False)",
    f"tf.sets.difference({_C}, {_B}, aminusb=False)",
    f"tf.sets.union({_WORDS}, tf.constant([[b'z', b'a'], [b'', b'c']]))",
    "tf.sets.intersection(tf.ones([2, 0, 3], tf.int64), tf.ones([2, 0, 1], tf.int64))",
    "tf.sets.intersection([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [[[2], [4]], [[5], [1]]])",
    f"tf.sets.intersection(tf.SparseTensor([[0, 1], [0, 0]], [3, 1], [1, 3]), {_C}[:1])",
    f"tf.sets.intersection({_A}, {_C}[:1])",
    f"tf.sets.size({_A})",
    f"tf.sets.size({_EMPTY})",
    "tf.sets.size(tf.SparseTensor([[1]], ['a'], [3]))",
    f"tf.edit_distance({_A}, {_B})",
    f"tf.edit_distance({_A}, {_B}, normalize=False, name='n')",
    f"tf.edit_distance({_A}, {_EMPTY})",
    f"tf.edit_distance({_EMPTY}, {_A})",
    "tf.edit_distance(tf.SparseTensor([[0, 0, 0], [0, 1, 0], [0, 1, 1]], ['a', 'b', 'c'], [1, 2, 2]), "
    "tf.SparseTensor([[0, 1, 0], [1, 1, 0]], ['c', 'b'], [2, 2, 1]))",
    "tf.edit_distance(tf.SparseTensor([[0], [1]], [1, 2], [2]), tf.SparseTensor([[0]], [2], [1]))",
]
_LABELS = "tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 0, 2], [2, 2])"
_CTC = [
    f"tf.nn.ctc_loss({_LABELS}, moments, [6, 4])",
    f"tf.nn.ctc_loss({_LABELS}, moments, [3, 6])",
    f"tf.nn.ctc_loss({_LABELS}, moments, [2, 2])",
    f"tf.nn.ctc_loss({_LABELS}, moments, [1, 1])",
    f"tf.nn.ctc_loss({_LABELS}, moments, [1, 6], ignore_longer_outputs_than_inputs=True)",
    f"tf.nn.ctc_loss({_LABELS}, moments, [6, 4], preprocess_collapse_repeated=True)",
    f"tf.nn.ctc_loss({_LABELS}, moments, [6, 4], ctc_merge_repeated=False)",
    f"tf.nn.ctc_loss({_LABELS}, tf.transpose(moments, [1, 0, 2]), [6, 4], time_major=False)",
    "tf.nn.ctc_loss(tf.SparseTensor([[0, 0]], [1], [2, 1]), moments, [6, 6])",
    "tf.nn.ctc_loss(tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 3, 1], [2, 2]), moments, [6, 6])",
    "tf.nn.ctc_loss(tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [3, 1, 1], [2, 2]), moments, [6, 6])",
    f"tf.nn.ctc_loss({_LABELS}, moments, [7, 6])",
    "tf.nn.ctc_loss_v2(tf.constant([[1, 3, 3], [2, 0, 0]]), moments, [3, 1], [6, 6])",
    "tf.nn.ctc_loss_v2(tf.constant([[1, 3, 3], [2, 0, 0]]), moments, [2, 1], [6, 6], blank_index=-4)",
    f"tf.nn.ctc_loss_v2({_LABELS}, moments, None, [6, 5], blank_index=1)",
    "tf.nn.ctc_greedy_decoder(moments, [6, 4])",
    "tf.nn.ctc_greedy_decoder(moments, [6, 0], merge_repeated=False)",
    "tf.nn.ctc_greedy_decoder(moments, [6, 7])",
    "tf.nn.ctc_greedy_decoder([[[0., 1., 0.]], [[0., 1., 0.]], [[0., 0., 1.]], [[0., 1., 1.]]], [4])",
    "tf.nn.ctc_greedy_decoder([[[0., 1., 0.]], [[0., 1., 0.]], [[0., 0., 1.]], [[0., 1., 1.]]], [4], False)",
    "tf.nn.ctc_beam_search_decoder(moments, [6, 4], top_paths=3)",
    "tf.nn.ctc_beam_search_decoder(moments, [6, 4], beam_width=2, top_paths=2, merge_repeated=False)",
    "tf.nn.ctc_beam_search_decoder_v2(moments * 3., [5, 3], beam_width=4)",
    "tf.nn.ctc_beam_search_decoder([[[0., 1., 0.]], [[0., 1., 0.]], [[0., 0., 1.]], [[0., 1., 1.]]], [4])",
    "tf.nn.ctc_beam_search_decoder(moments, [6, 4], beam_width=1, top_paths=2)",
    "tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [1, 2, 2, 3, 3], [3, 3, 3, 3, 3]], [5, 3, 0])",
]

_BOXES = [
    "tf.image.non_max_suppression(boxes, scores, 3)",
    "tf.image.non_max_suppression(boxes, scores, 10, 0.1, name='n')",
    "tf.image.non_max_suppression(boxes, scores, 10, 1.0)",
    "tf.image.non_max_suppression(boxes, scores, 10, 0.5, 0.4)",
    "tf.image.non_max_suppression(boxes, scores, 0)",
    "tf.image.non_max_suppression(boxes[:0], scores[:0], 3)",
    "tf.image.non_max_suppression(boxes, scores, 3, 1.5)",
    "tf.image.non_max_suppression_with_scores(boxes, scores, 10, 0.3)",
    "tf.image.non_max_suppression_with_scores(boxes, scores, 10, 1.0, soft_nms_sigma=0.5)",
    "tf.image.non_max_suppression_with_scores(boxes, scores, 4, 0.9, 0.1, soft_nms_sigma=0.2)",
    "tf.image.non_max_suppression_padded(boxes, scores, 8, 0.3, pad_to_max_output_size=True)",
    "tf.image.non_max_suppression_padded(boxes, scores, 8, 0.3)",
    "tf.image.non_max_suppression_overlaps([[1., 0.6, 0.], [0.6, 1., 0.2], [0., 0.2, 1.]], [0.5, 0.7, 0.6], 3, 0.5)",
    "tf.image.crop_and_resize(images, cuts, [0, 1, 0], [3, 4])",
    "tf.image.crop_and_resize(images, cuts, [0, 1, 0], [1, 1], name='n')",
    "tf.image.crop_and_resize(images, tf.stop_gradient(cuts), [0, 1, 0], [2, 2], 'nearest', 7.)",
    "tf.image.crop_and_resize(ints, cuts, box_indices=[1, 1, 0], crop_size=[2, 3])",
    "tf.image.crop_and_resize(images, cuts[:0], tf.zeros([0], tf.int32), [2, 3])",
    "tf.image.draw_bounding_boxes(tf.zeros([1, 5, 6, 3]), [[[0., 0.2, 0.8, 0.9], [-0.5, 0.4, 0.5, 1.5]]])",
    "tf.image.draw_bounding_boxes(tf.zeros([1, 5, 6, 1]), [[[0.1, 0.2, 0.8, 0.9]]])",
    "tf.image.draw_bounding_boxes(tf.zeros([1, 5, 6, 4]), [[[0.1, 0.2, 0.8, 0.9], [0.8, 0., 0.1, 0.]]], "
    "colors=[[1., 2., 3., 4.]])",
    "tf.image.sample_distorted_bounding_box([9, 9, 3], [[[0., 0., 1., 1.]]], min_object_covered=1., "
    "area_range=(1., 1.), aspect_ratio_range=(1., 1.))",
    "tf.image.sample_distorted_bounding_box([9, 9, 3], tf.zeros([1, 0, 4]))",
]
_QUALITY = [
    "tf.image.psnr(images, images * 0.9 + 0.1, 1.0)",
    "tf.image.psnr(ints, ints + 1, 255)",
    "tf.image.ssim(pictures, 1 - pictures * 0.5, 1.0)",
    "tf.image.ssim(pictures, pictures, 1.0, filter_size=3, filter_sigma=1.)",
    "tf.image.ssim(tf.cast(pictures * 255, tf.uint8), tf.cast(pictures * 99, tf.uint8), 255, filter_size=5)",
    "tf.image.ssim_multiscale(pictures, pictures * 0.8, 1.0, [0.3, 0.7], filter_size=5)",
    "tf.image.image_gradients(images)",
    "tf.image.sobel_edges(images)",
    "tf.image.total_variation(images)",
    "tf.image.total_variation(images[0])",
    "tf.image.rgb_to_yiq(pictures)",
    "tf.image.yiq_to_rgb(pictures)",
    "tf.image.rgb_to_yuv(pictures)",
    "tf.image.yuv_to_rgb(pictures)",
    "tf.image.adjust_gamma(pictures, 2., 3.)",
    "tf.image.adjust_gamma(tf.cast(pictures * 255, tf.uint8), 0.5)",
    "tf.image.resize_image_with_pad(pictures, 8, 10)",
    "tf.image.resize_image_with_pad(pictures[0], 20, 7, tf.image.ResizeMethod.NEAREST_NEIGHBOR)",
    "tf.image.extract_patches(images, [1, 2, 2, 1], [1, 2, 1, 1], [1, 1, 1, 1], 'VALID')",
    "tf.image.random_crop(images[0], [4, 5, 2])",
]

_EMPTY_FLOATS = "tf.SparseTensor(np.zeros([0, 2], np.int64), np.zeros([0], np.float32), [3, 4])"
_S = "tf.SparseTensor([[0, 0], [0, 2], [2, 1]], likely, [3, 4])"
_T = "tf.SparseTensor([[0, 2], [1, 0], [2, 1]], -0.9 * likely, [3, 4])"
_PAIRS = [
    f"tf.sparse.add({_S}, {_T})",
    f"tf.sparse.add({_S}, {_T}, 0.3)",
    f"tf.sparse_add({_S}, {_EMPTY_FLOATS})",
    f"tf.sparse.add({_S}, square)",
    f"tf.sparse.add(square, {_S})",
    f"tf.sparse.maximum({_S}, {_T})",
    f"tf.sparse.minimum({_S}, {_T})",
    f"tf.sparse.softmax({_S})",
    "tf.sparse.softmax(tf.SparseTensor([[0, 1, 0], [0, 1, 2], [1, 0, 1]], likely, [2, 2, 4]))",
    f"tf.sparse.split(sp_input={_S}, num_split=3, axis=1)",
    f"tf.sparse_split(sp_input={_S}, num_split=2, axis=0)",
    f"tf.sparse.reset_shape({_S})",
    f"tf.sparse.reset_shape({_EMPTY_FLOATS})",
    f"tf.sparse.reset_shape({_S}, [3, 9])",
    f"tf.sparse.merge({_A}, tf.SparseTensor([[0, 0], [0, 1], [2, 0], [2, 1]], [1., 2., 3., 4.], [3, 2]), 7)",
    f"tf.sparse.merge([{_B}, {_B}], {_B}, [6, 7], already_sorted=True)",
]
_MATRICES = [
    "tf.linalg.lu(square[:, :3])",
    "tf.linalg.lu(tf.stack([square[:, :3], square[:, 1:]]), output_idx_type=tf.int64)",
    "tf.linalg.logm(tf.complex(square[:, :3] + 9. * np.eye(3, dtype=np.float32), 0.1 * square[:, 1:]))",
    "tf.linalg.normalize(square, axis=1)",
    "tf.linalg.normalize(square)",
    "tf.linalg.normalize(square, 1, axis=0)",
    "tf.linalg.matrix_rank(square)",
    "tf.linalg.matrix_rank([[1., 2.], [2., 4.]])",
    "tf.linalg.matrix_rank([[[1., 2.], [2., 5.]]], tol=1.)",
    "tf.linalg.pinv(square)",
    "tf.linalg.pinv([[1., 2.], [2., 4.]])",
    "tf.linalg.pinv(tf.stack([square, square * 2.]), rcond=[0.1, 0.5])",
    "tf.linalg.tridiagonal_solve(square[:, :3] + [[0.], [9.], [0.]], tf.constant([1., 2., 3.]))",
    "tf.linalg.tridiagonal_solve(square[:, :3] + [[0.], [9.], [0.]], square)",
    "tf.linalg.tridiagonal_solve([square[0, :2], square[1, :3] + 5., square[2, :2]], square, 'sequence')",
    "tf.linalg.tridiagonal_solve(square[:, :3] + 5. * np.eye(3, dtype=np.float32), square[:2, :3], 'matrix', "
    "transpose_rhs=True)",
    "tf.linalg.tridiagonal_matmul(square[:, :3], square)",
    "tf.linalg.tridiagonal_matmul([square[0, :3], square[1, :3], square[2, :3]], square, 'sequence')",
]

_TEXT = [
    "tf.strings.unsorted_segment_join(words, [[1, 0, 1], [2, 1, 1]], 4, '-')",
    "tf.strings.unsorted_segment_join(words, [1, 1], 2)",
    "tf.strings.unsorted_segment_join(words, [-1, 0], 1, separator=':', name='n')",
    "tf.strings.unsorted_segment_join(words, [5, 0], 2)",
    "tf.strings.unsorted_segment_join(words[:0], tf.zeros([0], tf.int32), 2, ',')",
    "tf.shape(tf.random.stateless_categorical(square, 5, [1, 2]))",
    "tf.random.stateless_multinomial([[0., -1e9], [-1e9, 0.]], 3, seed=[1, 2], output_dtype=tf.int32)",
    "tf.random.stateless_categorical([[0., -1e9], [-1e9, 0.]], 3, seed=[1, 2])",
]

CASES = _TRANSPOSED + _MORPHOLOGY + _DRAWN + _SAMPLED + _SETS + _CTC + _BOXES + _QUALITY + _PAIRS + _MATRICES + _TEXT

ERRORS = [
    "tf.strings.unsorted_segment_join(words, [[1, 0], [2, 1]], 4)",
    "tf.strings.unsorted_segment_join(words, [1., 0.], 4)",
    "tf.random.stateless_multinomial([0., 1.], 3, seed=[1, 2])",
    f"tf.sparse.add({_A}, {_B})",
    "tf.sparse.add([1], [2])",
    f"tf.sparse.split({_A}, 2, 1)",
    f"tf.sparse.split(sp_input={_A}, num_split=2)",
    f"tf.sparse.reset_shape({_A}, [3, 2])",
    f"tf.sparse.reset_shape({_A}, [3, 2, 4])",
    f"tf.sparse.merge([{_A}], {_A}, [7, 8])",
    "tf.linalg.pinv([[1, 2]])",
    "tf.linalg.pinv([1., 2.])",
    "tf.linalg.lu(square)",
    "tf.linalg.logm(square)",
    "tf.linalg.tridiagonal_solve(square, square, 'other')",
    "tf.linalg.tridiagonal_solve(square[:2], square)",
    "tf.image.draw_bounding_boxes(tf.zeros([1, 5, 6, 2]), [[[0.1, 0.2, 0.8, 0.9]]])",
    "tf.image.non_max_suppression_overlaps([[1., 0.6]], [0.5, 0.7], 3, 0.5)",
    "tf.image.non_max_suppression(boxes[0], scores, 3)",
    "tf.image.non_max_suppression(boxes[:, :2], scores, 3)",
    "tf.image.non_max_suppression(boxes, scores[:2], 3)",
    "tf.image.crop_and_resize(images, cuts, [0, 1], [2, 2])",
    "tf.image.crop_and_resize(images, cuts, [0, 1, 0], [2, 2, 2])",
    "tf.image.crop_and_resize(images[0], cuts, [0, 1, 0], [2, 2])",
    "tf.image.crop_and_resize(images, cuts, [0, 1, 0], [2, 2], 'cubic')",
    "tf.image.draw_bounding_boxes(images, boxes)",
    "tf.image.psnr(images, pictures, 1.)",
    "tf.image.ssim(images, images, 1.)",
    "tf.image.image_gradients(images[0])",
    "tf.image.total_variation(scores)",
    "tf.image.adjust_gamma(pictures, -1.)",
    "tf.image.resize_image_with_pad(scores, 2, 2)",
    "tf.image.resize_image_with_pad(pictures, 0, 2)",
    f"tf.nn.ctc_loss({_LABELS}, moments, [6, 6, 6])",
    "tf.sets.size([[1]])",
    "tf.sets.size(tf.SparseTensor([[0, 0]], [1.], [1, 1]))",
    "tf.sets.union([1, 2], [1])",
    "tf.sets.union([[1., 2.]], [[1.]])",
    "tf.sets.union([[1, 2]], [['a']])",
    "tf.sets.union([[1, 2]], [[[1]]])",
    "tf.sets.union([[1, 2]], [[1], [2]])",
    "tf.edit_distance([[1]], [[1]])",
    f"tf.edit_distance({_A}, [[1]])",
    "tf.edit_distance(tf.SparseTensor([[0, 0]], [1], [1, 1]), tf.SparseTensor([[0]], [1], [1]))",
    "tf.nn.ctc_loss([[1]], moments, [6, 6])",
    f"tf.nn.ctc_loss({_LABELS}, moments, [6., 6.])",
    f"tf.nn.ctc_loss({_LABELS}, moments[0], [6, 6])",
    f"tf.nn.ctc_loss_v2({_LABELS}, moments, None, [6, 5])",
    "tf.nn.ctc_greedy_decoder(moments[0], [6, 6])",
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
