"""Trains a convolutional network on MNIST with one tower per GPU: synchronous in-graph replication.

Digits are read as TFRecords through input queues. Every GPU runs a tower, which computes the gradients of its share of
the batch. All towers use the same variables on the CPU, where the gradients are averaged and applied once.

    headwater make-records mnist digits
    HEADWATER_VIRTUAL_GPUS=4 headwater exec examples/mnist_towers.py --data digits --logdir log

It uses only TensorFlow 1's API, and runs under TensorFlow 1.15 as well.
"""

import os
import time

import numpy as np
import tensorflow as tf
from tensorflow.python.client import timeline

flags = tf.app.flags
flags.DEFINE_string("data", "digits", "Folder with train.tfrecords and test.tfrecords")
flags.DEFINE_string("logdir", "log", "Folder for events, checkpoints and the trace")
flags.DEFINE_integer("towers", 4, "Number of GPUs")
flags.DEFINE_integer("batch", 32, "Examples per tower and step")
flags.DEFINE_integer("steps", 400, "Number of steps")
flags.DEFINE_integer("summary_every", 20, "Steps between two summaries")
FLAGS = flags.FLAGS

PIXELS = 28 * 28
CLASSES = 10
EVALUATION_BATCH = 1000


def batches():
    """Returns random batches for all towers: images of shape [towers * batch, 28, 28, 1] in [0, 1], and labels."""
    names = tf.train.string_input_producer([os.path.join(FLAGS.data, "train.tfrecords")])
    _, record = tf.TFRecordReader().read(names)
    features = tf.parse_single_example(
        record,
        {"image_raw": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)},
    )
    image = tf.reshape(tf.decode_raw(features["image_raw"], tf.uint8), [28, 28, 1])
    size = FLAGS.towers * FLAGS.batch
    images, labels = tf.train.shuffle_batch(
        [image, tf.cast(features["label"], tf.int32)], size, capacity=4000 + 3 * size, min_after_dequeue=4000
    )
    return tf.cast(images, tf.float32) / 255.0, labels


def parameters(shape):
    """Creates weights of a layer, and biases for its last dimension, on the CPU for use by any device."""
    with tf.device("/cpu:0"):
        weights = tf.get_variable("weights", shape, initializer=tf.variance_scaling_initializer(2.0))
        biases = tf.get_variable("biases", shape[-1:], initializer=tf.zeros_initializer())
    return weights, biases


def convolution(net, scope, filters):
    """Applies a 5 x 5 convolution with relu, and 2 x 2 max pooling."""
    with tf.variable_scope(scope):
        weights, biases = parameters([5, 5, net.shape[-1].value, filters])
        net = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(net, weights, [1, 1, 1, 1], "SAME"), biases))
        return tf.nn.max_pool(net, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")


def dense(net, scope, units):
    """Applies a fully connected layer."""
    with tf.variable_scope(scope):
        weights, biases = parameters([net.shape[-1].value, units])
        return tf.nn.bias_add(tf.matmul(net, weights), biases)


def network(images):
    """Returns logits of shape [batch, 10]."""
    net = convolution(images, "conv1", 8)
    net = convolution(net, "conv2", 16)
    net = tf.reshape(net, [-1, 7 * 7 * 16])
    net = tf.nn.relu(dense(net, "hidden", 100))
    return dense(net, "logits", CLASSES)


def tower_loss(images, labels):
    """Returns the mean cross entropy of a tower's share of the batch."""
    logits = network(images)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")


def averaged(gradients_of_towers):
    """Returns, for each variable, the mean of its gradients in all towers."""
    result = []
    for pairs in zip(*gradients_of_towers):  # noqa: B905  TensorFlow 1.15 has a Python without strict=
        gradients = tf.stack([gradient for gradient, _ in pairs])
        result.append((tf.reduce_mean(gradients, axis=0), pairs[0][1]))
    return result


def training(images, labels, global_step):
    """Returns the operation that makes a step, and the mean loss of all towers."""
    optimizer = tf.train.AdamOptimizer(0.002)
    image_shares, label_shares = tf.split(images, FLAGS.towers), tf.split(labels, FLAGS.towers)
    losses, gradients = [], []
    for tower in range(FLAGS.towers):
        with tf.device(f"/gpu:{tower}"), tf.name_scope(f"tower_{tower}"):
            with tf.variable_scope("", reuse=tower > 0):
                losses.append(tower_loss(image_shares[tower], label_shares[tower]))
            gradients.append(optimizer.compute_gradients(losses[-1]))
    with tf.name_scope("average"):
        loss = tf.add_n(losses) / FLAGS.towers
        mean_gradients = averaged(gradients)
    train_op = optimizer.apply_gradients(mean_gradients, global_step=global_step)
    tf.summary.scalar("loss", loss)
    tf.summary.image("digits", images, max_outputs=4)
    for gradient, variable in mean_gradients:
        tf.summary.histogram(variable.op.name, variable)
        tf.summary.histogram("gradients/" + variable.op.name, gradient)
    return train_op, loss


def test_digits():
    """Returns images of shape [count, 28, 28, 1] in [0, 1] and labels of the test digits."""
    images, labels = [], []
    for record in tf.python_io.tf_record_iterator(os.path.join(FLAGS.data, "test.tfrecords")):
        feature = tf.train.Example.FromString(record).features.feature
        images.append(np.frombuffer(feature["image_raw"].bytes_list.value[0], np.uint8))
        labels.append(feature["label"].int64_list.value[0])
    return np.stack(images).reshape(-1, 28, 28, 1).astype(np.float32) / 255.0, np.array(labels)


def accuracy(session, images, predictions):
    """Returns the fraction of the test digits that are classified correctly."""
    digits, truth = test_digits()
    found = [
        session.run(predictions, {images: digits[start : start + EVALUATION_BATCH]})
        for start in range(0, len(digits), EVALUATION_BATCH)
    ]
    return float(np.mean(np.concatenate(found) == truth))


def train(session, train_op, loss, summaries, writer):
    """Runs all steps; periodically prints the loss and the speed. The step of the last summary is traced."""
    start, since = time.time(), 0
    for step in range(1, FLAGS.steps + 1):
        if step % FLAGS.summary_every and step != FLAGS.steps:
            session.run(train_op)
            continue
        options, metadata = None, None
        if step == FLAGS.steps:
            options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
        _, value, summary = session.run([train_op, loss, summaries], options=options, run_metadata=metadata)
        writer.add_summary(summary, step)
        if metadata is not None:
            writer.add_run_metadata(metadata, f"step {step}", step)
            with open(os.path.join(FLAGS.logdir, "trace.json"), "w") as file:
                file.write(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
        rate = FLAGS.towers * FLAGS.batch * (step - since) / (time.time() - start)
        print(f"step {step:4d}  loss {value:.4f}  {rate:,.0f} examples/s", flush=True)
        start, since = time.time(), step


def main(_):
    with tf.device("/cpu:0"):
        images, labels = batches()
        global_step = tf.train.get_or_create_global_step()
        train_op, loss = training(images, labels, global_step)
        digits = tf.placeholder(tf.float32, [None, 28, 28, 1], name="digits")
        with tf.name_scope("evaluation"), tf.variable_scope("", reuse=True):
            predictions = tf.argmax(network(digits), axis=1, name="predictions")
        share = tf.placeholder(tf.float32, [], name="share")
        accuracy_summary = tf.summary.scalar("test_accuracy", share)
        summaries = tf.summary.merge([s for s in tf.get_collection("summaries") if s is not accuracy_summary])
        saver = tf.train.Saver()

    config = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(config=config) as session:
        writer = tf.summary.FileWriter(FLAGS.logdir, session.graph)
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            train(session, train_op, loss, summaries, writer)
        finally:
            coordinator.request_stop()
            coordinator.join(threads)
        value = accuracy(session, digits, predictions)
        writer.add_summary(session.run(accuracy_summary, {share: value}), FLAGS.steps)
        writer.close()
        saver.save(session, os.path.join(FLAGS.logdir, "model.ckpt"), global_step=global_step)
    print(f"Test accuracy: {value:.4f}")


if __name__ == "__main__":
    tf.app.run()
