"""Towers of TensorFlow 0.12 on several devices: shared variables, mean gradients, one update."""

import tensorflow as tf

batches = tf.split(tf.reshape(tf.range(12.0), [12, 1]), 3, 0)
optimizer = tf.train.MomentumOptimizer(0.001, 0.5)
gradients = []
with tf.variable_scope("model") as scope:
    for i, batch in enumerate(batches):
        with tf.device("/cpu:0"), tf.name_scope("tower_%d" % i):
            w = tf.get_variable("w", [1, 1], initializer=tf.constant_initializer(1.0))
            loss = tf.reduce_mean(tf.square(tf.matmul(batch, w) - 3.0 * batch))
            tf.add_to_collection("losses", loss)
            scope.reuse_variables()
            gradients.append(optimizer.compute_gradients(loss, [w]))
means = []
for pairs in zip(*gradients):
    joined = tf.concat([tf.expand_dims(gradient, 0) for gradient, _ in pairs], 0)
    means.append((tf.reduce_mean(joined, 0), pairs[0][1]))
train = optimizer.apply_gradients(means)
total = tf.add_n(tf.get_collection("losses"))
config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=False)
with tf.Session(config=config) as session:
    session.run(tf.global_variables_initializer())
    found = []
    for _ in range(4):
        value, _ = session.run([total, train])
        found.append(round(float(value), 2))
    print("0.12: %s, w %.4f" % (found, session.run(w)[0, 0]))
