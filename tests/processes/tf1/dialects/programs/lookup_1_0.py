"""Words as features in TensorFlow 1.0: a table, an embedding, sums over sparse rows."""

import tensorflow as tf

table = tf.contrib.lookup.index_table_from_tensor(["a", "b", "c"], num_oov_buckets=1)
back = tf.contrib.lookup.index_to_string_table_from_tensor(["a", "b", "c"], default_value="?")
words = tf.string_split(["a b", "c a x", "b"])
ids = tf.SparseTensor(words.indices, table.lookup(words.values), words.dense_shape)
vectors = tf.Variable([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [5.0, 5.0]])
sums = tf.nn.embedding_lookup_sparse(vectors, ids, None, combiner="sum")
means = tf.nn.embedding_lookup_sparse(vectors, ids, None, combiner="mean")
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(sums))
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    print("1.0: ids %s, sums %s" % (session.run(ids.values).tolist(), session.run(sums).tolist()))
    session.run(train)
    print(
        "1.0: %s, %s"
        % (
            session.run(back.lookup(tf.constant([1, 7], tf.int64))).tolist(),
            [[round(float(v), 4) for v in row] for row in session.run(means)],
        )
    )
