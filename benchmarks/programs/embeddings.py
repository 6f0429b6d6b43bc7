"""Trains tables that are divided over the ``ps`` tasks, with Adagrad: only the rows of a batch travel.

Each step looks up one id for each of eight tables of 200,000 x 16 and each example; as in life, few ids make most of
the traffic. The rate is in ids looked up and trained, repeats included.
"""

import numpy as np
from common import start_server, task_arguments, tf, train

args = task_arguments(tables=8, rows=200000, dim=16, batch=256)
server, on_worker = start_server(args)
random = np.random.RandomState(args.task_index)
drawn = [random.zipf(1.2, [args.tables, args.batch]) * 7919 % args.rows for _ in range(50)]
wanted = [random.randint(0, 2, args.batch).astype("float32") for _ in range(50)]
with on_worker:
    ids = tf.placeholder(tf.int64, [args.tables, args.batch])
    target = tf.placeholder(tf.float32, [args.batch])
    rows = []
    for i in range(args.tables):
        table = tf.get_variable(
            "table%d" % i,
            [args.rows, args.dim],
            initializer=tf.random_uniform_initializer(-0.05, 0.05),
            partitioner=tf.fixed_size_partitioner(len(args.ps_hosts.split(","))),
        )
        rows.append(tf.nn.embedding_lookup(table, ids[i], partition_strategy="div"))
    logit = tf.reduce_sum(tf.add_n(rows), axis=1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=logit))
    global_step = tf.Variable(0, name="global_step", trainable=False)
    train_op = tf.train.AdagradOptimizer(0.05).minimize(loss, global_step=global_step)
train(
    args,
    server,
    global_step,
    train_op,
    lambda i: {ids: drawn[i], target: wanted[i]},
    epoch=50,
    weight=args.tables * args.batch,
)
