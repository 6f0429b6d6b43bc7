"""`tf.contrib.opt`'s weight decay: arguments that TensorFlow 1.15 documents and ignores."""

from __future__ import annotations

import numpy as np

from headwater.tf1.compat import tf


def test_minimize_decays_the_given_variables() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one, other = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
        opt = tf.contrib.opt.MomentumWOptimizer(0.5, 0.1, 0.9)
        loss = tf.reduce_sum(one) + tf.reduce_sum(other)
        train = opt.minimize(loss, decay_var_list=[one])
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(one), [0.4, 0.9], rtol=1e-6)
        np.testing.assert_allclose(session.run(other), [0.9, 1.9], rtol=1e-6)


def test_a_class_that_names_the_extension_itself() -> None:
    class Decaying(tf.contrib.opt.DecoupledWeightDecayExtension, tf.train.GradientDescentOptimizer):
        pass

    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable([1.0, 2.0])
        train = Decaying(weight_decay=0.5, learning_rate=0.1).minimize(tf.reduce_sum(variable))
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(variable), [0.4, 0.9], rtol=1e-6)
