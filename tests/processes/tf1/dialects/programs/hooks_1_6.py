"""A monitored session of TensorFlow 1.6 with custom hooks and an initialisable dataset."""

import sys

import tensorflow as tf


class Stops(tf.train.SessionRunHook):
    """Ends the training once the loss is small."""

    def __init__(self, loss):
        self._loss = loss

    def begin(self):
        self.seen = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        self.seen.append(run_values.results)
        if run_values.results < 1e-3:
            run_context.request_stop()


dataset = (
    tf.data.Dataset.range(100).map(lambda i: tf.cast(i, tf.float32) / 100.0).shuffle(100, seed=2).repeat().batch(10)
)
iterator = dataset.make_initializable_iterator()
tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
x = iterator.get_next()
with tf.variable_scope("line", reuse=tf.AUTO_REUSE):
    w, b = tf.get_variable("w", []), tf.get_variable("b", [], initializer=tf.zeros_initializer())
loss = tf.losses.mean_squared_error(2.0 * x + 1.0, w * x + b)
step = tf.train.get_or_create_global_step()
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
hook = Stops(loss)
saver = tf.train.CheckpointSaverHook(sys.argv[1], save_steps=20)
with tf.train.MonitoredTrainingSession(
    hooks=[hook, tf.train.NanTensorHook(loss), tf.train.StopAtStepHook(last_step=400)], chief_only_hooks=[saver]
) as session:
    while not session.should_stop():
        session.run(train)
print("1.6: stopped early %s, saved %s" % (len(hook.seen) < 400, tf.train.latest_checkpoint(sys.argv[1]) is not None))
