"""Partitioned variables of TensorFlow 1.2, saved and restored whole."""

import os
import sys

import tensorflow as tf

path = os.path.join(sys.argv[1], "divided")
with tf.variable_scope("table", partitioner=tf.fixed_size_partitioner(3)):
    table = tf.get_variable("w", [10, 2], initializer=tf.ones_initializer())
parts = [part.get_shape().as_list() for part in table]
rows = tf.nn.embedding_lookup(table, [0, 4, 9], partition_strategy="div")
train = tf.train.AdagradOptimizer(1.0, 0.1).minimize(tf.reduce_sum(rows))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train)
    found = session.run(rows)
    tf.train.Saver().save(session, path)
with tf.Graph().as_default(), tf.Session() as session:
    whole = tf.get_variable("table/w", [10, 2])
    tf.train.Saver([whole]).restore(session, path)
    again = session.run(whole)
print(
    "1.2: parts %s, rows %s, same %s"
    % (parts, ["%.3f" % v for v in found.ravel()], bool((again[[0, 4, 9]] == found).all()))
)
