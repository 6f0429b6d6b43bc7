"""Losses of TensorFlow 0.12's contrib.losses, collected, and explicitly clipped gradients."""

import numpy as np
import tensorflow as tf

x = tf.constant([[1.0], [2.0], [3.0], [4.0]])
y = tf.constant([[3.0], [5.0], [7.0], [9.0]])
w = tf.Variable([[0.0]])
b = tf.Variable([0.0])
guess = tf.nn.xw_plus_b(x, w, b)
tf.contrib.losses.mean_squared_error(guess, y)
tf.contrib.losses.absolute_difference(guess, y, weights=0.5)
total = tf.contrib.losses.get_total_loss(add_regularization_losses=False)
optimizer = tf.train.GradientDescentOptimizer(0.05)
pairs = optimizer.compute_gradients(total)
gradients, norm = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 5.0)
train = optimizer.apply_gradients(zip(gradients, [variable for _, variable in pairs]))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    norms = []
    for _ in range(5):
        value, _ = session.run([norm, train])
        norms.append(round(float(value), 3))
    print("0.12: norms %s, w %.4f, b %.4f" % (norms, session.run(w)[0, 0], session.run(b)[0]))
    assert np.isfinite(session.run(total))
