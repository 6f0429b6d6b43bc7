"""A recurrent network of TensorFlow 0.8: cells, an unrolled loop, and packing under its earlier name."""

import numpy as np
import tensorflow as tf
from tensorflow.models.rnn import rnn, rnn_cell

random = np.random.RandomState(1)
tf.set_random_seed(1)
data = random.rand(32, 5, 2).astype(np.float32)
sums = data.sum((1, 2)) > 5

x = tf.placeholder("float", [None, 5, 2])
y = tf.placeholder("int64", [None])
steps = [tf.squeeze(part, [1]) for part in tf.split(1, 5, x)]
cell = rnn_cell.BasicLSTMCell(8, forget_bias=1.0)
outputs, state = rnn.rnn(cell, steps, dtype=tf.float32)
w = tf.Variable(tf.truncated_normal([8, 2], stddev=0.5, seed=1))
b = tf.Variable(tf.zeros([2]))
logits = tf.add(tf.matmul(outputs[-1], w), b)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits, y))
train = tf.train.AdamOptimizer(0.1).minimize(loss)
together = tf.pack(outputs)
with tf.Session() as session:
    session.run(tf.initialize_all_variables())
    first = session.run(loss, {x: data, y: sums})
    for _ in range(30):
        session.run(train, {x: data, y: sums})
    last = session.run(loss, {x: data, y: sums})
    print("0.8: loss is less %s, outputs %s" % (last < first / 2, session.run(together, {x: data}).shape))
