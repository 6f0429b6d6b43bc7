"""Specifications of values, fake quantisation, and functions that few programs use."""

import numpy as np

X = np.array([[-7.0, -1.3, 0.0, 0.04], [0.7, 2.4, 5.9, 9.0]], "float32")


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def run(tf, *tensors):
    with tf.Session() as session:
        values = session.run(list(tensors))
    return [[str(t.shape), t.dtype.name, values[index]] for index, t in enumerate(tensors)]


def tried(*calls):
    found = []
    for call in calls:
        try:
            found.append(call())
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    return found


def case_fake_quantisation(tf):
    q = tf.quantization
    x, low, high = tf.constant(X), tf.constant(-1.5), tf.constant(3.0)
    args = [
        q.fake_quant_with_min_max_args(x, **kw)
        for kw in (
            {},
            {"min": -1.0, "max": 2.5, "num_bits": 4},
            {"num_bits": 2, "narrow_range": True},
            {"min": 0.0, "max": 6.0},
        )
    ]
    args.append(q.fake_quant_with_min_max_args_gradient(x, x, -1.0, 2.0))
    chosen = [
        q.fake_quant_with_min_max_vars(x, low, high),
        q.fake_quant_with_min_max_vars(x, low, high, 3, True),
        tf.fake_quant_with_min_max_vars(x, 0.0, 0.0),
    ]
    chosen += q.fake_quant_with_min_max_vars_gradient(x * 2.0, x, low, high)
    lows, highs = [-1.0, -2.0, -0.5, 0.0], [1.0, 3.0, 6.0, 5.0]
    chosen.append(q.fake_quant_with_min_max_vars_per_channel(x, lows, highs, num_bits=5))
    chosen += q.fake_quant_with_min_max_vars_per_channel_gradient(x * 2.0, x, lows, highs)
    return run(tf, *(args + chosen))


def case_gradients_of_fake_quantisation(tf):
    x, low, high = tf.constant(X), tf.constant(-1.5), tf.constant(3.0)
    lows, highs = tf.constant([-1.0, -2.0, -0.5, 0.0]), tf.constant([1.0, 3.0, 6.0, 5.0])
    one = tf.reduce_sum(tf.square(tf.quantization.fake_quant_with_min_max_vars(x, low, high)))
    two = tf.reduce_sum(tf.square(tf.quantization.fake_quant_with_min_max_vars_per_channel(x, lows, highs)))
    three = tf.reduce_sum(tf.square(tf.quantization.fake_quant_with_min_max_args(x, -1.0, 2.0)))
    return run(
        tf, *(tf.gradients(one, [x, low, high]) + tf.gradients(two, [x, lows, highs]) + tf.gradients(three, x))
    ) + tried(
        lambda: run(tf, tf.fake_quant_with_min_max_args(x, num_bits=1)),
        lambda: run(tf, tf.fake_quant_with_min_max_vars(x, low, high, num_bits=17)),
    )


def case_specs(tf):
    S, R, T, D = tf.SparseTensorSpec, tf.IndexedSlicesSpec, tf.TensorArraySpec, tf.data.DatasetSpec
    specs = [
        S([2, None], tf.int32),
        S(),
        R(),
        R([2, 3], tf.int32, tf.int32, tf.int64, [4]),
        T(),
        T([2], tf.int32, True, False),
        D(tf.TensorSpec([2])),
    ]
    found = [
        [
            repr(spec),
            spec.value_type.__name__.lstrip("_") if spec.value_type.__name__ != "_VariantDataset" else "Dataset",
            isinstance(spec, tf.TypeSpec),
        ]
        for spec in specs
    ]
    sparse = tf.SparseTensor([[0]], [1.0], [2])
    found += [
        S([2, 3]) == S([2, 3]),
        S([2, 3]) != S([2, 3]),
        S([3]) == R(),
        hash(S([2])) == hash(S([2])),
        str(S([2]).shape),
        S([2]).dtype.name,
    ]
    found += tried(
        lambda: S([2, 3]).is_compatible_with(S([2, None])),
        lambda: S([3]).is_compatible_with(sparse),
        lambda: S([2]).is_compatible_with(sparse),
        lambda: S([3]).is_compatible_with(tf.constant(1)),
        lambda: repr(S([2, 3]).most_specific_compatible_type(S([2, 4]))),
        lambda: repr(R([2]).most_specific_compatible_type(R([3]))),
        lambda: T([2]).most_specific_compatible_type(T([3])),
        lambda: T([2]).is_compatible_with(T([None])),
        lambda: S([3]).most_specific_compatible_type(R()),
        lambda: S([3]).most_specific_compatible_type(S([3], tf.int32)),
        lambda: tf.TypeSpec(),
        lambda: repr(S.from_value(sparse)),
        lambda: D(tf.TensorSpec([2])) == D(tf.TensorSpec([2])),
        lambda: repr(D.from_value(tf.data.Dataset.range(3))),
    )
    return found


def case_structures(tf):
    E = tf.data.experimental
    dataset = tf.data.Dataset.range(3).map(lambda x: {"a": x, "b": (x, x)})
    found = [
        repr(s)
        for s in (
            E.TensorStructure(tf.int32, [2]),
            E.SparseTensorStructure(tf.int32, [2]),
            E.TensorArrayStructure(tf.int32, [2], False, True),
            E.DatasetStructure(tf.TensorSpec([2])),
        )
    ]
    found += [
        E.Structure is tf.TypeSpec,
        repr(E.get_structure(dataset)),
        repr(E.get_structure(dataset.make_one_shot_iterator())),
    ]
    return found + tried(lambda: E.get_structure(3))


def case_mathematics(tf):
    math = tf.math
    x = tf.constant(X)
    sums = [
        math.cumulative_logsumexp(x, axis, exclusive, reverse)
        for axis in (0, 1, -1)
        for exclusive in (False,)
        for reverse in (False, True)
    ]
    return run(
        tf,
        math.bessel_i0(x),
        math.bessel_i1(x),
        math.nextafter(x, tf.zeros_like(x)),
        math.nextafter([1.0], [2.0]),
        *(sums + tf.gradients(math.bessel_i0(x), x)),
    )


def case_bins(tf):
    bins = tf.histogram_fixed_width_bins
    return run(tf, bins([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5), bins(X, [-1.0, 1.0], dtype=tf.int64))


def case_switches(tf):
    def functions(count):
        return [lambda n=n: tf.constant(n * 10) for n in range(count)]

    index = tf.placeholder(tf.int32, [])
    plain, pairs = (
        tf.switch_case(index, functions(3)),
        tf.switch_case(index, list(enumerate(functions(2))), default=lambda: tf.constant(-1)),
    )
    named = tf.switch_case(
        index, {0: lambda: (tf.constant(1), tf.constant(2.0)), 1: lambda: (tf.constant(3), tf.constant(4.0))}
    )
    with tf.Session() as session:
        found = [session.run([plain, pairs, named], {index: value}) for value in (-1, 0, 1, 2, 5, 9)]
    return found + tried(
        lambda: tf.switch_case(index, {5: lambda: 1, 1: lambda: 2}),
        lambda: tf.switch_case(index, 3),
        lambda: tf.switch_case(index, [3]),
        lambda: tf.switch_case(index, []),
        lambda: tf.switch_case(index, {"a": lambda: 1}),
        lambda: tf.switch_case(index, [(1, lambda: 1), (1, lambda: 2)]),
        lambda: tf.switch_case(index, {1: 2}),
        lambda: tf.switch_case(1.5, functions(2)),
    )


def case_filters_of_volumes(tf):
    x = (np.arange(54) % 7).reshape(1, 3, 3, 3, 2).astype("float32")
    out = (np.arange(24) % 5).reshape(1, 2, 2, 2, 3).astype("float32")
    return run(
        tf,
        tf.nn.conv3d_backprop_filter(x, [2, 2, 2, 2, 3], out, [1] * 5, "VALID"),
        tf.nn.conv3d_backprop_filter_v2(x, [2, 2, 2, 2, 3], out, [1] * 5, "VALID"),
    )


def case_raw_operations(tf):
    raw = tf.raw_ops
    x = tf.constant(X)
    values, places = raw.TopKV2(input=x, k=2, sorted=True)
    found = run(
        tf,
        raw.MatMul(a=x, b=x, transpose_a=False, transpose_b=True),
        raw.Add(x=x, y=1.0, name="sum"),
        raw.Tanh(x=x),
        values,
        places,
        raw.Pack(values=[x, x], axis=1),
        raw.ConcatV2(values=[x, x], axis=0),
        raw.StringJoin(inputs=["a", "b"], separator="-"),
        raw.Cast(x=x, DstT=tf.int32),
        raw.Cumsum(x=x, axis=1, exclusive=True, reverse=False),
        raw.OneHot(indices=[1, 0], depth=2, on_value=1.0, off_value=0.0, axis=-1),
    )
    return found + tried(
        lambda: raw.MatMul(x, x),
        lambda: raw.MatMul(a=x),
        lambda: raw.MatMul(a=x, b=x, nonsense=1),
        lambda: raw.NoSuchOperation,
        lambda: raw.Add(x=x, y=1.0, name="sum").op.name,
    )


def case_sounds(tf):
    audio = tf.audio
    x = np.array([[0.0, 0.5], [-0.25, 1.5], [0.1, -1.5]], "float32")
    file = audio.encode_wav(x, 8000)
    decoded = [
        audio.decode_wav(file, **kw)
        for kw in (
            {},
            {"desired_samples": 5},
            {"desired_samples": 2},
            {"desired_channels": 1},
            {"desired_channels": 2, "desired_samples": 3},
        )
    ]
    found = run(tf, *[tensor for each in decoded for tensor in each])
    return (
        found
        + run(tf, file)
        + tried(lambda: run(tf, audio.decode_wav("nonsense").audio), lambda: run(tf, audio.encode_wav(x[0], 8000)))
    )


def case_maps_in_batches(tf):
    E = tf.data.experimental
    dataset = tf.data.Dataset.range(5).apply(
        E.map_and_batch_with_legacy_function(lambda x: x * 2, 2, drop_remainder=True)
    )
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        return [session.run(element), session.run(element)]


def case_counters(tf):
    counter = tf.data.experimental.Counter
    found = []
    for dataset in (counter(), counter(5), counter(start=10, step=-3), counter(1, 2, tf.int32)):
        element = dataset.make_one_shot_iterator().get_next()
        with tf.Session() as session:
            found.append([element.dtype.name, str(element.shape)] + [session.run(element) for _ in range(3)])
    return found
