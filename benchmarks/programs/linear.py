"""Estimates y = 2 x + 10 asynchronously, one example per step: the latency of a distributed step."""

import numpy as np
from common import start_server, task_arguments, tf, train

args = task_arguments()
server, on_worker = start_server(args)
xs = np.linspace(-1.0, 1.0, 100)
ys = 2.0 * xs + 10.0
x = tf.placeholder(tf.float32)
y = tf.placeholder(tf.float32)
with on_worker:
    w = tf.Variable(0.0, name="weight")
    b = tf.Variable(0.0, name="bias")
    loss = tf.square(y - tf.multiply(x, w) - b)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    train_op = tf.train.AdagradOptimizer(0.5).minimize(loss, global_step=global_step)
train(args, server, global_step, train_op, lambda i: {x: xs[i], y: ys[i]}, w=w, b=b)
