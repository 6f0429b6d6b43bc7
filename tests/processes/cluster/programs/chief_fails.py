"""A chief that performs one step, and then fails in the way that ``--folder`` selects."""

from __future__ import annotations

import sys

from task import args, replicas, start_server

from headwater import tf

server = start_server()
with replicas():
    step = tf.train.get_or_create_global_step()
    increment = tf.assign_add(step, 1)
    ready = tf.is_variable_initialized(step)
with tf.Session(server.target) as session:
    if not session.run(ready):
        session.run(step.initializer)
    print("step", session.run(increment), flush=True)
if args.folder == "raise":
    raise ValueError("as it was told")
if args.folder == "exit":
    sys.exit(3)
