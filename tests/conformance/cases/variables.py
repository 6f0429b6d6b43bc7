"""Variables: what building one adds to a graph, and what they do in a session."""

import numpy as np


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def graph(tf):
    """Every operation's name, type, inputs, device and colocation."""
    return [
        [op.name, op.type, [t.name for t in op.inputs], op.device, sorted(map(str, op.colocation_groups()))]
        for op in tf.get_default_graph().get_operations()
    ]


def of(variable):
    """What a variable says of itself."""
    return [
        variable.name,
        variable.op.name,
        variable.op.type,
        str(variable.shape),
        variable.dtype.name,
        variable.device,
        variable.initializer.name,
        variable.value().name,
        variable.initial_value.name,
        variable.trainable,
        repr(variable),
    ]


def case_from_a_value(tf):
    return [
        of(tf.Variable(0.0)),
        of(tf.Variable([1, 2], name="v")),
        of(tf.Variable(np.ones((2, 3)), name="v")),
        graph(tf),
    ]


def case_from_a_tensor(tf):
    return [of(tf.Variable(tf.constant(2.0) + 1.0, name="t")), graph(tf)[1:]]


def case_dtype(tf):
    return [of(tf.Variable([1, 2], dtype=tf.float64)), of(tf.Variable(1, dtype="int64"))]


def case_in_scopes(tf):
    with tf.name_scope("a"):
        first = tf.Variable(1.0, name="v")
        with tf.device("/cpu:1"):
            second = tf.Variable(1.0, name="v")
    return [of(first), of(second), of(tf.Variable(1.0, name="a/v")), graph(tf)]


def case_initial_value_within_control_dependencies(tf):
    done = tf.no_op(name="done")
    with tf.control_dependencies([done]):
        tf.Variable(lambda: tf.constant(1.0), name="v")
    return [[op.name, [c.name for c in op.control_inputs]] for op in tf.get_default_graph().get_operations()]


def case_caching_device(tf):
    with tf.device("/job:ps"):
        v = tf.Variable(1.0, name="v", caching_device="/job:worker")
    return [of(v), v.value().device]


def case_collections(tf):
    tf.Variable(1.0, name="a")
    tf.Variable(1.0, name="b", trainable=False)
    tf.Variable(1.0, name="c", collections=["x"])
    tf.Variable(1.0, name="d", collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    keys = ["variables", "trainable_variables", "x", "local_variables"]
    return [[v.name for v in tf.get_collection(key)] for key in keys]


def case_lists_by_scope(tf):
    for name in ["a/x", "a/y", "b/x"]:
        tf.Variable(1.0, name=name)
    return [[v.name for v in tf.global_variables(scope)] for scope in [None, "a", "a/x", "x", ".*x", ""]]


def case_no_initial_value(tf):
    return tf.Variable()


def case_initial_value_of_unknown_shape(tf):
    return tf.Variable(tf.placeholder(tf.float32, [None]))


def case_initial_value_of_unknown_shape_without_validation(tf):
    return of(tf.Variable(tf.placeholder(tf.float32, [None]), validate_shape=False))


def case_bad_collections(tf):
    return tf.Variable(1.0, collections="a")


def case_bad_constraint(tf):
    return tf.Variable(1.0, constraint=3)


def case_not_iterable(tf):
    return list(tf.Variable([1.0]))


def case_hash_and_equality(tf):
    a, b = tf.Variable(1.0), tf.Variable(1.0)
    return [a == a, a == b, a != b, len({a, b, a}), bool(a)]


def case_operators(tf):
    v = tf.Variable([4.0, 9.0], name="v")
    results = [
        v + 1,
        1 - v,
        v * v,
        v / 2,
        2**v,
        -v,
        abs(v),
        v < 5,
        v >= 5.0,
        v // 2.0,
        v % 3.0,
        v[1],
        v[:1],
        tf.sqrt(v),
    ]
    with tf.Session() as sess:
        sess.run(v.initializer)
        return [np.asarray(value).tolist() for value in sess.run(results)]


def case_gradient(tf):
    v = tf.Variable(3.0)
    grad = tf.gradients(v * v, [v])[0]
    with tf.Session() as sess:
        sess.run(v.initializer)
        return sess.run(grad)


def case_uninitialized(tf):
    v = tf.Variable(3.0)
    with tf.Session() as sess:
        sess.run(v)


def case_assign(tf):
    v = tf.Variable([1.0, 2.0])
    with tf.Session() as sess:
        sess.run(v.initializer)
        found = [sess.run(op) for op in [v.assign([3.0, 4.0]), v.assign_add([1.0, 1.0]), v.assign_sub([0.5, 2.0])]]
        found.append(sess.run(v.assign([7.0, 8.0], read_value=False)))
        found.append(v.eval())
        v.load([5.0, 6.0], sess)
        return [None if value is None else value.tolist() for value in [*found, sess.run(v)]]


def case_names_of_updates(tf):
    v = tf.Variable([1.0, 2.0], name="v")
    updates = [
        v.assign([1.0, 1.0]),
        tf.assign(v, [1.0, 1.0], name="set"),
        v.assign_add([1.0, 1.0]),
        tf.assign_sub(v, [1.0, 1.0]),
        tf.scatter_update(v, [0], [1.0]),
        tf.scatter_add(v, 0, 1.0),
        v.scatter_sub(tf.IndexedSlices([1.0], [0])),
        v.scatter_nd_update([[0]], [1.0]),
        tf.is_variable_initialized(v),
    ]
    return [[t.name, t.dtype.name, str(t.shape), t.device] for t in updates]


def case_assign_of_another_shape(tf):
    return tf.assign(tf.Variable([1.0, 2.0]), 1.0)


def case_assign_of_another_shape_without_validation(tf):
    v = tf.Variable([1.0, 2.0], validate_shape=False)
    with tf.Session() as sess:
        return sess.run(tf.assign(v, [[1.0]], validate_shape=False)).tolist()


def case_assign_of_another_type(tf):
    return tf.assign(tf.Variable(1.0), tf.constant(1))


def case_assign_to_a_tensor(tf):
    try:
        tf.assign(tf.constant(1.0), 2.0)
    except (AttributeError, TypeError):
        return "refused"


def case_order_by_control_dependencies(tf):
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign(2.0)]):
        after = v.read_value()
    with tf.control_dependencies([after]), tf.control_dependencies([v.assign_add(10.0)]):
        last = v.read_value()
    with tf.Session() as sess:
        sess.run(v.initializer)
        return [sess.run(after).tolist(), sess.run(last).tolist(), sess.run(v).tolist()]


def case_result_of_an_update_is_the_new_value(tf):
    v = tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        return [sess.run(v.assign_add(1.0) * 10.0).tolist() for _ in range(3)]


def scattered(tf, function, initial, indices, updates):
    v = tf.Variable(initial)
    with tf.Session() as sess:
        sess.run(v.initializer)
        return sess.run(getattr(tf, function)(v, indices, updates)).tolist()


def case_scatters(tf):
    matrix = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    functions = ["update", "add", "sub", "mul", "div", "min", "max"]
    return [
        [scattered(tf, "scatter_" + f, matrix, [2, 0], [[2.0, 3.0], [4.0, 5.0]]) for f in functions],
        [scattered(tf, "scatter_" + f, matrix, [[1], [1]], [[[2.0, 3.0]], [[4.0, 5.0]]]) for f in functions[1:]],
        [scattered(tf, "scatter_" + f, matrix, 1, 2.0) for f in functions],
        [scattered(tf, "scatter_" + f, [12, -7, 5], [0, 1, 0], [3, 2, 2]) for f in functions[1:]],
    ]


def case_scatter_nds(tf):
    functions = ["update", "add", "sub"]
    matrix = [[1.0, 2.0], [3.0, 4.0]]
    return [
        [scattered(tf, "scatter_nd_" + f, [1.0, 2.0, 3.0], [[2], [0]], [5.0, 7.0]) for f in functions],
        [scattered(tf, "scatter_nd_" + f, matrix, [[0, 1]], [9.0]) for f in functions],
        [scattered(tf, "scatter_nd_" + f, matrix, [[1]], [[9.0, 8.0]]) for f in functions],
        [scattered(tf, "scatter_nd_" + f, matrix, [[1], [1]], [[9.0, 8.0], [1.0, 1.0]]) for f in functions[1:]],
    ]


def case_scatter_of_wrong_shape(tf):
    return tf.scatter_add(tf.Variable([[1.0, 2.0]]), [0], [1.0, 2.0, 3.0])


def case_count_up_to(tf):
    v = tf.Variable(0)
    found = []
    count = v.count_up_to(3)
    with tf.Session() as sess:
        sess.run(v.initializer)
        while True:
            try:
                found.append(sess.run(count).tolist())
            except tf.errors.OutOfRangeError:
                return [*found, sess.run(v).tolist()]


def case_initialized_value(tf):
    v = tf.Variable(2.0)
    w = tf.Variable(v.initialized_value() * 3.0)
    with tf.Session() as sess:
        found = [sess.run(v.initialized_value())]
        sess.run(tf.global_variables_initializer())
        found.append(sess.run(w))
        sess.run(v.assign(5.0))
        found.append(sess.run(v.initialized_value()))
        sess.run(w.initializer)
        return [value.tolist() for value in [*found, sess.run(w)]]


def case_initial_value_from_another_variable(tf):
    v = tf.Variable(2.0)
    w = tf.Variable(v * 3.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([v, w])


def case_report_uninitialized(tf):
    a = tf.Variable(1.0, name="a")
    tf.Variable(1.0, name="b")
    tf.Variable(1.0, name="c", collections=["local_variables"], trainable=False)
    report, only = tf.report_uninitialized_variables(), tf.report_uninitialized_variables([a])
    none = tf.report_uninitialized_variables([])
    with tf.Session() as sess:
        found = [sess.run(t).tolist() for t in [report, only, none]]
        sess.run(a.initializer)
        return [*found, *(sess.run(t).tolist() for t in [report, only, tf.is_variable_initialized(a)])]


def case_assert_initialized(tf):
    tf.Variable(1.0)
    check = tf.assert_variables_initialized()
    with tf.Session() as sess:
        try:
            sess.run(check)
        except tf.errors.FailedPreconditionError:
            sess.run(tf.global_variables_initializer())
            sess.run(check)
            return "passes once initialised"


def case_initializers_of_lists(tf):
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    ops = [
        tf.variables_initializer([a]),
        tf.variables_initializer([], name="none"),
        tf.global_variables_initializer(),
        tf.local_variables_initializer(),
        tf.initialize_all_variables(),
    ]
    with tf.Session() as sess:
        for op in ops:
            sess.run(op)
        return [[op.name, op.type] for op in ops] + [sess.run(b).tolist()]


def case_fed(tf):
    v = tf.Variable(1.0)
    with tf.Session() as sess:
        return sess.run(v * 2.0, {v: 4.0})


def case_proto(tf):
    v = tf.Variable(1.0, name="s/v", trainable=False)
    proto = v.to_proto()
    again = tf.Variable.from_proto(proto)
    return [
        proto.variable_name,
        proto.initializer_name,
        proto.snapshot_name,
        proto.initial_value_name,
        proto.trainable,
        again.name,
        again.trainable,
        again.op is v.op,
        v.to_proto(export_scope="q") is None,
        v.to_proto(export_scope="s").variable_name,
    ]


def case_two_sessions_of_one_process_do_not_share(tf):
    v = tf.Variable(1.0)
    with tf.Session() as one, tf.Session() as two:
        one.run(v.initializer)
        return two.run(tf.report_uninitialized_variables()).tolist()
