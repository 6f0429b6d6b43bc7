"""Functions of tensors that take ragged tensors too."""


def numbers(tf):
    return tf.ragged.constant([[1.5, -2.0], [], [0.5]])


def whole(tf):
    return tf.ragged.constant([[1, 2], [], [3]])


def deep(tf):
    return tf.ragged.constant([[[1, 2], []], [], [[3], [4, 5, 6]]])


def pairs(tf):
    """Rows of vectors."""
    return tf.ragged.constant([[[1, 2], [3, 4]], [], [[5, 6]]], ragged_rank=1)


def texts(tf):
    return tf.ragged.constant([["a", "bC"], [], [" d"]])


def truth(tf):
    return tf.ragged.constant([[True, False], [], [True]])


OF_NUMBERS = (
    "identity ones_like zeros_like abs math.acosh math.angle math.asin math.asinh math.atan math.ceil math.conj cos "
    "cosh math.erf math.erfc exp math.expm1 floor math.imag math.is_finite math.is_inf math.is_nan math.log1p "
    "math.log_sigmoid negative math.real math.reciprocal math.rint round sign sin sinh square strings.as_string tan"
)
OF_TEXTS = "strings.length strings.strip io.encode_base64"
OF_TWO = (
    "add math.atan2 complex math.divide_no_nan divide equal floordiv math.floormod greater greater_equal less "
    "less_equal maximum minimum multiply not_equal pow realdiv math.squared_difference subtract truediv"
)
OF_TWO_WHOLE = (
    "bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift bitwise.right_shift truncatediv "
    "truncatemod"
)
OF_TRUTH = "logical_and logical_or math.logical_xor"
SEGMENTS = ("sum", "prod", "min", "max", "mean", "sqrt_n")
REDUCTIONS = ("sum", "prod", "min", "max", "mean")


def found(tf, path):
    value = tf
    for name in path.split("."):
        value = getattr(value, name)
    return value


def cases(tf):
    """Each of many functions: what they give in one run, for a compiled step takes its time."""
    made = {
        "numbers": _all({path: _of(path, numbers) for path in OF_NUMBERS.split()}),
        "texts": _all({path: _of(path, texts) for path in OF_TEXTS.split()}),
        "pairs": _all({path: _of(path, numbers, numbers) for path in OF_TWO.split()}),
        "scalars": _all({path: _of(path, numbers, lambda tf: 2.0) for path in OF_TWO.split()}),
        "of scalars": _all({path: _of(path, lambda tf: 2.0, numbers) for path in OF_TWO.split()}),
        "whole numbers": _all({path: _of(path, whole, whole) for path in OF_TWO_WHOLE.split()}),
        "truth values": _all({path: _of(path, truth, truth) for path in OF_TRUTH.split()}),
        "segments of rows": _all({name: _segments(name, numbers, [1, 0, 1], 3) for name in SEGMENTS}),
        "segments of values": _all({name: _segments(name, numbers, "ragged", 3) for name in SEGMENTS}),
        "reductions": _all(
            {
                name + str(axis): _reduction(name, numbers, axis)
                for name in REDUCTIONS
                for axis in (None, 0, 1, -1, [0, 1])
            }
        ),
        "reductions of three": _all(
            {
                name + str(axis): _reduction(name, _deep_numbers, axis)
                for name in REDUCTIONS
                for axis in (1, 2, -1, [1, 2])
            }
        ),
        "reductions of vectors": _all({name: _reduction(name, _pairs_of_numbers, 1) for name in REDUCTIONS}),
        "reductions of truth values": _all(_reductions(("all", "any"), truth, (None, 0, 1))),
        "more": _all({name[5:]: case for name, case in globals().items() if name.startswith("case_")}),
    }
    made.update({name[7:]: _all({"": case}) for name, case in globals().items() if name.startswith("refuse_")})
    return made


def _all(cases):
    def run(tf):
        with tf.Session() as session:
            values = session.run({name: case(tf) for name, case in cases.items()})
        return {name: _plain(value) for name, value in values.items()}

    return run


def _of(path, *arguments):
    return lambda tf: found(tf, path)(*(argument(tf) for argument in arguments))


def _segments(name, data, ids, count):
    def case(tf):
        places = tf.ragged.constant([[2, 0], [], [2]]) if ids == "ragged" else ids
        return getattr(tf.math, "unsorted_segment_" + name)(data(tf), places, count)

    return case


def _reductions(names, data, axes):
    return {name + str(axis): _reduction(name, data, axis) for name in names for axis in axes}


def _reduction(name, data, axis):
    return lambda tf: getattr(tf, "reduce_" + name)(data(tf), axis)


def _deep_numbers(tf):
    return tf.cast(deep(tf), tf.float32)


def _pairs_of_numbers(tf):
    return tf.cast(pairs(tf), tf.float32)


def _plain(value):
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if hasattr(value, "to_list"):
        value = value.to_list()
    elif hasattr(value, "tolist"):
        value = value.tolist()
    return _texts(value)


def _texts(value):
    if isinstance(value, list):
        return [_texts(each) for each in value]
    if isinstance(value, float):
        return "nan" if value != value else round(value, 4)
    return value


def case_cast(tf):
    return tf.cast(numbers(tf), tf.int32)


def case_cast_by_name(tf):
    return tf.cast(x=numbers(tf), dtype=tf.int32)


def case_saturate_cast(tf):
    return tf.saturate_cast(numbers(tf), tf.uint8)


def case_clip_by_value(tf):
    return tf.clip_by_value(numbers(tf), -1.0, 1.0)


def case_check_numerics(tf):
    return tf.debugging.check_numerics(numbers(tf), "bad")


def case_log_and_sqrt(tf):
    return tf.math.log(tf.sqrt(tf.math.rsqrt(tf.square(numbers(tf)))))


def case_logical_not(tf):
    return tf.logical_not(truth(tf))


def case_invert(tf):
    return tf.bitwise.invert(whole(tf))


def case_add_n(tf):
    return tf.add_n([whole(tf), whole(tf), whole(tf)])


def case_join(tf):
    return tf.strings.join([texts(tf), "-", texts(tf)])


def case_digamma_and_lgamma(tf):
    return tf.math.digamma(tf.math.lgamma(tf.cast(whole(tf), tf.float32) + 3.5))


def case_unicode_script(tf):
    return tf.strings.unicode_script(tf.ragged.constant([[97, 1041], [], [32]]))


def case_hash(tf):
    return tf.strings.to_hash_bucket_fast(texts(tf), 100)


def case_hash_strong(tf):
    return tf.strings.to_hash_bucket_strong(texts(tf), 100, [1, 2])


def case_regex(tf):
    return tf.strings.regex_replace(texts(tf), "[a-z]", "x")


def case_regex_full_match(tf):
    return tf.strings.regex_full_match(texts(tf), "[a-z]")


def case_substr(tf):
    return tf.strings.substr(texts(tf), 0, 1)


def case_base64(tf):
    return tf.io.decode_base64(tf.io.encode_base64(texts(tf)))


def case_of_integers_and_a_scalar(tf):
    return whole(tf) * 3 - 1


def case_reflected(tf):
    return 10 // whole(tf)


def case_compared(tf):
    return whole(tf) >= 2


def case_broadcast_a_column(tf):
    return tf.add(whole(tf), [[10], [20], [30]])


def case_broadcast_to_a_column(tf):
    return tf.constant([[10], [20], [30]]) - whole(tf)


def case_broadcast_one_row(tf):
    return tf.multiply(tf.ragged.constant([[1, 2]]), [[1], [2], [3]])


def case_broadcast_three_dimensions(tf):
    return tf.add(deep(tf), [[[100]], [[200]], [[300]]])


def case_broadcast_vectors(tf):
    return tf.multiply(pairs(tf), [10, 1])


def refuse_broadcast_what_does_not_fit(tf):
    return tf.add(tf.ragged.constant([[1, 2], [3]]), tf.ragged.constant([[1, 2, 3], [4]]))


def case_concat_rows(tf):
    return tf.concat([whole(tf), whole(tf)], 0)


def case_concat_within_rows(tf):
    return tf.concat([whole(tf), whole(tf), [[7], [8], [9]]], axis=1)


def case_concat_the_last(tf):
    return tf.concat([whole(tf), whole(tf)], -1)


def case_concat_three_dimensions(tf):
    return tf.concat([deep(tf), deep(tf)], 2)


def case_concat_vectors(tf):
    return tf.concat([pairs(tf), pairs(tf)], 2)


def case_concat_a_tensor(tf):
    return tf.concat([[[1, 2], [3, 4]], whole(tf)], 0)


def case_stack(tf):
    return tf.stack([whole(tf), whole(tf)])


def case_stack_within_rows(tf):
    return tf.stack([whole(tf), whole(tf)], axis=1)


def case_stack_at_the_end(tf):
    return tf.stack([whole(tf), whole(tf)], axis=2)


def case_expand_dims(tf):
    return tf.expand_dims(whole(tf), 0)


def case_expand_dims_within(tf):
    return tf.expand_dims(whole(tf), axis=1)


def case_expand_dims_last(tf):
    return tf.expand_dims(whole(tf), -1)


def case_expand_dims_of_three(tf):
    return tf.expand_dims(deep(tf), 2)


def case_squeeze(tf):
    return tf.squeeze(tf.expand_dims(whole(tf), 0), [0])


def case_squeeze_within(tf):
    return tf.squeeze(tf.ragged.constant([[[1, 2]], [[3]]]), 1)


def case_squeeze_the_last(tf):
    return tf.squeeze(tf.expand_dims(whole(tf), -1), -1)


def refuse_squeeze_all(tf):
    return tf.squeeze(whole(tf))


def case_gather(tf):
    return tf.gather(whole(tf), [2, 0, 2])


def case_gather_one(tf):
    return tf.gather(whole(tf), 2)


def case_gather_matrix(tf):
    return tf.gather(whole(tf), [[2, 0], [1, 2]])


def case_gather_ragged_of_a_tensor(tf):
    return tf.gather(tf.constant([10, 20, 30, 40]), whole(tf))


def case_gather_ragged_of_ragged(tf):
    return tf.gather(whole(tf), tf.ragged.constant([[2], [], [0, 1]]))


def case_gather_of_three(tf):
    return tf.gather(deep(tf), [2, 0])


def case_gather_rows_of_vectors(tf):
    return tf.gather(pairs(tf), [2, 0])


def case_batch_gather(tf):
    return tf.batch_gather(whole(tf), tf.ragged.constant([[1, 0], [], [0]]))


def case_batch_gather_of_a_tensor(tf):
    return tf.batch_gather(tf.constant([[1, 2, 3], [4, 5, 6]]), tf.ragged.constant([[2], [1, 0]]))


def case_gather_nd(tf):
    return tf.gather_nd(whole(tf), [[2], [0]])


def case_gather_nd_values(tf):
    return tf.gather_nd(whole(tf), [[2, 0], [0, 1]])


def case_gather_nd_of_three(tf):
    return tf.gather_nd(deep(tf), [[2, 1], [0, 0]])


def case_one_hot(tf):
    return tf.one_hot(whole(tf), 4)


def case_rank(tf):
    return tf.rank(deep(tf))


def case_rank_of_vectors(tf):
    return tf.rank(pairs(tf))


def case_size(tf):
    return tf.size(pairs(tf))


def case_size_int64(tf):
    return tf.size(deep(tf), out_type=tf.int64)


def case_tile(tf):
    return tf.tile(whole(tf), [2, 2])


def case_tile_rows(tf):
    return tf.tile(whole(tf), [2, 1])


def case_tile_three(tf):
    return tf.tile(deep(tf), [1, 2, 2])


def case_tile_vectors(tf):
    return tf.tile(pairs(tf), [1, 2, 2])


def case_where(tf):
    return tf.where(truth(tf))


def case_where_of_values(tf):
    return tf.where(truth(tf), whole(tf), -whole(tf))


def case_where_of_rows(tf):
    return tf.where([True, False, True], whole(tf), tf.ragged.constant([[7], [8, 9], []]))


def case_dynamic_partition(tf):
    return tf.dynamic_partition(whole(tf), [1, 0, 1], 2)


def case_dynamic_partition_of_values(tf):
    return tf.dynamic_partition(whole(tf), tf.ragged.constant([[0, 1], [], [1]]), 2)


def case_reduce_of_integers(tf):
    return tf.reduce_mean(whole(tf), 1)


def case_gradient_of_a_gather(tf):
    values = tf.constant([1.0, 2.0, 3.0])
    rows = tf.RaggedTensor.from_row_splits(values, [0, 2, 2, 3])
    total = tf.reduce_sum(tf.gather(rows * rows, [0, 0, 2]).flat_values)
    return tf.convert_to_tensor(tf.gradients(total, values)[0])


def case_gradient_of_a_broadcast(tf):
    column = tf.constant([[1.0], [2.0], [3.0]])
    total = tf.reduce_sum((numbers(tf) * column).flat_values)
    return tf.gradients(total, column)[0]


def case_gradient_of_a_mean(tf):
    values = tf.constant([1.0, 2.0, 3.0])
    rows = tf.RaggedTensor.from_row_splits(values, [0, 2, 3])
    return tf.gradients(tf.reduce_sum(tf.reduce_mean(rows, 1)), values)[0]
