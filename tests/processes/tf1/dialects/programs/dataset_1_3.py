"""Datasets of TensorFlow 1.3, then in contrib: text files, padded batches, an iterator for two datasets."""

import os
import sys

import tensorflow as tf

path = os.path.join(sys.argv[1], "text")
with open(path, "w") as file:
    file.write("1\n2 3\n4 5 6\n7\n")


def numbers(line):
    return tf.string_to_number(tf.string_split([line]).values, tf.int32)


lines = tf.contrib.data.TextLineDataset(path).map(numbers)
padded = lines.padded_batch(2, padded_shapes=[None])
other = tf.contrib.data.Dataset.from_tensor_slices([[10, 20]]).batch(1)
iterator = tf.contrib.data.Iterator.from_structure(tf.int32, [None, None])
batch = iterator.get_next()
with tf.Session() as session:
    found = []
    for dataset in (padded, other):
        session.run(iterator.make_initializer(dataset))
        try:
            while True:
                found.append(session.run(batch).tolist())
        except tf.errors.OutOfRangeError:
            found.append("end")
print("1.3: %s" % found)
