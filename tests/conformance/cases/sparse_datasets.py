"""Sparse and ragged components of datasets' elements, through each transformation and iterator."""

import os
import shutil
import tempfile

import numpy as np


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def shown(tf, value):
    """A value of a session: sparse and ragged ones by their parts."""
    if isinstance(value, dict):
        return {key: shown(tf, part) for key, part in value.items()}
    if isinstance(value, tf.SparseTensorValue):
        return ["sparse", *(np.asarray(part).tolist() for part in value)]
    if hasattr(value, "to_list"):
        return ["ragged", value.to_list()]
    if isinstance(value, (list, tuple)):
        return [shown(tf, part) for part in value]
    return np.asarray(value).tolist()


def described(spec):
    return [type(spec).__name__, str(spec.shape) if hasattr(spec, "shape") else str(spec._shape)]


def elements(tf, dataset, most=20):
    """All elements of a dataset, or the class of the error at its end, and their classes, types and shapes."""
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    found = []
    with tf.Session() as session:
        try:
            session.run(iterator.initializer)
            while len(found) < most:
                found += [shown(tf, session.run(element))]
        except tf.errors.OutOfRangeError:
            pass
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
    known = (
        _flat(tf, tf.data.get_output_classes(dataset), lambda kind: getattr(kind, "__name__", type(kind).__name__)),
        _flat(tf, tf.data.get_output_types(dataset), lambda dtype: dtype.name),
        _flat(tf, tf.data.get_output_shapes(dataset), str),
    )
    return [found, *known]


def _flat(tf, structure, name):
    if isinstance(structure, dict):
        return {key: _flat(tf, structure[key], name) for key in sorted(structure)}
    return [_flat(tf, part, name) for part in structure] if isinstance(structure, tuple) else name(structure)


def matrix(tf, *rows):
    """A sparse matrix of these rows of values, at the rows' beginnings."""
    # Of rows that functions of datasets make: TensorFlow's autograph knows no comprehension within another.
    places, values = [], []
    for at, row in enumerate(rows):
        places += [[at, column] for column in range(len(row))]
        values += row
    width = max(map(len, rows))
    return tf.SparseTensor(np.array(places, np.int64).reshape(-1, 2), np.array(values, np.int32), [len(rows), width])


def rows(tf):
    """Sparse vectors of different sizes, with a number each."""
    dataset = tf.data.Dataset.from_tensor_slices((matrix(tf, [1, 2], [], [3], [4, 5, 6]), np.arange(4)))
    return dataset


def ragged(tf):
    return tf.data.Dataset.range(4).map(lambda n: tf.ragged.range(tf.stack([n, 0, n + 1])))


def case_slices(tf):
    return elements(tf, rows(tf))


def case_tensors(tf):
    return elements(tf, tf.data.Dataset.from_tensors({"a": matrix(tf, [1], [2, 3]), "b": 4}))


def case_a_value_of_a_sparse_tensor(tf):
    return elements(tf, tf.data.Dataset.from_tensors(tf.SparseTensorValue([[0, 1]], [5], [2, 2])))


def case_sparse_tensor_slices(tf):
    return elements(tf, tf.data.Dataset.from_sparse_tensor_slices(matrix(tf, [1, 2], [], [3])))


def case_slices_of_a_cube(tf):
    cube = tf.SparseTensor([[0, 0, 1], [0, 2, 0], [2, 1, 1]], ["a", "b", "c"], [3, 3, 2])
    return elements(tf, tf.data.Dataset.from_tensor_slices(cube))


def case_known_in_a_step_only(tf):
    kept = tf.sparse.retain(matrix(tf, [1, 2], [3]), tf.random.uniform([3]) < 2)
    return elements(tf, tf.data.Dataset.from_tensor_slices(kept))[0]


def case_map(tf):
    return elements(tf, rows(tf).map(lambda row, n: {"double": tf.SparseTensor(row.indices, row.values * 2,
                                                                              row.dense_shape), "n": n}))  # fmt: skip


def case_map_in_parallel(tf):
    return elements(tf, rows(tf).map(lambda row, n: tf.sparse.reduce_sum(row), num_parallel_calls=2))[0]


def case_map_captures(tf):
    other = matrix(tf, [7, 8, 9])
    return elements(tf, rows(tf).map(lambda row, n: tf.sparse.concat(0, [tf.sparse.reshape(row, [1, -1]), other])))


def case_filter(tf):
    return elements(tf, rows(tf).filter(lambda row, n: tf.size(row.values) > 1))


def case_flat_map(tf):
    return elements(tf, rows(tf).flat_map(lambda row, n: tf.data.Dataset.from_tensors(row).repeat(2)).take(3))


def case_interleave(tf):
    made = tf.data.Dataset.range(2).interleave(_shifted(tf), 2, 1)
    return elements(tf, made)


def _shifted(tf):
    def shifted(n):
        def add(row, m):
            return row, m + n

        return rows(tf).map(add)

    return shifted


def case_scan(tf):
    def total(state, row):
        return state + tf.sparse.reduce_sum(row), tf.SparseTensor(row.indices, row.values + state, row.dense_shape)

    dataset = rows(tf).map(lambda row, n: row)
    return elements(tf, dataset.apply(tf.data.experimental.scan(np.int32(0), total)))


def case_scan_with_a_sparse_state(tf):
    def other(state, n):
        return tf.SparseTensor(state.indices, state.values + 1, state.dense_shape), (state, n)

    made = tf.data.Dataset.range(3).apply(tf.data.experimental.scan(matrix(tf, [1], [2]), other))
    return elements(tf, made)


def case_reduce(tf):
    last = rows(tf).reduce(np.int32(0), lambda state, both: state + tf.sparse.reduce_sum(both[0]))
    with tf.Session() as session:
        return int(session.run(last))


def case_reduce_to_a_sparse_state(tf):
    first = tf.SparseTensor([[0]], np.int32([1]), [3])
    last = rows(tf).reduce(first, lambda state, row, n=None: tf.SparseTensor(state.indices, state.values * 2,
                                                                            state.dense_shape))  # fmt: skip
    with tf.Session() as session:
        return shown(tf, session.run(last))


def case_batch(tf):
    return elements(tf, rows(tf).batch(3))


def case_batch_without_a_remainder(tf):
    return elements(tf, rows(tf).batch(3, drop_remainder=True))


def case_batch_of_different_sizes(tf):
    words = tf.data.Dataset.from_tensor_slices(["a b", "", "c d e"]).map(lambda line: tf.string_split([line]))
    return elements(tf, words.batch(2))


def case_batch_twice(tf):
    return elements(tf, rows(tf).batch(2).batch(2))


def case_unbatch(tf):
    return elements(tf, rows(tf).batch(3).apply(tf.data.experimental.unbatch()))


def case_padded_batch(tf):
    return elements(tf, rows(tf).padded_batch(2, ([None], [])))


def case_window(tf):
    made = rows(tf).window(2).flat_map(lambda row, n: tf.data.Dataset.zip((row.batch(2), n.batch(2))))
    return elements(tf, made)


def case_group_by_window(tf):
    group = tf.data.experimental.group_by_window(lambda row, n: n % 2, lambda key, window: window.batch(2), 2)
    return elements(tf, rows(tf).apply(group))


def case_buckets(tf):
    bucket = tf.data.experimental.bucket_by_sequence_length(
        lambda row, n: tf.size(row.values), [2], [2, 2], no_padding=True
    )
    return elements(tf, rows(tf).apply(bucket))


def case_zip(tf):
    return elements(tf, tf.data.Dataset.zip({"a": rows(tf), "b": tf.data.Dataset.range(3)}))


def case_concatenate(tf):
    return elements(tf, rows(tf).concatenate(rows(tf).skip(2)))


def case_concatenate_another_class(tf):
    sparse = rows(tf).map(lambda row, n: row)
    return elements(tf, sparse.concatenate(sparse.map(tf.sparse.to_dense)))


def case_choose_from_another_class(tf):
    sparse = rows(tf).map(lambda row, n: row)
    return tf.data.experimental.choose_from_datasets([sparse, sparse.map(tf.sparse.to_dense)], tf.data.Dataset.range(2))


def case_sample_from_another_type(tf):
    sparse = rows(tf).map(lambda row, n: row)
    return tf.data.experimental.sample_from_datasets([sparse, sparse.map(lambda row: tf.cast(row, tf.int64))])


def case_choose_from_datasets(tf):
    one, two = rows(tf), rows(tf).map(lambda row, n: (row, n + 10))
    choice = tf.data.Dataset.from_tensor_slices(np.int64([1, 0, 0, 1]))
    return elements(tf, tf.data.experimental.choose_from_datasets([one, two], choice))


def case_sample_from_datasets(tf):
    return elements(tf, tf.data.experimental.sample_from_datasets([rows(tf), rows(tf)], [1.0, 0.0], seed=1).take(3))


def case_shard(tf):
    return elements(tf, rows(tf).shard(2, 1))


def case_shuffle(tf):
    found = elements(tf, rows(tf).shuffle(4, seed=1))[0]
    return sorted(found, key=lambda each: each[1])


def case_repeat(tf):
    return elements(tf, rows(tf).repeat(2).skip(3).take(3))


def case_cache(tf):
    return elements(tf, rows(tf).cache().repeat(2))


def case_cache_in_a_file(tf):
    folder = tempfile.mkdtemp()
    try:
        return elements(tf, rows(tf).cache(os.path.join(folder, "kept")).repeat(2))
    finally:
        shutil.rmtree(folder)


def case_prefetch(tf):
    return elements(tf, rows(tf).prefetch(2))


def case_map_and_batch(tf):
    both = tf.data.experimental.map_and_batch(lambda row, n: (row, n * 2), 2)
    return elements(tf, rows(tf).apply(both))


def case_enumerate(tf):
    return elements(tf, rows(tf).apply(tf.data.experimental.enumerate_dataset(5)).take(2))


def case_take_while(tf):
    return elements(tf, rows(tf).apply(tf.data.experimental.take_while(lambda row, n: n < 2)))


def case_ignore_errors(tf):
    def checked(row, n):
        with tf.control_dependencies([tf.debugging.assert_less(n, np.int64(2))]):
            return tf.SparseTensor(row.indices, tf.identity(row.values), row.dense_shape)

    return elements(tf, rows(tf).map(checked).apply(tf.data.experimental.ignore_errors()))


def case_dense_to_sparse_batch(tf):
    counts = tf.data.Dataset.range(1, 4).map(lambda n: tf.fill([n, 2], n))
    return elements(tf, counts.apply(tf.data.experimental.dense_to_sparse_batch(2, [None, 2])))


def case_dense_to_sparse_batch_of_zeros(tf):
    zeros = tf.data.Dataset.from_tensor_slices([[0.0, 1.0], [0.0, 0.0]])
    return elements(tf, zeros.apply(tf.data.experimental.dense_to_sparse_batch(2, [3])))


def case_dense_to_sparse_batch_that_does_not_fit(tf):
    counts = tf.data.Dataset.range(1, 4).map(lambda n: tf.range(n))
    return elements(tf, counts.apply(tf.data.experimental.dense_to_sparse_batch(2, [2])))


def case_single_element(tf):
    one = tf.data.experimental.get_single_element(rows(tf).take(1))
    with tf.Session() as session:
        return shown(tf, session.run(one))


def case_one_shot_iterator(tf):
    element = tf.data.make_one_shot_iterator(rows(tf)).get_next()
    with tf.Session() as session:
        return [shown(tf, session.run(element)) for _ in range(2)]


def case_reinitializable_iterator(tf):
    one, two = rows(tf), rows(tf).map(lambda row, n: (tf.SparseTensor(row.indices, -row.values, row.dense_shape), n))
    iterator = tf.data.Iterator.from_structure(
        tf.data.get_output_types(one), tf.data.get_output_shapes(one), output_classes=tf.data.get_output_classes(one)
    )
    element, first, second = iterator.get_next(), iterator.make_initializer(one), iterator.make_initializer(two)
    found = []
    with tf.Session() as session:
        for begin in (first, second):
            session.run(begin)
            found.append(shown(tf, session.run(element)))
    return found


def case_reinitializable_iterator_of_another_class(tf):
    one = rows(tf)
    iterator = tf.data.Iterator.from_structure(tf.data.get_output_types(one), tf.data.get_output_shapes(one))
    return iterator.make_initializer(one)


def case_feedable_iterator(tf):
    one = rows(tf)
    handle = tf.placeholder(tf.string, [])
    element = tf.data.Iterator.from_string_handle(
        handle, tf.data.get_output_types(one), tf.data.get_output_shapes(one), tf.data.get_output_classes(one)
    ).get_next()
    iterators = [tf.data.make_one_shot_iterator(each) for each in (one, one.skip(2))]
    with tf.Session() as session:
        handles = [session.run(each.string_handle()) for each in iterators]
        return [shown(tf, session.run(element, {handle: each})) for each in (handles[0], handles[1], handles[0])]


def case_optional(tf):
    maybe = tf.data.experimental.get_next_as_optional(tf.data.make_one_shot_iterator(rows(tf).take(1)))
    with tf.Session() as session:
        return [shown(tf, session.run(maybe.get_value())), bool(session.run(maybe.has_value()))]


def case_optional_of_a_value(tf):
    maybe = tf.data.experimental.Optional.from_value((matrix(tf, [1], [2, 3]), 4))
    with tf.Session() as session:
        return shown(tf, session.run(maybe.get_value()))


def case_saved_iterator(tf):
    return _saved_and_restored(tf, rows(tf).repeat(2))


def case_saved_iterator_of_a_shuffle(tf):
    return _saved_and_restored(tf, tf.data.Dataset.range(20).shuffle(8).repeat(2))[1]


def _saved_and_restored(tf, dataset):
    folder = tempfile.mkdtemp()
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    try:
        with tf.Session() as session:
            session.run(iterator.initializer)
            for _ in range(3):
                session.run(element)
            path = saver.save(session, os.path.join(folder, "model"), write_meta_graph=False)
            after = [shown(tf, session.run(element)) for _ in range(3)]
        with tf.Session() as session:
            session.run(iterator.initializer)
            saver.restore(session, path)
            again = [shown(tf, session.run(element)) for _ in range(3)]
    finally:
        shutil.rmtree(folder)
    return [after, after == again]


def case_iterator_that_has_not_begun_cannot_be_restored(tf):
    iterator = tf.data.make_initializable_iterator(rows(tf))
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    folder = tempfile.mkdtemp()
    try:
        with tf.Session() as session:
            session.run(iterator.initializer)
            path = saver.save(session, os.path.join(folder, "model"), write_meta_graph=False)
        with tf.Session() as session:
            saver.restore(session, path)
    finally:
        shutil.rmtree(folder)


def case_ragged_map(tf):
    return elements(tf, ragged(tf))


def case_ragged_map_twice(tf):
    return elements(tf, ragged(tf).map(lambda row: (row * 2, row.row_lengths())))


def case_ragged_tensors(tf):
    return elements(tf, tf.data.Dataset.from_tensors((tf.ragged.constant([[1], [], [2, 3]]), 4)).repeat(2))


def case_ragged_slices(tf):
    return elements(tf, tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[[1], [2, 3]], [], [[4]]])))


def case_ragged_batch(tf):
    return elements(tf, ragged(tf).batch(3))


def case_ragged_unbatch(tf):
    return elements(tf, ragged(tf).batch(3).apply(tf.data.experimental.unbatch()))


def case_ragged_filter(tf):
    return elements(tf, ragged(tf).filter(lambda row: row.nrows() + tf.shape(row.values, out_type=tf.int64)[0] > 6))


def case_ragged_cache_and_zip(tf):
    return elements(tf, tf.data.Dataset.zip((ragged(tf).cache().repeat(2), rows(tf))))


def case_ragged_one_shot_iterator(tf):
    element = tf.data.make_one_shot_iterator(ragged(tf)).get_next()
    with tf.Session() as session:
        return [shown(tf, session.run(element)) for _ in range(2)]


def case_ragged_reduce(tf):
    last = ragged(tf).reduce(np.int64(0), lambda state, row: state + tf.reduce_sum(row.values))
    with tf.Session() as session:
        return int(session.run(last))


def case_ragged_of_words(tf):
    words = tf.data.Dataset.from_tensor_slices(["a b", "c d e"]).batch(2)
    return elements(tf, words.map(lambda lines: tf.RaggedTensor.from_sparse(tf.string_split(lines))))


def _file(tf):
    def example(words, weights, label):
        feature = {
            "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=words)),
            "weights": tf.train.Feature(float_list=tf.train.FloatList(value=weights)),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    path = os.path.join(tempfile.mkdtemp(), "a.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for words, weights, label in (([b"a", b"b"], [1.0, 2.0], 1), ([], [], 0), ([b"c"], [3.0], 1)):
            writer.write(example(words, weights, label))
    return path


def case_features(tf):
    features = {
        "words": tf.VarLenFeature(tf.string),
        "weights": tf.VarLenFeature(tf.float32),
        "label": tf.FixedLenFeature([], tf.int64),
    }
    made = tf.data.experimental.make_batched_features_dataset(
        _file(tf), 2, features, label_key="label", shuffle=False, num_epochs=1
    )
    return elements(tf, made)


def case_sparse_feature(tf):
    features = {"both": tf.SparseFeature("at", "weights", tf.float32, 10), "label": tf.FixedLenFeature([], tf.int64)}
    one = tf.train.Example()
    one.features.feature["at"].int64_list.value.extend([7, 2])
    one.features.feature["weights"].float_list.value.extend([1.5, 2.5])
    one.features.feature["label"].int64_list.value.append(1)
    texts = tf.data.Dataset.from_tensors([one.SerializeToString()] * 2)
    return elements(tf, texts.map(lambda text: tf.parse_example(text, features)))


def case_sequence_example(tf):
    one = tf.train.SequenceExample()
    one.context.feature["id"].int64_list.value.append(3)
    for row in ([1, 2], [], [3]):
        one.feature_lists.feature_list["ids"].feature.add().int64_list.value.extend(row)
    texts = tf.data.Dataset.from_tensors(one.SerializeToString())

    def parse(text):
        return tf.parse_single_sequence_example(
            text, {"id": tf.FixedLenFeature([], tf.int64)}, {"ids": tf.VarLenFeature(tf.int64)}
        )

    return elements(tf, texts.map(parse).batch(1))


def case_structure_of_elements(tf):
    return _flat(tf, tf.data.experimental.get_structure(rows(tf)), described)
