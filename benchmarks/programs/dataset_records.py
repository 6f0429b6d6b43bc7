"""Reads TFRecords through tf.data: parse, decode, reshape, cast, shuffle, batches of 100; counts examples."""

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
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[index % 10])),
            }
        )
        writer.write(tf.train.Example(features=features).SerializeToString())


def parse(record):
    """Image and label of a record."""
    spec = {"image_raw": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}
    parsed = tf.parse_single_example(record, spec)
    image = tf.cast(tf.reshape(tf.decode_raw(parsed["image_raw"], tf.uint8), [784]), tf.float32) / 255
    return image, tf.cast(parsed["label"], tf.int32)


dataset = tf.data.TFRecordDataset(path).map(parse, num_parallel_calls=2).shuffle(5000).repeat().batch(100).prefetch(2)
batch = dataset.make_one_shot_iterator().get_next()
with tf.Session() as session:
    for _ in range(300):  # three times around the file, so that all is loaded and compiled
        session.run(batch)
    times = []
    begin()
    deadline = time.perf_counter() + args.seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        for _ in range(20):  # several, because batches come in bursts
            session.run(batch)
        times.append((time.perf_counter() - start) / 2000)
shutil.rmtree(folder)
report(times)
