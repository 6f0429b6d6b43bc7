"""A strategy of TensorFlow 1.14 without distribution, with a dataset and metrics."""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    w = tf.compat.v1.get_variable("w", [], initializer=tf.zeros_initializer())
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    x = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((x, 2.0 * x)).repeat().batch(2)
    inputs, labels = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    loss = tf.reduce_mean(tf.math.squared_difference(w * inputs, labels))
    train = optimizer.minimize(loss)
    mean, update = tf.compat.v1.metrics.mean(loss)
with tf.compat.v1.Session() as session:
    session.run([tf.compat.v1.global_variables_initializer(), tf.compat.v1.local_variables_initializer()])
    found = []
    for _ in range(4):
        session.run([train, update])
        found.append(round(float(session.run(w)), 4))
    print("1.14: %s, replicas %d, mean of four %s" % (found, strategy.num_replicas_in_sync, session.run(mean) > 0))
