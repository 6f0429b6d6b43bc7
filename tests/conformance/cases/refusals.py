"""What kernels make of NaN, numbers out of range, gradients that are 0 and text, and what they refuse."""

NAN, INF = float("nan"), float("inf")


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def told(tf, make):
    """What ``make`` gives, or the class of its error."""
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            return session.run(make())
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            return type(error).__name__


def case_gradients_behind_a_mask(tf):
    def of(function, values, dtype):
        x = tf.constant(values, dtype)
        return tf.gradients(function(x), x, grad_ys=tf.constant([0.0, 1.0], dtype))[0]

    functions = (tf.sqrt, tf.rsqrt, tf.reciprocal, lambda x: tf.norm(x[:, None], axis=1), lambda x: tf.sqrt(tf.sqrt(x)))
    return [told(tf, lambda f=f, t=t: of(f, [0.0, 4.0], t)) for f in functions for t in (tf.float32, tf.float64)]


def case_gradients_of_single_numbers_behind_a_mask(tf):
    def of(function, mask):
        x = tf.placeholder_with_default(0.0, [])
        return tf.gradients(function(x) * tf.placeholder_with_default(mask, []), x)[0]

    functions = (tf.sqrt, tf.rsqrt, tf.reciprocal)
    return [str(told(tf, lambda f=f, mask=mask: of(f, mask))) for f in functions for mask in (0.0, 1.0)]


def case_extremes_and_nan(tf):
    found = []
    for row in ([1.0, NAN, 2.0], [NAN, 1.0], [NAN, NAN], [-INF, NAN], [INF, INF]):
        found += [
            told(tf, lambda function=function, row=row: function(tf.constant(row)))
            for function in (tf.reduce_max, tf.reduce_min, tf.argmax, tf.argmin)
        ]
    found.append(told(tf, lambda: tuple(tf.nn.top_k([1.0, NAN, 2.0], 3))))
    found += [
        told(tf, lambda side=side: tf.searchsorted([0.0, 1.0], [NAN, INF, -INF, 1.0], side=side))
        for side in ("left", "right")
    ]
    column = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("x"), [0.0, 10.0])
    numbers = [[NAN], [INF], [-INF], [10.0]]
    found.append(told(tf, lambda: tf.feature_column.input_layer({"x": tf.constant(numbers)}, [column])))
    return [str(item) for item in found]


def case_casts_of_floats(tf):
    numbers = [300.0, -1.5, 40000.0, -40000.0, 3e9, -3e9, 1e10, 9.3e18, 1.9e19, 1e30, NAN, INF, -INF]
    found = []
    for source in (tf.float16, tf.float32, tf.float64):
        for target in (tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64):
            given = tf.placeholder_with_default(tf.constant(numbers, source), [None])
            with tf.Session() as session:
                found.append(session.run(tf.cast(given, target)))
    return found


def case_regular_expressions(tf):
    patterns = [
        ("aa", "a*", "x"),
        ("baac", "a*", "x"),
        ("\u00e9b", "", "-"),
        ("\u00e9", ".", "D"),
        ("abc", "(b)", r"<\1>"),
        ("abc", "(b)", r"\2"),
        ("abc", "b", r"\q"),
        ("abc", "b", r"\\"),
        ("abc", "(", "x"),
        ("aa", "a(?=a)", "x"),
        (b"\xff\xfea", ".", "x"),
        ("aXb", r"\p{Lu}", "-"),
        ("a", "a{1001}", "x"),
        ("x", r"\z", "!"),
        ("x", r"\Z", "!"),
        ("abab", r"(ab)\1", "x"),
        ("\u00c9", "(?i)\u00e9", "x"),
    ]
    found = []
    for text, pattern, new in patterns:
        found.append(told(tf, lambda t=text, p=pattern, n=new: tf.regex_replace(t, p, n)))
        found.append(told(tf, lambda t=text, p=pattern, n=new: tf.regex_replace(t, p, n, replace_global=False)))
        found.append(told(tf, lambda t=text, p=pattern: tf.strings.regex_full_match(t, p)))
    return found


def case_numbers_in_text(tf):
    words = [
        "1_0",
        "0x1p3",
        "0x10",
        "+1",
        "-1",
        "inf",
        "Infinity",
        "NaN",
        "INF",
        "1e400",
        ".5",
        "5.",
        "e5",
        "1f",
        "1e",
        "9999999999",
        "+.5",
        "2147483648",
        "0x",
    ]
    words += ["", " 1", "1 ", "1\n"]
    types = (tf.float32, tf.float64, tf.int32, tf.int64)
    pairs = [(word, dtype) for word in words for dtype in types]
    return [str(told(tf, lambda w=w, t=t: tf.cast(tf.string_to_number(w, t), "float64"))) for w, t in pairs]


def case_text(tf):
    found = []
    found += [
        told(tf, lambda text=text: tf.decode_base64(text))
        for text in ["a+b/", "aGk", "aGk=", "a", "====", "aG k", "-_-_", "YQ==", "YQ=", "YQ===", "", "YQ=Q"]
    ]
    found += [
        told(tf, lambda arguments=arguments: tf.substr(*arguments))
        for arguments in [("hello", 1, -1), ("hello", -2, -1), ("hello", 6, 1), ("hello", 5, 1), ("", 1, 1)]
    ]
    found += [
        told(tf, lambda number=number: tf.as_string(number, width=12, fill="0")) for number in (1.5, NAN, INF, -2.0)
    ]
    found.append(told(tf, lambda: tf.as_string(5, precision=3)))
    found.append(told(tf, lambda: tf.strings.join([["a"], ["b", "c"]])))
    return found


def case_lines_of_values(tf):
    found = []
    lines = ["1,b\r\n", "1,a\nb", '1, "a"', "1,2\r", '1,"a""b"', '1,"a', '1,"a"b', '1,a"b', '1,"a\nb"', "1,", "\n1,a"]
    for line in [*lines, "", "1", '1,"a",', "1,a\n", '"1",a', "+1,a", "1,\r\n", '1,""']:
        for quoted in (True, False):
            arguments = {"use_quote_delim": quoted}
            found.append(told(tf, lambda line=line, a=arguments: tf.decode_csv([line], [[0], [""]], **a)))
    return found


def case_padding_that_is_too_large(tf):
    found = []
    for mode in ("REFLECT", "SYMMETRIC"):
        found += [
            told(tf, lambda mode=mode, size=size: tf.pad([[1, 2, 3]], [[0, 0], [size, 0]], mode)) for size in (2, 3, 4)
        ]
    return found


def case_results_of_python_functions(tf):
    functions = [
        (lambda: 1.5, tf.float32),
        (lambda: 1, tf.int32),
        (lambda: 1, tf.int64),
        (lambda: (1, 2), [tf.int64]),
        (lambda: [1, 2], [tf.int64, tf.int64]),
        (lambda: None, tf.float32),
        (lambda: [[1, 2]], tf.int64),
        (lambda: 1, []),
    ]
    return [told(tf, lambda f=f, t=t: tf.py_func(f, [], t)) for f, t in functions]


def case_metrics_of_logits(tf):
    found = []
    for metric, options in (
        (tf.metrics.auc, {}),
        (tf.metrics.precision_at_thresholds, {"thresholds": [0.5]}),
        (tf.metrics.recall_at_thresholds, {"thresholds": [0.5]}),
        (tf.metrics.true_positives_at_thresholds, {"thresholds": [0.5]}),
        (tf.metrics.sensitivity_at_specificity, {"specificity": 0.5}),
        (tf.metrics.specificity_at_sensitivity, {"sensitivity": 0.5}),
    ):
        for predictions in ([-3.0, 4.0], [0.0, 1.0]):
            with tf.Graph().as_default(), tf.Session() as session:
                _, update = metric(tf.constant([0.0, 1.0]), tf.constant(predictions), **options)
                session.run(tf.local_variables_initializer())
                try:
                    session.run(update)
                    found.append("taken")
                except tf.errors.InvalidArgumentError as error:
                    found.append(type(error).__name__)
    return found


def case_queues_by_a_tensor(tf):
    queues = [tf.FIFOQueue(3, tf.int32, [()]) for _ in range(2)]
    which = tf.placeholder(tf.int32, ())
    chosen = tf.QueueBase.from_list(which, queues).dequeue()
    with tf.Session() as session:
        session.run([queues[0].enqueue(1), queues[1].enqueue(2)])
        found = [int(session.run(chosen, {which: place})) for place in (1, 0)]
    try:
        tf.QueueBase.from_list(0, [tf.FIFOQueue(3, tf.int32), tf.FIFOQueue(3, tf.float32)])
    except TypeError as error:
        found.append(str(error))
    return found


def case_shared_resources_of_another_signature(tf):
    server = tf.train.Server.create_local_server()

    def table(keys, values):
        pairs = tf.contrib.lookup.KeyValueTensorInitializer(keys, values)
        return tf.contrib.lookup.HashTable(pairs, values[0], shared_name="t").init

    makers = {
        "queue": [
            lambda: tf.FIFOQueue(5, tf.int32, [()], shared_name="q").size(),
            lambda: tf.FIFOQueue(5, tf.float32, [()], shared_name="q").size(),
            lambda: tf.FIFOQueue(5, tf.int32, [[2]], shared_name="q").size(),
            lambda: tf.FIFOQueue(9, tf.int32, [()], shared_name="q").size(),
            lambda: tf.RandomShuffleQueue(5, 0, tf.int32, [()], shared_name="q").size(),
            lambda: tf.PaddingFIFOQueue(5, tf.int32, [()], shared_name="q").size(),
            lambda: tf.PriorityQueue(5, [tf.int32], [()], shared_name="q").size(),
        ],
        "table": [
            lambda: table(["a"], [1]),
            lambda: table(["a"], [1.0]),
            lambda: table([1], [1]),
        ],
    }
    found = []
    for name in sorted(makers):
        for make in makers[name] + makers[name][:1]:
            graph = tf.Graph()
            with graph.as_default():
                tensor = make()
            with tf.Session(server.target, graph=graph) as session:
                try:
                    session.run(tensor)
                    found.append("taken")
                except tf.errors.OpError as error:
                    found.append(type(error).__name__)
    return found


def case_shared_variables_of_another_signature(tf):
    server = tf.train.Server.create_local_server()

    def session_of(value):
        graph = tf.Graph()
        with graph.as_default():
            variable = tf.Variable(value, name="v")
            start = tf.global_variables_initializer()
        return tf.Session(server.target, graph=graph), variable, start

    first, variable, start = session_of([1.0, 2.0])
    first.run(start)
    found = []
    for value in ([1.0, 2.0, 3.0], [7, 8]):
        other, _, again = session_of(value)
        try:
            found.append(other.run(again))
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
        found.append(first.run(variable).tolist())
    return found


def case_sparse_features_of_two_keys(tf):
    feature = tf.SparseFeature(["i", "j"], "v", tf.float32, [4, 3])
    rows = []
    for i, j, v in (([2, 0], [1, 2], [5.0, 6.0]), ([], [], []), ([1], [2], [7.0])):
        example = tf.train.Example()
        example.features.feature["i"].int64_list.value.extend(i)
        example.features.feature["j"].int64_list.value.extend(j)
        example.features.feature["v"].float_list.value.extend(v)
        rows.append(example.SerializeToString())
    with tf.Session() as session:
        found = session.run(tf.parse_example(rows, {"s": feature}))["s"]
    return [found.indices.tolist(), found.values.tolist(), found.dense_shape.tolist()]
