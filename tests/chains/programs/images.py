"""JPEG records: a residual network by synchronous updates of two workers, served with averaged weights."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from parts import on_servers, report, serve, start_server, values
from tensorflow.contrib import slim
from tensorflow.contrib.slim import nets

STEPS, BATCH, EDGE, CLASSES = 12, 8, 16, 3


def jpegs(seed, count):
    """Pairs of a compressed image and its class: stripes of three directions."""
    numbers = np.random.RandomState(seed)
    pixels = tf.placeholder(tf.uint8, [EDGE, EDGE, 3])
    encoded = tf.image.encode_jpeg(pixels, quality=95)
    rows, columns = np.mgrid[:EDGE, :EDGE] / EDGE
    with tf.Session() as session:
        for _ in range(count):
            label = numbers.randint(CLASSES)
            stripes = numbers.randint(1, 4) * (rows, columns, rows + columns)[label]
            waves = np.sin(2 * np.pi * (stripes + numbers.rand()))
            image = 127.5 + 100 * waves[..., np.newaxis] * numbers.uniform(0.5, 1, 3)
            yield session.run(encoded, {pixels: image.astype(np.uint8)}), label


def write(path, seed):
    with tf.Graph().as_default(), tf.python_io.TFRecordWriter(path) as writer:
        for image, label in jpegs(seed, 4 * BATCH):
            features = {
                "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def decode(encoded):
    image = tf.image.decode_jpeg(encoded, 3, dct_method="INTEGER_ACCURATE")
    return tf.reshape(tf.cast(image, tf.float32) / 127.5 - 1.0, [EDGE, EDGE, 3])


def parse(record):
    spec = {"image/encoded": tf.FixedLenFeature([], tf.string), "image/class/label": tf.FixedLenFeature([], tf.int64)}
    found = tf.parse_single_example(record, spec)
    return decode(found["image/encoded"]), found["image/class/label"]


def known_values(getter, name, shape=None, initializer=None, **options):
    """Gives matrices and filters their `values` when they are made."""
    if len(shape) > 1:
        initializer = tf.constant_initializer(values(name, list(shape)))
    return getter(name, shape=shape, initializer=initializer, **options)


def network(images, is_training):
    """Logits of a residual network with two blocks."""
    blocks = [
        nets.resnet_v1.resnet_v1_block("block1", base_depth=4, num_units=2, stride=2),
        nets.resnet_v1.resnet_v1_block("block2", base_depth=8, num_units=2, stride=1),
    ]
    arguments = slim.arg_scope(nets.resnet_utils.resnet_arg_scope(batch_norm_decay=0.9))
    with arguments, tf.variable_scope("network", custom_getter=known_values):
        logits, _ = nets.resnet_v1.resnet_v1(images, blocks, CLASSES, is_training=is_training, scope="resnet")
    return tf.squeeze(logits, [1, 2]) if len(logits.shape) == 4 else logits


def train(target, index, folder):
    """Takes one worker's share of all steps; returns its losses."""
    path = os.path.join(folder, "images.tfrecord")
    write(path, index)
    records = tf.data.TFRecordDataset(path).map(parse).repeat().batch(BATCH, drop_remainder=True)
    with on_servers(index):
        images, labels = records.make_one_shot_iterator().get_next()
        logits = network(images, is_training=True)
        slim.losses.sparse_softmax_cross_entropy(logits, labels)
        loss = slim.losses.get_total_loss()
        step = tf.train.get_or_create_global_step()
        averages = tf.train.ExponentialMovingAverage(0.8)
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.MomentumOptimizer(0.01, 0.9),  # larger steps amplify rounding errors at the kinks of ReLU
            replicas_to_aggregate=2,
            total_num_replicas=2,
            variable_averages=averages,
            variables_to_average=tf.trainable_variables(),
        )
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS) if index == 0 else []
        with tf.control_dependencies(updates):
            loss = tf.identity(loss)
        update = optimizer.minimize(loss, global_step=step)
    hook = optimizer.make_session_run_hook(index == 0, num_tokens=0)
    with tf.train.MonitoredTrainingSession(
        target,
        is_chief=index == 0,
        checkpoint_dir=os.path.join(folder, "model") if index == 0 else None,
        hooks=[hook],
        save_checkpoint_steps=STEPS,
        save_summaries_steps=None,
        save_summaries_secs=None,
        stop_grace_period_secs=1,  # the chief's thread waits for gradients that no worker sends
    ) as session:
        return [session.run([loss, update])[0] for _ in range(STEPS)]


def main():
    target, index = start_server()
    folder = tempfile.mkdtemp()
    losses = train(target, index, folder)
    if index == 0:
        with tf.Graph().as_default(), tf.Session() as session:
            encoded = tf.placeholder(tf.string, [None], "images")
            logits = network(tf.map_fn(decode, encoded, tf.float32), is_training=False)
            kept = tf.train.ExponentialMovingAverage(0.8).variables_to_restore()
            tf.train.Saver(kept).restore(session, tf.train.latest_checkpoint(os.path.join(folder, "model")))
            with tf.Graph().as_default():
                asked = np.array([image for image, _ in jpegs(2, 4)], object)
            report(losses, serve(session, {"images": encoded}, {"classes": tf.nn.softmax(logits)}, {"images": asked}))
    shutil.rmtree(folder)


main()
