"""Custom gradients, variables in scopes, and hand-written updates in TensorFlow 1.5."""

import tensorflow as tf


@tf.custom_gradient
def clipped(x):
    def grad(slope):
        return tf.clip_by_value(slope, -1.0, 1.0)

    return tf.identity(x), grad


def loss_of(name):
    with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
        w = tf.get_variable("w", [2], initializer=tf.constant_initializer([5.0, -0.25]))
    with tf.name_scope(name):
        return tf.reduce_sum(tf.square(clipped(w)))


losses = [loss_of("one"), loss_of("two")]
(w,) = tf.trainable_variables()
optimizer = tf.train.RMSPropOptimizer(0.1, momentum=0.5)
pairs = optimizer.compute_gradients(losses[0])
with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
    after = tf.identity(w.read_value())
hessian = tf.hessians(tf.reduce_sum(w * w * w), w)[0]
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    gradient = session.run(pairs[0][0]).tolist()
    values = [["%.4f" % v for v in session.run(after)] for _ in range(2)]
    print("1.5: %s, %s, %s" % (gradient, values, ["%.3f" % v for v in session.run(hessian).ravel() + 0.0]))
    print("1.5: slots %s" % sorted(optimizer.get_slot_names()))
