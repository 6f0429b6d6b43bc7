"""Names that few programs use: fields of messages, functions of values, layers of columns, shrunk weights."""

import base64


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call, *phrases):
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]


def _run(tf, fetches, feed_dict=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.tables_initializer())
        return session.run(fetches, feed_dict)


def _descriptors():
    """A FileDescriptorSet: ``test.Item`` with a field of each of some kinds."""
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="test_item.proto", package="test", syntax="proto2")
    item = file.message_type.add(name="Item")
    field = descriptor_pb2.FieldDescriptorProto
    kinds = ("INT64", "FLOAT", "STRING", "BYTES", "BOOL", "UINT32", "UINT64", "DOUBLE", "SINT32")
    for number, kind in enumerate(kinds, 1):
        for name, label in (("one_", field.LABEL_OPTIONAL), ("many_", field.LABEL_REPEATED)):
            given = number if label == field.LABEL_OPTIONAL else number + 20
            item.field.add(name=name + kind.lower(), number=given, label=label, type=getattr(field, "TYPE_" + kind))
    item.field.add(name="inner", number=50, label=field.LABEL_OPTIONAL, type=field.TYPE_MESSAGE, type_name=".test.Item")
    item.field[0].default_value = "7"
    return b"bytes://" + files.SerializeToString()


_NAMES = ["one_int64", "many_float", "many_string", "one_bytes", "many_bool", "many_uint32", "one_uint64", "inner"]


def _types(tf):
    return [tf.int64, tf.float32, tf.string, tf.string, tf.bool, tf.int64, tf.uint64, tf.string]


def _written(tf):
    sizes = [[1, 2, 1, 1, 2, 1, 1, 1], [0, 0, 2, 0, 1, 1, 0, 0]]
    inner = tf.io.encode_proto([[1]], [tf.constant([[5]], tf.int64)], ["one_int64"], "test.Item", _descriptors())
    values = [
        tf.constant([[3], [4]], tf.int64),
        tf.constant([[0.5, -1.5], [2.0, 3.0]]),
        tf.constant([["a", "b"], ["c", "d"]]),
        tf.constant([["x"], ["y"]]),
        tf.constant([[True, False], [True, True]]),
        tf.constant([[7], [8]], tf.int64),
        tf.constant([[1 << 40], [2]], tf.uint64),
        tf.stack([inner, inner]),
    ]
    return sizes, values


def case_messages(tf):
    sizes, values = _written(tf)
    names = [name for name in _NAMES if name != "many_uint32"]
    kept = [at for at, name in enumerate(_NAMES) if name != "many_uint32"]
    data = tf.io.encode_proto(
        [[row[at] for at in kept] for row in sizes], [values[at] for at in kept], names, "test.Item", _descriptors()
    )
    types = [_types(tf)[at] for at in kept]
    read = tf.io.decode_proto(data, "test.Item", names, types, _descriptors())
    shapes = [str(read.sizes.shape), read.sizes.dtype.name, [str(each.shape) for each in read.values]]
    found = _run(tf, [data, read.sizes, list(read.values)])
    return [[base64.b64encode(each).decode() for each in found[0]], found[1], found[2], shapes, list(read._fields)]


def case_messages_of_text(tf):
    text = tf.constant([["one_int64: 9 many_float: 1.5 many_float: 2.5"], ["many_string: 'q'"]])
    read = tf.io.decode_proto(
        text,
        "test.Item",
        ["one_int64", "many_float", "one_sint32"],
        [tf.int64, tf.float32, tf.int32],
        _descriptors(),
        message_format="text",
    )
    return _run(tf, [read.sizes, list(read.values)])


def case_messages_refused(tf):
    def read(*args):
        found = tf.io.decode_proto(*args)
        return _run(tf, [found.sizes, list(found.values)])

    source = _descriptors()
    return [
        tried(lambda: read([b"\xff\xff"], "test.Item", ["one_int64"], [tf.int64], source))[0],
        tried(lambda: read([b""], "test.Nothing", ["one_int64"], [tf.int64], source))[0],
        tried(lambda: read([b""], "test.Item", ["nothing"], [tf.int64], source), "Unknown field: nothing"),
        tried(lambda: read([b""], "test.Item", ["one_int64"], [tf.string], source))[0],
        read([b""], "test.Item", ["one_int64", "many_float"], [tf.int64, tf.float32], source),
    ]


def case_py_function(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    found = [
        tf.py_function(lambda a, b: a.numpy() + b.numpy(), [x, x], tf.float32),
        tf.py_function(lambda a: tf.reduce_sum(a * 2.0), [x], tf.float32),
        tf.py_function(lambda a: [a.numpy().shape[0], a.numpy().sum() > 3], [x], [tf.int32, tf.bool]),
        tf.py_function(lambda text: text.numpy().upper(), [tf.constant("abc")], tf.string),
        tf.py_function(lambda text: tf.strings.length(text), [tf.constant(["a", "bcd"])], tf.int32),
    ]
    dataset = tf.data.Dataset.range(3).map(lambda i: tf.py_function(lambda n: n.numpy() * 10, [i], tf.int64))
    rows = dataset.batch(3).make_one_shot_iterator().get_next()
    return [_run(tf, [found, rows]), [str(each.shape) for each in (found[0], found[2][1])]]


def case_layers_of_columns(tf):
    column = tf.feature_column
    words = column.categorical_column_with_vocabulary_list("word", ["a", "b", "c"])
    embedding = column.embedding_column(words, 2, initializer=tf.constant_initializer([[1.0, 2], [3, 4], [5, 6]]))
    layer = tf.keras.layers.DenseFeatures(
        [column.numeric_column("x", shape=2), column.indicator_column(words), embedding]
    )
    features = {"x": tf.constant([[1.0, 2.0], [3.0, 4.0]]), "word": tf.constant([["a"], ["c"]])}
    first, again = layer(features), layer({"x": features["x"] * 2.0, "word": features["word"]})
    return [_run(tf, [first, again]), str(first.shape), [each.name for each in tf.global_variables()]]


def case_layers_of_sequences(tf):
    column = tf.feature_column
    words = column.sequence_categorical_column_with_identity("word", 3)
    layer = tf.keras.experimental.SequenceFeatures(
        [column.embedding_column(words, 2, initializer=tf.constant_initializer([[1.0, 2], [3, 4], [5, 6]]))]
    )
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([2, 0, 1], tf.int64), [2, 2])
    numbers, lengths = layer({"word": ids})
    return [_run(tf, [numbers, lengths]), [each.name for each in tf.global_variables()]]


def case_weights_that_shrink(tf):
    first = tf.Variable([0.5, -0.2, 0.05, -3.0])
    second = tf.Variable([[1.0], [-0.1]])
    step = tf.train.sdca_shrink_l1([first, second], l1=0.2, l2=2.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(step), session.run([first, second])]


def case_how_functions_run(tf):
    tf.experimental.output_all_intermediates(True)
    with tf.experimental.function_executor_type("SINGLE_THREADED_EXECUTOR"):
        found = _run(tf, tf.cond(tf.constant(True), lambda: tf.constant(2.0) * 3.0, lambda: tf.constant(1.0)))
    tf.experimental.output_all_intermediates(None)
    return found


class _Answer:
    def __init__(self, value):
        self.value = value

    def execute(self):
        return self.value


class _Engine:
    """Answers as the service ``compute`` does, in two pages."""

    def instanceGroups(self):
        return self

    def instances(self):
        return self

    def listInstances(self, **asked):
        return _Answer({"items": [{"instance": "https://host/a/b"}, {"instance": "https://host/a/a"}]})

    def listInstances_next(self, previous_request, previous_response):
        if len(previous_response["items"]) == 1:
            return None
        return _Answer({"items": [{"instance": "https://host/c"}]})

    def list_next(self, previous_request, previous_response):
        return self.listInstances_next(previous_request, previous_response)

    def get(self, instance, **asked):
        return _Answer({"networkInterfaces": [{"networkIP": "10.0.0." + str(ord(instance) - 96)}]})


def case_compute_engine(tf):
    engine = _Engine()
    resolver = tf.distribute.cluster_resolver.GCEClusterResolver(
        "project", "zone", "group", 8470, task_type="worker", task_id=1, credentials=None, service=engine
    )
    return [
        tried(lambda: resolver.cluster_spec().as_dict()),
        tried(lambda: resolver.master()),
        tried(lambda: resolver.master("worker", 2)),
        [resolver.task_type, resolver.task_id, resolver.rpc_layer],
    ]


def case_lmdb(tf):
    import os

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "records.mdb")
    queue = tf.train.string_input_producer([path], num_epochs=1, shuffle=False)
    key, value = tf.LMDBReader().read(queue)
    length, end = tf.strings.length(value), tf.strings.substr(value, tf.strings.length(value) - 3, 3)
    found = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while True:
                found.append(session.run([key, length, end]))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return [len(found), found[:3], found[-3:], sum(int(each[1]) for each in found)]


def case_fingerprints_of_128_bits(tf):
    texts = ["x" * size for size in (0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 80, 143, 144, 145, 200, 271, 272, 500)]
    texts += ["a text with ä and more words", "abc"]
    found = tf.train.sdca_fprint(texts)
    empty = tf.train.sdca_fprint(tf.constant([], tf.string, shape=[0]))
    refused = [
        tried(lambda: tf.train.sdca_fprint("a"), "Shape must be rank 1"),
        tried(lambda: tf.train.sdca_fprint([1]))[0],
    ]
    unknown = str(tf.train.sdca_fprint(tf.placeholder(tf.string)).shape)
    return [_run(tf, [found, empty]), str(found.shape), found.op.type, refused, unknown]


def case_layers_of_their_own(tf):
    x = tf.ones([2, 3])
    with tf.layers.experimental.keras_style_scope():
        regularizer = lambda weights: 0.1 * tf.reduce_sum(weights**2)  # noqa: E731
        ones = tf.ones_initializer()
        first = tf.layers.Dense(2, kernel_regularizer=regularizer, kernel_initializer=ones)
        found = [first(x), first(x), tf.layers.Dense(2)(x)]
        with tf.variable_scope("s", regularizer=regularizer, initializer=tf.zeros_initializer()):
            found += [tf.layers.Dense(2)(x), tf.layers.Dense(2, name="given")(x), tf.layers.Dense(2, name="given")(x)]
        norm = tf.layers.BatchNormalization()
        found.append(norm(x, training=True))
        cells = [tf.nn.rnn_cell.BasicLSTMCell(3) for _ in range(2)]
        for cell in cells:
            cell(x, cell.zero_state(2, tf.float32))
        refused = [
            tried(lambda: tf.layers.dense(x, 2, name="other"), "scope argument not allowed when keras style", "other"),
            tried(lambda: tf.layers.Dense(2, _reuse=True), "reuse argument not allowed when keras style"),
            tried(lambda: first(x, scope="q"), "scope argument not allowed when keras style"),
        ]
    again = first(x)
    names = [variable.name for variable in tf.global_variables()]
    cell_names = [cell.name for cell in cells] + [len(cells[0].variables)]
    trained = [variable.name for variable in tf.trainable_variables()]
    counts = [len(tf.get_collection(key)) for key in ("update_ops", "regularization_losses")]
    counts += [len(norm.updates), len(first.losses)]
    outputs = [each.name for each in (*found, again)]
    return [names, cell_names, trained, counts, outputs, refused, _run(tf, [first(x), again, first.losses])]


def case_central_storage(tf):
    strategy = tf.distribute.experimental.CentralStorageStrategy()
    return strategy.num_replicas_in_sync
