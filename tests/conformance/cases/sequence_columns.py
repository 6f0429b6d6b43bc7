"""Feature columns of sequences."""

import os
import tempfile


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def features(tf):
    """Two examples, with sequences of two steps and of one."""
    return {
        "word": tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ["a", "c", "b"], [2, 2]),
        "id": tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([2, 1, 0], tf.int64), [2, 2]),
        "number": tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.5, 2.5, 3.5], [2, 2]),
        "pairs": tf.SparseTensor(
            [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1]], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 4]
        ),
        "bag": tf.SparseTensor(
            [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]], tf.constant([0, 1, 2, 1], tf.int64), [2, 2, 2]
        ),
    }


def run(tf, *values):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(values)


def layer(tf, columns):
    return tf.contrib.feature_column.sequence_input_layer(features(tf), columns)


def refused(build):
    try:
        build()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__
    return "builds"


def shown(tf, columns):
    """The layer's values, ranks and size, and the lengths; what variables it made."""
    dense, lengths = layer(tf, columns)
    values = run(tf, dense, lengths)
    return [
        [len(dense.shape), str(dense.shape[-1]), len(lengths.shape), lengths.dtype.name],
        values,
        [[v.op.name, str(v.shape)] for v in tf.global_variables()],
    ]


def table(tf):
    def made(shape, dtype=None, partition_info=None):
        return tf.reshape(tf.range(shape[0] * shape[1], dtype=tf.float32), shape)

    return made


def case_numbers(tf):
    column = tf.contrib.feature_column.sequence_numeric_column("number")
    return shown(tf, [column])


def case_numbers_of_a_shape(tf):
    column = tf.contrib.feature_column.sequence_numeric_column(
        "pairs", shape=(2,), default_value=-1.0, normalizer_fn=lambda x: x * 2.0
    )
    return [column.name, shown(tf, [column])]


def case_indicators(tf):
    f = tf.contrib.feature_column
    words = f.sequence_categorical_column_with_vocabulary_list("word", ["a", "b", "c"])
    return shown(tf, [tf.feature_column.indicator_column(words)])


def case_indicators_of_bags(tf):
    f = tf.contrib.feature_column
    bags = f.sequence_categorical_column_with_identity("bag", 3)
    return shown(tf, [tf.feature_column.indicator_column(bags)])


def case_embeddings(tf):
    f = tf.contrib.feature_column
    ids = f.sequence_categorical_column_with_identity("id", 3)
    return shown(tf, [tf.feature_column.embedding_column(ids, 2, initializer=table(tf))])


def case_embeddings_of_bags(tf):
    f = tf.contrib.feature_column
    ids = f.sequence_categorical_column_with_identity("bag", 3)
    return shown(tf, [tf.feature_column.embedding_column(ids, 2, combiner="sum", initializer=table(tf))])


def case_of_a_file(tf):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "words.txt")
    with open(path, "w") as file:
        file.write("c\nb\na\n")
    f = tf.contrib.feature_column
    words = f.sequence_categorical_column_with_vocabulary_file("word", path, vocabulary_size=3)
    return shown(tf, [tf.feature_column.indicator_column(words)])[1]


def case_several_columns(tf):
    f = tf.contrib.feature_column
    number = f.sequence_numeric_column("number")
    hashed = f.sequence_categorical_column_with_hash_bucket("word", 4)
    ids = f.sequence_categorical_column_with_identity("id", 3)
    embedded = tf.feature_column.embedding_column(ids, 2, initializer=table(tf))
    return shown(tf, [number, tf.feature_column.indicator_column(hashed), embedded])


def case_parsing(tf):
    f = tf.contrib.feature_column
    columns = [
        f.sequence_numeric_column("number"),
        tf.feature_column.indicator_column(f.sequence_categorical_column_with_identity("id", 3)),
        tf.feature_column.embedding_column(f.sequence_categorical_column_with_hash_bucket("word", 4), 2),
    ]
    spec = tf.feature_column.make_parse_example_spec(columns)
    return {key: [type(value).__name__, value.dtype.name] for key, value in spec.items()}


def case_public_names(tf):
    f = tf.feature_column
    return [
        [c.name, type(c).__name__ != ""]
        for c in (
            f.sequence_numeric_column("number", shape=(2,)),
            f.sequence_categorical_column_with_identity("id", 3),
            f.sequence_categorical_column_with_hash_bucket("word", 4),
            f.sequence_categorical_column_with_vocabulary_list("word", ["a"]),
            f.sequence_categorical_column_with_vocabulary_file("word", __file__, 2),
        )
    ]


def case_refused(tf):
    f = tf.contrib.feature_column
    ids = f.sequence_categorical_column_with_identity("id", 3)
    plain = tf.feature_column.categorical_column_with_identity("id", 3)
    indicator = tf.feature_column.indicator_column
    dense = {"number": tf.ones([2, 2])}
    return [
        refused(lambda: layer(tf, [tf.feature_column.numeric_column("number")])),
        refused(lambda: layer(tf, [indicator(plain)])),
        refused(lambda: layer(tf, [ids])),
        refused(lambda: tf.feature_column.input_layer(features(tf), [indicator(ids)])),
        refused(lambda: f.sequence_numeric_column("number", shape=[0])),
        refused(lambda: f.sequence_numeric_column("number", dtype=tf.string)),
        refused(lambda: f.sequence_numeric_column("number", normalizer_fn=3)),
        refused(lambda: f.sequence_input_layer(dense, [f.sequence_numeric_column("number")])),
    ]
