"""Feature columns: inputs, linear models, names and gradients of variables, what to parse."""

import numpy as np

FEATURES = {
    "n": [[1.0], [2.5], [-3.0]],
    "v": [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]],
    "flat": [0.5, 1.5, 2.5],
    "w": [["a"], ["c"], ["x"]],
    "ws": [["a", "b"], ["c", ""], ["", ""]],
    "i": [[0], [2], [1]],
    "long": [[3], [-1], [12345678]],
}

COLUMNS = {
    "numeric": "F.numeric_column('n')",
    "flat": "F.numeric_column('flat')",
    "vector": "F.numeric_column('v', shape=(2,), normalizer_fn=lambda x: x / 10.)",
    "buckets": "F.bucketized_column(F.numeric_column('n'), [0., 2.5])",
    "buckets of vectors": "F.bucketized_column(F.numeric_column('v', 2), [2., 15.])",
    "words": "F.indicator_column(F.categorical_column_with_vocabulary_list('w', ['a', 'b', 'c']))",
    "words beyond": "F.indicator_column(F.categorical_column_with_vocabulary_list('w', ['a'], num_oov_buckets=2))",
    "several words": "F.indicator_column(F.categorical_column_with_vocabulary_list('ws', ['a', 'b', 'c']))",
    "default": "F.indicator_column(F.categorical_column_with_vocabulary_list('w', ['a', 'b'], default_value=1))",
    "hashed": "F.indicator_column(F.categorical_column_with_hash_bucket('ws', 7))",
    "hashed numbers": "F.indicator_column(F.categorical_column_with_hash_bucket('long', 7, tf.int64))",
    "identity": "F.indicator_column(F.categorical_column_with_identity('i', 3))",
    "crossed": "F.indicator_column(F.crossed_column(['w', 'ws'], 11))",
    "crossed columns": (
        "F.indicator_column(F.crossed_column([F.bucketized_column(F.numeric_column('n'), [0.]), 'w'], 9))"
    ),
    "embedding": (
        "F.embedding_column(F.categorical_column_with_vocabulary_list('ws', ['a', 'b', 'c']), 2, initializer=init)"
    ),
    "summed": "F.embedding_column(F.categorical_column_with_identity('i', 3), 2, 'sum', initializer=init)",
    "weighted": "F.indicator_column(F.weighted_categorical_column(F.categorical_column_with_identity('i', 3), 'n'))",
}
CATEGORIES = {
    "words": "F.categorical_column_with_vocabulary_list('ws', ['a', 'b', 'c'])",
    "buckets": "F.bucketized_column(F.numeric_column('v', 2), [2., 15.])",
    "crossed": "F.crossed_column(['w', 'ws'], 11)",
}


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, code in COLUMNS.items():
        found["input of " + name] = lambda tf, code=code: inputs_of(tf, code)
        found["linear model of " + name] = lambda tf, code=code: model_of(tf, code)
    for name, code in CATEGORIES.items():
        found["linear model of categories: " + name] = lambda tf, code=code: model_of(tf, code)
    return found


def init(shape, dtype=None, partition_info=None):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32) + 1).reshape(shape)


def features(tf):
    found = {key: tf.constant(value) for key, value in FEATURES.items()}
    for key in ("i", "long"):
        found[key] = tf.cast(found[key], tf.int64)
    return found


def names(values):
    return [value.name for value in values]


def run(tf, result):
    variables = tf.trainable_variables()
    gradients = [tf.convert_to_tensor(g) for g in tf.gradients(tf.reduce_sum(result**2), variables) if g is not None]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return [names(variables), session.run([result, gradients])]


def inputs_of(tf, code):
    column = eval(code, {"tf": tf, "F": tf.feature_column, "init": init})
    return [column.name, run(tf, tf.feature_column.input_layer(features(tf), [column]))]


def model_of(tf, code):
    column = eval(code, {"tf": tf, "F": tf.feature_column, "init": init})
    kept = {}
    total = tf.feature_column.linear_model(features(tf), [column], units=2, cols_to_vars=kept) + 1.0
    return [run(tf, total), [names(value) for value in kept.values()][:1]]


def case_several_columns(tf):
    F = tf.feature_column
    words = F.categorical_column_with_vocabulary_list("ws", ["a", "b", "c"])
    other = F.categorical_column_with_vocabulary_list("w", ["a", "b", "c"])
    columns = [F.numeric_column("v", 2), F.embedding_column(words, 2, initializer=init), F.indicator_column(other)]
    columns += F.shared_embedding_columns([words, other], 2, initializer=init)
    return [run(tf, F.input_layer(features(tf), columns)), [column.name for column in columns]]


def case_twice(tf):
    F = tf.feature_column
    column = F.embedding_column(F.categorical_column_with_identity("i", 3), 2, initializer=init)
    with tf.variable_scope("a"):
        first = F.input_layer(features(tf), [column])
    with tf.variable_scope("a", reuse=True):
        again = F.input_layer(features(tf), [column])
    second = F.input_layer(features(tf), [column])
    return run(tf, first + again + second)


def case_parsing(tf):
    F = tf.feature_column
    columns = [
        F.numeric_column("n", 2, default_value=0.5),
        F.bucketized_column(F.numeric_column("b"), [1.0]),
        F.indicator_column(F.categorical_column_with_hash_bucket("h", 5)),
        F.embedding_column(F.categorical_column_with_identity("i", 5), 2),
        F.crossed_column(["x", "y"], 5),
    ]
    spec = F.make_parse_example_spec(columns)
    found = []
    for key in sorted(spec):
        value = spec[key]
        shape = [int(size) for size in getattr(value, "shape", [])]
        default = getattr(value, "default_value", None)
        found.append([key, type(value).__name__, value.dtype.name, shape, None if default is None else list(default)])
    return found


def caught(call):
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the class is the outcome
        return type(error).__name__
    return None


def case_errors(tf):
    F = tf.feature_column
    words = F.categorical_column_with_vocabulary_list("w", ["a"])
    calls = (
        lambda: F.categorical_column_with_vocabulary_list("w", []),
        lambda: F.bucketized_column(words, [1.0]),
        lambda: F.categorical_column_with_vocabulary_list("w", ["a", "a"]),
        lambda: F.numeric_column("n", 0),
        lambda: F.categorical_column_with_vocabulary_list("w", ["a"], num_oov_buckets=1, default_value=3),
        lambda: F.categorical_column_with_hash_bucket("w", 0),
        lambda: F.categorical_column_with_identity("i", 0),
        lambda: F.crossed_column(["a"], 5),
        lambda: F.crossed_column(["a", 3], 5),
        lambda: F.crossed_column(["a", F.categorical_column_with_hash_bucket("w", 5)], 5),
        lambda: F.bucketized_column(F.numeric_column("n"), [2.0, 1.0]),
        lambda: F.embedding_column(words, 0),
        lambda: F.numeric_column("n", dtype=tf.string),
        lambda: F.numeric_column("n", normalizer_fn=3),
        lambda: F.input_layer(features(tf), [words]),
        lambda: F.input_layer(features(tf), []),
        lambda: F.input_layer(features(tf), [F.numeric_column("missing")]),
        lambda: F.input_layer(features(tf), [F.numeric_column("n"), F.numeric_column("n")]),
    )
    return [caught(call) for call in calls]
