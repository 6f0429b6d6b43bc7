"""Variables of TensorFlow 0.8, saved, and restored under other names."""

import os
import sys

import tensorflow as tf

folder = sys.argv[1]
a = tf.Variable([1.0, 2.0], name="a")
b = tf.Variable([[3.0]], name="b")
grow = tf.group(a.assign(tf.mul(a, 2.0)), b.assign_add([[1.0]]))
saver = tf.train.Saver([a, b], max_to_keep=2)
with tf.Session() as session:
    session.run(tf.initialize_variables(tf.all_variables()))
    for step in range(4):
        session.run(grow)
        saver.save(session, os.path.join(folder, "model.ckpt"), global_step=step)
kept = [os.path.basename(path) for path in saver.last_checkpoints]
with tf.Graph().as_default(), tf.Session() as session:
    again = tf.Variable([0.0, 0.0], name="again")
    tf.train.Saver({"a": again}).restore(session, tf.train.get_checkpoint_state(folder).model_checkpoint_path)
    print("0.8: restored %s, kept %s" % (session.run(again).tolist(), kept))
