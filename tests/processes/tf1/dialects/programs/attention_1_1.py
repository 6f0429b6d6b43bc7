"""A hand-written decoder in TensorFlow 1.1: wrapped cells, a loop over steps, gradients through it."""

import numpy as np
import tensorflow as tf

with tf.variable_scope("model", initializer=tf.constant_initializer(0.1)):
    cells = [tf.contrib.rnn.BasicRNNCell(3), tf.contrib.rnn.BasicLSTMCell(3)]
    cell = tf.contrib.rnn.MultiRNNCell([tf.contrib.rnn.DropoutWrapper(one, output_keep_prob=1.0) for one in cells])
    inputs = tf.constant(np.arange(12, dtype=np.float32).reshape(2, 3, 2) / 10.0)
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, sequence_length=[3, 2], dtype=tf.float32)
    query = tf.layers.dense(outputs, 3, use_bias=False)
    scores = tf.nn.softmax(tf.matmul(query, outputs, transpose_b=True))
    context = tf.matmul(scores, outputs)
weights = tf.trainable_variables()
slopes = tf.gradients(tf.reduce_sum(context), weights)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    found, last = session.run([context, state])
    sizes = [round(float(np.abs(slope).sum()), 3) for slope in session.run(slopes)]
print("1.1: %s, %.4f, %s" % (["%.4f" % v for v in found[0, 0]], last[1].h.sum(), sizes))
