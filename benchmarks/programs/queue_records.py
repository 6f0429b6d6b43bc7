"""Reads TFRecords through a queue: parse, decode, reshape, cast, batches of 100 in random order; counts examples."""

import argparse
import os
import shutil
import tempfile
import time

import numpy as np
from common import begin, report, tf

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=4)
args = parser.parse_args()
folder = tempfile.mkdtemp()
path = os.path.join(folder, "digits.tfrecords")
pixels = np.random.RandomState(0).randint(0, 256, (10000, 784)).astype(np.uint8)
with tf.python_io.TFRecordWriter(path) as writer:
    for index, image in enumerate(pixels):
        features = tf.train.Features(
            feature={
                "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                "pixels": tf.train.Feature(int64_list=tf.train.Int64List(value=[784])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[index % 10])),
            }
        )
        writer.write(tf.train.Example(features=features).SerializeToString())
_, record = tf.TFRecordReader().read(tf.train.string_input_producer([path]))
parsed = tf.parse_single_example(
    record,
    features={
        "image_raw": tf.FixedLenFeature([], tf.string),
        "pixels": tf.FixedLenFeature([], tf.int64),
        "label": tf.FixedLenFeature([], tf.int64),
    },
)
image = tf.cast(tf.reshape(tf.decode_raw(parsed["image_raw"], tf.uint8), [784]), tf.float32)
batch = tf.train.shuffle_batch(
    [image, tf.cast(parsed["label"], tf.int32)], batch_size=100, capacity=10300, min_after_dequeue=10000
)
with tf.Session() as session:
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    for _ in range(200):  # more than the queue holds when it is full
        session.run(batch)
    times = []
    begin()
    deadline = time.perf_counter() + args.seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        session.run(batch)
        times.append((time.perf_counter() - start) / 100)
    coordinator.request_stop()
    coordinator.join(threads)
shutil.rmtree(folder)
report(times)
