"""Variables of TensorFlow 0.12: reused scopes, slots, averages, a decreasing learning rate."""

import tensorflow as tf


def line(x):
    with tf.variable_scope("line") as scope:
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(1.0))
        scope.reuse_variables()
        again = tf.get_variable("w", [])
    return (w + again) * x


step = tf.Variable(0, trainable=False, name="step")
rate = tf.train.polynomial_decay(0.1, step, 4, 0.05)
loss = tf.square(line(2.0) - 8.0)
optimizer = tf.train.AdagradOptimizer(rate, initial_accumulator_value=1.0)
averages = tf.train.ExponentialMovingAverage(0.5)
with tf.control_dependencies([optimizer.minimize(loss, global_step=step)]):
    train = averages.apply()
(w,) = tf.trainable_variables()
slot, average = optimizer.get_slot(w, "accumulator"), averages.average(w)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    found = []
    for _ in range(3):
        session.run(train)
        found.append(["%.4f" % value for value in session.run([w, slot, average, rate])])
    print("0.12: %s, %s" % (found, sorted(v.op.name for v in tf.global_variables())))
