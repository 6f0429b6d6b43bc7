"""A client that is not a task of its cluster: adds to a shared variable and, if requested, stays until it is killed."""

from __future__ import annotations

import signal
import sys

from headwater import tf

target, amount, stay = sys.argv[1:]
with tf.device("/job:ps/task:0"):
    shared = tf.get_variable("shared", [], tf.int32, initializer=tf.zeros_initializer())
    ready = tf.is_variable_initialized(shared)
    add = tf.assign_add(shared, int(amount))
session = tf.Session(target)
if not session.run(ready):
    session.run(shared.initializer)
print("shared", session.run(add), flush=True)
if stay == "stay":
    signal.pause()
session.close()
