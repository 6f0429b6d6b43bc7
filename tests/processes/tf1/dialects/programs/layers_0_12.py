"""Layers, summaries and readers of TensorFlow 0.12, with a partial run of a step."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib.layers import fully_connected, l2_regularizer

layers = tf.contrib.layers
random = np.random.RandomState(3)
data = random.randn(64, 6).astype(np.float32)
classes = (data[:, :3].sum(1) > data[:, 3:].sum(1)).astype(np.int64)

x = tf.placeholder(tf.float32, [None, 6], name="x")
y = tf.placeholder(tf.int64, [None], name="y")
with tf.contrib.framework.arg_scope(
    [fully_connected], weights_regularizer=l2_regularizer(1e-3), activation_fn=tf.nn.relu
):
    net = layers.stack(x, fully_connected, [16, 8], scope="hidden")
    logits = fully_connected(net, 2, activation_fn=None, scope="logits")
loss = tf.contrib.losses.sparse_softmax_cross_entropy(logits, y)
total = tf.contrib.losses.get_total_loss()
step = tf.contrib.framework.get_or_create_global_step()
train = layers.optimize_loss(total, step, learning_rate=0.05, optimizer="Adam", clip_gradients=5.0, summaries=["loss"])
accuracy = tf.contrib.metrics.accuracy(tf.argmax(logits, 1), y)
summary = tf.summary.merge_all()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(60):
        session.run(train, {x: data, y: classes})
    handle = session.partial_run_setup([logits, total], [x, y])
    guess = session.partial_run(handle, logits, {x: data}).argmax(1)
    cost = session.partial_run(handle, total, {y: classes})
    tags = [value.tag for value in tf.Summary.FromString(session.run(summary, {x: data, y: classes})).value]
    right = session.run(accuracy, {x: data, y: classes})
    assert abs(right - (guess == classes).mean()) < 1e-6
    print("0.12: accuracy %s, step %d, tags %s" % (right > 0.95, session.run(step), sorted(tags)))
    assert np.isfinite(cost)
