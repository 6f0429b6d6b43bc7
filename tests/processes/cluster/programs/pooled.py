"""Trains tables whose rows are combined in bags: a float32 table in two parts, a bfloat16 table, and a feature column's
table.

Each update combines the gradients of two workers' batches. Without ps, this process computes both workers' batches of
each step, one after the other; its tables are the expected result for a cluster. The tables are written to the file
``--folder``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from task import args, cluster, meeting, replicas, start_server

from headwater import tf

ROWS, DIM, BAGS, IDS, STEPS = 300, 8, 6, 25, 4
alone = "ps" not in cluster.jobs


def fed(step, worker):
    """Returns bags of 15 to 25 ids, and their weights."""
    random = np.random.RandomState(10 * step + worker)
    counts = random.randint(15, IDS + 1, BAGS)
    where = np.array([[bag, place] for bag, count in enumerate(counts) for place in range(count)])
    found = random.zipf(1.3, len(where)) % ROWS
    given = (2.0 ** random.randint(-1, 2, len(where))).astype(np.float32)
    return {ids: (where, found, [BAGS, IDS]), weights: (where, given, [BAGS, IDS])}


def initial(shape, dtype=tf.float32, partition_info=None):
    first = 0 if partition_info is None else partition_info.var_offset[0]
    rows = np.random.RandomState(0).standard_normal((ROWS, DIM))[first : first + shape[0]]
    return tf.cast(tf.constant(rows.astype(np.float32)), dtype)


target = "" if alone else start_server().target
with tf.device("") if alone else replicas():
    cut = tf.fixed_size_partitioner(2)
    table = tf.get_variable("table", [ROWS, DIM], initializer=initial, partitioner=cut)
    halves = tf.get_variable("halves", [ROWS, DIM], tf.bfloat16, initializer=initial, partitioner=cut)
    ids, weights = tf.sparse_placeholder(tf.int64, [BAGS, IDS]), tf.sparse_placeholder(tf.float32, [BAGS, IDS])
    items = tf.feature_column.categorical_column_with_identity("items", ROWS)
    column = tf.feature_column.embedding_column(items, DIM, "mean", initial)
    bags = [
        tf.nn.embedding_lookup_sparse(table, ids, weights, "div", combiner="mean"),
        tf.cast(tf.nn.embedding_lookup_sparse(halves, ids, None, "div", combiner="sqrtn"), tf.float32),
        tf.feature_column.input_layer({"items": ids}, [column]),
    ]
    scale = tf.range(1.0, 1 + BAGS)[:, None] / BAGS
    loss = tf.add_n([tf.reduce_sum(scale * each * each) for each in bags])
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.125), 2, 1 if alone else 2)
    train = optimizer.minimize(loss, global_step=step)
    tables = tf.trainable_variables()
    # Workers meet after each step, so that neither takes the other's token and contributes two gradients to a step.
    meet = [] if alone else meeting()


chief = args.task_index == 0
hook = optimizer.make_session_run_hook(chief)
with tf.train.MonitoredTrainingSession(target, is_chief=chief, hooks=[hook]) as session:
    for number in range(STEPS):
        for worker in (0, 1) if alone else (args.task_index,):
            session.run(train, fed(number, worker))
        for each in meet:
            session.run(each)
    if chief:
        made, *found = session.run([step, *tables])
        arrays: dict[str, Any] = {
            each.op.name: np.asarray(array, np.float32) for each, array in zip(tables, found, strict=True)
        }
        np.savez(args.folder, **arrays, steps=made)
        print("saved", sorted({each.device for each in tables}), flush=True)
    for each in meet:
        session.run(each)
