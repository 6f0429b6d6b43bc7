"""Pipelines that ignore errors, and arguments that TensorFlow's own tests give: empty lists, texts, specs, versions."""

import numpy as np

BAD = np.array([1.0, np.nan, 2.0, 3.0, np.nan], np.float32)
LONG = np.array([1.0, np.nan, 2.0, 3.0, 4.0, np.nan, 5.0, 6.0], np.float32)


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, make in pipelines(tf).items():
        found["ignore_" + name] = lambda tf, make=make: contents(tf, make)
    return found


def pipelines(tf):
    D, x = tf.data.Dataset, tf.data.experimental

    def checked(value):
        return tf.check_numerics(value, "value")

    def numbers(values=BAD):
        return D.from_tensor_slices(values).map(checked)

    def both(value):
        return D.from_tensor_slices(BAD).map(lambda each: checked(value * each))

    return {
        "map": numbers,
        "parallel_map_and_prefetch": lambda: D.from_tensor_slices(BAD).map(checked, num_parallel_calls=2).prefetch(2),
        "filter": lambda: D.from_tensor_slices(BAD).filter(lambda value: checked(value) > 1),
        "two_maps": lambda: numbers().map(lambda value: value * 2),
        "batch": lambda: numbers().batch(1),
        "longer_batch": lambda: numbers(LONG).batch(2, drop_remainder=True),
        "padded_batch": lambda: numbers(LONG).map(lambda value: tf.fill([2], value)).padded_batch(2, [3]),
        "shapes_in_batch": lambda: D.range(6).map(lambda n: tf.fill([tf.cast(n > 2, tf.int32) + 1], n)).batch(2),
        "repeat": lambda: numbers().repeat(2),
        "shuffle": lambda: numbers().shuffle(1),
        "take": lambda: numbers().take(3),
        "skip": lambda: numbers().skip(2),
        "zip": lambda: D.zip((numbers(), D.range(5))).map(lambda first, second: second),
        "flat_map": lambda: D.from_tensor_slices([1.0, 2.0]).flat_map(both),
        "interleave": lambda: D.from_tensor_slices([1.0, 2.0]).interleave(both, cycle_length=2, block_length=1),
        "concatenate": lambda: numbers().concatenate(D.from_tensors(9.0)),
        "map_and_batch": lambda: D.from_tensor_slices(LONG[:6]).apply(x.map_and_batch(checked, 2)),
    }


def contents(tf, make):
    """All elements of a pipeline that ignores errors."""
    element = make().apply(tf.data.experimental.ignore_errors()).make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as session:
        try:
            while True:
                found.append(session.run(element).tolist())
        except tf.errors.OutOfRangeError:
            return found


def tried(tf, make):
    """What the tensors that ``make`` returns give, or the class of the error."""
    try:
        with tf.Session() as session:
            return session.run(make())
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__


def case_texts_in_batches(tf):
    texts = [["a", "b"], ["c", "d"]]
    found = [tf.batch_gather(texts, [[1, 0, 1], [0, 0, 1]]), tf.gather([texts], [[1, 0]], axis=2, batch_dims=1)]
    return [np.char.decode(each.astype("S1")).tolist() for each in tried(tf, lambda: found)]


def case_reductions(tf):
    norm = tf.math.reduce_euclidean_norm
    return [
        tried(tf, lambda: [tf.reduce_all([]), tf.reduce_any([])]),
        tried(tf, lambda: tf.reduce_all([1, 0])),
        tried(tf, lambda: [norm(tf.constant([1, 2, 3])), norm(tf.constant([[3, 5], [2, 7]], tf.int64), 0)]),
        tried(tf, lambda: tf.reduce_sum(tf.ones([2, 2]), [[0], [1]])),
        tried(tf, lambda: tf.math.polyval([], np.ones([2, 2], np.float32))),
    ]


def case_kinds(tf):
    return [tried(tf, lambda: tf.conj("a")), tried(tf, lambda: tf.conj(True)), tried(tf, lambda: tf.conj(1.0))]


def case_unicode(tf):
    def transcoded(errors):
        text = tf.strings.unicode_transcode(b"a\x01b", "UTF-8", "UTF-8", errors, replace_control_characters=True)
        return tf.strings.bytes_split([text]).flat_values

    def decoded(errors):
        return tf.strings.unicode_decode(b"a\x01b", "UTF-8", errors, replace_control_characters=True)

    kinds = ("replace", "ignore", "strict", "invalid")
    found = [tried(tf, lambda errors=errors: transcoded(errors)) for errors in kinds]
    found = [each if isinstance(each, str) else [ord(byte) for byte in each] for each in found]
    return [found, [tried(tf, lambda errors=errors: decoded(errors)) for errors in kinds[:3]]]


def case_weights(tf):
    two = [tf.data.Dataset.range(2), tf.data.Dataset.range(2)]
    sample = tf.data.experimental.sample_from_datasets
    return [tried(tf, lambda: sample(two, [0.3, 0.3, 0.4])), tried(tf, lambda: sample(two, [[0.3, 0.3]]))]


def case_gradient_of_one_element(tf):
    x = tf.constant([1.0, 2.0])
    return tried(tf, lambda: tf.gradients(tf.reduce_sum(x * x), x, tf.constant([3.0])))


def case_version_of_a_graph(tf):
    graph = tf.GraphDef()
    graph.versions.min_consumer = 1 << 30
    return tried(tf, lambda: tf.import_graph_def(graph))


def case_square_roots(tf):
    found = tf.linalg.sqrtm([[[4.0, 1.0], [0.0, 9.0]], [[2.0, 1.0], [1.0, 2.0]]])
    return tried(tf, lambda: [found, tf.linalg.sqrtm(tf.constant([[4.0]], tf.float64))])


def case_rows_of_sparse_matrices(tf):
    def rows(indices):
        sparse = tf.SparseTensor(indices, tf.range(len(indices)), [3, 4])
        return tf.RaggedTensor.from_sparse(sparse).to_tensor(-1)

    given = [[[0, 0], [0, 1], [2, 0]], [[0, 0], [0, 2]], [[0, 1]], [[1, 0], [2, 1]]]
    unknown = tf.SparseTensor(tf.placeholder(tf.int64), tf.placeholder(tf.int32), tf.placeholder(tf.int64))
    found = [tried(tf, lambda indices=indices: rows(indices)) for indices in given]
    return [*found, tried(tf, lambda: tf.RaggedTensor.from_sparse(unknown).values)]


def case_requirements_of_layers(tf):
    class Halves(tf.layers.Layer):
        input_spec = None

        def call(self, inputs):
            return inputs / 2

    layer = Halves()
    layer.input_spec = tf.keras.layers.InputSpec(ndim=2)
    regularizers = [tf.layers.Dense(1).activity_regularizer is None, layer.activity_regularizer is None]
    return [tried(tf, lambda: layer(tf.ones([2, 1]))), tried(tf, lambda: layer(tf.ones([2]))), regularizers]
