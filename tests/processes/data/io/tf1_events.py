"""Runs under TensorFlow 1.15: prints the events of a file, or writes some. Arguments: ``read`` or ``write``, path."""

import sys

import tensorflow as tf

what, path = sys.argv[1:]
if what == "write":
    with tf.summary.FileWriter(path) as writer:
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)]), 3)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 4)
else:
    for event in tf.train.summary_iterator(path):
        print(event.step, event.WhichOneof("what"), [value.tag for value in event.summary.value])
