"""Ragged tensors, and text as characters."""

import numpy as np


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def plain(tf, value):
    if isinstance(value, tf.ragged.RaggedTensorValue):
        return [value.to_list(), [splits.tolist() for splits in value.nested_row_splits], str(value.dtype)]
    if hasattr(value, "dense_shape"):
        return [part.tolist() for part in value]
    return [np.asarray(value).tolist(), str(value.dtype)]


def tried(tf, calls, feed=None):
    """Static shape and value of what each call gives, or the class of its error."""
    found = []
    for call in calls:
        try:
            value = call()
            with tf.Session() as session:
                found.append([str(value.shape), plain(tf, session.run(value, feed))])
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    return found


def case_making(tf):
    R = tf.RaggedTensor
    values = ["a", "b", "c", "d", "e"]
    dense = [[1, 2, 0], [3, 0, 0], [0, 0, 0], [4, 5, 6]]
    cube = [[[1, 2], [3, 0]], [[0, 0], [4, 5]]]
    return tried(
        tf,
        [
            lambda: R.from_row_splits(values, [0, 2, 2, 5]),
            lambda: R.from_row_splits(values, [0, 2, 1, 5]),
            lambda: R.from_row_splits(values, [1, 2, 5]),
            lambda: R.from_row_splits(values, [0, 2, 4]),
            lambda: R.from_row_splits(values, []),
            lambda: R.from_row_splits(values, 3),
            lambda: R.from_value_rowids(values, [0, 0, 2, 2, 3]),
            lambda: R.from_value_rowids(values, [0, 0, 2, 2, 3], nrows=6),
            lambda: R.from_value_rowids(values, [0, 0, 2, 2, 3], nrows=2),
            lambda: R.from_value_rowids(values, [0, 0, 2, 2, 3], nrows=-1),
            lambda: R.from_value_rowids(values, [0, 2, 1, 2, 3]),
            lambda: R.from_row_lengths(values, [2, 0, 3]),
            lambda: R.from_row_lengths(values, [2, 0, 2]),
            lambda: R.from_row_starts(values, [0, 0, 3]),
            lambda: R.from_row_limits(values, [1, 1, 5]),
            lambda: R.from_nested_row_splits(values, [[0, 1, 3], [0, 2, 2, 5]]),
            lambda: R.from_nested_row_lengths(values, [[1, 2], [2, 0, 3]]),
            lambda: R.from_nested_value_rowids(values, [[0, 1, 1], [0, 0, 2, 2, 2]]),
            lambda: R.from_nested_row_splits(values, []),
            lambda: R.from_tensor(dense),
            lambda: R.from_tensor(dense, lengths=[1, 0, 3, 5]),
            lambda: R.from_tensor(dense, padding=0),
            lambda: R.from_tensor(dense, padding=0, lengths=[1, 1, 1, 1]),
            lambda: R.from_tensor(cube),
            lambda: R.from_tensor(cube, ragged_rank=2),
            lambda: R.from_tensor(cube, padding=0, ragged_rank=2),
            lambda: R.from_tensor(cube, lengths=([1, 2], [1, 0, 2])),
            lambda: R.from_tensor(cube, padding=[0, 0]),
            lambda: R.from_tensor([1, 2]),
            lambda: R.from_tensor(dense, ragged_rank=0),
            lambda: R.from_tensor(dense, row_splits_dtype=tf.int32),
            lambda: R.from_sparse(tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1.0, 2.0, 3.0], [3, 4])),
            lambda: R.from_sparse(tf.constant(1)),
            lambda: R(tf.constant([1]), tf.constant([0, 1])),
        ],
    )


def case_constants(tf):
    c = tf.ragged.constant
    calls = [
        lambda: c([[1, 2], [3], []]),
        lambda: c([[[1], [2, 3]], [], [[4]]]),
        lambda: c([[1.5, 2], []]),
        lambda: c([["a"], [], ["b", "c"]]),
        lambda: c([[1, 2], [3]], dtype=tf.float64),
        lambda: c([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1),
        lambda: c([[[1, 2], [3, 4]], [[5, 6]]], inner_shape=(2,)),
        lambda: c([[[1, 2], [3]], [[5, 6]]], ragged_rank=1),
        lambda: c([]),
        lambda: c([[]]),
        lambda: c([[], [[]]]),
        lambda: c([1, 2]),
        lambda: c(3),
        lambda: c([[1], 2]),
        lambda: c([[1, 2], [3]], row_splits_dtype=tf.int32),
        lambda: c([], ragged_rank=1, dtype=tf.string),
        lambda: c([[1, 2]], ragged_rank=2),
        lambda: c([[np.int64(1)], []]),
    ]
    found = tried(tf, calls)
    v = tf.ragged.constant_value([[1, 2], [], [3]])
    w = tf.ragged.constant_value([[[1.0]], [[2.0, 3.0], []]])
    for value in (v, w):
        found.append(
            [value.to_list(), list(value.shape), value.ragged_rank, str(value.dtype), value.flat_values.tolist()]
        )
        found.append([str(value.row_splits.dtype), [s.tolist() for s in value.nested_row_splits]])
    found.append(tf.ragged.constant_value([1, 2]).tolist())
    return found


def case_parts(tf):
    r = tf.ragged.constant([[[1, 2], []], [], [[3], [4, 5, 6], [7]]])
    s = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    calls = [
        lambda: r.values,
        lambda: r.flat_values,
        lambda: r.row_splits,
        lambda: r.nested_row_splits[1],
        lambda: r.value_rowids(),
        lambda: r.nested_value_rowids()[1],
        lambda: r.nrows(),
        lambda: r.nrows(out_type=tf.int32),
        lambda: r.row_starts(),
        lambda: r.row_limits(),
        lambda: r.row_lengths(),
        lambda: r.row_lengths(axis=2),
        lambda: r.row_lengths(axis=0),
        lambda: r.nested_row_lengths()[1],
        lambda: r.bounding_shape(),
        lambda: r.bounding_shape(axis=1),
        lambda: s.with_values(tf.constant(["a", "b", "c"])),
        lambda: s.with_values(tf.constant(["a", "b"])),
        lambda: r.with_flat_values(tf.range(7) * 10),
        lambda: s.with_row_splits_dtype(tf.int32),
        lambda: s.with_row_splits_dtype(tf.float32),
        lambda: s.to_tensor(),
        lambda: s.to_tensor(-1.0),
        lambda: r.to_tensor(),
        lambda: r.to_tensor(default_value=9),
        lambda: tf.ragged.constant([["a"], ["b", "c"]]).to_tensor("x"),
        lambda: tf.ragged.constant([[[1, 2]], [], [[3, 4], [5, 6]]], ragged_rank=1).to_tensor(7),
    ]
    for x in (s, r, tf.ragged.constant([[[1, 2]], [], [[3, 4], [5, 6]]], ragged_rank=1)):
        calls += [
            lambda x=x, what=what: tf.reshape(getattr(x.to_sparse(), what), [-1]) for what in ("indices", "values")
        ]
    names = [r.ragged_rank, r.dtype.name, s.ragged_rank, s.shape.as_list(), len(r.consumers()) > 0]
    return [names, tried(tf, calls)]


def case_items(tf):
    r = tf.ragged.constant([[[1, 2], []], [], [[3], [4, 5, 6], [7]]])
    s = tf.ragged.constant([["a", "b"], [], ["c"], ["d", "e", "f"]])
    d = tf.ragged.constant([[[1, 2]], [], [[3, 4], [5, 6]]], ragged_rank=1)
    calls = [lambda key=key, x=x: x[key] for x, key in [
        (s, 0), (s, 1), (s, -1), (s, slice(1, 3)), (s, slice(None, None, 2)), (s, slice(None, -1)), (s, (3, 1)),
        (s, (slice(None), slice(1, None))), (s, (slice(None), slice(None, -1))), (s, (slice(None), slice(-2, None))),
        (s, (slice(None), 0)), (s, (3, slice(1, 3))), (s, (slice(2, None), slice(None, 1))), (s, Ellipsis),
        (r, 0), (r, (2, 1, 0)), (r, (slice(None), slice(1, None))), (r, (2, slice(None), slice(1, None))),
        (r, (slice(None), slice(None), slice(None, 1))), (r, (Ellipsis, slice(0, 1))),
        (d, (slice(None), slice(None), 1)), (d, (2, 1)), (d, (2, 0, 1)),
        (d, (slice(None), slice(None, 1), slice(1, 2))),
    ]]  # fmt: skip
    return tried(tf, calls)


def case_functions(tf):
    g = tf.ragged
    s = g.constant([[1, 2], [], [3]])
    t = g.constant([["a", "b"], [], ["c"], ["d", "e", "f"]])
    mask = g.constant([[True, False], [], [True]])
    calls = [
        lambda: g.map_flat_values(tf.square, s),
        lambda: g.map_flat_values(tf.add, s, y=s),
        lambda: g.map_flat_values(tf.stack, [s, s], axis=1),
        lambda: g.map_flat_values(tf.reduce_sum, s),
        lambda: g.map_flat_values(tf.square, tf.constant([1, 2])),
        lambda: s + 1,
        lambda: 10 - s,
        lambda: s * s,
        lambda: -s,
        lambda: s > 1,
        lambda: g.range([3, 0, 2]),
        lambda: g.range([1, 2], [4, 2]),
        lambda: g.range([0.0, 5.0], [1.0, 3.0], [0.5, -1.0]),
        lambda: g.range([1, 2], [4, 9], 3, row_splits_dtype=tf.int32),
        lambda: g.range(0, [2, 3], 0),
        lambda: g.row_splits_to_segment_ids([0, 3, 3, 5]),
        lambda: g.row_splits_to_segment_ids([0, 3, 3, 5], out_type=tf.int32),
        lambda: g.row_splits_to_segment_ids([0.0, 3.0]),
        lambda: g.segment_ids_to_row_splits([0, 0, 2, 3]),
        lambda: g.segment_ids_to_row_splits([0, 0, 2, 3], num_segments=6),
        lambda: g.boolean_mask(s, mask),
        lambda: g.boolean_mask(s, [True, False, True]),
        lambda: g.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]]),
        lambda: g.boolean_mask([1, 2, 3], [True, False, True]),
        lambda: g.boolean_mask([[[1], [2]], [[3], [4]]], [[True, False], [False, False]]),
        lambda: g.boolean_mask(s, True),
        lambda: g.stack([s, g.constant([[4], [5, 6]])]),
        lambda: g.stack([s, g.constant([[4], [5, 6], []])], axis=1),
        lambda: g.stack([s, g.constant([[4, 9], [], [6]])], axis=2),
        lambda: g.stack([[1, 2], [3]]),
        lambda: g.stack([tf.constant([[1, 2]]), tf.constant([[3], [4]])]),
        lambda: g.stack([1, 2]),
        lambda: g.stack([s], axis=5),
        lambda: g.stack([]),
        lambda: g.stack_dynamic_partitions(["a", "b", "c", "d", "e"], [0, 2, 0, 1, 0], 4),
        lambda: g.stack_dynamic_partitions(t, [1, 0, 1, 0], 2),
        lambda: g.stack_dynamic_partitions([["a", "b"], ["c", "d"]], [[0, 1], [0, 0]], 2),
        lambda: g.stack_dynamic_partitions(t, g.constant([[0, 1], [], [1], [0, 0, 1]], dtype=tf.int32), 2),
    ]
    return tried(tf, calls)


def case_feeding(tf):
    p = tf.ragged.placeholder(tf.int32, 2, [2])
    q = tf.ragged.placeholder(tf.int32, 0, [2])
    value = tf.ragged.constant_value([[[[1, 2]], []], [[[3, 4], [5, 6]]]], inner_shape=(2,))
    with tf.Session() as session:
        one = session.run([p + 1, p.values.nrows()], {p: value})
        two = session.run(tf.RaggedTensor.from_row_splits([1, 2], [0, 0, 2]).values)
    return [str(p.shape), str(q.shape), plain(tf, one[0]), int(one[1]), two.tolist()]


def case_loops_and_branches(tf):
    r = tf.ragged.constant([[1, 2], [], [3]])
    feed = tf.placeholder(tf.bool, [])
    branch = tf.cond(feed, lambda: r + 1, lambda: r * 5)
    with tf.Session() as session:
        return [session.run(branch, {feed: choice}).to_list() for choice in (True, False)]


def case_characters(tf):
    texts = ["G\u00f6\u00f6dnight".encode("utf-8"), b"", "\U0001f60a!".encode("utf-8"), b"a\xffb"]
    s = tf.strings
    ragged = tf.ragged.constant([[b"ab", b"c"], [], [texts[0]]])
    wide = ["h\u00e9".encode("utf-16-be"), "x".encode("utf-16-be")]
    calls = [
        lambda: s.bytes_split(["ab", "", "cde"]),
        lambda: s.bytes_split("ab"),
        lambda: s.bytes_split([["ab", "c"], ["", "d"]]),
        lambda: s.bytes_split(ragged),
        lambda: s.unicode_decode(texts, "UTF-8"),
        lambda: s.unicode_decode(texts, "UTF-8", errors="ignore"),
        lambda: s.unicode_decode(texts, "UTF-8", errors="strict"),
        lambda: s.unicode_decode(texts, "UTF-8", replacement_char=63),
        lambda: s.unicode_decode(["a\tb\n"], "UTF-8", replace_control_characters=True),
        lambda: s.unicode_decode(texts[0], "UTF-8"),
        lambda: s.unicode_decode(wide, "UTF-16-BE"),
        lambda: s.unicode_decode([["ab", "c"], ["", "d"]], "UTF-8"),
        lambda: s.unicode_decode(ragged, "UTF-8"),
        lambda: s.unicode_decode(["\u00e9".encode("latin-1")], "ISO-8859-1"),
        lambda: s.unicode_decode(["a"], "nonsense"),
        lambda: s.unicode_decode_with_offsets(texts, "UTF-8")[1],
        lambda: s.unicode_decode_with_offsets(wide, "UTF-16-BE")[1],
        lambda: s.unicode_decode_with_offsets("ab", "UTF-8")[1],
        lambda: s.unicode_split(texts, "UTF-8"),
        lambda: s.unicode_split([["ab", "c"], ["", "d"]], "UTF-8"),
        lambda: s.unicode_split(wide, "UTF-16-BE"),
        lambda: s.unicode_split_with_offsets(texts, "UTF-8")[0],
        lambda: s.unicode_split_with_offsets(texts, "UTF-8")[1],
        lambda: s.unicode_encode([72, 246, 33], "UTF-8"),
        lambda: s.unicode_encode([[72, 101], [72, 0x1F60A]], "UTF-16-BE"),
        lambda: s.unicode_encode(tf.ragged.constant([[72, 101], [], [33]]), "UTF-8"),
        lambda: s.unicode_encode(tf.ragged.constant([[[72], [101]], [], [[33, 34]]]), "UTF-32-BE"),
        lambda: s.unicode_encode([72, 0xD800, 0x110000], "UTF-8"),
        lambda: s.unicode_encode([72, 0xD800, 0x110000], "UTF-8", errors="ignore"),
        lambda: s.unicode_encode(72, "UTF-8"),
        lambda: s.unicode_transcode(texts, "UTF-8", "UTF-16-BE"),
        lambda: s.unicode_transcode([texts[:2], texts[2:]], "UTF-8", "UTF-8"),
        lambda: s.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore"),
        lambda: s.unicode_transcode(texts, "UTF-8", "UTF-8", errors="strict"),
        lambda: s.unicode_transcode("a\x01", "UTF-8", "UTF-32-BE", replace_control_characters=True),
    ]
    return tried(tf, calls)


def case_ngrams(tf):
    n = tf.strings.ngrams
    r = tf.ragged.constant([["a", "b", "c"], [], ["d"], ["e", "f"]])
    full = tf.ragged.constant([["a", "b", "c"], ["d"], ["e", "f"]])  # of empty rows it reads what lies behind them
    calls = [
        lambda: n(r, 2),
        lambda: n(r, 2, separator="|"),
        lambda: n(r, [1, 3]),
        lambda: n(full, (2, 3), pad_values="_"),
        lambda: n(full, 3, pad_values=("<", ">")),
        lambda: n(r, 3, pad_values=("<", ">"), padding_width=1),
        lambda: n(r, 3, preserve_short_sequences=True),
        lambda: n(r, 3, pad_values="_", padding_width=1, preserve_short_sequences=True),
        lambda: n(["a", "b", "c"], 2),
        lambda: n([["a", "b", "c"], ["d", "e", "f"]], 2),
        lambda: n(tf.ragged.constant([[["a", "b"], []], [["c", "d", "e"]]]), 2),
        lambda: n(r, 0),
        lambda: n(r, "2"),
        lambda: n(r, 2, padding_width=1),
        lambda: n(r, 2, pad_values="x", padding_width=0),
        lambda: n(r, 2, pad_values=1),
        lambda: n("a", 2),
        lambda: n([1, 2], 2),
    ]
    return tried(tf, calls)


def case_what_is_known_of_them(tf):
    spec = tf.RaggedTensorSpec
    r = tf.ragged.constant([[1, 2], [], [3]])
    made = [
        lambda: spec([3, None], tf.int32),
        lambda: spec(None, tf.int32, 1),
        lambda: spec(None, tf.int32),
        lambda: spec([3, None], tf.int32, 2),
        lambda: spec([2, None, 4], tf.string, 1, tf.int32),
        lambda: tf.data.experimental.RaggedTensorStructure(tf.int32, [3, None], 1),
    ]
    found = []
    for call in made:
        try:
            value = call()
            found.append([repr(value), value == spec([3, None], tf.int32), value.is_compatible_with(r)])
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    return [*found, spec.from_value(r) == spec([3, None], tf.int32)]


def case_values_as_arguments(tf):
    """Values of ragged tensors, as functions take them beside the tensors."""
    words = tf.ragged.constant_value([[["000", "001"], ["010"]], [["100"], ["110", "111"]], [[], ["210"]]])
    numbers = tf.ragged.constant_value([[1, 2], [3]])
    calls = [
        lambda: tf.gather_nd(words, [[2], [0]]),
        lambda: tf.gather_nd(words, [[2, 1], [0, 0]]),
        lambda: tf.gather_nd(words, tf.ragged.constant_value([[[1, 0], [0, 1]], [[0, 0]]], ragged_rank=1)),
        lambda: tf.gather_nd(numbers, np.zeros([2, 0], np.int32)),
        lambda: tf.gather_nd(["a", "b"], np.zeros([3, 0], np.int32)),
        lambda: tf.gather_nd([[1.0, 2.0]], np.zeros([2, 2, 0], np.int32)),
        lambda: tf.gather(numbers, [1, 0]),
        lambda: tf.batch_gather(numbers, tf.ragged.constant_value([[1], [0, 0]])),
        lambda: tf.where(tf.ragged.constant_value([[True, False], [True]]), numbers, numbers),
        lambda: tf.expand_dims(numbers, 1),
        lambda: tf.reduce_sum(numbers, 1),
        lambda: tf.concat([numbers, numbers], 1),
    ]
    return [found[1] for found in tried(tf, calls)]


def case_refused(tf):
    """Arguments that ragged functions refuse when the graph is built, or when it runs."""
    a, b = tf.ragged.constant([[3, 1, 4], [], [1, 5]]), tf.ragged.constant([[1], [2, 3], [4, 5]])
    unknown = tf.placeholder(tf.int32)
    ragged = tf.ragged.constant_value
    return tried(
        tf,
        [
            lambda: tf.ragged.map_flat_values(tf.add, a, b),
            lambda: tf.ragged.boolean_mask(a, tf.ragged.constant([[True], [True, False], [True, True]])),
            lambda: tf.ragged.boolean_mask([[1, 2]], [[True, False, True]]),
            lambda: tf.gather_nd(a, unknown),
            lambda: tf.gather_nd(a, tf.placeholder(tf.int32, [None])),
            lambda: tf.gather_nd(a, 0),
            lambda: tf.gather_nd(["a", "b"], ragged([[0]])),
            lambda: tf.batch_gather(a, unknown),
            lambda: tf.batch_gather(ragged([["a"], ["b"], ["c"]]), ragged([[0], [0]])),
            lambda: tf.batch_gather([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], ragged([[[0, 0], [0, 0, 0]], [[0]]])),
            lambda: tf.batch_gather(ragged([[[0], [0, 0]], [[0]], [[0]]]), ragged([[[0, 0]], [[0, 0], [0]], [[0]]])),
            lambda: tf.batch_gather(["a", "b", "c"], ragged([[0], [0]])),
            lambda: tf.batch_gather(ragged([["a"]]), 0),
            lambda: tf.batch_gather(ragged([["a"]]), [[[0]]]),
            lambda: tf.ragged.stack_dynamic_partitions(["a", "b", "c"], [2, -1, 0], 10),
            lambda: tf.ragged.stack_dynamic_partitions(["a", "b", "c"], [2, 10, 0], 10),
            lambda: tf.ragged.stack_dynamic_partitions([["a", "b"], ["c"]], ragged([[2], [3, 0]]), 10),
            lambda: tf.ragged.stack_dynamic_partitions(["a", "b", "c"], [1, 2], 10),
            lambda: tf.ragged.stack_dynamic_partitions(["a", "b", "c"], [1, 2, 3], [1, 2, 3]),
            lambda: tf.ragged.stack_dynamic_partitions(["a", "b"], unknown, 3),
            lambda: tf.ragged.stack_dynamic_partitions(a, 1, 3),
            lambda: tf.RaggedTensor.from_tensor([[1]], lengths=[0.5]),
            lambda: tf.RaggedTensor.from_tensor([[1, 2, 3]], lengths=[[1], [1]]),
            lambda: tf.RaggedTensor.from_tensor([[1]], padding=[1]),
            lambda: tf.RaggedTensor.from_tensor([[[1]]], padding=1),
            lambda: tf.RaggedTensor.from_tensor([[1]], ragged_rank="bad"),
            lambda: tf.RaggedTensor.from_tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [2, 0, 2, 1], ragged_rank=2),
            lambda: tf.RaggedTensor.from_row_lengths([1, 2, 3], [1.0, 2.0]),
            lambda: tf.RaggedTensor.from_row_splits([1, 2], tf.constant([0, 2], tf.uint8)),
            lambda: tf.ragged.range([[0]], 5),
            lambda: tf.ragged.range([0], [1, 2]),
            lambda: tf.ragged.segment_ids_to_row_splits([0.5]),
            lambda: tf.ragged.segment_ids_to_row_splits([[0]]),
            lambda: tf.ragged.segment_ids_to_row_splits([0, 4, 3, 2, 4, 0]),
            lambda: tf.ragged.row_splits_to_segment_ids([]),
            lambda: tf.ragged.row_splits_to_segment_ids(0),
            lambda: tf.ragged.constant([[1, 2, 3]]).to_tensor([0]),
            lambda: tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1).to_tensor([7, 8, 9]),
            lambda: tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1).to_tensor([7, 8]),
            lambda: tf.where(ragged([[True], [False]]), ragged([[1], [2]]), [[1], [2]]),
            lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], [2, 3], validate=False).to_sparse(),
            lambda: tf.ragged.stack([], 0),
            lambda: tf.concat([a, b], "rows"),
            lambda: tf.concat(a, 0),
            lambda: a[3],
            lambda: a[-4],
            lambda: bool(a),
        ],
        {unknown: 1},
    )
