"""tf.data in graphs: transformations, iterators, their ends and errors. What is drawn at random is not compared."""

import os
import tempfile

import numpy as np


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, make in _pipelines().items():
        found[name] = _running(make)
    return found


def _running(make):
    def case(tf):
        with tempfile.TemporaryDirectory() as folder:
            dataset = make(tf, folder)
            static = [
                str(tf.compat.v1.data.get_output_types(dataset)),
                str(tf.compat.v1.data.get_output_shapes(dataset)),
            ]
            return [static, _all(tf, dataset)]

    return case


def _all(tf, dataset, limit=12):
    """The elements, and the class of the error that ends them."""
    tensors = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    outcomes = []
    with tf.compat.v1.Session() as session:
        try:
            for _ in range(limit):
                outcomes.append(_plain(session.run(tensors)))  # noqa: PERF401 - what came before the error stays
        except tf.errors.OpError as error:
            outcomes.append(type(error).__name__)
    return outcomes


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _files(tf, folder):
    names = []
    for index in range(3):
        name = os.path.join(folder, f"part-{index}")
        with open(name, "w") as file:
            file.write("".join(f"{index},{line}\n" for line in range(index + 1)))
        names.append(name)
    return names


def _records(tf, folder):
    name = os.path.join(folder, "records")
    with tf.io.TFRecordWriter(name) as writer:
        for index in range(5):
            features = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[index, index / 2.0])),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[index])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    return name


def _parsed(tf, record):
    spec = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    return tf.io.parse_single_example(record, spec)


def _pipelines():
    x = np.arange(14, dtype=np.float32).reshape(7, 2)

    def data(tf):
        return tf.data.Dataset

    def ragged(tf):
        return data(tf).range(1, 6).map(lambda n: tf.fill([tf.cast(n, tf.int32)], n))

    return {
        "slices": lambda tf, _: data(tf).from_tensor_slices((x, {"b": np.arange(7), "a": [str(i) for i in range(7)]})),
        "tensors": lambda tf, _: data(tf).from_tensors((1, [2.5, 3.5], "text")),
        "range": lambda tf, _: data(tf).range(2, 11, 3),
        "range_down": lambda tf, _: data(tf).range(5, 0, -2),
        "batch": lambda tf, _: data(tf).from_tensor_slices(x).batch(3),
        "batch_dropped": lambda tf, _: data(tf).from_tensor_slices(x).batch(3, drop_remainder=True),
        "batch_of_batches": lambda tf, _: data(tf).range(7).batch(2).batch(2, drop_remainder=True),
        "repeat": lambda tf, _: data(tf).range(2).repeat(3),
        "repeat_for_ever": lambda tf, _: data(tf).range(5).repeat(),
        "repeat_empty": lambda tf, _: data(tf).range(0).repeat(),
        "repeat_none": lambda tf, _: data(tf).range(3).repeat(0),
        "take_skip": lambda tf, _: data(tf).range(10).skip(2).take(4),
        "take_all": lambda tf, _: data(tf).range(3).take(-1),
        "skip_all": lambda tf, _: data(tf).range(3).skip(-1),
        "shard": lambda tf, _: data(tf).range(10).shard(3, 1),
        "map": lambda tf, _: data(tf).from_tensor_slices((x, np.arange(7))).map(lambda a, b: (a * 2, {"n": b + 1})),
        "map_parallel": lambda tf, _: data(tf).range(9).map(lambda a: a * a, num_parallel_calls=4),
        "map_batch": lambda tf, _: data(tf).from_tensor_slices(x).batch(4).map(lambda a: tf.reduce_sum(a, 1)),
        "map_shapes": lambda tf, _: ragged(tf),
        "map_list": lambda tf, _: data(tf).range(3).map(lambda a: [a, a + 1]),
        "map_pair": lambda tf, _: data(tf).range(3).map(lambda a: (a, (a + 1, "t"))),
        "map_constant": lambda tf, _: data(tf).range(3).map(lambda a: 7),
        "map_captured": lambda tf, _: _captured(tf),
        "map_text": lambda tf, _: (
            data(tf).from_tensor_slices(["1,2", "3,4"]).map(lambda line: tf.io.decode_csv(line, [[0], [0.0]]))
        ),
        "map_cond": lambda tf, _: (
            data(tf).range(5).map(lambda a: tf.cond(tf.equal(a % 2, 0), lambda: a * 10, lambda: -a))
        ),
        "map_while": lambda tf, _: (
            data(tf)
            .range(4)
            .map(
                lambda a: tf.while_loop(lambda i, s: i < a, lambda i, s: (i + 1, s + i), (tf.constant(0, tf.int64), a))[
                    1
                ]
            )
        ),
        "map_py_func": lambda tf, _: (
            data(tf).range(3).map(lambda a: tf.compat.v1.py_func(lambda v: v * 10, [a], tf.int64))
        ),
        "map_error": lambda tf, _: (
            data(tf).range(5).map(lambda a: tf.strings.to_number(tf.gather(["1", "2", "x", "4", "5"], a)))
        ),
        "map_fails_check": lambda tf, _: (
            data(tf).range(5).map(lambda a: tf.debugging.check_numerics(1.0 / tf.cast(3 - a, tf.float32), "bad"))
        ),
        "filter": lambda tf, _: data(tf).range(10).filter(lambda a: tf.equal(a % 3, 0)),
        "filter_pairs": lambda tf, _: data(tf).from_tensor_slices((x, np.arange(7))).filter(lambda a, b: b > 4),
        "flat_map": lambda tf, _: data(tf).range(4).flat_map(lambda a: data(tf).range(a)),
        "flat_map_tensors": lambda tf, _: (
            data(tf)
            .from_tensor_slices(x)
            .flat_map(lambda row: data(tf).from_tensor_slices(row).map(lambda v: v + row[0]))
        ),
        "interleave": lambda tf, _: (
            data(tf)
            .range(1, 6)
            .interleave(lambda a: data(tf).from_tensors(a).repeat(a), cycle_length=2, block_length=2)
        ),
        "interleave_short": lambda tf, _: (
            data(tf)
            .range(1, 4)
            .interleave(lambda a: data(tf).from_tensors(a).repeat(3), cycle_length=3, block_length=1)
        ),
        "zip": lambda tf, _: data(tf).zip((data(tf).range(3), data(tf).from_tensor_slices(x).batch(2))),
        "zip_dict": lambda tf, _: data(tf).zip({"b": data(tf).range(2), "a": data(tf).range(5, 9)}),
        "concatenate": lambda tf, _: (
            data(tf).from_tensor_slices(x).batch(4).concatenate(data(tf).from_tensor_slices(x).batch(5))
        ),
        "padded": lambda tf, _: ragged(tf).padded_batch(2, padded_shapes=[None]),
        "padded_fixed": lambda tf, _: ragged(tf).padded_batch(
            3, padded_shapes=[6], padding_values=tf.constant(-1, tf.int64)
        ),
        "padded_too_small": lambda tf, _: ragged(tf).padded_batch(3, padded_shapes=[2]),
        "padded_pairs": lambda tf, _: ragged(tf).map(lambda a: (a, "s")).padded_batch(2, ([-1], [])),
        "batch_uneven": lambda tf, _: ragged(tf).batch(2),
        "unbatch": lambda tf, _: data(tf).from_tensor_slices(x).batch(4).apply(tf.data.experimental.unbatch()),
        "window": lambda tf, _: data(tf).range(7).window(3, 2, 1, True).flat_map(lambda w: w.batch(3)),
        "window_stride": lambda tf, _: data(tf).range(7).window(2, 1, 3).flat_map(lambda w: w.batch(2)),
        "cache": lambda tf, _: data(tf).range(3).map(lambda a: a * 2).cache().repeat(2),
        "prefetch": lambda tf, _: data(tf).range(3).prefetch(2),
        "enumerate": lambda tf, _: data(tf).from_tensor_slices(["a", "b"]).enumerate(5),
        "shuffled_sorted": lambda tf, _: data(tf).range(6).shuffle(3, seed=1).batch(6).map(lambda a: tf.sort(a)),
        "shuffle_one": lambda tf, _: data(tf).range(5).shuffle(1),
        "scan": lambda tf, _: (
            data(tf).range(5).apply(tf.data.experimental.scan(tf.constant(0, tf.int64), lambda s, a: (s + a, s * a)))
        ),
        "take_while": lambda tf, _: data(tf).range(9).apply(tf.data.experimental.take_while(lambda a: a < 4)),
        "ignore_errors": lambda tf, _: (
            data(tf)
            .from_tensor_slices(["1", "x", "3"])
            .map(tf.strings.to_number)
            .apply(tf.data.experimental.ignore_errors())
        ),
        "map_and_batch": lambda tf, _: data(tf).range(5).apply(tf.data.experimental.map_and_batch(lambda a: a + 1, 2)),
        "choose": lambda tf, _: tf.data.experimental.choose_from_datasets(
            [data(tf).from_tensors("a").repeat(), data(tf).from_tensors("b").repeat(2)],
            data(tf).from_tensor_slices(np.array([0, 1, 1, 1, 0], np.int64)),
        ),
        "generator": lambda tf, _: data(tf).from_generator(
            lambda: iter([(1, [2.0]), (3, [4.0, 5.0])]), (tf.int32, tf.float32), ([], [None])
        ),
        "generator_args": lambda tf, _: data(tf).from_generator(lambda n: iter(range(n)), tf.int64, [], args=(3,)),
        "lines": lambda tf, folder: tf.data.TextLineDataset(_files(tf, folder)),
        "lines_interleaved": lambda tf, folder: (
            data(tf)
            .from_tensor_slices(_files(tf, folder))
            .interleave(lambda name: tf.data.TextLineDataset(name).skip(0), cycle_length=3)
        ),
        "lines_flat": lambda tf, folder: (
            data(tf).list_files(_files(tf, folder), shuffle=False).flat_map(tf.data.TextLineDataset)
        ),
        "no_file": lambda tf, folder: tf.data.TextLineDataset(os.path.join(folder, "none")),
        "records": lambda tf, folder: tf.data.TFRecordDataset(_records(tf, folder)).map(lambda r: _parsed(tf, r)),
        "records_batched": lambda tf, folder: (
            tf.data.TFRecordDataset([_records(tf, folder)] * 2)
            .map(lambda r: _parsed(tf, r))
            .filter(lambda e: e["y"] > 1)
            .map(lambda e: (e["x"] * 2, e["y"]))
            .batch(4)
        ),
        "records_parsed_in_batches": lambda tf, folder: (
            tf.data.TFRecordDataset(_records(tf, folder))
            .batch(2)
            .map(lambda r: tf.io.parse_example(r, {"y": tf.io.FixedLenFeature([], tf.int64)}))
        ),
        "cut_records": lambda tf, folder: tf.data.TFRecordDataset(_cut(_records(tf, folder))).map(
            lambda r: _parsed(tf, r)
        ),
        "fixed_length": lambda tf, folder: tf.data.FixedLengthRecordDataset(
            _bytes(folder, b"HHabcdefF"), 3, header_bytes=2, footer_bytes=1
        ),
        "fixed_length_excess": lambda tf, folder: tf.data.FixedLengthRecordDataset(_bytes(folder, b"abcdefg"), 3),
    }


def _captured(tf):
    factor = tf.constant([2, 3], tf.int64)
    return tf.data.Dataset.range(3).map(lambda a: a * factor)


def _cut(name):
    with open(name, "rb+") as file:
        file.truncate(os.path.getsize(name) - 10)
    return name


def _bytes(folder, data):
    name = os.path.join(folder, "bytes")
    with open(name, "wb") as file:
        file.write(data)
    return name


def _run_all(tf, session, tensors):
    found = []
    try:
        for _ in range(12):
            found.append(_plain(session.run(tensors)))  # noqa: PERF401 - what came before the error stays
    except tf.errors.OpError as error:
        found.append(type(error).__name__)
    return found


def case_initializable(tf):
    limit = tf.compat.v1.placeholder(tf.int64, [])
    dataset = tf.data.Dataset.range(limit).map(lambda a: a + limit)
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    value = iterator.get_next()
    with tf.compat.v1.Session() as session:
        found = [_run_all(tf, session, value)]
        for number in (2, 3):
            session.run(iterator.initializer, {limit: number})
            found.append(_run_all(tf, session, value))
    return found


def case_of_placeholder(tf):
    values = tf.compat.v1.placeholder(tf.float32, [None, 2])
    iterator = tf.compat.v1.data.make_initializable_iterator(tf.data.Dataset.from_tensor_slices(values).batch(2))
    value = iterator.get_next()
    with tf.compat.v1.Session() as session:
        session.run(iterator.initializer, {values: np.ones((3, 2))})
        return [str(value.shape), _run_all(tf, session, value)]


def case_reinitializable(tf):
    first, second = tf.data.Dataset.range(2), tf.data.Dataset.range(10, 13)
    iterator = tf.compat.v1.data.Iterator.from_structure(first.output_types, first.output_shapes)
    value = iterator.get_next()
    starts = [iterator.make_initializer(dataset) for dataset in (first, second)]
    found = []
    with tf.compat.v1.Session() as session:
        for start in (*starts, starts[0]):
            session.run(start)
            found.append(_run_all(tf, session, value))
    return found


def case_reinitializable_other_type(tf):
    iterator = tf.compat.v1.data.Iterator.from_structure(tf.int64, [])
    return iterator.make_initializer(tf.data.Dataset.from_tensors(1.0))


def case_feedable(tf):
    handle = tf.compat.v1.placeholder(tf.string, [])
    first, second = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 13)
    value = tf.compat.v1.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    one = tf.compat.v1.data.make_one_shot_iterator(first)
    other = tf.compat.v1.data.make_initializable_iterator(second)
    with tf.compat.v1.Session() as session:
        handles = session.run([one.string_handle(), other.string_handle()])
        session.run(other.initializer)
        return [_plain(session.run(value, {handle: handles[i % 2]})) for i in range(5)]


def case_one_shot_of_placeholder(tf):
    limit = tf.compat.v1.placeholder(tf.int64, [])
    return tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(limit))


def case_variable_in_map(tf):
    variable = tf.compat.v1.get_variable("v", initializer=3.0)
    dataset = tf.data.Dataset.range(2).map(lambda a: tf.cast(a, tf.float32) * variable)
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    value = iterator.get_next()
    with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(iterator.initializer)
        return _run_all(tf, session, value)


def case_two_sessions(tf):
    iterator = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(3))
    value = iterator.get_next()
    with tf.compat.v1.Session() as first, tf.compat.v1.Session() as second:
        return [int(s.run(value)) for s in (first, first, second)]


def case_reduce(tf):
    total = tf.data.Dataset.range(5).reduce(tf.constant(0, tf.int64), lambda s, a: s + a)
    with tf.compat.v1.Session() as session:
        return [_plain(session.run(total)), str(total.dtype), str(total.shape)]


def case_single_element(tf):
    one = tf.data.experimental.get_single_element(tf.data.Dataset.from_tensors((1, "a")))
    two = tf.data.experimental.get_single_element(tf.data.Dataset.range(2))
    with tf.compat.v1.Session() as session:
        return [_plain(session.run(one)), _run_all(tf, session, two)]


def case_cardinality(tf):
    data = tf.data.Dataset
    sets = [
        data.range(5),
        data.range(5).batch(2),
        data.range(5).repeat(),
        data.range(5).filter(lambda a: a > 2),
        data.range(5).skip(3),
        data.range(5).concatenate(data.range(2)),
        data.zip((data.range(5), data.range(2))),
    ]
    with tf.compat.v1.Session() as session:
        return [_plain(session.run(tf.data.experimental.cardinality(item))) for item in sets]


def case_wrong_zip(tf):
    return tf.data.Dataset.zip([tf.data.Dataset.range(2)])


def case_scalar_slices(tf):
    return tf.data.Dataset.from_tensor_slices(3)


def case_uneven_slices(tf):
    return tf.data.Dataset.from_tensor_slices((np.zeros(3), np.zeros(4)))


def case_concatenate_types(tf):
    return tf.data.Dataset.range(2).concatenate(tf.data.Dataset.from_tensors(1.0))


def case_flat_map_no_dataset(tf):
    return tf.data.Dataset.range(2).flat_map(lambda a: a)


def case_apply_no_dataset(tf):
    return tf.data.Dataset.range(2).apply(lambda d: 3)


def case_names(tf):
    iterator = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(2))
    return [iterator.get_next().name, iterator.get_next().name]


def case_csv_records(tf):
    """Ends of records, empty records, quoted ends of lines and missing headers in CSV files."""
    texts = [b"a,b\r0,1\r,", b"a,b\r\n0,1\r\n", b'"\n\n","\r\r"\r"0","1"', b"", b"\n1,2", b"a,b\n\nc,d\n", b"0\n\n2"]
    found = []
    for text in texts:
        with tempfile.NamedTemporaryFile() as file:
            file.write(text)
            file.flush()
            for defaults, options in (
                ([["NA"]] * 2, {}),
                ([["NA"]] * 2, {"header": True}),
                ([["NA"]] * 2, {"use_quote_delim": False}),
                ([["NA"]], {}),
            ):
                rows = tf.data.experimental.CsvDataset(file.name, defaults, **options)
                element = tf.compat.v1.data.make_one_shot_iterator(rows).get_next()
                values = []
                with tf.compat.v1.Session() as session:
                    try:
                        while True:
                            values.append(session.run(element))
                    except tf.errors.OpError as error:
                        values.append(type(error).__name__)
                found.append(values)
    return found
