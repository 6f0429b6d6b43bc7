"""A step of a convolutional network on one process; with --towers N, one tower per GPU and averaged gradients.

With --gpu all of it is on the first GPU, else variables are on the CPU. Where there is no GPU a tower runs on what
stands in for one, or on the CPU.
"""

import argparse
import time

import numpy as np
from common import begin, report, tf

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=4)
parser.add_argument("--towers", type=int, default=0)
parser.add_argument("--batch", type=int, default=100, help="examples of a tower")
parser.add_argument("--forward", action="store_true", help="the loss alone, without gradients")
parser.add_argument("--gpu", action="store_true", help="all on the first GPU")
args = parser.parse_args()
place = "/gpu:0" if args.gpu else "/cpu:0"


def variable(name, shape):
    with tf.device(place):
        return tf.get_variable(name, shape, initializer=tf.truncated_normal_initializer(stddev=0.1))


def convolution(net, name, channels, filters):
    net = tf.nn.conv2d(net, variable(name, [5, 5, channels, filters]), [1, 1, 1, 1], "SAME")
    net = tf.nn.relu(tf.nn.bias_add(net, variable(name + "_bias", [filters])))
    return tf.nn.max_pool(net, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")


def loss_of(images, labels):
    net = convolution(convolution(images, "conv1", 1, 32), "conv2", 32, 64)
    net = tf.reshape(net, [-1, 7 * 7 * 64])
    net = tf.nn.relu(tf.matmul(net, variable("fc1", [7 * 7 * 64, 512])) + variable("fc1_bias", [512]))
    logits = tf.matmul(net, variable("fc2", [512, 10])) + variable("fc2_bias", [10])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


count = max(1, args.towers)
images = tf.placeholder(tf.float32, [count * args.batch, 28, 28, 1])
labels = tf.placeholder(tf.int32, [count * args.batch])
optimizer = tf.train.GradientDescentOptimizer(0.01)
shares = zip(tf.split(images, count), tf.split(labels, count))
gradients, losses = [], []
for tower, (x, y) in enumerate(shares):
    with tf.device("/gpu:%d" % tower if args.towers else place), tf.name_scope("tower_%d" % tower):
        with tf.variable_scope("", reuse=tower > 0):
            loss = loss_of(x, y)
        losses.append(loss)
        gradients.append(optimizer.compute_gradients(loss))
with tf.device(place):
    means = [(tf.add_n([g for g, _ in pairs]) / count, pairs[0][1]) for pairs in zip(*gradients)]
    wanted = losses if args.forward else optimizer.apply_gradients(means)

random = np.random.RandomState(0)
feeds = {
    images: random.rand(count * args.batch, 28, 28, 1).astype(np.float32),
    labels: random.randint(0, 10, count * args.batch).astype(np.int32),
}
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
    session.run(tf.global_variables_initializer())
    for _ in range(5):
        session.run(wanted, feeds)
    times = []
    begin()
    deadline = time.perf_counter() + args.seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        session.run(wanted, feeds)
        times.append(time.perf_counter() - start)
    report(times)
