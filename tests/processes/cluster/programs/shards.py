"""A chief with its global step on one ps and a copy of it on another: steps and restores change both equally."""

from __future__ import annotations

from task import args, replicas, start_server

from headwater import tf

server = start_server()
with replicas():
    global_step = tf.train.get_or_create_global_step()
    twin = tf.get_variable("twin", [], tf.int64, initializer=tf.zeros_initializer())
    both = [tf.assign_add(global_step, 1), tf.assign_add(twin, 1)]
print("devices", global_step.device, twin.device)
scaffold = tf.train.Scaffold(saver=tf.train.Saver(sharded=True))
with tf.train.MonitoredTrainingSession(
    server.target, checkpoint_dir=args.folder, save_checkpoint_steps=50, scaffold=scaffold
) as session:
    while True:
        step, its_twin = session.run(both)
        assert step == its_twin
        if step % args.steps == 0:
            print("step", step, flush=True)
