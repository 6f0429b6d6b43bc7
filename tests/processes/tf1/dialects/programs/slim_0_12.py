"""A network of TensorFlow 0.12's slim: argument scopes, end points, batch normalisation and its updates."""

import numpy as np
import tensorflow as tf

slim = tf.contrib.slim
random = np.random.RandomState(4)
pictures = random.rand(16, 6, 6, 2).astype(np.float32)
labels = (pictures[..., 0].mean((1, 2)) > pictures[..., 1].mean((1, 2))).astype(np.int64)


def network(images, is_training):
    with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, padding="SAME"):
        with slim.arg_scope([slim.batch_norm], is_training=is_training, decay=0.5):
            net = slim.repeat(images, 2, slim.conv2d, 4, [3, 3], scope="conv")
    net = slim.avg_pool2d(net, [6, 6], scope="pool")
    return slim.fully_connected(slim.flatten(net), 2, activation_fn=None, scope="logits")


x = tf.constant(pictures)
logits = network(x, True)
loss = slim.losses.sparse_softmax_cross_entropy(logits, tf.constant(labels))
train = slim.learning.create_train_op(slim.losses.get_total_loss(), tf.train.AdamOptimizer(0.05))
tf.get_variable_scope().reuse_variables()
guess = tf.argmax(network(x, False), 1)
names = sorted(variable.op.name for variable in slim.get_model_variables())
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(40):
        session.run(train)
    right = (session.run(guess) == labels).mean()
    print("0.12: right %s, %d variables, first %s" % (right > 0.9, len(names), names[0]))
