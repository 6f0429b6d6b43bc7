"""Arguments and files at the edges: old checkpoints, impossible numbers of calls, arrays of tensors out of range."""

import os
import tempfile

OLD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "tf1", "old-?????-of-00002")


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call, *phrases):
    """What ``call`` gives, or the class of its error and which of ``phrases`` it says."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]


def case_old_checkpoints_are_restored(tf):
    names = ["a", "b", "bool", "uint8", "int64", "float16", "float64", "empty"]
    shapes = [[3], [2], [3], [3], [3], [3], [3], [0, 3]]
    types = [tf.float32, tf.string, tf.bool, tf.uint8, tf.int64, tf.float16, tf.float64, tf.float32]
    variables = []
    for name, shape, dtype in zip(names, shapes, types):  # noqa: B905 - Python 3.7 has no strict
        variables.append(tf.Variable(tf.zeros(shape, dtype), name=name))
    with tf.variable_scope("rows", partitioner=tf.fixed_size_partitioner(2)):
        rows = tf.get_variable("part", [10, 2])
    with tf.Session() as session:
        tf.train.Saver().restore(session, OLD)
        found = [value.tolist() for value in session.run([*variables, tf.convert_to_tensor(rows)])]
    start = tf.get_variable("start", [3])
    tf.train.init_from_checkpoint(OLD, {"a": start})
    with tf.Session() as session:
        session.run(start.initializer)
        found.append(session.run(start).tolist())
    found.append([[name, list(shape)] for name, shape in tf.train.list_variables(OLD)])
    reader = tf.train.NewCheckpointReader(OLD)
    found.append([reader.has_tensor("a"), reader.has_tensor("z"), reader.get_tensor("float64").tolist()])
    found.append(reader.get_variable_to_dtype_map()["int64"].name)
    found.append([tf.train.checkpoint_exists(OLD), tried(lambda: reader.get_tensor("z"))])
    return found


def case_text_beside_numbers(tf):
    words, number = tf.Variable(["a", "b"]), tf.Variable(2.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = [session.run([words, number + 1.0]), session.run([tf.identity(words), number * number])]
        return [[each[0].tolist(), float(each[1])] for each in found]


def first(tf, dataset):
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        return session.run(element).tolist()


def case_numbers_of_datasets_that_cannot_be(tf):
    numbers = tf.data.Dataset.range(4)
    child = tf.data.Dataset.from_tensors
    experimental = tf.data.experimental
    made = {
        "calls of interleave": [lambda n=n: numbers.interleave(child, 2, num_parallel_calls=n) for n in (0, -3, 1, 2)],
        "more calls than datasets": [lambda: numbers.interleave(child, 2, num_parallel_calls=9)],
        "calls by themselves": [lambda: numbers.interleave(child, 1, num_parallel_calls=experimental.AUTOTUNE)],
        "cycle": [lambda n=n: numbers.interleave(child, n) for n in (0, -2, 1, experimental.AUTOTUNE)],
        "block": [lambda n=n: numbers.interleave(child, 2, n) for n in (0, -1)],
        "calls of map": [lambda n=n: numbers.map(lambda x: x, num_parallel_calls=n) for n in (0, -2, -1, 1)],
        "half a call": [
            lambda: numbers.map(lambda x: x, num_parallel_calls=1.5),
            lambda: numbers.interleave(child, 2, num_parallel_calls=1.5),
        ],
        "map_and_batch": [
            lambda k=k: numbers.apply(experimental.map_and_batch(lambda x: x, 2, **k))
            for k in (
                {"num_parallel_calls": 0},
                {"num_parallel_batches": 0},
                {"num_parallel_batches": 2},
                {"num_parallel_batches": 2, "num_parallel_calls": 2},
            )
        ],
        "parallel_interleave": [
            lambda k=k: numbers.apply(experimental.parallel_interleave(child, 2, **k))
            for k in (
                {"block_length": 0},
                {"buffer_output_elements": 0},
                {"buffer_output_elements": 1},
                {"prefetch_input_elements": -1},
                {"prefetch_input_elements": 0},
            )
        ],
        "prefetch": [lambda n=n: numbers.prefetch(n) for n in (-2, -1, 0)],
    }
    return {name: [tried(lambda m=m: first(tf, m())) for m in every] for name, every in made.items()}


def case_arrays_of_tensors_out_of_range(tf):
    start = tf.TensorArray(tf.float32, 2)
    tensors = [start.write(-1, 1.0).stack(), start.write(5, 1.0).stack()]
    grown = tf.TensorArray(tf.float32, 1, dynamic_size=True)
    tensors += [grown.write(3, 1.0).size(), grown.write(-1, 1.0).size()]
    with tf.Session() as session:
        found = [tried(lambda t=t: session.run(t).tolist()) for t in tensors]
        return [*found, tried(lambda: session.run(tf.TensorArray(tf.float32, 2).read(0)).tolist())]


def case_collections_and_imports_of_meta_graphs(tf):
    with tf.Graph().as_default():
        v = tf.get_variable("v", [2])
        tf.add_to_collection("mine", v)
        tf.placeholder(tf.float32, [2], name="p")
        meta = tf.train.export_meta_graph()
    zeros = tf.zeros([2])
    tf.train.import_meta_graph(meta, import_scope="q", input_map={"p:0": zeros})
    (mine,) = tf.get_collection("mine")
    return [mine.name, [each.name for each in tf.global_variables()]]


def case_warm_starts_name_what_is_there(tf):
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("words", initializer=[[1.0], [2.0]])
        session.run(tf.global_variables_initializer())
        model = tf.train.Saver().save(session, os.path.join(folder, "model"))
    tf.get_variable("words", [2, 1])
    words = tf.train.VocabInfo("new", 2, 0, "old")
    return [
        tried(lambda: tf.train.warm_start(model, 3)),
        tried(lambda: tf.train.warm_start(model, "words", {"other": words}), "other", "not used"),
        tried(lambda: tf.train.warm_start(model, "words", None, {"other": "words"}), "other", "not used"),
    ]


def case_gradients_that_are_prevented(tf):
    x = tf.constant(1.0)
    y = tf.raw_ops.PreventGradient(input=x * 2.0, message="no way")
    with tf.Session() as session:
        return [float(session.run(y)), tried(lambda: tf.gradients(y, x), "explicitly disabled", "no way")]


def case_contrib_learn_classifiers(tf):
    """What two steps make of linear models, by default rates and by SGD, with weights of examples, and their loss."""
    learn, layers = tf.contrib.learn, tf.contrib.layers
    columns = [layers.real_valued_column("x")]

    def data(labels):
        x, weight = tf.constant([[1.0], [2.0], [3.0], [4.0]]), tf.constant([[1.0], [2.0], [0.0], [3.0]])
        return {"x": x, "weight": weight}, tf.constant(labels)

    def trained(make, labels):
        model = make(tempfile.mkdtemp())
        model.fit(input_fn=lambda: data(labels), steps=2)
        names = [name for name in model.get_variable_names() if "Ftrl" not in name and "bias" in name]
        evaluated = model.evaluate(input_fn=lambda: data(labels), steps=1)
        return [model.get_variable_value(names[0]).tolist(), float(evaluated["loss"])]

    two, three = [[0], [0], [1], [1]], [[0], [2], [1], [1]]
    sgd = tf.train.GradientDescentOptimizer
    return [
        trained(lambda at: learn.LinearClassifier(columns, at), two),
        trained(lambda at: learn.LinearClassifier(columns, at, optimizer=sgd(0.1)), two),
        trained(lambda at: learn.LinearClassifier(columns, at, 3, "weight", sgd(0.1)), three),
        trained(
            lambda at: learn.DNNLinearCombinedClassifier(
                at, linear_feature_columns=columns, fix_global_step_increment_bug=True
            ),
            two,
        ),
    ]
