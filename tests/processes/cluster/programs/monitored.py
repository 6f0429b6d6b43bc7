"""A worker that trains in a monitored session until it is asked to end; no checkpoint is due for a long time."""

from __future__ import annotations

from task import args, replicas, start_server

from headwater import tf

server = start_server()
with replicas():
    global_step = tf.train.get_or_create_global_step()
    increment = tf.assign_add(global_step, 1)
with tf.train.MonitoredTrainingSession(
    server.target, is_chief=args.task_index == 0, checkpoint_dir=args.folder, save_checkpoint_secs=3600
) as session:
    while True:
        step = session.run(increment)
        if step % args.steps == 0:
            print("step", step, flush=True)
