"""Runs under TensorFlow 1.15: makes summaries of arrays. Arguments: file of arrays (.npz), file of records to write.

An array's name begins with the kind of its summary: ``histogram``, ``image`` or ``audio``. Records are in the order of
the names.
"""

import sys

import numpy as np
import tensorflow as tf

arrays = np.load(sys.argv[1])
with tf.python_io.TFRecordWriter(sys.argv[2]) as writer, tf.Session() as session:
    for name in sorted(arrays.files):
        value = tf.constant(arrays[name])
        if name.startswith("histogram"):
            summary = tf.summary.histogram(name, value)
        elif name.startswith("image"):
            summary = tf.summary.image(name, value, max_outputs=2)
        else:
            summary = tf.summary.audio(name, value, 8000, max_outputs=1)
        writer.write(session.run(summary))
