"""Expressions whose graphs, values and gradients are compared with TensorFlow's.

`INPUTS` are the arrays used in the expressions, fed through placeholders whose static shape has a None where the table
says so. The tool ``tools/record_ops.py`` evaluates everything with TensorFlow; this file depends on neither library.
Python 3.7 must be able to read it.
"""

from __future__ import annotations

import numpy as np

_random = np.random.RandomState(7)


def _normal(*shape):
    return _random.standard_normal(shape).astype(np.float32)


# name: (value, dimensions that the placeholder leaves open)
INPUTS = {
    "x": (_normal(2, 3), (0,)),
    "y": (_normal(2, 3), ()),
    "w": (_normal(3), ()),
    "g": (np.array(1.5, np.float32), ()),
    "p": (np.abs(_normal(2, 3)) + 0.5, ()),
    "u": (np.tanh(_normal(2, 3)) * 0.9, ()),
    "t": (np.array([[0.0, -1.0, 2.0], [2.0, 0.0, 6.0]], np.float32), ()),
    "c": (_normal(3, 4), ()),
    "s": (_normal(2, 3, 4), (0, 2)),
    "r": (_normal(2, 4, 3), ()),
    "i": (np.array([[7, -7, 3], [0, -2, 9]], np.int32), ()),
    "j": (np.array([[2, 2, 3], [1, -3, 4]], np.int32), ()),
    "k": (np.array([1, 0, 1], np.int32), ()),
    "n": (np.array([0, 2, 2], np.int64), (0,)),
    "b": (np.array([[True, False, True], [False, False, True]]), ()),
    "m": (np.array([True, False]), ()),
    "d": (np.array([0.5, -1.5, 2.5]), ()),
    "z": ((_normal(2, 2) + 1j * _normal(2, 2)).astype(np.complex64), ()),
    "e": (_normal(2, 5, 5, 2), (0,)),
    "f": (_normal(3, 3, 2, 3), ()),
    "h": (_normal(2, 2, 2, 2), ()),
    "q": (np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]], np.float32), ()),
    "l": (_normal(3, 4), (0,)),
    "o": (np.exp(_normal(3, 4)), ()),
    "a": (np.array([[b"one", b"two", b""], [b"4", b"five six", b"7.5"]], object), ()),
}

_UNARY_REAL = (
    "abs negative square sign exp expm1 sin cos tan sinh cosh tanh asinh atan sigmoid erf erfc floor ceil rint"
)
_POSITIVE = "sqrt rsqrt log log1p lgamma digamma reciprocal"
_BINARY = "add subtract multiply maximum minimum squared_difference floordiv floormod div divide truediv"
_COMPARISONS = "less less_equal greater greater_equal equal not_equal"
_REDUCTIONS = "reduce_sum reduce_mean reduce_prod reduce_max reduce_min reduce_logsumexp"
_ACTIVATIONS = "relu relu6 elu selu softplus softsign leaky_relu softmax log_softmax"

CASES = (
    [f"tf.{name}(x)" for name in _UNARY_REAL.split()]
    + [f"tf.{name}(p)" for name in _POSITIVE.split()]
    + [f"tf.{name}(u)" for name in ("asin", "acos", "atanh")]
    + ["tf.acosh(p + 1)", "tf.round(x * 2)", "tf.round(i)", "tf.is_nan(x)", "tf.is_inf(x)", "tf.is_finite(x)"]
    + [f"tf.{name}(x, y)" for name in _BINARY.split()]
    + [f"tf.{name}(i, j)" for name in _BINARY.split()]
    + [f"tf.{name}(x, w)" for name in _BINARY.split()]
    + [f"tf.{name}(x, y)" for name in _COMPARISONS.split()]
    + [f"tf.{name}(i, j)" for name in _COMPARISONS.split()]
    + ["tf.maximum(t, 0.)", "tf.minimum(t, 2.)", "tf.maximum(t, t)", "tf.abs(t)", "tf.sign(t)"]
    + ["tf.pow(p, y)", "tf.pow(t, 2.)", "tf.pow(x, 3)", "tf.pow(j, 2)", "tf.pow(2., y)", "x ** y"]
    + ["tf.atan2(x, y)", "tf.igamma(p, p)", "tf.igammac(p, p)", "tf.betainc(p, p, u * u)", "tf.zeta(p + 2, p)"]
    + ["tf.polygamma(1., p)", "tf.truncatediv(i, j)", "tf.truncatemod(i, j)", "tf.floor_div(x, y)", "tf.realdiv(x, y)"]
    + ["tf.div_no_nan(x, t)", "tf.math.multiply_no_nan(x, t)", "tf.math.xdivy(t, p)", "tf.math.xlogy(t, p)"]
    + ["tf.logical_and(b, m[0])", "tf.logical_or(b, b)", "tf.logical_not(b)", "tf.logical_xor(b, m[1])"]
    + ["tf.log_sigmoid(x)", "tf.nn.swish(x)", "tf.nn.crelu(x)", "tf.scalar_mul(2., x)", "tf.scalar_mul(g, x)"]
    + ["tf.math.bessel_i0e(x)", "tf.math.bessel_i1e(x)", "tf.bitwise.bitwise_and(j, i)", "tf.bitwise.invert(i)"]
    + ["tf.bitwise.left_shift(j * j, 2)", "tf.complex(x, y)", "tf.real(z)", "tf.imag(z)", "tf.conj(z)", "tf.abs(z)"]
    + ["tf.angle(z)", "tf.matmul(z, z, adjoint_a=True)", "z * z", "tf.reduce_sum(z)", "tf.square(z)"]
    # operators
    + ["x + y", "x - 1", "2 * x", "x / y", "1 / p", "x // 2.", "x % y", "i / j", "i // j", "i % j", "-x", "abs(x)"]
    + ["x < y", "x <= 0", "x > y", "x >= 0", "~b", "b & b", "b | b", "b ^ b", "d * 2", "q @ q", "1 - x", "g * x"]
    + [
        "x[0]",
        "x[:, 1]",
        "x[-1, ::-1]",
        "x[..., 0]",
        "x[tf.newaxis, :, 1:]",
        "s[:, 1, ...]",
        "s[0, :, tf.newaxis, 1:3]",
    ]
    + [
        "s[..., ::2]",
        "x[k[1]]",
        "x[k[0], :]",
        "x[:, k[0]:]",
        "y[b]",
        "x[tf.constant([True, False])]",
        "w[:0]",
        "s[1:, :2, -2:]",
    ]
    # reductions
    + [
        f"tf.{name}({value})"
        for name in _REDUCTIONS.split()
        for value in ("x", "s, 1", "s, [0, -1]", "y, axis=1, keepdims=True")
    ]
    + [
        "tf.reduce_sum(i)",
        "tf.reduce_mean(i)",
        "tf.reduce_prod(j, 1)",
        "tf.reduce_max(i, 0)",
        "tf.reduce_max(t)",
        "tf.reduce_prod(t)",
    ]
    + ["tf.reduce_all(b)", "tf.reduce_any(b, 1)", "tf.reduce_all(b, 0, keepdims=True)", "tf.reduce_sum(x, [])"]
    + ["tf.reduce_sum(x, reduction_indices=1)", "tf.reduce_sum(x, reduction_indices=[1], keep_dims=True)"]
    + ["tf.math.reduce_std(y)", "tf.math.reduce_variance(y, 0)", "tf.math.reduce_euclidean_norm(x, 1)"]
    + ["tf.count_nonzero(t)", "tf.count_nonzero(t, 1)", "tf.count_nonzero(a)", "tf.argmax(x, 1)", "tf.argmin(x, 0)"]
    + ["tf.argmax(s, -1, output_type=tf.int32)", "tf.argmax(x)", "tf.arg_max(i, 1)", "tf.cumsum(x, 1)"]
    + ["tf.cumsum(x, exclusive=True)", "tf.cumsum(s, 2, reverse=True)", "tf.cumsum(x, 1, exclusive=True, reverse=True)"]
    + [
        "tf.cumprod(x, 1)",
        "tf.cumprod(x, 1, exclusive=True)",
        "tf.cumsum(i, 1)",
        "tf.add_n([x, y, x])",
        "tf.add_n([x])",
    ]
    + ["tf.accumulate_n([x, y])", "tf.segment_sum(c, n)", "tf.segment_mean(c, n)", "tf.segment_max(c, n)"]
    + ["tf.segment_min(c, [0, 0, 1])", "tf.segment_prod(c, n)", "tf.unsorted_segment_sum(c, k, 3)"]
    + ["tf.unsorted_segment_mean(c, k, 3)", "tf.unsorted_segment_max(c, k, 3)", "tf.unsorted_segment_min(c, k, 2)"]
    + [
        "tf.unsorted_segment_prod(c, k, 2)",
        "tf.unsorted_segment_sqrt_n(c, k, 2)",
        "tf.unsorted_segment_sum(c, [1, -1, 0], 2)",
    ]
    + ["tf.bincount(k)", "tf.bincount(k, [1., 2., 3.], minlength=4)"]
    # matrices
    + [
        "tf.matmul(x, c)",
        "tf.matmul(x, y, transpose_b=True)",
        "tf.matmul(x, y, transpose_a=True)",
        "tf.matmul(q, q, True, True)",
    ]
    + [
        "tf.matmul(s, r)",
        "tf.matmul(s, s, adjoint_b=True)",
        "tf.matmul(s, s, transpose_a=True)",
        "tf.matmul(i, j, transpose_b=True)",
    ]
    + [
        "tf.tensordot(s, c, [[1, 2], [0, 1]])",
        "tf.tensordot(s, c, [[1], [0]])",
        "tf.tensordot(x, c, 1)",
        "tf.tensordot(x, y, 2)",
    ]
    + ["tf.einsum('ij,jk->ik', x, c)", "tf.einsum('bij,bjk->bik', s, r)", "tf.linalg.matvec(q, w)", "tf.cross(y, p)"]
    + ["tf.eye(3)", "tf.eye(2, 3, [2])", "tf.diag(w)", "tf.diag_part(q)", "tf.matrix_diag(x)", "tf.matrix_diag_part(c)"]
    + ["tf.matrix_set_diag(q, w)", "tf.matrix_band_part(q, 0, -1)", "tf.matrix_band_part(c, 1, 1)", "tf.trace(q)"]
    + [
        "tf.norm(x)",
        "tf.norm(x, 1)",
        "tf.norm(x, np.inf, 1)",
    ]
    + [
        "tf.norm(x, 3, 1, keepdims=True)",
        "tf.norm(y, axis=[0, 1])",
        "tf.norm(x, axis=0)",
        "tf.cholesky(q)",
        "tf.matrix_inverse(q)",
    ]
    + ["tf.matrix_determinant(q)", "tf.matrix_solve(q, c)", "tf.matrix_triangular_solve(q, c)", "tf.linalg.logdet(q)"]
    + [
        "tf.self_adjoint_eigvals(q)",
        "tf.cholesky_solve(tf.cholesky(q), c)",
        "tf.linalg.slogdet(q)",
        "tf.svd(q, compute_uv=False)",
    ]
    # arrays
    + [
        "tf.shape(x)",
        "tf.shape(y)",
        "tf.shape(s, out_type=tf.int64)",
        "tf.size(x)",
        "tf.size(y)",
        "tf.rank(x)",
        "tf.shape_n([x, w])",
    ]
    + [
        "tf.reshape(x, [3, 2])",
        "tf.reshape(x, [-1])",
        "tf.reshape(s, [-1, 6])",
        "tf.reshape(y, [3, -1])",
        "tf.reshape(x, tf.shape(y))",
    ]
    + [
        "tf.reshape(s, [tf.shape(s)[0], -1])",
        "tf.reshape(x, [tf.shape(x)[0], 1, 3])",
        "tf.reshape(g, [1, 1])",
        "tf.reshape(x, [-1, 3, 1])",
    ]
    + [
        "tf.expand_dims(x, 0)",
        "tf.expand_dims(x, -1)",
        "tf.expand_dims(x, dim=1)",
        "tf.squeeze(tf.reshape(y, [1, 2, 1, 3]))",
    ]
    + ["tf.squeeze(tf.reshape(x, [1, -1, 1, 3]), [0])", "tf.squeeze(tf.expand_dims(x, 2), squeeze_dims=[-1])"]
    + ["tf.transpose(x)", "tf.transpose(s, [2, 0, 1])", "tf.transpose(z, conjugate=True)", "tf.matrix_transpose(s)"]
    + [
        "tf.concat([x, y], 0)",
        "tf.concat([x, y, x], 1)",
        "tf.concat([x, y], -1)",
        "tf.concat([x], 1)",
        "tf.concat([s, s], k[0])",
    ]
    + [
        "tf.stack([x, y])",
        "tf.stack([x, y], 1)",
        "tf.stack([x, y], axis=-1)",
        "tf.stack([1, g])",
        "tf.unstack(y)",
        "tf.unstack(x, axis=1)",
    ]
    + [
        "tf.split(x, 3, 1)",
        "tf.split(y, [1, 2], 1)",
        "tf.split(s, [1, -1], 1)",
        "tf.split(c, 2, axis=-1)",
        "tf.tile(x, [2, 1])",
    ]
    + [
        "tf.pad(x, [[1, 0], [0, 2]])",
        "tf.pad(x, [[0, 0], [1, 1]], 'REFLECT')",
        "tf.pad(y, [[1, 1], [2, 2]], 'SYMMETRIC')",
    ]
    + [
        "tf.pad(x, [[0, 1], [1, 0]], constant_values=5.)",
        "tf.reverse(x, [1])",
        "tf.reverse(s, [0, -1])",
        "tf.roll(x, 1, 1)",
        "tf.roll(y, [1, 2], [0, 1])",
    ]
    + [
        "tf.fill([2, 3], g)",
        "tf.zeros([2, 3])",
        "tf.zeros([20, 60])",
        "tf.ones([2], tf.int32)",
        "tf.zeros_like(x)",
        "tf.ones_like(y)",
    ]
    + [
        "tf.ones_like(x)",
        "tf.zeros_like(y, tf.int32)",
        "tf.zeros(tf.shape(x))",
        "tf.ones([tf.shape(x)[0], 2])",
        "tf.broadcast_to(w, [2, 3])",
    ]
    + [
        "tf.range(5)",
        "tf.range(1, 10, 3)",
        "tf.range(0., 1., .25)",
        "tf.range(k[0], 5)",
        "tf.range(5, 1, -2)",
        "tf.linspace(0., 1., 5)",
    ]
    + ["tf.invert_permutation([2, 0, 1])", "tf.meshgrid(w, [1., 2.])", "tf.meshgrid([1, 2], [3, 4, 5], indexing='ij')"]
    + [
        "tf.broadcast_dynamic_shape([2, 1], [1, 3])",
        "tf.identity(x)",
        "tf.stop_gradient(x) * x",
        "tf.identity_n([x, i])",
    ]
    + [
        "tf.ensure_shape(x, [2, None])",
        "tf.placeholder_with_default(x, [None, 3])",
        "tf.repeat([1, 2, 3], 2)",
        "tf.repeat(y, [1, 2, 0], axis=1)",
    ]
    # indexing
    + [
        "tf.slice(x, [0, 1], [1, 2])",
        "tf.slice(x, [0, 1], [-1, 1])",
        "tf.slice(s, [0, k[0], 0], [2, 1, 2])",
        "tf.strided_slice(y, [0, 0], [2, 3], [1, 2])",
    ]
    + [
        "tf.strided_slice(x, [1], [2])",
        "tf.gather(c, k)",
        "tf.gather(c, n)",
        "tf.gather(c, [[0, 1], [2, 2]])",
        "tf.gather(c, k, axis=1)",
    ]
    + [
        "tf.gather(s, [1, 0], axis=-1)",
        "tf.gather(y, [[0, 1], [2, 0]], batch_dims=1)",
        "tf.batch_gather(y, [[0, 1], [2, 0]])",
    ]
    + [
        "tf.gather_nd(c, [[0, 1], [2, 3]])",
        "tf.gather_nd(s, [[0], [1]])",
        "tf.scatter_nd([[1], [3], [1]], w, [5])",
        "tf.scatter_nd([[0], [2]], y, [4, 3])",
    ]
    + [
        "tf.tensor_scatter_update(w, [[1]], [9.])",
        "tf.tensor_scatter_add(w, [[1], [1]], [9., 1.])",
        "tf.tensor_scatter_sub(y, [[0]], p[:1])",
    ]
    + [
        "tf.one_hot(k, 3)",
        "tf.one_hot(n, 4, axis=0)",
        "tf.one_hot(k, 2, on_value=5, off_value=-1)",
        "tf.one_hot(i, 3, dtype=tf.int32, axis=1)",
    ]
    + [
        "tf.where(b)",
        "tf.where(b, x, y)",
        "tf.where(m, x, y)",
        "tf.where_v2(m[:, tf.newaxis], x, 1.)",
        "tf.boolean_mask(x, m)",
    ]
    + [
        "tf.boolean_mask(y, b)",
        "tf.boolean_mask(s, [True, False, True], axis=1)",
        "tf.unique(n)",
        "tf.unique_with_counts(k)",
    ]
    + [
        "tf.setdiff1d([1, 2, 3], [2])",
        "tf.sequence_mask(k, 3)",
        "tf.sequence_mask(n)",
        "tf.sequence_mask(k, 2, tf.float32)",
    ]
    + [
        "tf.dynamic_partition(c, k, 2)",
        "tf.dynamic_stitch([[0, 2], [1]], [c[:2], c[2:]])",
        "tf.dynamic_stitch([k, [2]], [c, c[:1]])",
    ]
    + [
        "tf.reverse_sequence(s, [1, 3], seq_axis=1, batch_axis=0)",
        "tf.sparse_to_dense([[0, 1], [1, 2]], [2, 3], [5., 6.])",
    ]
    + ["tf.sparse_to_dense([0, 2], [3], w[0], -1.)", "tf.sort(y)", "tf.sort(x, 1, 'DESCENDING')", "tf.argsort(w)"]
    # types
    + [
        "tf.cast(x, tf.int32)",
        "tf.cast(i, tf.float32)",
        "tf.cast(b, tf.float32)",
        "tf.cast(t, tf.bool)",
        "tf.cast(x, tf.float64)",
    ]
    + [
        "tf.cast(x, tf.float32)",
        "tf.to_float(i)",
        "tf.to_int32(x)",
        "tf.to_int64(i)",
        "tf.to_double(x)",
        "tf.cast(z, tf.complex128)",
    ]
    + [
        "tf.saturate_cast(x * 200, tf.uint8)",
        "tf.bitcast(x, tf.int32)",
        "tf.bitcast(k, tf.uint8)",
        "tf.cast(x, tf.float16)",
        "tf.cast(d, tf.float32)",
    ]
    # networks
    + [f"tf.nn.{name}({value})" for name in _ACTIVATIONS.split() for value in "xt"]
    + ["tf.nn.softmax(s, 1)", "tf.nn.log_softmax(s, axis=0)", "tf.nn.softmax(x, dim=-1)", "tf.nn.leaky_relu(i, 0.1)"]
    + [
        "tf.nn.bias_add(x, w)",
        "tf.nn.bias_add(s, w, 'NCHW')",
        "tf.nn.xw_plus_b(x, c, c[0])",
        "tf.nn.relu_layer(x, c, c[0])",
    ]
    + [
        "tf.nn.softmax_cross_entropy_with_logits(labels=o, logits=l)",
        "tf.nn.softmax_cross_entropy_with_logits_v2(labels=o, logits=l)",
    ]
    + [
        "tf.nn.softmax_cross_entropy_with_logits_v2(labels=s, logits=s)",
        "tf.nn.softmax_cross_entropy_with_logits_v2(labels=c, logits=o, axis=0)",
    ]
    + [
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=n, logits=l)",
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=k, logits=o)",
    ]
    + ["tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[[0, 1, 3], [2, 2, 1]], logits=s)"]
    + [
        "tf.nn.sigmoid_cross_entropy_with_logits(labels=o, logits=l)",
        "tf.nn.weighted_cross_entropy_with_logits(o, l, 2.)",
    ]
    + ["tf.nn.log_poisson_loss(o, l)", "tf.nn.log_poisson_loss(o, l, compute_full_loss=True)", "tf.nn.l2_loss(x)"]
    + [
        "tf.nn.l2_normalize(x, 1)",
        "tf.nn.l2_normalize(y)",
        "tf.nn.moments(x, [0])",
        "tf.nn.moments(s, [0, 2], keep_dims=True)",
    ]
    + ["tf.nn.batch_normalization(x, w, p[0], w, p[1], 0.1)", "tf.nn.batch_normalization(x, w, p[0], None, None, 0.1)"]
    + [
        "tf.nn.fused_batch_norm(e, p[0, :2], w[:2])[0]",
        "tf.nn.fused_batch_norm(e, p[0, :2], w[:2], w[1:], p[1, 1:], is_training=False)[0]",
    ]
    + [
        "tf.nn.lrn(e, 1, 1., 0.5, 0.75)",
        "tf.nn.zero_fraction(t)",
        "tf.nn.in_top_k(l, n, 2)",
        "tf.nn.top_k(x, 2)",
        "tf.nn.top_k(i)",
    ]
    + ["tf.nn.dropout(x, 1.)", "tf.nn.dropout(x, rate=0.)", "tf.nn.weighted_moments(x, [0], [[1.], [2.]])"]
    + [
        "tf.nn.conv2d(e, f, [1, 1, 1, 1], 'SAME')",
        "tf.nn.conv2d(e, f, [1, 2, 2, 1], 'VALID')",
        "tf.nn.conv2d(e, f, [1, 2, 2, 1], 'SAME')",
    ]
    + [
        "tf.nn.conv2d(e, f, 1, [[0, 0], [1, 2], [0, 1], [0, 0]])",
        "tf.nn.conv2d(e, f, 1, 'SAME', dilations=[1, 2, 2, 1])",
    ]
    + [
        "tf.nn.depthwise_conv2d(e, h, [1, 1, 1, 1], 'SAME')",
        "tf.nn.separable_conv2d(e, h, tf.reshape(c, [1, 1, 4, 3]), [1, 1, 1, 1], 'VALID')",
    ]
    + [
        "tf.nn.conv2d_transpose(e, h, [2, 10, 10, 2], [1, 2, 2, 1])",
        "tf.nn.conv1d(r, tf.reshape(q, [1, 3, 3]), 1, 'SAME')",
    ]
    + [
        "tf.nn.max_pool(e, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')",
        "tf.nn.max_pool(e, [1, 3, 3, 1], [1, 2, 2, 1], 'VALID')",
        "tf.nn.max_pool(e, 5, 5, 'VALID')",
    ]
    + ["tf.nn.max_pool(tf.nn.relu(e), [1, 2, 2, 1], [1, 1, 1, 1], 'SAME')"]
    + [
        "tf.nn.avg_pool(e, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')",
        "tf.nn.avg_pool(e, [1, 3, 3, 1], [1, 1, 1, 1], 'VALID')",
    ]
    + ["tf.space_to_depth(e[:, :4, :4], 2)", "tf.depth_to_space(tf.reshape(s, [2, 1, 3, 4]), 2)"]
    + [
        "tf.nn.embedding_lookup(c, n)",
        "tf.nn.embedding_lookup([c, o], [0, 5, 3, 0])",
        "tf.nn.embedding_lookup([c, o], [[0, 5], [3, 0]], 'div')",
    ]
    + ["tf.nn.embedding_lookup(c, k, max_norm=1.)"]
    # clipping
    + [
        "tf.clip_by_value(x, -0.5, 0.5)",
        "tf.clip_by_value(t, 0., 2.)",
        "tf.clip_by_norm(x, 1.)",
        "tf.clip_by_norm(x, 1., [1])",
        "tf.clip_by_norm(x, 100.)",
    ]
    + [
        "tf.clip_by_average_norm(x, 0.1)",
        "tf.global_norm([x, w])",
        "tf.clip_by_global_norm([x, None, w], 0.5)",
        "tf.clip_by_global_norm([x, w], 50.)",
    ]
    # more of each kind
    + [
        "tf.space_to_batch_nd(e[:, :4, :4], [2, 2], [[0, 0], [0, 0]])",
        "tf.space_to_batch_nd(s, [2], [[0, 1]])",
        "tf.space_to_batch(e, [[1, 0], [0, 1]], 3)",
        "tf.batch_to_space(tf.tile(e, [2, 1, 1, 1]), [[0, 1], [2, 0]], 2)",
        "tf.batch_to_space_nd(s, [2], [[1, 0]])",
        "tf.searchsorted([[1., 2., 2.], [0., 1., 3.]], y)",
        "tf.searchsorted([1, 2, 2, 5], [0, 2, 6], side='right')",
        "tf.unravel_index([3, 5], [2, 3])",
        "tf.histogram_fixed_width(x, [-1., 1.], 4)",
        "tf.sparse_segment_sum(c, [0, 2, 0], [0, 0, 1])",
        "tf.sparse_segment_mean(c, [0, 2, 1], [0, 2, 2])",
        "tf.sparse_segment_sqrt_n(c, k, [0, 0, 1])",
        "tf.sparse_segment_mean(c, [0, 2], [0, 1], num_segments=4)",
        "tf.nn.embedding_lookup_sparse(c, tf.SparseTensor([[0, 0], [0, 1], [1, 0]], k, [2, 2]), None, combiner='mean')",
        "tf.nn.embedding_lookup_sparse(c, tf.SparseTensor([[0, 0], [0, 1], [1, 0]], k, [2, 2]), "
        "tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [2., 1., 3.], [2, 2]), combiner='sqrtn')",
        "tf.nn.embedding_lookup_sparse([c, o], "
        "tf.SparseTensor([[0, 0], [2, 0]], [5, 0], [3, 1]), None, combiner='sum')",
        "tf.nn.sufficient_statistics(x, [0])[:3]",
        "tf.nn.sufficient_statistics(y, [0, 1], shift=g)[:3]",
        "tf.nn.normalize_moments(2., w, w * w * 3, None)",
        "tf.math.polyval([w, g, w], x)",
        "tf.math.reciprocal_no_nan(t)",
        "tf.linalg.adjoint(z)",
        "tf.matrix_solve_ls(c, w[:, tf.newaxis], 0.1)",
        "tf.matrix_solve_ls(tf.transpose(c), tf.ones([4, 1]))",
        "tf.signal.fft(z)",
        "tf.signal.ifft2d(z)",
        "tf.signal.rfft(x)",
        "tf.signal.irfft(z)",
        "tf.signal.rfft(y, [6])",
        "tf.lbeta(p)",
        "tf.nn.convolution(e, f, 'SAME')",
        "tf.nn.convolution(e, f, 'VALID', strides=[2, 1])",
        "tf.nn.convolution(r, tf.reshape(q, [1, 3, 3]), 'SAME')",
        "tf.nn.atrous_conv2d(e, h, 2, 'VALID')",
        "tf.nn.pool(e, [2, 2], 'MAX', 'SAME')",
        "tf.nn.pool(e, [2, 2], 'AVG', 'VALID', strides=[2, 2])",
        "tf.nn.max_pool_v2(e, 2, 2, 'SAME')",
        "tf.nn.max_pool1d(r, 2, 2, 'SAME')",
        "tf.nn.avg_pool1d(r, 2, 1, 'VALID')",
        "tf.confusion_matrix([1, 2, 1], [1, 0, 1])",
        "tf.confusion_matrix(k, n, 4, weights=[1., 2., 3.], dtype=tf.float32)",
        "tf.extract_image_patches(e, [1, 2, 2, 1], [1, 2, 1, 1], [1, 1, 1, 1], 'SAME')",
        "tf.extract_image_patches(e, [1, 2, 2, 1], [1, 1, 1, 1], [1, 2, 2, 1], 'VALID')",
        "tf.linalg.expm(q)",
        "tf.custom_gradient(lambda v: (v * v, lambda dv: dv * 7))(x)",
        "tf.nn.conv3d(e[..., tf.newaxis], h[..., tf.newaxis, :1], [1, 1, 1, 1, 1], 'SAME')",
        "tf.nn.max_pool3d(e[..., tf.newaxis], [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], 'SAME')",
        "tf.matrix_square_root(z)",
    ]
    # text
    + [
        "tf.as_string(i)",
        "tf.as_string(x)",
        "tf.as_string(d, precision=3)",
        "tf.as_string(b)",
        "tf.as_string(z)",
        "tf.as_string(d, scientific=True)",
        "tf.as_string(d, shortest=True)",
        "tf.as_string(i, width=6, fill='0')",
        "tf.as_string(d, precision=1, width=8, fill='-')",
        "tf.string_join([a, a])",
        "tf.string_join([a, 'x'], separator=' ')",
        "tf.string_to_number(['1', ' 2.5e3 ', '-inf'])",
        "tf.string_to_number(['7', '-8'], tf.int64)",
        "tf.decode_raw(['abcd', 'efgh'], tf.uint8)",
        "tf.decode_raw(['abcd'], tf.int16, little_endian=False)",
        "tf.string_split(a[0])",
        "tf.string_split(a[1])",
        "tf.string_split(['a,b;;c'], ',;', skip_empty=False)",
        "tf.string_split(['abc', ''], '')",
        "tf.strings.split(a[1])",
        "tf.strings.split(['a,,b', ''], ',')",
        "tf.strings.split(['a, b, c'], ', ', maxsplit=1)",
        "tf.strings.length(a)",
        "tf.substr(a[0], 1, 1)",
        "tf.substr(['hello', 'world'], [-3, 0], [2, 9])",
        "tf.reduce_join(a)",
        "tf.reduce_join(a, 0, separator='-')",
        "tf.reduce_join(a, [1, 0])",
        "tf.reduce_join(a, [0, 1], keep_dims=True)",
        "tf.strings.lower(['aBC'])",
        "tf.strings.upper(['aBC'])",
        "tf.string_strip([' a ', 'b'])",
        "tf.strings.regex_replace(a, 'o(.)', '<\\\\1>')",
        "tf.strings.regex_full_match(a, 'o.*')",
        "tf.encode_base64(a)",
        "tf.encode_base64(a, pad=True)",
        "tf.decode_base64(tf.encode_base64(a))",
        "tf.strings.format('{} and {}', [x, a])",
        "tf.strings.format('{}', s)",
        "tf.strings.format('{}', tf.range(10), summarize=2)",
        "tf.strings.format('{}', tf.range(10), summarize=-1)",
        "tf.equal(a, 'one')",
        "tf.reshape(a, [3, 2])",
        "tf.concat([a, a], 0)",
        "tf.stack([a, a])",
        "tf.transpose(a)",
        "a[0, 1:]",
        "tf.gather(a, [1, 0])",
        "tf.gather_nd(a, [[0, 1]])",
        "tf.tile(a, [1, 2])",
        "tf.expand_dims(a, 0)",
        "tf.unstack(a)",
        "tf.where(b, a, a)",
        "tf.fill([2], 'x')",
        "tf.zeros([2], tf.string)",
        "tf.zeros_like(a)",
        "tf.shape(a)",
        "tf.size(a)",
        "tf.split(a, 3, 1)",
        "tf.slice(a, [0, 1], [2, 1])",
        "tf.reverse(a, [0])",
        "tf.squeeze(a[:1])",
        "tf.boolean_mask(a, b)",
        "tf.unique(tf.reshape(a, [-1]))",
        "tf.dynamic_partition(a, k[:2], 2)",
        "tf.identity(a)",
        "a[0] + 'x'",
        "tf.add(a, a)",
        "tf.sparse_tensor_to_dense(tf.string_split(a[1]), '')",
        "tf.sparse_tensor_to_dense(tf.SparseTensor([[0, 1]], [2.], [2, 2]))",
        "tf.sparse_tensor_dense_matmul(tf.SparseTensor([[0, 1], [1, 0]], w[:2], [2, 2]), x)",
        "tf.summary.scalar('a b', g)",
        "tf.summary.histogram('h', x)",
        "tf.summary.text('t', a)",
        "tf.summary.image('i', tf.reshape(p, [1, 2, 3, 1]))",
        "tf.summary.image('i', tf.cast(e[..., :1] * 9, tf.uint8), 1)",
        "tf.summary.audio('u', u, 100.)",
        "tf.summary.scalar('a', g, family='f')",
        "tf.summary.tensor_summary('t', x)",
        "tf.summary.merge([tf.summary.scalar('a', g), tf.summary.scalar('b', 1.)])",
        "tf.py_func(lambda v: v * 2, [y], tf.float32)",
        "tf.py_func(lambda v, n: [v[0], n + 1], [y, k], [tf.float32, tf.int32], stateful=False)",
        "tf.check_numerics(y, 'no')",
        "tf.Print(x, [x], first_n=0)",
        "tf.tuple([x, y])",
        "tf.random_shuffle(tf.ones([3]))",
        "tf.random_crop(tf.ones([3, 4]), [2, 2])",
        "tf.multinomial([[0., -100.]], 5)",
        "tf.random_uniform([2], 1, 2, tf.int32)",
    ]
)

# Mistakes of programs: only the class of the error is compared.
ERRORS = [
    "i + x",
    "x + i",
    "i + 1.5",
    "2.5 + i",
    "tf.add(1, x)",
    "tf.add(i, x)",
    "tf.multiply(i, 2.5)",
    "tf.sqrt(i)",
    "tf.sqrt(4)",
    "tf.logical_and(i, i)",
    "tf.matmul(i, x)",
    "tf.matmul(w, c)",
    "tf.truediv(x, 2)",
    "tf.equal(i, 1.)",
    "i & i",
    "~i",
    "x + tf.zeros([4])",
    "tf.concat([x, c], 0)",
    "tf.concat([x, i], 0)",
    "tf.stack([x, w])",
    "tf.reduce_sum(x, 2)",
    "tf.reduce_sum(b)",
    "tf.reshape(y, [4, 2])",
    "tf.reshape(y, [-1, 4])",
    "tf.split(y, 2, 1)",
    "tf.split(x, 2, 2)",
    "tf.squeeze(y, [0])",
    "tf.expand_dims(x, 3)",
    "tf.transpose(x, [0])",
    "tf.argmax(x, 2)",
    "tf.add_n([])",
    "tf.add_n([x, w])",
    "tf.add_n([x, i])",
    "tf.gather(g, [0])",
    "tf.gather(c, x)",
    "tf.one_hot(x, 3)",
    "tf.where(b, x, None)",
    "tf.where(b, x, w)",
    "tf.boolean_mask(x, True)",
    "x[1.5]",
    "x[0, 0, 0]",
    "x['a']",
    "y[5]",
    "tf.nn.softmax_cross_entropy_with_logits(labels=o, logits=None)",
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=o, logits=l)",
    "tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=c)",
    "tf.nn.dropout(x, rate=1.5)",
    "tf.nn.dropout(i, rate=0.5)",
    "tf.nn.top_k(x, 4)",
    "tf.nn.bias_add(x, c)",
    "tf.nn.bias_add(x, [1., 2.])",
    "tf.nn.conv2d(e, e, [1, 1, 1, 1], 'SAME')",
    "tf.nn.l2_loss(i)",
    "tf.clip_by_global_norm(x, 1.)",
    "tf.random_uniform([2], dtype=tf.int32)",
    "tf.random_uniform([2], dtype=tf.string)",
    "tf.unstack(x)",
    "tf.pad(x, [[1, 1]])",
    "tf.pad(x, [[0, 0], [1, 1]], 'NONE')",
    "tf.cast(x, 'nothing')",
    "tf.tile(x, [1])",
    "tf.range(1, 5, 0)",
    "tf.constant([[1], [1, 2]])",
    "tf.constant(1.5, tf.int32)",
    "tf.constant('a', tf.int32)",
    "tf.constant([1, 2], shape=[1])",
    "bool(x)",
    "len(x)",
    "list(x)",
    "tf.convert_to_tensor(None)",
    "tf.convert_to_tensor(x, tf.int32)",
    "tf.identity([x, w])",
    "tf.group(1)",
    "tf.meshgrid(w, w, indexing='a')",
    "tf.matmul(q, q, transpose_a=True, adjoint_a=True)",
    "tf.norm(x, 'fro', 1)",
    "tf.norm(x, -1)",
    "tf.tensordot(x, c, [[0], [0, 1]])",
    "tf.cross(c, c)",
    "tf.sequence_mask(k, [1, 2])",
    "tf.clip_by_value(w, y, y)",
    "tf.unsorted_segment_sum(c, [0, 1], 2)",
    "tf.dynamic_partition(c, n, 2)",
    "tf.assert_equal(1, 2)",
    "tf.assert_rank(x, 3)",
    "tf.assert_type(x, tf.int32)",
    "tf.gradients(x, x, grad_ys=[1., 2.])",
    "tf.saturate_cast(x, 'a')",
]
