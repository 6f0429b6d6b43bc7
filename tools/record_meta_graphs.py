#!/usr/bin/env python3
"""Writes meta graphs as TensorFlow 1.15 does, with what they give, for tests to read.

Usage: PYTHON tools/record_meta_graphs.py tests/data/tf1/meta_graphs

PYTHON is an interpreter with TensorFlow 1.15. Each program gives steps: what is fetched, and what is fed.
"""

# TensorFlow 1.15, which this runs under, says no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalOperand=false

import json
import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import control_flow_ops, gen_data_flow_ops, gen_lookup_ops, gen_state_ops

PROGRAMS = []


def program(build):
    PROGRAMS.append(build)
    return build


def array(*shape):
    return ((np.arange(np.prod(shape)) * 5 % 9) / 4.0 - 1).reshape(shape).astype(np.float32)


def variable(name, *shape):
    return tf.get_variable(name, initializer=array(*shape), use_resource=True)


@program
def resource_variables():
    v, rows = variable("v", 4, 2), tf.constant([1, 3, 1])
    updates = array(3, 2) + 2
    changes = [getattr(tf, "scatter_" + kind)(v, rows, updates) for kind in ("add", "sub", "mul", "div", "max", "min")]
    more = [
        tf.scatter_nd_add(v, [[1], [2]], updates[:2]),
        v[1:3].assign(updates[:2]),
        v.assign_add(tf.ones_like(v)),
        tf.scatter_update(v, rows, updates),
    ]
    look = [v, tf.gather(v, rows), tf.gather_nd(v, [[1, 1]]), tf.shape(v), v.is_initialized()]
    return [
        (look, {}),
        *(([change.op], {}) for change in changes),
        (look, {}),
        *(([m.op], {}) for m in more),
        (look, {}),
    ]


@program
def optimizers():
    x = tf.placeholder(tf.float32, [None, 3], "x")
    steps, feed = [], {x: array(2, 3)}
    for index, optimizer in enumerate(
        (
            tf.train.AdamOptimizer(0.01),
            tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True),
            tf.train.FtrlOptimizer(0.01),
            tf.train.RMSPropOptimizer(0.01, centered=True),
            tf.train.AdagradOptimizer(0.01),
        )
    ):
        w, table = variable(f"w{index}", 3, 3), variable(f"table{index}", 4, 3)
        loss = tf.reduce_sum((tf.matmul(x, w) + tf.reduce_sum(tf.gather(table, [0, 2, 2]))) ** 2)
        train = optimizer.minimize(loss)
        steps += [([train], feed), ([train], feed), ([w, table], {})]
    return steps


@program
def conditions():
    p, q = tf.placeholder(tf.bool, [], "p"), tf.placeholder(tf.bool, [], "q")
    x, w = tf.placeholder(tf.float32, [None], "x"), variable("w", 2)
    y, z = tf.cond(p, lambda: tf.cond(q, lambda: (x * 2, x), lambda: (x + w, x)), lambda: (tf.exp(x) * w, x * x))
    again = tf.cond(p, lambda: y * 3, lambda: y + x)
    gradients = tf.gradients(y + 2 * z + again, [x, w])
    change = tf.cond(p, lambda: tf.group(w.assign_add([1.0, 1.0])), tf.no_op)
    shapes = tf.cond(p, lambda: x[:1], lambda: tf.concat([x, x], 0))
    with tf.control_dependencies([tf.assert_equal(tf.shape(x)[0], 2)]):
        checked = x * 2
    dropped = tf.layers.dropout(x, 0.5, training=p)
    dropped_gradient = tf.gradients(dropped**2, x)[0] - tf.where(p, 4 * dropped, 2 * dropped)
    case = tf.case([(tf.less(x[0], 0), lambda: x * 0), (tf.less(x[0], 1), lambda: x * 2)], default=lambda: x + 1)
    fetches = [y, z, again, *gradients, shapes, checked, dropped_gradient, case]
    steps = [(fetches, {p: a, q: b, x: [0.5, 2.0]}) for a in (True, False) for b in (True, False)]
    return [*steps, ([checked], {x: [1.0]}), ([change], {p: False}), ([w], {}), ([change], {p: True}), ([w], {})]


@program
def switches():
    p, x = tf.placeholder(tf.bool, [], "p"), tf.placeholder(tf.float32, [2], "x")
    no, yes = control_flow_ops.switch(x, p)
    fetches = list(control_flow_ops.merge([no * 2, yes + 1]))
    return [(fetches, {p: side, x: [1.0, 2.0]}) for side in (True, False)]


@program
def loops():
    n, x, w = tf.placeholder(tf.int32, [], "n"), tf.placeholder(tf.float32, [2], "x"), variable("w", 2)

    def inner(i, y):
        return tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, tf.sin(z) * w), [0, y])[1]

    def body(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * 2 + w, lambda: inner(i, y) + 1)

    turns, y = tf.while_loop(lambda i, y: i < n, body, [0, x])
    nested = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, inner(i, y)), [0, x])[1]
    alone = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.cond(i > 1, lambda: y * y, lambda: y)), [0, x])[1]
    grown = tf.while_loop(
        lambda i, y: i < n,
        lambda i, y: (i + 1, tf.concat([y, [i]], 0)),
        [0, tf.zeros([0], tf.int32)],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )[1]
    fetches = [turns, y, nested, grown, alone, *tf.gradients(nested, [x, w]), tf.gradients(alone, x)[0]]
    count = tf.get_variable("count", initializer=0.0)

    def counts(i):
        with tf.control_dependencies([tf.assign_add(count, 2.0)]):
            return i + 1

    counted = tf.while_loop(lambda i: i < n, counts, [0])
    return [*((fetches, {n: k, x: [1.0, 2.0]}) for k in (0, 1, 3)), ([counted], {n: 3}), ([count], {})]


@program
def batch_norm():
    p, x = tf.placeholder(tf.bool, [], "p"), tf.placeholder(tf.float32, [None, 3], "x")
    y = tf.layers.batch_normalization(x, training=p)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum((y - 1.5) ** 2))
    return [([each], {p: side, x: array(4, 3)}) for each in (y, train) for side in (True, False)] + [
        (tf.global_variables(), {})
    ]


@program
def dynamic_rnn():
    x, n = tf.placeholder(tf.float32, [None, None, 3], "x"), tf.placeholder(tf.int32, [None], "n")
    with tf.variable_scope("rnn", initializer=tf.constant_initializer(0.1), use_resource=True):
        outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), x, n, dtype=tf.float32)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(outputs**2))
    feed = {x: array(2, 4, 3), n: [2, 4]}
    return [([outputs, state], feed), ([train], feed), ([outputs, state], feed), (tf.trainable_variables(), {})]


@program
def arrays():
    x = tf.placeholder(tf.float32, [None, 2], "x")
    mapped = tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)
    scanned = tf.scan(lambda a, row: a * 0.5 + row, x)
    parts = tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [1, 2])
    fetches = [mapped, scanned, tf.gradients([mapped, scanned], x)[0], parts.concat()]
    return [(fetches, {x: array(3, 2)}), ([mapped], {x: np.zeros([0, 2], np.float32)})]


@program
def second_form():
    tf.compat.v1.enable_control_flow_v2()
    p, n, x = tf.placeholder(tf.bool, [], "p"), tf.placeholder(tf.int32, [], "n"), tf.placeholder(tf.float32, [2], "x")
    w = variable("w", 2)
    y = tf.cond(p, lambda: x * 2 + w, lambda: tf.exp(x))
    z = tf.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, tf.sin(z) * w), [0, x])[1]
    fetches = [y, z, *tf.gradients(y, [x, w]), tf.gradients(z, x)[0]]
    tf.compat.v1.disable_control_flow_v2()
    return [(fetches, {p: side, n: k, x: [1.0, 2.0]}) for side, k in ((True, 0), (False, 3))]


@program
def functions():
    @function.Defun(tf.float32)
    def old(x):
        return tf.nn.top_k(x, 1)[0] * x

    @tf.function
    def new(x):
        return tf.reduce_sum(x * x) + 1

    x = tf.placeholder(tf.float32, [2], "x")
    y = new(x)
    return [([old(x), y, tf.gradients(y, x)[0]], {x: [1.0, 2.0]})]


@program
def iterators():
    once = tf.data.Dataset.range(5).map(lambda v: v * v).batch(2).make_one_shot_iterator().get_next()
    x = tf.placeholder(tf.float32, [None], "x")
    positive = tf.data.Dataset.from_tensor_slices(x).filter(lambda v: v > 0).map(lambda v: v + x[0])
    started = positive.make_initializable_iterator()
    flat = tf.data.Dataset.range(3).flat_map(lambda v: tf.data.Dataset.range(v + 1).map(lambda w: w + v))
    padded = flat.repeat(2).take(9).padded_batch(4, []).prefetch(1).make_one_shot_iterator().get_next()
    following = started.get_next()
    return [
        *[([once], {})] * 4,
        ([started.initializer], {x: [1.0, -1.0, 3.0]}),
        *[([following], {})] * 3,
        *[([padded], {})] * 4,
    ]


@program
def sparse_products():
    v, d = tf.placeholder(tf.float32, [3], "v"), tf.placeholder(tf.float32, [3, 2], "d")
    sparse = tf.SparseTensor([[0, 1], [1, 0], [2, 2]], v, [3, 3])
    y = tf.sparse_tensor_dense_matmul(sparse, d)
    both = tf.sparse_concat(1, [sparse, sparse])
    fetches = [
        y,
        *tf.gradients(y, [v, d]),
        tf.sparse_tensor_dense_matmul(sparse, d, adjoint_a=True),
        tf.sparse_reduce_sum(sparse, 1),
        tf.sparse_reduce_max(sparse, 0),
        tf.sparse_softmax(sparse).values,
        (sparse * tf.constant([1.0, 2.0, 3.0])).values,
        (sparse / tf.constant([1.0, 2.0, 3.0])).values,
        tf.sparse_add(sparse, tf.ones([3, 3])),
        both.indices,
        tf.sparse_slice(both, [1, 0], [2, 4]).indices,
    ]
    return [(fetches, {v: [1.0, 2.0, 3.0], d: array(3, 2)})]


@program
def old_forms():
    queue = gen_data_flow_ops.fifo_queue([tf.float32], shapes=[[]], capacity=5, shared_name="queue")
    enqueue = gen_data_flow_ops.queue_enqueue_many(queue, [tf.constant([1.0, 2.0])])
    table = gen_lookup_ops.hash_table(tf.string, tf.int64, shared_name="table")
    fill = gen_lookup_ops.initialize_table(table, ["a", "b"], tf.constant([1, 2], tf.int64))
    found = gen_lookup_ops.lookup_table_find(table, ["a", "z"], tf.constant(-1, tf.int64))
    v = gen_state_ops.variable(shape=[], dtype=tf.float32, name="v")
    assign = tf.assign(v, [1.5, 2.0], validate_shape=False)
    return [
        ([enqueue], {}),
        ([gen_data_flow_ops.queue_size(queue), gen_data_flow_ops.queue_dequeue(queue, [tf.float32])[0]], {}),
        ([fill.name], {}),
        ([found], {}),
        ([assign], {}),
        ([tf.identity(v) * 2], {}),
    ]


def plain(value):
    value = np.asarray(value)
    return [str(value.dtype), list(value.shape), value.ravel().tolist()]


def name_of(item):
    if isinstance(item, (str, tf.Tensor, tf.Operation)):
        return getattr(item, "name", item)
    return tf.convert_to_tensor(item).name


def record(build, folder):
    with tf.Graph().as_default() as graph:
        steps = build()
        init = tf.global_variables_initializer()
        names = [
            ([name_of(item) for item in fetches], {key.name: v for key, v in feeds.items()}) for fetches, feeds in steps
        ]
        recorded = []
        with tf.Session() as session:
            session.run(init)
            for fetches, feeds in names:
                try:
                    values = [None if value is None else plain(value) for value in session.run(fetches, feeds)]
                except tf.errors.OpError as error:
                    values = type(error).__name__
                recorded.append([fetches, {key: plain(value) for key, value in feeds.items()}, values])
        with open(os.path.join(folder, build.__name__ + ".meta"), "wb") as file:
            file.write(tf.train.export_meta_graph(graph=graph).SerializeToString())
    return {"init": init.name, "steps": recorded}


def main(folder):
    if not os.path.isdir(folder):
        os.makedirs(folder)
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump({build.__name__: record(build, folder) for build in PROGRAMS}, file)


if __name__ == "__main__":
    main(sys.argv[1])
