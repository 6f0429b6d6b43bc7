"""A worker that trains until it is asked to end, and whose session survives the loss of its ps."""

from __future__ import annotations

from task import args, replicas, start_server

from headwater import tf

server = start_server()
with replicas():
    global_step = tf.train.get_or_create_global_step()
    increment = tf.assign_add(global_step, 1)

supervisor = tf.train.Supervisor(
    is_chief=args.task_index == 0,
    logdir=args.folder or None,
    global_step=global_step,
    summary_op=None,
    save_model_secs=0,
    recovery_wait_secs=1,
)
session = supervisor.prepare_or_wait_for_session(server.target)
if supervisor.is_chief and args.folder:
    supervisor.saver.save(session, supervisor.save_path, global_step=session.run(global_step))
while True:
    step = session.run(increment)
    if step % args.steps == 0:
        print("step", step, flush=True)
