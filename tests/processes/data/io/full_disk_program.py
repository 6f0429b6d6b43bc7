"""Trains, saves, encounters a full disk, continues to train, and saves again once there is room. Argument: a folder.

A limit on the size of files simulates the full disk. Prints its results, one per line.
"""

import resource
import signal
import sys

import numpy as np

from headwater import tf

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = sys.argv[1]
weights = tf.get_variable("weights", initializer=np.zeros(500_000, np.float32))
step = tf.train.get_or_create_global_step()
train = tf.group(tf.assign_add(weights, np.ones(500_000, np.float32)), tf.assign_add(step, 1))
saver = tf.train.Saver()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train)
    saver.save(session, folder + "/model", step)
    session.run(train)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, unlimited[1]))
    try:
        saver.save(session, folder + "/model", step)
    except tf.errors.ResourceExhaustedError as error:
        print("refused:", error.message.splitlines()[0])
    session.run(train)
    print("step:", int(session.run(step)))
    print("newest:", tf.train.latest_checkpoint(folder))
    print("whole:", float(tf.train.load_variable(folder, "weights").min()))
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    saver.save(session, folder + "/model", step)
    print("then:", float(tf.train.load_variable(folder, "weights").max()))
