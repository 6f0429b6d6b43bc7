"""A monitored session of TensorFlow 1.1 that ends with an error, and another one that continues."""

import os
import sys

import tensorflow as tf


class Counts(tf.train.SessionRunHook):
    def __init__(self):
        self.calls = []

    def after_create_session(self, session, coord):
        self.calls.append("created")

    def after_run(self, run_context, run_values):
        self.calls.append("run")

    def end(self, session):
        self.calls.append("ended")


def train(steps, fail):
    counts = Counts()
    with tf.Graph().as_default():
        step = tf.contrib.framework.get_or_create_global_step()
        v = tf.get_variable("v", initializer=1.0)
        op = tf.group(tf.assign(v, v * 2.0), tf.assign_add(step, 1))
        folder = os.path.join(sys.argv[1], "model")
        hooks = [tf.train.StopAtStepHook(last_step=steps), counts]
        try:
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=folder,
                hooks=hooks,
                save_checkpoint_secs=None,
                save_summaries_steps=None,
                chief_only_hooks=[tf.train.CheckpointSaverHook(folder, save_steps=1)],
            ) as session:
                while not session.should_stop():
                    session.run(op)
                    if fail:
                        raise ValueError("lost")
        except ValueError:
            pass
        checkpoint = tf.train.latest_checkpoint(folder)
        return os.path.basename(checkpoint), float(tf.contrib.framework.load_variable(folder, "v")), counts.calls


print("1.1: %s" % (train(9, True),))
print("1.1: %s" % (train(3, False),))
