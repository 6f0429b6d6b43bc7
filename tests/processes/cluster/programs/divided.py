"""Looks up every row of a table that is divided between two ps, singly and in bags, trains some rows, and requests rows
that do not exist.
"""

from __future__ import annotations

import numpy as np
import pytest
from task import args, meeting, replicas, start_server

from headwater import tf

ROWS = 401


def numbered(shape, dtype, partition_info):
    """Returns a part of the table in which row i is filled with i."""
    first = partition_info.var_offset[0]
    return tf.tile(tf.cast(tf.range(first, first + shape[0]), dtype)[:, tf.newaxis], [1, shape[1]])


server = start_server()
with replicas():
    table = tf.get_variable("table", [ROWS, 3], initializer=numbered, partitioner=tf.fixed_size_partitioner(2))
    ids = tf.placeholder(tf.int64, [None])
    rows = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
    sparse = tf.sparse_placeholder(tf.int64)
    bags = tf.nn.embedding_lookup_sparse(table, sparse, None, "div", combiner="sum")
    announce, wait_for_all = meeting()
    # The gradient decreases each row by a value of its own; the workers train different rows.
    train, train_bags = [
        tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(found)) for found in (rows, bags)
    ]

supervisor = tf.train.Supervisor(is_chief=args.task_index == 0, saver=None, summary_op=None, recovery_wait_secs=1)
with supervisor.managed_session(server.target) as session:
    print("devices", sorted({part.device for part in table}))
    mine = np.arange(args.task_index, ROWS, 2)
    np.random.RandomState(args.task_index).shuffle(mine)
    found = session.run(rows, {ids: mine})
    np.testing.assert_array_equal(found, np.repeat(mine[:, np.newaxis], 3, 1).astype(np.float32))
    for bad in (ROWS, -1, 10**12):
        for fetch in (rows, train):
            words = rf"indices\[{mine.size}\] = {bad} is not in \[0, {ROWS}\)"
            with pytest.raises(tf.errors.InvalidArgumentError, match=words):
                session.run(fetch, {ids: [*mine, bad]})
    for size in (1, mine.size, 7):
        session.run(train, {ids: mine[:size]})
    session.run(train, {ids: np.repeat(mine[:3], 40)})
    where = np.stack(np.divmod(np.arange(200), 50), 1)  # 4 bags of 50 rows: pooled on both ps
    before = session.run(rows, {ids: mine[:200]})
    in_bags = {sparse: (where, mine[:200], [4, 50])}
    np.testing.assert_array_equal(session.run(bags, in_bags), before.reshape(4, 50, 3).sum(1))
    session.run(train_bags, in_bags)
    print("trained")
    session.run(announce)
    session.run(wait_for_all)
    for worker in range(2):
        order = np.arange(worker, ROWS, 2)
        np.random.RandomState(worker).shuffle(order)
        place = np.arange(order.size)
        times = (place < 1).astype(int) + 1 + (place < 7) + 40 * (place < 3) + (place < 200)
        wanted = np.repeat((order - times)[:, np.newaxis], 3, 1).astype(np.float32)
        np.testing.assert_array_equal(session.run(rows, {ids: order}), wanted)
    print("every row is as it should be")
