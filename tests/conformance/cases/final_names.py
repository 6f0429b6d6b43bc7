"""Names that came last: layers on quantised integers, and what else few programs use."""


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call, *phrases):
    """What ``call`` gives, or the class of its error and which of ``phrases`` it says."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]


def _run(tf, *fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(fetches))


def _integers(tf, values, low, high, dtype=None):
    return tf.quantize(values, low, high, dtype or tf.quint8).output


def case_quantised_pools(tf):
    found = []
    x = _integers(tf, [[[[-1.0], [0.5], [1.25]], [[2.0], [3.0], [-0.25]]]], -1.0, 3.0)
    for pool in (tf.nn.quantized_avg_pool, tf.nn.quantized_max_pool):
        for size, strides, padding in (
            ([1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
            ([1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
            ([1, 1, 2, 1], [1, 1, 2, 1], "SAME"),
            ([1, 2, 3, 1], [1, 2, 2, 1], "SAME"),
        ):
            pooled = pool(x, -1.0, 3.0, size, strides, padding)
            found.append([list(pooled._fields), pooled[0].dtype.name, pooled[0].shape.as_list(), _run(tf, *pooled)])
        found.append(
            tried(lambda pool=pool: pool(x, -1.0, 3.0, [1, 3, 2, 1], [1, 1, 1, 1], "VALID"), "Negative dimension")
        )
        found.append(tried(lambda pool=pool: pool(x, -1.0, 3.0, [1, 3, 2, 1], [1, 1, 1, 1], "NONE")))
        with tf.Graph().as_default():
            signed = _integers(tf, [[[[-1.0]]]], -1.0, 3.0, tf.qint8)
            made = pool(signed, -1.0, 3.0, [1] * 4, [1] * 4, "SAME")
            found.append(tried(lambda made=made: _run(tf, *made), "No OpKernel was registered to support Op"))
    return found


def case_quantised_convolutions(tf):
    x = _integers(tf, [[[[-1.0], [0.5]], [[2.0], [3.0]]]], -1.0, 3.0)
    one = _integers(tf, [[[[1.0, -1.0]]]], -1.0, 1.0)
    four = _integers(tf, [[[[1.0]], [[-1.0]]], [[[1.0]], [[0.3]]]], -1.0, 1.0)
    found = []
    for filters, strides, padding in (
        (one, [1, 1, 1, 1], "VALID"),
        (four, [1, 1, 1, 1], "SAME"),
        (four, [1, 2, 2, 1], "SAME"),
        (four, [1, 1, 1, 1], "VALID"),
    ):
        made = tf.nn.quantized_conv2d(x, filters, -1.0, 3.0, -1.0, 1.0, strides, padding)
        found.append([list(made._fields), made.output.dtype.name, made.output.shape.as_list(), _run(tf, *made)])
    made = tf.nn.quantized_conv2d(x, one, -1.0, 3.0, 0.5, 1.0, [1] * 4, "SAME")
    found.append(_run(tf, *made))
    made = tf.nn.quantized_relu_x(x, 2.0, -1.0, 3.0)
    found.append([list(made._fields), made.activations.dtype.name, made.activations.shape.as_list()])
    return found


INPUTS = [[1.0, 2.0], [3.0, -1.0], [0.5, 0.25], [-2.0, 1.0]]


def _numbers(array):
    return [round(float(number), 4) for number in array.ravel()]


def _classifier(tf, np):
    def build(rate=0.1, last="softmax", loss="sparse_categorical_crossentropy", metrics=("accuracy",)):
        start = tf.keras.initializers.Constant(0.5)
        layers = [tf.keras.layers.Dense(3 if last == "softmax" else 1, last, kernel_initializer=start)]
        model = tf.keras.Sequential(layers)
        model.compile(tf.keras.optimizers.SGD(rate), loss=loss, metrics=list(metrics))
        return model

    return build


def case_scikit_learn_classifiers(tf):
    import numpy as np

    found, x = [], np.array(INPUTS, "float32")
    wrapper = tf.keras.wrappers.scikit_learn.KerasClassifier
    build = _classifier(tf, np)
    settings = {"epochs": 3, "batch_size": 4, "verbose": 0, "shuffle": False}
    for labels, more in (
        (np.array([5, 7, 9, 5]), {}),
        (np.array([[5], [7], [9], [5]]), {"rate": 0.5}),
        (np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]), {"loss": "categorical_crossentropy"}),
        (np.array([0, 2, 1, 0]), {"loss": "categorical_crossentropy"}),
        (np.array([2, 4, 4, 2]), {"last": "sigmoid", "loss": "binary_crossentropy"}),
    ):
        made = wrapper(build, **dict(settings, **more))
        history = made.fit(x, labels)
        found.append([_numbers(np.array(history.history["loss"])), made.classes_.tolist(), made.n_classes_])
        found.append([made.predict(x).tolist(), _numbers(made.predict_proba(x)), list(made.predict_proba(x).shape)])
        if labels.ndim == 1 and more.get("last") != "sigmoid":
            found.append(round(made.score(x, labels, verbose=0), 4))
    found.append(sorted(made.get_params()))
    made.set_params(rate=0.25, epochs=1)
    found.append([made.sk_params["rate"], made.filter_sk_params(build) == {"rate": 0.25, **more}])
    found.append(tried(lambda: made.set_params(nonsense=1), "nonsense is not a legal parameter"))
    found.append(tried(lambda: wrapper(build, nonsense=1), "nonsense is not a legal parameter"))
    found.append(tried(lambda: made.fit(x, np.zeros([2, 2, 2])), "Invalid shape for y: (2, 2, 2)"))
    without = wrapper(build, metrics=(), **settings)
    without.fit(x, np.array([0, 1, 2, 0]))
    found.append(
        tried(lambda: without.score(x, np.array([0, 1, 2, 0]), verbose=0), "not configured to compute accuracy")
    )
    return found


def case_scikit_learn_regressors(tf):
    import numpy as np

    def build(rate=0.01):
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile(tf.keras.optimizers.SGD(rate), loss="mse")
        return model

    class Own(tf.keras.wrappers.scikit_learn.KerasRegressor):
        def __call__(self, rate=0.1):
            return build(rate)

    x, y = np.array(INPUTS, "float32"), np.array([1.0, 2.0, 3.0, 4.0])
    found = []
    for made in (
        tf.keras.wrappers.scikit_learn.KerasRegressor(build, epochs=4, verbose=0, batch_size=4),
        tf.keras.wrappers.scikit_learn.KerasRegressor(build_fn=build, rate=0.05, verbose=0, batch_size=4),
        Own(epochs=2, verbose=0, batch_size=4),
    ):
        history = made.fit(x, y, shuffle=False)
        found.append(
            [_numbers(np.array(history.history["loss"])), _numbers(made.predict(x)), list(made.predict(x).shape)]
        )
        found.append(round(made.score(x, y), 3))
    return found


def case_kernels_turned_round(tf):
    import numpy as np

    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Conv2D(1, (2, 3)),
            layers.Conv2DTranspose(1, 2),
            layers.Reshape((-1, 1)),
            layers.Conv1D(1, 3),
            layers.Dense(2),
        ]
    )
    model.build((None, 6, 6, 1))
    shapes = [weights.shape for weights in tf.keras.backend.batch_get_value(model.weights)]
    for at, shape in enumerate(shapes):
        tf.keras.backend.set_value(model.weights[at], np.arange(np.prod(shape), dtype="float32").reshape(shape))
    tf.keras.utils.convert_all_kernels_in_model(model)
    return [weights.ravel().tolist() for weights in tf.keras.backend.batch_get_value(model.weights)]


def case_enqueued_generators(tf):
    def numbers(count):
        yield from range(count)
        if count == 2:
            raise KeyError("two")

    found = []
    for workers in (1, 2):
        enqueuer = tf.keras.utils.GeneratorEnqueuer(numbers(5))
        found.append(enqueuer.is_running())
        enqueuer.start(workers, max_queue_size=3)
        got = enqueuer.get()
        found += [enqueuer.is_running(), [next(got) for _ in range(5)]]
        enqueuer.stop()
        found.append(enqueuer.is_running())
    enqueuer = tf.keras.utils.GeneratorEnqueuer(numbers(4))
    enqueuer.start()
    found.append(list(enqueuer.get()))
    enqueuer.stop()
    enqueuer = tf.keras.utils.GeneratorEnqueuer(numbers(2))
    enqueuer.start()
    found.append(tried(lambda: list(enqueuer.get())))
    return found


def case_linear_and_deep_models(tf):
    import numpy as np

    keras, found = tf.keras, []
    x, y = np.array(INPUTS, "float32"), np.array([[1.0], [2.0], [3.0], [4.0]])
    start = keras.initializers.Constant(0.5)
    one = keras.experimental.LinearModel(kernel_initializer=start, bias_initializer="ones")
    one.compile(keras.optimizers.SGD(0.01), "mse")
    found.append(_numbers(np.array(one.fit(x, y, epochs=3, batch_size=4, shuffle=False, verbose=0).history["loss"])))
    found.append(
        [
            _numbers(one.predict(x)),
            sorted(map(list, (weights.shape for weights in tf.keras.backend.batch_get_value(one.weights)))),
        ]
    )
    two = keras.experimental.LinearModel(
        2, "relu", False, keras.initializers.Constant(-0.5), kernel_regularizer=keras.regularizers.l2(0.1)
    )
    two.compile(keras.optimizers.SGD(0.01), "mse")
    targets = np.concatenate([y, -y], 1)
    history = two.fit([x, x[:, :1]], targets, epochs=3, batch_size=4, shuffle=False, verbose=0).history["loss"]
    found.append([_numbers(np.array(history)), _numbers(two.predict([x, x[:, :1]]))])
    found.append([two.get_config()[name] for name in ("units", "use_bias")])
    for together in (True, False):
        linear = keras.experimental.LinearModel(kernel_initializer=start)
        deep = keras.Sequential([keras.layers.Dense(1, "tanh", kernel_initializer=start)])
        both = keras.experimental.WideDeepModel(linear, deep, activation="relu" if together else None)
        both.compile(keras.optimizers.SGD(0.05), "mse")
        given = x if together else [x, x[:, 1:]]
        history = both.fit(given, y, epochs=3, batch_size=4, shuffle=False, verbose=0).history["loss"]
        found.append([_numbers(np.array(history)), _numbers(both.predict(given))])
    return found


def case_bfloat16_scopes(tf):
    with tf.tpu.bfloat16_scope() as scope:
        a = tf.get_variable("a", [2], tf.bfloat16, initializer=tf.ones_initializer())
        b = tf.get_variable("b", initializer=[1.25, 2.0])
        with tf.variable_scope("inner"):
            c = tf.get_variable("c", [1], dtype=tf.bfloat16, initializer=tf.constant_initializer(0.3))
    kinds = [[variable.name, variable.dtype.base_dtype.name] for variable in tf.global_variables()]
    found = [kinds, [each.dtype.base_dtype.name for each in (a, b, c)], scope.name]
    found += [tf.tpu.core(0), tf.tpu.core(num=3)]
    return found + _run(tf, tf.cast(a, tf.float32), b, tf.cast(c, tf.float32))


def case_messages_of_the_profiler(tf):
    node = tf.profiler.GraphNodeProto(name="n", exec_micros=5, devices=["/cpu:0"])
    node.shapes.add().dim.add(size=3)
    node.input_shapes[1].dim.add(size=2)
    node.tensor_value.dtype = 1
    node.tensor_value.value_double.extend([1.5, 2.25])
    node.children.add(name="inner", total_parameters=7)
    several = tf.profiler.MultiGraphNodeProto(name="m", total_float_ops=9)
    several.graph_nodes.add(name="g")
    several.children.add(name="c", parameters=3)
    advice = tf.profiler.AdviceProto()
    advice.checkers["JobChecker"].reports.append("slow")
    log = tf.profiler.OpLogProto()
    log.log_entries.add(name="a", float_ops=4, types=["t"]).code_def.traces.add(lineno=3, file_id=1)
    log.id_to_string[1] = "file.py"
    return [[str(each), each.SerializeToString()] for each in (node, several, advice, log)]


def case_logs_of_operations(tf):
    import os
    import tempfile

    folder = tempfile.mkdtemp()
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = tf.get_variable("w", initializer=[[1.0] * 4] * 3)
    tf.get_variable("b", initializer=[1.0], trainable=False)
    tf.reduce_sum(tf.matmul(x, w, name="product") * 2.0, name="sum")

    def written(*more, **settings):
        tf.profiler.write_op_log(tf.get_default_graph(), folder, *more, **settings)
        with open(os.path.join(folder, "tfprof_log"), "rb") as file:
            return tf.profiler.OpLogProto.FromString(file.read())

    found = []
    plain = written(add_trace=False)
    found.append(sorted([entry.name, entry.float_ops, list(entry.types)] for entry in plain.log_entries))
    found.append([dict(plain.id_to_string)[0], len(plain.id_to_string)])
    own = tf.profiler.OpLogProto()
    own.log_entries.add(name="w", float_ops=7, types=["mine"])
    own.log_entries.add(name="x", types=["also mine"])
    both = written(own)
    entries = {entry.name: entry for entry in both.log_entries}
    found.append([[name, entries[name].float_ops, list(entries[name].types)] for name in ("w", "x", "product", "b")])
    strings = dict(both.id_to_string)
    first = entries["product"].code_def.traces[0]
    lines = [strings[trace.line_id] for trace in entries["product"].code_def.traces]
    made_here = [line for line in lines if 'name="product"' in line]
    found.append([made_here, os.path.basename(strings[first.file_id]).endswith(".py"), first.lineno > 0])
    found.append(sorted(entries) == sorted(op.name for op in tf.get_default_graph().get_operations()))
    found.append([entry.name for entry in own.log_entries])
    return found


def case_generators_of_random_numbers(tf):
    random = tf.random.experimental
    found = [
        random.create_rng_state(1234, 1),
        random.create_rng_state([5, 6], 1),
        random.create_rng_state(2**70 + 3, 1),
    ]
    draws = [
        ["normal", [5], {}],
        ["normal", [2, 3], {"mean": 3.0, "stddev": 2.0}],
        ["normal", [3], {"dtype": tf.float64}],
        ["uniform", [5], {}],
        ["uniform", [2, 3], {"minval": -1, "maxval": 5}],
        ["uniform", [3], {"dtype": tf.float64}],
        ["uniform", [7], {"minval": 0, "maxval": 10, "dtype": tf.int32}],
        ["uniform", [3], {"minval": -5, "maxval": 5, "dtype": tf.int64}],
        ["uniform", [], {}],
        ["uniform", [0], {}],
        ["uniform_full_int", [3], {}],
        ["uniform_full_int", [3], {"dtype": tf.int32}],
        ["uniform_full_int", [3], {"dtype": tf.int64}],
        ["uniform_full_int", [5], {"dtype": tf.uint32}],
        ["truncated_normal", [30], {}],
        ["truncated_normal", [6], {"dtype": tf.float64, "mean": 1.0}],
    ]
    generator = random.Generator.from_seed(1234)
    other = random.Generator.from_key_counter(5, [-1, 7], 1)
    copied = random.Generator(copy_from=other)
    third = random.Generator.from_state([-300, -1, 2**62], alg=1)
    made = [getattr(generator, name)(shape, **more) for name, shape, more in draws]
    seeds, key, more = generator.make_seeds(2), generator.key, [third.uniform([9]), other.uniform([3])]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found += session.run([generator.state, other.state, copied.state, third.state, key])
        for each in made:
            found.append([each.dtype.name, session.run(each), session.run(generator.state)])
        found += [session.run(made[0]), session.run(seeds)]
        for each in more:
            found.append(session.run(each))
        found += session.run([third.state, other.state, copied.state])
    found.append([variable.dtype.name for variable in tf.trainable_variables()])
    found.append([generator.algorithm, random.get_global_generator() is random.get_global_generator()])
    random.set_global_generator(other)
    found.append(random.get_global_generator() is other)
    return found


def case_generators_that_are_refused(tf):
    generator = tf.random.experimental.Generator
    one = generator.from_seed(1)

    def empty():
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return session.run(one.uniform([2], 5, 5, tf.int32))

    return [
        tried(lambda: generator.from_state([1, 2], 1), "Shapes (2,) and", "incompatible"),
        tried(lambda: one.uniform([2], dtype=tf.int32), "Must specify maxval for integer dtype tf.int32"),
        tried(lambda: generator()),
        tried(lambda: generator(copy_from=one, alg=1)),
        tried(lambda: generator.from_seed(1, 7), "Unsupported algorithm id: 7"),
        tried(lambda: one.normal([2], dtype=tf.int32)),
        tried(empty, "Need minval < maxval, got 5 >= 5"),
    ]


def case_strategies_for_good(tf):
    distribute = tf.distribute
    one, two = distribute.OneDeviceStrategy("/cpu:0"), distribute.OneDeviceStrategy("/cpu:0")
    found = [distribute.has_strategy()]
    for strategy in (one, two, two, None, None):
        distribute.experimental_set_strategy(strategy)
        found.append([distribute.has_strategy(), [distribute.get_strategy() is each for each in (one, two)]])
    with one.scope():
        found.append(tried(lambda: distribute.experimental_set_strategy(two), "Must not be called inside a"))
        found.append(distribute.get_strategy() is one)
    return [*found, distribute.has_strategy()]
