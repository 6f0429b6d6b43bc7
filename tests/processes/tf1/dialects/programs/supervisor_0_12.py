"""A supervisor of TensorFlow 0.12 that resumes the training of an earlier one."""

import sys

import tensorflow as tf


def train(folder, last):
    with tf.Graph().as_default():
        step = tf.contrib.framework.get_or_create_global_step()
        w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.squared_difference(w, [1.0, 2.0]))
        op = tf.train.GradientDescentOptimizer(0.25).minimize(loss, global_step=step)
        supervisor = tf.train.Supervisor(logdir=folder, save_model_secs=0, save_summaries_secs=0, global_step=step)
        with supervisor.managed_session() as session:
            began = session.run(step)
            while not supervisor.should_stop() and session.run(step) < last:
                session.run(op)
            supervisor.saver.save(session, supervisor.save_path, global_step=step)
            return int(began), session.run(w).tolist()


print("0.12: %s then %s" % (train(sys.argv[1], 3), train(sys.argv[1], 5)))
