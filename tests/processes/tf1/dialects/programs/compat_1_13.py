"""TensorFlow 1.13 by its names in compat.v1: ragged rows, strings, a checkpoint of objects."""

import os
import sys

import tensorflow.compat.v1 as tf

rows = tf.ragged.constant([[1, 2], [], [3, 4, 5]])
sums = tf.reduce_sum(rows.to_tensor(), axis=1)
padded = rows.to_tensor(default_value=-1)
words = tf.strings.regex_replace(["a1b22", "c"], r"[0-9]+", "#")
upper = tf.strings.substr(tf.strings.join([words, "zz"]), 0, 3)
v, n = tf.Variable([1.0, 2.0], name="v"), tf.Variable(7, name="n")
checkpoint = tf.train.Checkpoint(vector=v, number=n)
change = tf.group(v.assign([8.0, 9.0]), n.assign_add(1))
top = tf.math.top_k(tf.constant([3.0, 9.0, 5.0]), 2)
best = tf.nest.map_structure(lambda part: part + 1, {"values": top.values, "indices": top.indices})
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    path = checkpoint.save(os.path.join(sys.argv[1], "objects"), session=session)
    session.run(change)
    checkpoint.restore(path).assert_consumed().run_restore_ops(session)
    print("1.13: %s, %s, %s" % (session.run(sums).tolist(), session.run(padded).tolist(), session.run(upper).tolist()))
    found = session.run(best)
    print(
        "1.13: %s %s, %s %s"
        % (session.run(v).tolist(), session.run(n), found["values"].tolist(), found["indices"].tolist())
    )
