"""Summaries and meta graphs of TensorFlow 0.12, read again."""

import glob
import os
import sys

import tensorflow as tf

with tf.name_scope("train"):
    v = tf.Variable(1.0, name="v")
    tf.summary.scalar("value", v)
    tf.summary.histogram("many", tf.linspace(0.0, 1.0, 5) * v)
    double = tf.assign(v, v * 2.0, name="double")
merged = tf.summary.merge_all()
saver = tf.train.Saver()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    writer = tf.summary.FileWriter(sys.argv[1], session.graph)
    for step in range(3):
        session.run(double)
        writer.add_summary(session.run(merged), step)
    writer.add_session_log(tf.SessionLog(status=tf.SessionLog.STOP), 3)
    writer.close()
    prefix = saver.save(session, os.path.join(sys.argv[1], "model"))
found = []
for event in tf.train.summary_iterator(glob.glob(os.path.join(sys.argv[1], "events*"))[0]):
    found += [
        (event.step, value.tag, value.simple_value) for value in event.summary.value if value.tag == "train/value"
    ]
with tf.Graph().as_default(), tf.Session() as session:
    tf.train.import_meta_graph(prefix + ".meta").restore(session, prefix)
    again = session.run("train/double:0")
print("0.12: %s, then %.1f" % (found, again))
