"""A convolutional network of TensorFlow 0.11 with summaries of images, and moving averages of its weights."""

import sys

import numpy as np
import tensorflow as tf

random = np.random.RandomState(2)
pictures = random.rand(24, 8, 8, 1).astype(np.float32)
bright = (pictures[:, :4].mean((1, 2, 3)) > pictures[:, 4:].mean((1, 2, 3))).astype(np.int32)

x = tf.placeholder(tf.float32, [None, 8, 8, 1])
y = tf.placeholder(tf.int32, [None])
with tf.variable_scope("conv"):
    kernel = tf.get_variable("weights", [3, 3, 1, 4], initializer=tf.truncated_normal_initializer(stddev=0.3, seed=4))
    bias = tf.get_variable("biases", [4], initializer=tf.constant_initializer(0.1))
    conv = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], padding="SAME"), bias))
pool = tf.nn.max_pool(conv, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
flat = tf.reshape(pool, [-1, 64])
w = tf.get_variable("w", [64, 2], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=5))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.matmul(flat, w), y))
tf.image_summary("pictures", x, max_images=2)
tf.histogram_summary("kernel", kernel)
tf.scalar_summary(["loss"], tf.pack([loss]))
merged = tf.merge_all_summaries()
step = tf.Variable(0, trainable=False)
apply = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
averages = tf.train.ExponentialMovingAverage(0.9, step)
with tf.control_dependencies([apply]):
    train = averages.apply(tf.trainable_variables())
with tf.Session() as session:
    session.run(tf.initialize_all_variables())
    writer = tf.train.SummaryWriter(sys.argv[1], session.graph)
    first = session.run(loss, {x: pictures, y: bright})
    for _ in range(40):
        session.run(train, {x: pictures, y: bright})
    writer.add_summary(session.run(merged, {x: pictures, y: bright}), 40)
    writer.close()
    tags = [
        v.tag
        for e in tf.train.summary_iterator(writer.get_logdir() + "/" + tf.gfile.ListDirectory(sys.argv[1])[0])
        for v in e.summary.value
    ]
    less = session.run(loss, {x: pictures, y: bright}) < first
    near = abs(session.run(averages.average(w)) - session.run(w)).max() < 0.5
    print("0.11: less %s, near %s, %s" % (less, near, sorted(tags)))
