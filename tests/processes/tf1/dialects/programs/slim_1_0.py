"""Slim of TensorFlow 1.0: a small network of convolutions, batch normalisation, its own training loop."""

import sys

import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim

random = np.random.RandomState(4)
pictures = random.rand(32, 8, 8, 1).astype(np.float32)
labels = (pictures[:, :4].mean((1, 2, 3)) > pictures[:, 4:].mean((1, 2, 3))).astype(np.int64)


def network(images, is_training):
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        normalizer_fn=slim.batch_norm,
        normalizer_params={"is_training": is_training, "decay": 0.8},
    ):
        net = slim.repeat(images, 2, slim.conv2d, 4, [3, 3], scope="conv")
        net = slim.max_pool2d(net, [2, 2], scope="pool")
        return slim.fully_connected(slim.flatten(net), 2, activation_fn=None, normalizer_fn=None, scope="logits")


tf.set_random_seed(1)
logits = network(tf.constant(pictures), True)
slim.losses.sparse_softmax_cross_entropy(logits, labels)
loss = slim.losses.get_total_loss()
train_op = slim.learning.create_train_op(loss, tf.train.RMSPropOptimizer(0.01))
final = slim.learning.train(
    train_op, sys.argv[1], number_of_steps=30, log_every_n_steps=100, save_summaries_secs=None, save_interval_secs=600
)
with tf.Graph().as_default():
    logits = network(tf.constant(pictures), False)
    restorer = tf.train.Saver(slim.get_variables_to_restore(exclude=["global_step"]))
    with tf.Session() as session:
        restorer.restore(session, tf.train.latest_checkpoint(sys.argv[1]))
        right = (session.run(logits).argmax(1) == labels).mean()
print("1.0: loss small %s, right when evaluated %s" % (final < 0.5, right > 0.9))
