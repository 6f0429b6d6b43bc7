"""A network of TensorFlow 1.0's layers, with dropout that a placeholder controls."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(1)
data = random.randn(60, 4).astype(np.float32)
labels = (data[:, 0] * data[:, 1] > 0).astype(np.int64)

x = tf.placeholder(tf.float32, [None, 4])
y = tf.placeholder(tf.int64, [None])
training = tf.placeholder_with_default(False, [])
net = tf.layers.dense(x, 16, activation=tf.nn.tanh, name="hidden")
net = tf.layers.dropout(net, 0.1, training=training)
logits = tf.layers.dense(net, 2, name="logits")
loss = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
step = tf.train.create_global_step()
train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
accuracy, update = tf.metrics.accuracy(y, tf.argmax(logits, 1))
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for _ in range(100):
        session.run(train, {x: data, y: labels, training: True})
    for part in range(3):
        session.run(update, {x: data[part::3], y: labels[part::3]})
    same = len({session.run(loss, {x: data, y: labels}) for _ in range(3)}) == 1
    print("1.0: accuracy %s, step %d, same without dropout %s" % (session.run(accuracy) > 0.9, session.run(step), same))
