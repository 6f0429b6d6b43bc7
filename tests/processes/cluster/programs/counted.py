"""A worker that counts its acknowledged steps on two `ps`, and at the end prints them with the steps that the `ps` have
applied.
"""

from __future__ import annotations

from task import args, start_server

from headwater import tf

server = start_server()
with tf.device("/job:ps/task:0"):
    global_step = tf.train.get_or_create_global_step()
    first = tf.assign_add(global_step, 1)
with tf.device("/job:ps/task:1"):
    other = tf.get_variable("other", initializer=tf.zeros([], tf.int64), trainable=False)
    second = tf.assign_add(other, 1)

acknowledged = 0
with tf.train.MonitoredTrainingSession(server.target, is_chief=True, checkpoint_dir=args.folder or None) as session:
    while acknowledged < args.steps:
        session.run([first, second])
        acknowledged += 1
        if acknowledged % 100 == 0:
            print("step", acknowledged, flush=True)
    print("acknowledged", acknowledged, "done", *session.run([global_step, other]), flush=True)
