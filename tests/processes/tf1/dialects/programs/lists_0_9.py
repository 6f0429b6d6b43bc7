"""A recurrent network of TensorFlow 0.9: steps as lists, packed and split with the axis first."""

import numpy as np
import tensorflow as tf

STEPS, BATCH, HIDDEN = 5, 8, 6

random = np.random.RandomState(1)
values = random.rand(BATCH, STEPS).astype(np.float32)
targets = values.sum(1, keepdims=True)

x = tf.placeholder(tf.float32, [BATCH, STEPS])
y = tf.placeholder(tf.float32, [BATCH, 1])
inputs = tf.split(1, STEPS, x)
cell = tf.nn.rnn_cell.BasicLSTMCell(HIDDEN, forget_bias=1.0, state_is_tuple=True)
cell = tf.nn.rnn_cell.MultiRNNCell([cell], state_is_tuple=True)
outputs, state = tf.nn.rnn(cell, inputs, dtype=tf.float32)
every = tf.pack(outputs)
last = tf.unpack(every)[-1]
both = tf.concat(1, [last, state[0].h])
w = tf.get_variable("w", [2 * HIDDEN, 1], initializer=tf.random_normal_initializer(0, 0.1, seed=3))
guess = tf.matmul(both, w)
cost = tf.reduce_mean(tf.square(tf.sub(guess, y)))
variables = tf.trainable_variables()
gradients, norm = tf.clip_by_global_norm(tf.gradients(cost, variables), 1.0)
train = tf.train.AdamOptimizer(0.05).apply_gradients(zip(gradients, variables))
with tf.Session() as session:
    session.run(tf.initialize_all_variables())
    first = session.run(cost, {x: values, y: targets})
    for _ in range(80):
        session.run(train, {x: values, y: targets})
    print("0.9: less than a tenth: %s" % (session.run(cost, {x: values, y: targets}) < first / 10))
    assert [v.name for v in variables][-1] == "w:0", [v.name for v in variables]
