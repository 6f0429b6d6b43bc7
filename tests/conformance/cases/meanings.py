"""What programs meet at the edges: slices of variables, sparse tensors in branches and loops, numbers out of range."""

import collections

import numpy as np

Pair = collections.namedtuple("Pair", "first second")


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def run(tf, fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def caught(tf, fetches, feeds=None):
    """The value, or the class of the error of the run."""
    try:
        return run(tf, fetches, feeds)
    except tf.errors.OpError as error:
        return "run: " + type(error).__name__


def computed(tf, *values):
    """Values that only the step knows."""
    found = [tf.Variable(value) for value in values]
    return [v + 0 for v in found]


def refused(build):
    """The class of the error that building gives, or "builds"."""
    try:
        build()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__
    return "builds"


# Slices of variables --------------------------------------------------------------------------------------------


def changed(tf, start, *changes):
    """What each of ``changes`` gives, and leaves, each after the other."""
    v = tf.Variable(start)
    ops = [change(v) for change in changes]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [[session.run(op), session.run(v)] for op in ops]


def case_slice_assign(tf):
    return changed(tf, [1.0, 2.0, 3.0, 4.0], lambda v: v[1:3].assign([7.0, 8.0]))


def case_slice_assign_one(tf):
    return changed(
        tf, [1, 2, 3, 4], lambda v: v[1].assign(9), lambda v: v[-1].assign(5), lambda v: v[2:].assign([0, 0])
    )


def case_slice_assign_rows_and_columns(tf):
    return changed(
        tf,
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        lambda v: v[:, 1].assign([0.0, 9.0]),
        lambda v: v[0].assign([7.0, 8.0, 9.0]),
        lambda v: v[1, ::2].assign([1.5, 2.5]),
        lambda v: v[..., 2:].assign([[0.0], [1.0]]),
        lambda v: v[:, tf.newaxis, 0].assign([[5.0], [6.0]]),
    )


def case_slice_assign_backwards(tf):
    return changed(tf, [1, 2, 3, 4], lambda v: v[::-1].assign([5, 6, 7, 8]), lambda v: v[3:1:-1].assign([0, 1]))


def case_slice_assign_computed(tf):
    i = tf.placeholder(tf.int32, [])
    v = tf.Variable([1.0, 2.0, 3.0, 4.0])
    op = v[i : i + 2].assign([8.0, 9.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(op, {i: 0}), session.run(op, {i: 2}), session.run(v)]


def case_slice_assign_operation(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    op = v[:2].assign([5.0, 6.0], name="mine")
    return [op.op.type, op.op.name, str(op.dtype), op.shape.as_list(), v[:2].op.type]


def case_slice_assign_of_another_shape(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    return [caught(tf, v[:2].assign([5.0, 6.0, 7.0])), refused(lambda: v[:2].assign(["a", "b"]))]


def case_slice_assign_spreads(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    return caught(tf, v[:2].assign(5.0))


def case_slice_of_a_tensor_has_no_assign(tf):
    x = tf.constant([1.0, 2.0])
    return [refused(lambda: x[:1].assign([3.0])), refused(lambda: tf.assign(x[:1], [3.0]))]


def case_slice_of_a_resource_variable(tf):
    v = tf.get_variable("r", initializer=[1.0, 2.0, 3.0], use_resource=True)
    op = v[1:].assign([8.0, 9.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(op), session.run(v)]


def case_slice_assign_in_order(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    first = v[0].assign(5.0)
    with tf.control_dependencies([first]):
        then = v[1].assign(v.read_value()[0] * 2.0)
    return run(tf, then)


def case_strided_slice_with_a_variable(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    return run(tf, tf.strided_slice(v, [0], [2], [1], var=v, name="part").assign([0.5, 0.25]))


# Branches and loops of structures -------------------------------------------------------------------------------


def sparse(tf, values=(1.0, 2.0)):
    return tf.SparseTensor([[0, 0], [1, 2]], tf.constant(list(values)), [2, 3])


def case_cond_of_sparse(tf):
    p = tf.placeholder(tf.bool, [])
    s = sparse(tf)
    got = tf.cond(p, lambda: s, lambda: tf.SparseTensor([[1, 1]], [5.0], [2, 3]))
    return [
        type(got).__name__,
        got.values.dtype.name,
        run(tf, tf.sparse_tensor_to_dense(got), {p: True}),
        run(tf, tf.sparse_tensor_to_dense(got), {p: False}),
    ]


def case_cond_of_slices(tf):
    p = tf.placeholder(tf.bool, [])
    x = tf.constant([[1.0], [2.0]])

    def slices(row):
        return tf.IndexedSlices(x[:1] * 2.0, tf.constant([row]), tf.constant([2, 1]))

    got = tf.cond(p, lambda: slices(0), lambda: slices(1))
    return [
        type(got).__name__,
        run(tf, tf.convert_to_tensor(got), {p: True}),
        run(tf, [got.values, got.indices], {p: False}),
    ]


def case_cond_of_structures(tf):
    p = tf.placeholder(tf.bool, [])
    got = tf.cond(
        p,
        lambda: {"a": sparse(tf), "b": Pair(tf.constant(1), [tf.constant(2.0), sparse(tf, (3.0, 4.0))])},
        lambda: {"a": sparse(tf, (9.0, 9.0)), "b": Pair(tf.constant(7), [tf.constant(8.0), sparse(tf)])},
    )
    dense = [tf.sparse_tensor_to_dense(got["a"]), got["b"].first, got["b"].second[0], got["b"].second[1].values]
    return [sorted(got), type(got["b"]).__name__, run(tf, dense, {p: True}), run(tf, dense, {p: False})]


def case_cond_of_sparse_and_dense(tf):
    p = tf.placeholder(tf.bool, [])
    return refused(lambda: tf.cond(p, lambda: sparse(tf), lambda: tf.constant(1.0)))


def case_cond_gradient_through_sparse(tf):
    p = tf.placeholder(tf.bool, [])
    x = tf.constant([2.0, 3.0])
    got = tf.cond(
        p,
        lambda: tf.SparseTensor([[0, 0], [1, 2]], x * x, [2, 3]),
        lambda: tf.SparseTensor([[0, 0], [1, 2]], x * 3.0, [2, 3]),
    )
    grad = tf.gradients(tf.reduce_sum(got.values), x)[0]
    return [run(tf, grad, {p: True}), run(tf, grad, {p: False})]


def case_cond_gradient_of_lookup(tf):
    p = tf.placeholder(tf.bool, [])
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    y = tf.cond(p, lambda: tf.reduce_sum(tf.gather(table, [0, 2])), lambda: tf.reduce_sum(table) * 2.0)
    grad = tf.convert_to_tensor(tf.gradients(y, table)[0])
    return [run(tf, grad, {p: True}), run(tf, grad, {p: False})]


def case_loop_of_sparse(tf):
    s = sparse(tf)
    got = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * 2.0), [0, s])
    return [type(got[1]).__name__, run(tf, [got[0], tf.sparse_tensor_to_dense(got[1])])]


def case_loop_of_growing_sparse(tf):
    s = tf.SparseTensor([[0]], [1.0], [10])

    def body(i, s):
        more = tf.SparseTensor(
            tf.concat([s.indices, [[tf.cast(i + 1, tf.int64)]]], 0), tf.concat([s.values, [2.0]], 0), s.dense_shape
        )
        return i + 1, more

    got = tf.while_loop(lambda i, s: i < 3, body, [0, s], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
    return run(tf, [got[1].values, got[1].indices])


def case_loop_of_slices(tf):
    x = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 2]), tf.constant([3, 1]))
    got = tf.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, tf.IndexedSlices(s.values * 2.0, s.indices, s.dense_shape)), [0, x]
    )
    return [type(got[1]).__name__, run(tf, tf.convert_to_tensor(got[1]))]


def case_loop_of_structures(tf):
    start = [tf.constant(0), {"a": sparse(tf), "b": Pair(tf.constant(1.0), (tf.constant(2.0),))}]

    def body(i, d):
        return [i + 1, {"a": d["a"] * 2.0, "b": Pair(d["b"].first + 1.0, (d["b"].second[0] * d["b"].first,))}]

    got = tf.while_loop(lambda i, d: i < 3, body, start)
    return run(tf, [got[0], got[1]["a"].values, got[1]["b"].first, got[1]["b"].second[0]])


def case_loop_that_gives_another_kind(tf):
    return refused(lambda: tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s.values), [0, sparse(tf)]))


def case_loop_of_sparse_gradient(tf):
    x = tf.constant([2.0, 3.0])
    s = tf.SparseTensor([[0, 0], [1, 2]], x, [2, 3])
    got = tf.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, tf.SparseTensor(s.indices, s.values * s.values, s.dense_shape)), [0, s]
    )
    return run(tf, tf.gradients(got[1].values, x)[0])


def turns(tf, start, change, count=4, holds=None, **more):
    """What a variable is after a loop that changes it in each turn."""
    v = tf.Variable(start, **more)

    def body(i):
        with tf.control_dependencies([change(v)]):
            return i + 1

    loop = tf.while_loop((lambda i: i < count) if holds is None else (lambda i: holds(v)), body, [0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(loop), session.run(v)]


def case_loop_that_squares_a_variable(tf):
    return turns(tf, 2.0, lambda v: v.assign(v * v))


def case_loop_that_doubles_a_resource(tf):
    return turns(tf, 1.0, lambda v: v.assign(v + v), use_resource=True)


def case_loop_until_a_variable(tf):
    return turns(tf, 0.0, lambda v: v.assign_add(1.0), holds=lambda v: v < 5.0)


def case_loop_whose_condition_squares_a_variable(tf):
    v = tf.Variable(2.0)

    def cond(i):
        with tf.control_dependencies([v.assign(v * v)]):
            return tf.less(tf.identity(i), 4)

    loop = tf.while_loop(cond, lambda i: i + 1, [0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(loop), session.run(v)]


def case_loop_of_a_value_from_before(tf):
    def change(v):
        return v.assign(before[0] + v)

    before = []
    v = tf.Variable(1.0)
    before.append(v * 3.0)

    def body(i):
        with tf.control_dependencies([change(v)]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 4, body, [0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(loop), session.run(v)]


def case_loop_in_a_loop_changes_a_variable(tf):
    def change(v):
        def inner(j):
            with tf.control_dependencies([v.assign(v + v)]):
                return j + 1

        return tf.while_loop(lambda j: j < 2, inner, [0])

    return turns(tf, 1.0, change, count=3)


def case_branch_in_a_loop_changes_a_variable(tf):
    def change(v):
        return tf.cond(v < 4.0, lambda: tf.identity(v.assign(v + v)), lambda: tf.identity(v.assign(v + 1.0)))

    return turns(tf, 1.0, change, count=5, use_resource=True)


def case_loop_scatters(tf):
    return turns(tf, [1.0, 2.0], lambda v: tf.scatter_update(v, [0], [tf.gather(v, 0) * 2.0]))


def case_loop_scatters_otherwise(tf):
    return [
        turns(tf, [[1.0, 2.0], [3.0, 4.0]], change)
        for change in (
            lambda v: tf.scatter_add(v, [1, 1], [[1.0, 1.0], [1.0, 0.0]]),
            lambda v: tf.scatter_sub(v, 0, [1.0, 1.0]),
            lambda v: tf.scatter_mul(v, [0], [[2.0, 1.0]]),
            lambda v: tf.scatter_div(v, [0], [[2.0, 1.0]]),
            lambda v: tf.scatter_min(v, [0], [[0.5, 1.0]]),
            lambda v: tf.scatter_max(v, [0], [[0.5, 9.0]]),
            lambda v: tf.scatter_nd_update(v, [[0, 1]], [7.0]),
            lambda v: tf.scatter_nd_add(v, [[0, 1], [1, 0]], [7.0, 1.0]),
            lambda v: tf.scatter_nd_sub(v, [[0, 1]], [7.0]),
            lambda v: v[0, 1:].assign([9.0]),
            lambda v: v.assign_sub(v * 0.5),
        )
    ]


def case_loop_trains(tf):
    def descend(optimizer):
        def change(v):
            return optimizer.apply_gradients([(v * 2.0, v)])

        return turns(tf, [1.0, 2.0], change)[1]

    def descend_rows(optimizer):
        def change(v):
            return optimizer.apply_gradients([(tf.IndexedSlices(tf.gather(v, [1, 1]), tf.constant([1, 1])), v)])

        return turns(tf, [[1.0], [2.0], [3.0]], change)[1]

    made = (
        lambda: tf.train.GradientDescentOptimizer(0.1),
        lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        lambda: tf.train.AdagradOptimizer(0.1),
        lambda: tf.train.RMSPropOptimizer(0.1),
        lambda: tf.train.FtrlOptimizer(0.1),
    )
    return [[run_in(make()) for make in made] for run_in in (descend, descend_rows)]


def case_scans_that_change_variables(tf):
    v, w = tf.Variable(1.0), tf.Variable(1.0)

    def step(x):
        with tf.control_dependencies([v.assign(v * 2.0)]):
            return x + 0.0

    def sum_up(total, x):
        with tf.control_dependencies([w.assign(w * 2.0 + x)]):
            return total + x

    numbers = tf.constant([1.0, 2.0, 3.0])
    same = tf.map_fn(step, numbers, parallel_iterations=1)
    sums = tf.scan(sum_up, numbers, initializer=0.0, parallel_iterations=1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(each) for each in (same, v, sums, w)]


def case_map_fn_of_sparse(tf):
    return refused(lambda: tf.map_fn(lambda s: s, sparse(tf)))


def case_concat_in_a_loop_gradient(tf):
    x = tf.constant([1.0, 2.0])
    y = tf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, tf.concat([y, y[:1] * x[1:]], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )[1]
    return run(tf, [y, tf.gradients(y, x)[0]])


def case_gradients_of_growing_loops(tf):
    x, w = tf.constant([[1.0, 2.0]]), tf.constant(3.0)
    y = tf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, tf.concat([y * w, x], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )[1]
    return run(tf, [y, *tf.gradients(y, [x, w])])


def case_stack_in_a_loop_gradient(tf):
    x = tf.constant([1.0, 2.0])
    y = tf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, tf.concat([y[1:], tf.reshape(tf.reduce_sum(y * y), [1])], 0)),
        [0, x],
    )[1]
    return run(tf, [y, tf.gradients(y, x)[0]])


def case_arithmetic_of_sparse(tf):
    s = sparse(tf)
    made = [s * 2.0, s * [1.0, 2.0, 3.0], s / 2.0, s / tf.constant([[1.0, 2.0, 4.0]])]
    made += [f(s) for f in (tf.abs, tf.negative, tf.sqrt, tf.square, tf.sign, tf.tanh, tf.erf)]
    made += [tf.shape(s), tf.size(s), tf.rank(s), tf.shape(s, out_type=tf.int64)]
    return [[type(x).__name__, x.dtype.name, run(tf, x)] for x in made] + [
        refused(lambda: 2.0 * s),
        refused(lambda: -s),
    ]


# SparseTensorValue as an argument -------------------------------------------------------------------------------


def value(tf):
    return tf.SparseTensorValue(
        np.array([[0, 0], [1, 2]], np.int64), np.array([1.0, 2.0], np.float32), np.array([2, 3], np.int64)
    )


def case_sparse_value_to_dense(tf):
    return run(tf, tf.sparse_tensor_to_dense(value(tf)))


def case_sparse_value_functions(tf):
    v = value(tf)
    return [
        run(tf, tf.sparse_reduce_sum(v, 1)),
        run(tf, tf.sparse_tensor_dense_matmul(v, tf.ones([3, 1]))),
        run(tf, tf.sparse_add(v, v)),
        run(tf, tf.sparse_add(v, tf.ones([2, 3]))),
        run(tf, tf.sparse_reorder(v)),
        run(tf, tf.sparse_reshape(v, [3, 2])),
        run(tf, tf.sparse_transpose(v)),
        run(tf, tf.sparse_concat(0, [v, v])),
        run(tf, tf.sparse_slice(v, [0, 0], [1, 3])),
        run(tf, tf.sparse_retain(v, [True, False])),
        run(tf, tf.sparse_fill_empty_rows(v, 0.0)[0]),
        run(tf, tf.sparse_softmax(v)),
        run(tf, tf.sparse_reset_shape(v)),
        run(tf, tf.sparse_maximum(v, v)),
        run(tf, tf.sparse_split(sp_input=v, num_split=2, axis=0)),
        [run(tf, f(v)) for f in (tf.shape, tf.size, tf.rank)],
    ]


def case_sparse_value_convert(tf):
    s = tf.convert_to_tensor_or_sparse_tensor(value(tf))
    return [type(s).__name__, s.values.dtype.name, s.indices.dtype.name, s.shape.as_list(), run(tf, s)]


def case_sparse_value_from_value(tf):
    s = tf.SparseTensor.from_value(value(tf))
    return run(tf, s)


def case_sparse_value_fed(tf):
    p = tf.sparse_placeholder(tf.float32)
    s = value(tf)
    return [
        run(tf, tf.sparse_tensor_to_dense(p), {p: s}),
        run(tf, tf.sparse_tensor_to_dense(p), {p: tuple(s)}),
        run(tf, p, {p: (np.array(s.indices), np.array(s.values), np.array(s.dense_shape))}),
    ]


def case_sparse_value_in_lookup(tf):
    ids = tf.SparseTensorValue([[0, 0], [1, 0]], np.array([1, 0], np.int64), [2, 2])
    weights = tf.SparseTensorValue([[0, 0], [1, 0]], np.array([2.0, 3.0], np.float32), [2, 2])
    table = tf.constant([[1.0], [2.0]])
    return [
        caught(tf, tf.nn.embedding_lookup_sparse(table, tf.SparseTensor.from_value(ids), None, combiner="sum")),
        refused(lambda: tf.nn.embedding_lookup_sparse(table, ids, weights, combiner="sum")),
    ]


def metric(tf, made):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return [session.run(made[1]), session.run(made[0])]


def case_sparse_value_as_labels(tf):
    labels = tf.SparseTensorValue(np.array([[0, 0], [1, 0]], np.int64), np.array([1, 2], np.int64), [2, 1])
    predictions = tf.constant([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]])
    return [
        metric(tf, tf.metrics.recall_at_k(labels, predictions, 1)),
        metric(tf, tf.metrics.precision_at_k(labels, predictions, 2)),
        metric(tf, tf.metrics.average_precision_at_k(labels, predictions, 2)),
    ]


def case_average_precision(tf):
    predictions = tf.constant([[0.1, 0.4, 0.3, 0.2], [0.4, 0.3, 0.1, 0.2], [0.1, 0.2, 0.3, 0.4]])
    dense = np.array([[1, 3], [2, 2], [0, 1]], np.int64)
    some = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([2, 1, 7], tf.int64), [3, 2])
    found = [
        metric(tf, tf.metrics.average_precision_at_k(labels, predictions, k))
        for labels in (dense, some)
        for k in (1, 2, 4)
    ]
    found.append(metric(tf, tf.metrics.average_precision_at_k(dense[:, 0], predictions, 3, weights=[1.0, 0.0, 2.0])))
    return [*found, refused(lambda: tf.metrics.average_precision_at_k(dense, predictions, 0))]


def case_sparse_value_of_sets(tf):
    a = tf.SparseTensorValue([[0, 0], [0, 1]], [1, 2], [1, 2])
    return refused(lambda: tf.sets.size(a))


def case_sparse_value_edit_distance(tf):
    a = tf.SparseTensorValue([[0, 0], [0, 1]], np.array([1, 2], np.int64), [1, 2])
    b = tf.SparseTensorValue([[0, 0], [0, 1]], np.array([1, 3], np.int64), [1, 2])
    return [
        refused(lambda: tf.edit_distance(a, b)),
        caught(tf, tf.edit_distance(tf.SparseTensor.from_value(a), tf.SparseTensor.from_value(b))),
    ]


# Gather ---------------------------------------------------------------------------------------------------------

TABLE = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


def case_gather_negative_axes(tf):
    return [run(tf, tf.gather(TABLE, [0, 1], axis=axis)) for axis in (-1, -2, -3, 0, 1, 2)]


def case_gather_batch_dims(tf):
    return [
        run(tf, tf.gather(TABLE, [[0, 1], [2, 1]], batch_dims=1)),
        run(tf, tf.gather(TABLE, [[0, 1], [2, 1]], batch_dims=1, axis=1)),
        run(tf, tf.gather(TABLE, [[0, 3], [2, 1]], batch_dims=1, axis=2)),
        run(tf, tf.gather(TABLE, [[0, 3], [2, 1]], batch_dims=1, axis=-1)),
        run(tf, tf.gather(TABLE, [[0, 1], [2, 1]], batch_dims=-1, axis=1)),
    ]


def case_gather_batch_dims_refused(tf):
    return [
        refused(lambda: tf.gather(TABLE, [[0, 1], [2, 1]], batch_dims=3)),
        refused(lambda: tf.gather(TABLE, [[0, 1], [2, 1]], batch_dims=1, axis=0)),
        refused(lambda: tf.gather(TABLE, [0, 1], axis=3)),
        refused(lambda: tf.gather(TABLE, [0, 1], axis=-4)),
        refused(lambda: tf.gather(TABLE, [0.0, 1.0])),
        refused(lambda: tf.gather(tf.constant(1.0), [0])),
    ]


def case_gather_unknown_shapes(tf):
    x, i = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    axis = tf.placeholder(tf.int32, [])
    x3, i2 = tf.placeholder(tf.float32, [None, None, None]), tf.placeholder(tf.int64, [None, None])
    indices = np.array([[0, 1], [2, 1]])
    return [
        run(tf, tf.gather(x, i, axis=1), {x: TABLE, i: [2, 0]}),
        run(tf, tf.gather(x, i, axis=-1), {x: TABLE, i: [2, 0]}),
        run(tf, tf.gather(x, i, axis=axis), {x: TABLE, i: [1, 0], axis: 2}),
        run(tf, tf.gather(x3, i2, batch_dims=1), {x3: TABLE, i2: indices}),
        run(tf, tf.gather(x3, i2, batch_dims=1, axis=-1), {x3: TABLE, i2: indices}),
        tf.gather(x3, i2, batch_dims=1).shape.as_list(),
        tf.gather(x3, i2, axis=-1).shape.as_list(),
    ]


def case_gather_gradients(tf):
    x = tf.constant(TABLE)
    found = []
    for axis, batch_dims, indices in ((-1, 0, [0, 0, 2]), (1, 1, [[0, 1], [2, 2]]), (0, 0, [1, 1])):
        y = tf.gather(x, indices, axis=axis, batch_dims=batch_dims)
        found.append(run(tf, tf.convert_to_tensor(tf.gradients(y * y, x)[0])))
    return found


def case_gather_gradients_of_unknown_shape(tf):
    x, indices = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    gradient = tf.convert_to_tensor(tf.gradients(tf.gather(x, indices), x)[0])
    return [run(tf, gradient, {x: TABLE, indices: [1, 1]}), run(tf, gradient, {x: TABLE[:, :0], indices: [1, 1]}).shape]


def case_batch_gather(tf):
    return [
        run(tf, tf.batch_gather(TABLE, [[0, 1], [2, 1]])),
        run(tf, tf.gather_nd(TABLE, [[[0], [1]], [[2], [1]]], batch_dims=1)),
    ]


# Tables as arrays -----------------------------------------------------------------------------------------------


def case_lookup_in_arrays(tf):
    table = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    double = table.astype(np.float64)
    ids = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant([1, 0, 3], tf.int64), [2, 2])
    return [
        run(tf, tf.nn.embedding_lookup(table, [1, 3])),
        run(tf, tf.nn.embedding_lookup([table], [1, 3])),
        run(tf, tf.nn.embedding_lookup([table[:2], table[2:]], [0, 1, 2, 3])),
        run(tf, tf.nn.embedding_lookup([table[:2], table[2:]], [0, 1, 2, 3], partition_strategy="div")),
        run(tf, tf.nn.embedding_lookup(double, [1, 3])),
        tf.nn.embedding_lookup(double, [1, 3]).dtype.name,
        run(tf, tf.nn.embedding_lookup(table, [1, 3], max_norm=1.0)),
        run(tf, tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")),
        run(tf, tf.nn.embedding_lookup_sparse([table[:2], table[2:]], ids, None, combiner="sum")),
        run(tf, tf.nn.safe_embedding_lookup_sparse([table], ids)),
        refused(lambda: tf.nn.safe_embedding_lookup_sparse(table, ids)),
    ]


def case_lookup_in_half(tf):
    table = np.arange(8.0, dtype=np.float16).reshape(4, 2)
    ids = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant([1, 0, 3], tf.int64), [2, 2])
    v = tf.Variable(table)
    found = [
        tf.nn.embedding_lookup(table, [1, 3]),
        tf.nn.embedding_lookup(v, [1, 3], max_norm=2.0),
        tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sqrtn"),
        tf.nn.embedding_lookup_sparse(v, ids, None, combiner="sum"),
    ]
    return [[x.dtype.name, caught(tf, x)] for x in found]


def case_lookup_of_no_ids(tf):
    table = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    return [
        run(tf, tf.nn.embedding_lookup(table, np.zeros([0], np.int32))).shape,
        run(tf, tf.nn.embedding_lookup([table[:2], table[2:]], 3)),
        run(tf, tf.nn.embedding_lookup([table[:2], table[2:]], [[0, 1], [2, 3]])),
    ]


# Numbers out of range -------------------------------------------------------------------------------------------


def case_segments_out_of_order(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    (ids,) = computed(tf, [0, 2, 1])
    return [
        caught(tf, op(x, [0, 2, 1]))
        for op in (tf.segment_sum, tf.segment_mean, tf.segment_max, tf.segment_min, tf.segment_prod)
    ] + [caught(tf, tf.segment_sum(x, ids))]


def case_negative_segments(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    (ids,) = computed(tf, [-1, 0, 1])
    return [
        caught(tf, tf.segment_sum(x, [-1, 0, 1])),
        caught(tf, tf.segment_sum(x, ids)),
        caught(tf, tf.unsorted_segment_sum(x, [-1, 0, 1], 2)),
        caught(tf, tf.unsorted_segment_sum(x, ids, 2)),
    ]


def case_unsorted_segments_past_the_end(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    (ids,) = computed(tf, [0, 1, 2])
    ops = (tf.unsorted_segment_sum, tf.unsorted_segment_max, tf.unsorted_segment_min, tf.unsorted_segment_prod)
    return [caught(tf, op(x, [0, 1, 2], 2)) for op in ops] + [caught(tf, op(x, ids, 2)) for op in ops]


def case_unsorted_segment_means_past_the_end(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    return [caught(tf, op(x, [0, 1, 2], 2)) for op in (tf.unsorted_segment_mean, tf.unsorted_segment_sqrt_n)]


def case_sparse_segments_out_of_range(tf):
    x = tf.constant([[1.0], [2.0], [3.0]])
    (rows, ids) = computed(tf, [0, 3], [1, 0])
    ops = (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n)
    return (
        [caught(tf, op(x, [0, 3], [0, 1])) for op in ops]
        + [caught(tf, op(x, [0, 1], [1, 0])) for op in ops]
        + [caught(tf, op(x, rows, [0, 1])) for op in ops]
        + [caught(tf, op(x, [0, 1], ids)) for op in ops]
        + [caught(tf, op(x, [0, 1], [0, 3], num_segments=3)) for op in ops]
    )


def case_segments_of_another_length(tf):
    x = tf.placeholder(tf.float32)
    return [
        refused(lambda: tf.segment_sum([1.0, 2.0], [0, 1, 2])),
        caught(tf, tf.segment_sum(x, [0, 1, 2]), {x: [1.0, 2.0]}),
        refused(lambda: tf.segment_sum([1.0, 2.0], [[0, 1]])),
        refused(lambda: tf.unsorted_segment_sum([1.0, 2.0], [0, 1, 2], 3)),
    ]


def case_scatter_out_of_range(tf):
    (bad, low) = computed(tf, [0, 3], [-1, 0])
    found = []
    ops = (
        tf.scatter_update,
        tf.scatter_add,
        tf.scatter_sub,
        tf.scatter_mul,
        tf.scatter_div,
        tf.scatter_max,
        tf.scatter_min,
    )
    for op in ops:
        v = tf.Variable([1.0, 2.0, 3.0])
        found.append([caught(tf, op(v, rows, [7.0, 8.0])) for rows in ([0, 3], [-1, 0], bad, low)])
    return found


def case_scatter_nd_rows_out_of_range(tf):
    (bad,) = computed(tf, [[0], [3]])
    found = []
    for op in (tf.scatter_nd_update, tf.scatter_nd_add, tf.scatter_nd_sub):
        v = tf.Variable([1.0, 2.0, 3.0])
        found.append([caught(tf, op(v, rows, [7.0, 8.0])) for rows in ([[0], [3]], bad)])
    for op in (tf.tensor_scatter_update, tf.tensor_scatter_add, tf.tensor_scatter_sub):
        x = tf.constant([1.0, 2.0, 3.0])
        found += [[caught(tf, op(x, [[0], [3]], [7.0, 8.0])), caught(tf, op(x, bad, [7.0, 8.0]))]]
    return found


def case_scatter_out_of_range_in_a_resource(tf):
    (bad,) = computed(tf, [0, 3])
    v = tf.get_variable("r", initializer=[1.0, 2.0, 3.0], use_resource=True)
    return [caught(tf, op(v, bad, [7.0, 8.0])) for op in (tf.scatter_update, tf.scatter_add)]


def case_labels_out_of_range(tf):
    logits = tf.constant([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    (bad,) = computed(tf, [0, 3])
    given = tf.placeholder(tf.int64, [None])
    one = tf.nn.sparse_softmax_cross_entropy_with_logits
    return [
        caught(tf, one(labels=[0, 3], logits=logits)),
        caught(tf, one(labels=[0, -1], logits=logits)),
        caught(tf, one(labels=bad, logits=logits)),
        caught(tf, one(labels=given, logits=logits), {given: [0, 3]}),
        caught(tf, tf.losses.sparse_softmax_cross_entropy([0, 3], logits)),
        caught(tf, tf.gradients(one(labels=[0, 3], logits=logits), logits)),
    ]


def case_labels_out_of_range_in_training(tf):
    w = tf.Variable([[1.0, 2.0, 3.0]])
    (bad,) = computed(tf, [3])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=bad, logits=w))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        try:
            session.run(train)
            first = "runs"
        except tf.errors.OpError as error:
            first = type(error).__name__
        return first


def case_fed_labels_out_of_range_in_training(tf):
    w, given = tf.Variable([[1.0, 2.0, 3.0]]), tf.placeholder(tf.int32, [None])
    loss = tf.losses.sparse_softmax_cross_entropy(given, w)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = []
        for label in (3, -1, 2):
            try:
                session.run(train, {given: [label]})
                found.append("runs")
            except tf.errors.InvalidArgumentError as error:
                found.append(f"label value of {label}" in str(error))
            found.append(session.run(w))
        return found


def case_in_top_k_out_of_range(tf):
    return caught(tf, tf.nn.in_top_k([[0.1, 0.9], [0.8, 0.2]], [5, 0], 1))


def case_confusion_matrix_out_of_range(tf):
    return [
        caught(tf, tf.confusion_matrix([0, 3], [0, 1], num_classes=2)),
        caught(tf, tf.confusion_matrix([0, -1], [0, 1])),
    ]


def case_sparse_to_dense_out_of_range(tf):
    (bad,) = computed(tf, [1, 5])
    return [
        caught(tf, tf.sparse_to_dense([1, 5], [3], 1.0)),
        caught(tf, tf.sparse_to_dense(bad, [3], 1.0)),
        caught(tf, tf.sparse_to_dense([1, 0], [3], 1.0)),
        caught(tf, tf.sparse_to_dense([1, 1], [3], 1.0)),
        caught(tf, tf.sparse_to_dense([1, 0], [3], 1.0, validate_indices=False)),
    ]


def case_dynamic_stitch_out_of_range(tf):
    (bad,) = computed(tf, [0, -1])
    return [
        caught(tf, tf.dynamic_stitch([bad], [[1.0, 2.0]])),
        caught(tf, tf.dynamic_stitch([[0, 2]], [[1.0, 2.0]]))[:1],
    ]


def case_reverse_sequence_out_of_range(tf):
    (lengths,) = computed(tf, [3, 1])
    return caught(tf, tf.reverse_sequence([[1, 2], [3, 4]], lengths, seq_axis=1))


def case_unravel_and_permutation_out_of_range(tf):
    (bad,) = computed(tf, [0, 3])
    return [caught(tf, tf.invert_permutation(bad)), caught(tf, tf.invert_permutation(computed(tf, [0, 0])[0]))]


# Queues' words --------------------------------------------------------------------------------------------------


def words(tf, function, *phrases):
    try:
        function()
    except tf.errors.OpError as error:
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]
    return ["runs"]


def case_words_of_a_closed_queue(tf):
    q = tf.FIFOQueue(10, tf.float32, shapes=[[]], name="mine")
    one, many, up_to = q.dequeue(), q.dequeue_many(2), q.dequeue_up_to(2)
    put, close = q.enqueue(1.0), q.close()
    with tf.Session() as session:
        session.run(put)
        session.run(close)
        return [
            words(tf, lambda: session.run(put), "mine", "is closed."),
            words(
                tf,
                lambda: session.run(many),
                "mine",
                "is closed and has insufficient elements",
                "(requested 2, current size 1)",
            ),
            words(tf, lambda: session.run(up_to)),
            words(tf, lambda: session.run(up_to), "(requested 2, current size 0)"),
            words(
                tf,
                lambda: session.run(one),
                "mine",
                "is closed and has insufficient elements (requested 1, current size 0)",
            ),
        ]


def case_words_of_cancelled_enqueues(tf):
    q = tf.FIFOQueue(1, tf.float32, shapes=[[]], name="mine")
    put, close = q.enqueue(1.0), q.close(cancel_pending_enqueues=True)
    with tf.Session() as session:
        session.run(put)
        session.run(close)
        return words(tf, lambda: session.run(put), "is closed.", "Enqueue operation was cancelled")


def case_words_of_random_and_padding_queues(tf):
    found = []
    for q in (
        tf.RandomShuffleQueue(10, 2, tf.float32, shapes=[[]], name="mine"),
        tf.PaddingFIFOQueue(10, tf.float32, shapes=[[None]], name="mine"),
        tf.PriorityQueue(10, [tf.float32], shapes=[[]], name="mine"),
    ):
        get = q.dequeue()
        close = q.close()
        with tf.Session() as session:
            session.run(close)
            found.append(
                words(
                    tf,
                    lambda get=get, session=session: session.run(get),
                    "mine' is closed and has insufficient elements",
                    "(requested 1, current size 0)",
                )
            )
    return found


def case_words_of_a_closed_session(tf):
    session = tf.Session()
    x = tf.constant(1.0)
    session.close()
    try:
        session.run(x)
    except RuntimeError as error:
        return [type(error).__name__, str(error)]
    return "runs"
