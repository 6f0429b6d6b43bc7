"""Trains a 784-100-10 network with Adam asynchronously, batch 100: a small model's distributed step."""

import numpy as np
from common import start_server, task_arguments, tf, train

args = task_arguments(hidden=100)
server, on_worker = start_server(args)
random = np.random.RandomState(args.task_index)
images = random.rand(10000, 784).astype("float32")
labels = np.eye(10, dtype="float32")[random.randint(0, 10, 10000)]
x = tf.placeholder(tf.float32, [None, 784])
y = tf.placeholder(tf.float32, [None, 10])
with on_worker:
    w1 = tf.Variable(tf.truncated_normal([784, args.hidden], stddev=1.0 / 28))
    b1 = tf.Variable(tf.zeros([args.hidden]))
    w2 = tf.Variable(tf.truncated_normal([args.hidden, 10], stddev=args.hidden**-0.5))
    b2 = tf.Variable(tf.zeros([10]))
    hidden = tf.nn.relu(tf.nn.xw_plus_b(x, w1, b1))
    probabilities = tf.nn.softmax(tf.nn.xw_plus_b(hidden, w2, b2))
    loss = -tf.reduce_sum(y * tf.log(tf.clip_by_value(probabilities, 1e-10, 1.0)))
    global_step = tf.Variable(0, name="global_step", trainable=False)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=global_step)
train(
    args,
    server,
    global_step,
    train_op,
    lambda i: {x: images[100 * i : 100 * i + 100], y: labels[100 * i : 100 * i + 100]},
)
