"""Feature columns of TensorFlow 1.3 in a hand-written model."""

import tensorflow as tf

features = {
    "age": tf.constant([[17.0], [30.0], [65.0]]),
    "city": tf.constant([["rome"], ["oslo"], ["bonn"]]),
    "tags": tf.SparseTensor([[0, 0], [2, 0], [2, 1]], ["new", "old", "new"], [3, 2]),
}
age = tf.feature_column.numeric_column("age", normalizer_fn=lambda value: value / 10.0)
buckets = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("age"), [18, 40])
city = tf.feature_column.categorical_column_with_vocabulary_list("city", ["rome", "oslo"], num_oov_buckets=1)
tags = tf.feature_column.indicator_column(
    tf.feature_column.categorical_column_with_vocabulary_list("tags", ["new", "old"])
)
crossed = tf.feature_column.crossed_column([buckets, "city"], 7)
near = tf.feature_column.embedding_column(
    city, 2, initializer=tf.constant_initializer([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
)
dense = tf.feature_column.input_layer(features, [age, buckets, near, tags])
linear = tf.feature_column.linear_model(features, [buckets, crossed], units=1)
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    rows = session.run(dense)
    for row in rows:
        print("1.3: %s" % ["%.2f" % value for value in row])
    print("1.3: linear %s, variables %d" % (session.run(linear).tolist(), len(tf.global_variables())))
