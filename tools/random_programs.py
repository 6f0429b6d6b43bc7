"""Random small programs for `differential.py`: source text of one expression, and its input.

An expression uses ``tf``, ``np``, the tensors ``a``, ``b``, ``c``, …, and functions of `random_training` that run an
optimizer, a metric or a dataset. Values include NaN, infinities, boundaries of types, and indices out of range. Runs on
Python 3.7 too.
"""

import random_training
from dice import BINARY, FLOATS, FOR_INTEGERS, INTEGERS, ORDINARY, REDUCTIONS, SPECIAL, UNARY, Dice


def _unary(d):
    name = d.choice(UNARY)
    return f"tf.{name}({d.array(d.choice(FLOATS + INTEGERS if name in FOR_INTEGERS else FLOATS), d.shape())})"


def _binary(d):
    name, shape = d.choice(BINARY), d.shape()
    other = [d.choice((size, size, 1)) for size in shape[d.randint(0, len(shape)) :]]
    if d.random() < 0.05:
        other = d.shape()
    dtype = d.choice(FLOATS if name in ("atan2", "div_no_nan") else FLOATS + INTEGERS)
    if name.startswith("truncate"):
        dtype = d.choice(INTEGERS)
    pool = [0, 1, 2, 3, 5] if name == "pow" and dtype in INTEGERS else None
    return f"tf.{name}({d.array(dtype, shape, pool)}, {d.array(dtype, other, pool)})"


def _reduction(d):
    name, shape = d.choice(REDUCTIONS), d.shape()
    dtype = "bool" if name in ("reduce_all", "reduce_any") else d.choice(FLOATS)
    pool = [False, True] if dtype == "bool" else None
    keep = "keepdims=" + d.flag()
    return f"tf.{name}({d.array(dtype, shape, pool)}, {d.axes(len(shape))}, {keep})"


def _scan(d):
    shape = d.shape(1)
    name = d.choice(("argmax", "argmin", "cumsum", "cumprod", "sort", "argsort", "nn.top_k", "reverse", "roll"))
    x = d.array(d.choice(FLOATS), shape)
    axis = d.axis(len(shape))
    if name in ("cumsum", "cumprod"):
        return f"tf.{name}({x}, {axis}, exclusive={d.flag()}, reverse={d.flag()})"
    if name in ("sort", "argsort"):
        order = d.choice(("ASCENDING", "DESCENDING"))
        return f"tf.{name}({x}, {axis}, direction={order!r})"
    if name == "nn.top_k":
        return f"tf.nn.top_k({x}, {d.whole()})"
    if name == "reverse":
        return f"tf.reverse({x}, [{axis}])"
    if name == "roll":
        return f"tf.roll({x}, {d.whole(-3)}, {axis})"
    return f"tf.{name}({x}, {axis})"


def _cast(d):
    target = d.choice(("int8", "uint8", "int16", "uint16", "int32", "int64", "bool", "float64", "float16", "bfloat16"))
    code = f"tf.cast({d.array(d.choice(FLOATS + INTEGERS), d.shape())}, {target!r})"
    return f"tf.cast({code}, 'float32')" if target == "bfloat16" else code


def _arrays(d):
    shape = d.shape()
    rank = len(shape)
    dtype = d.choice(FLOATS + INTEGERS)
    x = d.array(dtype, shape)
    order = list(range(rank))
    d.shuffle(order)
    if d.random() < 0.1:
        order = [d.whole(0, 3) for _ in range(rank)]
    pads = [[d.whole(0, 2), d.whole(0, 2)] for _ in range(rank)]
    near = [max(size + d.choice((0, 0, 0, -1, 1)), 0) for size in shape]
    begin, size = [d.whole(0, 2) for _ in shape], [d.whole(-1, 2) for _ in shape]
    subscript = ", ".join(
        d.choice((":", "1:", ":-1", "::2", "::-1", "0", "-1", "...", "tf.newaxis", "2:1")) for _ in range(rank)
    )
    return d.choice(
        (
            f"tf.transpose({x}, {order})",
            f"tf.reshape({x}, {d.choice(([-1], near, [2, -1], [1, -1, 1], list(reversed(shape))))})",
            f"tf.expand_dims({x}, {d.axis(rank + 1)})",
            f"tf.squeeze({x}, {d.axes(rank)})",
            f"tf.tile({x}, {[d.whole(0, 3) for _ in range(rank)]})",
            "tf.pad({}, {}, mode={!r})".format(x, pads, d.choice(("CONSTANT", "REFLECT", "SYMMETRIC"))),
            f"tf.slice({x}, {begin}, {size})",
            "{}[{}]".format(x, subscript or "..."),
            f"tf.concat([{x}, {x}], {d.axis(rank)})",
            f"tf.stack([{x}, {x}], {d.axis(rank + 1)})",
            f"tf.unstack({x}, axis={d.axis(rank)})",
            f"tf.split({x}, {d.choice((1, 2, 3, [1, -1], [1, 2]))}, {d.axis(rank)})",
            "tf.gather({}, {}, axis={})".format(
                x, [d.whole(-1, 3) for _ in range(d.whole(0, 3))] or "tf.zeros([0], tf.int32)", d.axis(rank)
            ),
            f"tf.gather_nd({x}, {[[d.whole(0, 2) for _ in range(d.whole(1, max(rank, 1)))]] * 2})",
            f"tf.broadcast_to({x}, {[2] + [max(s, 1) for s in near]})",
            "tf.where({})".format(f"tf.not_equal({x}, {x}[..., ::-1])" if rank else f"tf.equal({x}, {x})"),
            f"tf.unique({x})",
            f"tf.unique_with_counts({x})",
            f"tf.setdiff1d({x}, tf.cast([0, 1], {dtype!r}))",
            f"tf.matrix_band_part({x}, {d.whole()}, {d.whole()})",
            f"tf.diag({x})",
            f"tf.diag_part({x})",
            f"tf.matrix_diag({x})",
            f"tf.matrix_diag_part({x})",
            f"tf.matrix_transpose({x})",
            f"tf.clip_by_value({x}, tf.cast(-1, {dtype!r}), tf.cast(2, {dtype!r}))",
            f"tf.add_n([{x}, {x}])",
            f"tf.accumulate_n([{x}, {x}])",
            f"tf.meshgrid({x}, [1, 2])" if dtype == "int32" else f"tf.rank({x})",
            f"tf.linalg.norm({x}, axis={d.axes(rank)})" if dtype in FLOATS else f"tf.size({x})",
            f"tf.space_to_batch_nd({x}, {[2] * max(rank - 2, 1)}, {[[d.whole(0, 1), d.whole(0, 1)]] * max(rank - 2, 1)})",
            f"tf.histogram_fixed_width({x}, [tf.cast(0, {dtype!r}), tf.cast(4, {dtype!r})], {d.whole(1, 4)})",
            f"tf.ensure_shape({x}, {[d.choice((None, s)) for s in near]})",
        )
    )


def _indexed(d):
    rows, width = d.whole(1, 4), d.whole(0, 3)
    x = d.floats([rows, width], d.choice((ORDINARY, SPECIAL)))
    count = d.choice((rows, rows, rows, d.whole(0, 4)))
    ids = d.ints([count], -1 if d.random() < 0.1 else 0, 3, d.choice(INTEGERS))
    kind = d.choice(("sum", "mean", "max", "min", "prod"))
    return d.choice(
        (
            f"tf.segment_{kind}({x}, {ids})",
            f"tf.segment_{kind}({x}, tf.sort({ids}))",
            f"tf.unsorted_segment_{kind}({x}, {ids}, {d.whole(0, 4)})",
            "tf.sparse_segment_{}({}, {}, tf.sort(tf.cast({}, tf.int32)))".format(
                d.choice(("sum", "mean", "sqrt_n")), x, ids, ids
            ),
            f"tf.gather({x}, {ids})",
            f"tf.nn.embedding_lookup({x}, {ids})",
            f"tf.one_hot({ids}, {d.whole(-1, 4)})",
            f"tf.scatter_nd({ids}[:, tf.newaxis], {x}, [4, {width}])",
            f"tf.dynamic_partition({x}, tf.cast({ids}, tf.int32), 3)",
            f"tf.dynamic_stitch([tf.range(4), tf.cast({ids}, tf.int32)], [tf.zeros([4, {width}]), {x}])",
            f"tf.reverse_sequence({x}, {ids}, 1)",
            "tf.sequence_mask({}, {})".format(ids, d.choice(("None", "2", "5"))),
            "tf.sparse_to_dense({}, [4], {}, -1.0)".format(ids, x + "[:, 0]"),
            f"tf.boolean_mask({x}, {ids} > 1)",
            f"tf.tensor_scatter_add(tf.zeros([4, {width}]), {ids}[:, tf.newaxis], {x})",
            f"tf.bincount(tf.cast({ids}, tf.int32), minlength={d.whole(0, 3)})",
            f"tf.nn.in_top_k({x}, {ids}, {d.whole(0, 3)})",
            f"tf.nn.sparse_softmax_cross_entropy_with_logits(labels={ids}, logits={x})",
            f"tf.searchsorted(tf.sort({x}[:, 0]), {x}[:, 0])",
            f"tf.invert_permutation(tf.cast({ids}, tf.int32))",
            f"tf.confusion_matrix({ids}, {ids})",
            f"tf.math.segment_sum({x}, {ids})",
        )
    )


def _sparse(d):
    rows, columns = d.whole(1, 3), d.whole(1, 3)
    places = sorted(set((d.whole(0, rows - 1), d.whole(0, columns - 1)) for _ in range(d.whole(0, 4))))
    if d.random() < 0.1:
        places.reverse()
    values = d.floats([len(places)])
    dense = d.floats([columns, 2])
    other = d.floats([rows, columns])
    made = f"tf.SparseTensor(np.array({[list(p) for p in places]}, np.int64).reshape([-1, 2]), {values}, [{rows}, {columns}])"
    code = d.choice(
        (
            f"tf.sparse_tensor_to_dense(S, validate_indices={d.flag()})",
            "tf.sparse_add(S, S)",
            f"tf.sparse_add(S, {other})",
            f"tf.sparse_reduce_sum(S, {d.axes(2)})",
            f"tf.sparse_reduce_max(S, {d.axes(2)})",
            f"tf.sparse_concat({d.axis(2)}, [S, S])",
            "tf.sparse_reorder(S)",
            f"tf.sparse_slice(S, [{d.whole(0, 1)}, 0], [2, {d.whole(0, 2)}])",
            "tf.sparse_softmax(S)",
            f"tf.sparse_tensor_dense_matmul(S, {dense})",
            "tf.sparse_transpose(S)",
            "tf.sparse_reshape(S, [-1])",
            "tf.sparse_fill_empty_rows(S, 9.0)",
            "tf.sparse_retain(S, S.values > 0)",
            f"tf.sparse_split(sp_input=S, num_split={d.whole(1, 3)}, axis={d.whole(0, 1)})",
            "tf.sparse_maximum(S, S)",
            f"S * {other}",
            f"S / {other}",
            "tf.nn.embedding_lookup_sparse({}, tf.SparseTensor(S.indices, tf.abs(tf.cast(S.values, tf.int64)), S.dense_shape), None, combiner={!r})".format(
                d.floats([4, 2]), d.choice(("sum", "mean", "sqrtn"))
            ),
        )
    )
    return f"(lambda S: {code})({made})"


def _nn(d):
    batch, side, channels = d.whole(1, 2), d.whole(1, 5), d.whole(1, 3)
    image = d.floats([batch, side, side, channels])
    kernel = d.floats([d.whole(1, 3), d.whole(1, 3), channels, 2])
    padding = d.choice(("SAME", "VALID"))
    strides, window = [1, d.whole(1, 3), d.whole(1, 2), 1], [1, d.whole(1, 3), d.whole(1, 3), 1]
    matrix, other = d.floats([batch, 3]), d.floats([batch, 3], d.choice((ORDINARY, SPECIAL)))
    vector = d.floats([channels])
    size = [d.whole(1, 5), d.whole(1, 5)]
    return d.choice(
        (
            f"tf.nn.conv2d({image}, {kernel}, {strides}, {padding!r})",
            f"tf.nn.conv2d({image}, {kernel}, [1, 1, 1, 1], {padding!r}, dilations=[1, 2, 2, 1])",
            f"tf.nn.depthwise_conv2d({image}, {kernel}, [1, {strides[1]}, {strides[1]}, 1], {padding!r})",
            f"tf.nn.conv2d_transpose({image}, tf.transpose({kernel}, [0, 1, 3, 2]), [{batch}, {side}, {side}, 2], [1, 1, 1, 1], 'SAME')",
            f"tf.nn.max_pool({image}, {window}, {strides}, {padding!r})",
            f"tf.nn.avg_pool({image}, {window}, {strides}, {padding!r})",
            f"tf.nn.max_pool_with_argmax({image}, {window}, {strides}, {padding!r})",
            f"tf.nn.bias_add({image}, {vector})",
            f"tf.nn.moments({image}, {d.choice(([0], [0, 1, 2], [1, 2]))})",
            f"tf.nn.lrn({image}, depth_radius={d.whole(1, 3)})",
            f"tf.nn.fused_batch_norm({image}, {vector}, {vector}, epsilon=0.01)[:1]",
            f"tf.nn.batch_normalization({image}, {vector}, tf.abs({vector}), {vector}, None, 0.01)",
            f"tf.nn.softmax_cross_entropy_with_logits_v2(labels={matrix}, logits={other})",
            f"tf.nn.sigmoid_cross_entropy_with_logits(labels={matrix}, logits={other})",
            f"tf.nn.weighted_cross_entropy_with_logits({matrix}, {other}, 2.0)",
            f"tf.nn.log_poisson_loss({matrix}, {other})",
            f"tf.nn.l2_normalize({other}, {d.axis(2)})",
            f"tf.nn.softmax({other}, {d.axis(2)})",
            f"tf.matmul({matrix}, {other}, transpose_a={d.flag()}, transpose_b={d.flag()})",
            f"tf.tensordot({matrix}, {other}, {d.choice((0, 1, 2, [[1], [1]]))})",
            f"tf.image.resize_bilinear({image}, {size}, align_corners={d.flag()})",
            f"tf.image.resize_nearest_neighbor({image}, {size}, align_corners={d.flag()})",
            f"tf.image.resize_bicubic({image}, {size})",
            f"tf.image.resize_area({image}, {size})",
            f"tf.image.flip_left_right({image})",
            f"tf.image.per_image_standardization({image}[0])",
            f"tf.image.adjust_contrast({image}, {d.choice((0.0, 0.5, 2.0))})",
            f"tf.image.central_crop({image}, {d.choice((0.0, 0.4, 0.5, 1.0))})",
            "tf.image.resize_image_with_crop_or_pad({}, {}, {})".format(image, *size),
            f"tf.image.total_variation({image})",
            f"tf.image.rgb_to_grayscale({image})",
            f"tf.image.rgb_to_hsv({image})",
            f"tf.extract_image_patches({image}, {window}, {strides}, [1, 1, 1, 1], {padding!r})",
            f"tf.space_to_depth({image}, {d.whole(1, 3)})",
            f"tf.depth_to_space({image}, {d.whole(1, 3)})",
            f"tf.clip_by_norm({other}, {d.choice((0.5, 2.0))})",
            f"tf.clip_by_global_norm([{matrix}, {other}], 1.0)",
        )
    )


def _strings(d):
    x, y = d.text(d.shape(0, 1)), d.text([])
    return d.choice(
        (
            "tf.string_to_number({}, tf.{})".format(x, d.choice(("float32", "float64", "int32", "int64"))),
            "tf.string_split([{}], {!r}, skip_empty={})".format(y, d.choice((" ", ",", "", "--")), d.flag()),
            f"tf.substr({x}, {d.whole(-2, 3)}, {d.whole(0, 3)})",
            "tf.strings.length({}, unit={!r})".format(x, d.choice(("BYTE", "UTF8_CHAR"))),
            f"tf.strings.lower({x})",
            f"tf.strings.upper({x})",
            f"tf.strings.strip({x})",
            "tf.regex_replace({}, {!r}, {!r})".format(
                x, d.choice(("[a-b]+", ".", "^a", "(a)(b)?", "\\s")), d.choice(("", "_", "\\1", "\\0\\0"))
            ),
            "tf.strings.regex_full_match({}, {!r})".format(x, d.choice(("[a-b]*", ".*", "a|ab"))),
            "tf.string_join([{}, {}], separator={!r})".format(x, y, d.choice(("", "-"))),
            f"tf.reduce_join({x}, {d.axes(1)}, separator='+')",
            f"tf.string_to_hash_bucket_fast({x}, {d.whole(1, 9)})",
            f"tf.string_to_hash_bucket({x}, {d.whole(1, 9)})",
            f"tf.string_to_hash_bucket_strong({x}, {d.whole(1, 9)}, [1, 2])",
            f"tf.encode_base64({x}, pad={d.flag()})",
            f"tf.decode_base64({x})",
            "tf.decode_csv({}, [[{}]{}])".format(x, d.choice(("1", "1.0", "'x'")), d.choice(("", ", ['y']"))),
            f"tf.as_string({d.array(d.choice(FLOATS), [2])}, precision={d.whole(-1, 3)}, scientific={d.flag()}, width={d.whole(-1, 8)})",
            "tf.as_string({}, width={}, fill={!r})".format(
                d.array(d.choice(INTEGERS), [2]), d.whole(-1, 6), d.choice(("", "0", " "))
            ),
            "tf.strings.unicode_script([97, 233, 0x4e00])",
            f"tf.equal({x}, {y})",
            f"tf.unique({x})",
            "tf.decode_raw({}, tf.{}, little_endian={})".format(y, d.choice(("uint8", "int16", "int32")), d.flag()),
            f"tf.strings.format('{{}} and {{}}', ({x}, {d.floats([2])}))",
            f"tf.contrib.lookup.index_table_from_tensor(['a', 'b'], {d.whole(0, 3)}).lookup({x})",
        )
    )


def _loops(d):
    x = d.floats([d.whole(0, 4)])
    step = d.choice(("v + i", "v * 2.0", "tf.tanh(v)", "tf.where(v > 0, v, -v)", "v / (i + 1.0)"))
    return d.choice(
        (
            f"tf.while_loop(lambda j, v: j < {d.whole(0, 4)}, lambda j, v: (j + 1, (lambda i: {step})(tf.cast(j, tf.float32))), [0, {x}])[1]",
            f"tf.cond(tf.reduce_sum({x}) > {d.whole(-1, 2)}, lambda: {x} * 2.0, lambda: {x} - 1.0)",
            f"tf.map_fn(lambda v: (lambda i: {step})(1.0), {x})",
            f"tf.scan(lambda i, v: {step}, {x})",
            f"tf.foldl(lambda i, v: {step}, {x})",
            f"tf.foldr(lambda i, v: {step}, {x}, initializer=0.5)",
            f"tf.case([(tf.reduce_sum({x}) > 2, lambda: {x} + 1.0), (tf.size({x}) > 2, lambda: {x} * 3.0)], default=lambda: {x})",
        )
    )


def _linalg(d):
    side, batch = d.whole(0, 3), d.choice(([], [], [2]))
    x = d.array(d.choice(FLOATS), batch + [side, side], ORDINARY)
    symmetric = f"(tf.matmul({x}, {x}, transpose_b=True) + tf.eye({side}, dtype={x}.dtype))"
    return d.choice(
        (
            f"tf.matrix_inverse({x})",
            f"tf.matrix_determinant({x})",
            f"tf.matrix_solve({x}, tf.ones_like({x}))",
            f"tf.matrix_triangular_solve({x}, tf.ones_like({x}), lower={d.flag()})",
            f"tf.cholesky({symmetric})",
            f"tf.self_adjoint_eigvals({symmetric})",
            f"tf.trace({x})",
            f"tf.linalg.logdet({symmetric})",
            f"tf.linalg.expm({x})",
            f"tf.matrix_solve_ls({x}, tf.ones_like({x}), l2_regularizer={d.choice((0.0, 0.5))})",
            f"tf.linalg.slogdet({x})",
            f"tf.einsum('ij,jk->ik', {x}, {x})",
        )
    )


KINDS = {
    "unary": _unary,
    "binary": _binary,
    "reduction": _reduction,
    "scan": _scan,
    "cast": _cast,
    "arrays": _arrays,
    "indexed": _indexed,
    "sparse": _sparse,
    "nn": _nn,
    "losses": random_training.losses,
    "strings": _strings,
    "loops": _loops,
    "rates": random_training.rates,
    "optimizer": random_training.optimizer,
    "metric": random_training.metric,
    "columns": random_training.columns,
    "dataset": random_training.dataset,
    "linalg": _linalg,
}
WITH_GRADIENT = {"unary", "binary", "reduction", "scan", "arrays", "indexed", "nn", "losses", "loops", "linalg"}


def drawn(number, kinds=None):
    """The ``number``-th program: its kind, expression and input, and whether its gradient is computed."""
    dice = Dice(number)
    kind = dice.choice(sorted(kinds or KINDS))
    code = KINDS[kind](dice)
    gradient = kind in WITH_GRADIENT and dice.random() < 0.4
    return {"number": number, "kind": kind, "code": code, "inputs": dice.inputs, "gradient": gradient}
