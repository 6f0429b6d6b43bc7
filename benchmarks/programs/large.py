"""Reads --megabytes of variables in every step and applies as many of gradients: the bandwidth of a step."""

from common import start_server, task_arguments, tf, train

args = task_arguments(megabytes=100)
server, on_worker = start_server(args)
with on_worker:
    weights = [tf.Variable(tf.random_normal([args.megabytes * 32768, 2]), name="w%d" % i) for i in range(4)]
    loss = tf.add_n([0.5 * tf.reduce_sum(tf.square(w)) for w in weights])
    global_step = tf.Variable(0, name="global_step", trainable=False)
    train_op = tf.train.AdagradOptimizer(0.01).minimize(loss, global_step=global_step)
train(args, server, global_step, train_op, lambda i: {}, epoch=3)
