"""Images of squares from a deep convolutional generative adversarial network."""

import numpy as np
import tensorflow as tf
from parts import initialize, report, serve

CODE, BATCH = 8, 16


def squares(numbers, count):
    images = -np.ones([count, 16, 16, 1], np.float32)
    for image in images:
        row, column, size = numbers.randint(2, 7, 3)
        image[row : row + size, column : column + size] = 1
    return images


def generator(code, training, reuse=None):
    with tf.variable_scope("generator", reuse=reuse):
        x = tf.reshape(tf.layers.dense(code, 4 * 4 * 16, use_bias=False), [-1, 4, 4, 16])
        x = tf.nn.relu(tf.layers.batch_normalization(x, training=training))
        x = tf.layers.conv2d_transpose(x, 8, 5, 2, "same", use_bias=False)
        x = tf.nn.relu(tf.layers.batch_normalization(x, training=training))
        return tf.tanh(tf.layers.conv2d_transpose(x, 1, 5, 2, "same"))


def discriminator(image, reuse=None):
    with tf.variable_scope("discriminator", reuse=reuse):
        x = tf.nn.leaky_relu(tf.layers.conv2d(image, 8, 5, 2, "same"))
        x = tf.layers.conv2d(x, 16, 5, 2, "same", use_bias=False)
        x = tf.nn.leaky_relu(tf.layers.batch_normalization(x, training=True))
        return tf.layers.dense(tf.layers.flatten(x), 1)


def main():
    image = tf.placeholder(tf.float32, [None, 16, 16, 1])
    code = tf.placeholder(tf.float32, [None, CODE], "code")
    made = generator(code, True)
    real, fake = discriminator(image), discriminator(made, reuse=True)
    served = generator(code, False, reuse=True)

    def cross(logits, label):
        labels = tf.fill(tf.shape(logits), label)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

    losses = [cross(real, 0.9) + cross(fake, 0.0), cross(fake, 1.0)]
    trains = []
    for scope, loss in zip(("discriminator", "generator"), losses):
        variables = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)):
            trains.append(tf.train.AdamOptimizer(0.002, beta1=0.5).minimize(loss, var_list=variables))
    numbers = np.random.RandomState(3)
    found = []
    with tf.Session() as session:
        initialize(session)
        for _ in range(20):
            feeds = {image: squares(numbers, BATCH), code: numbers.uniform(-1, 1, [BATCH, CODE])}
            for train, loss in zip(trains, losses):
                found.append(session.run([train, loss], feeds)[1])
        codes = numbers.uniform(-1, 1, [3, CODE]).astype(np.float32)
        shown = serve(session, {"code": code}, {"image": served}, {"code": codes})
    report(found, {"image": shown["image"][:, ::3, ::3, 0]})


main()
