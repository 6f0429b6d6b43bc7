"""A worker with `SyncReplicasOptimizer`; an argument sets the number of gradients for each update."""

from __future__ import annotations

from task import args, cluster, replicas, start_server

from headwater import tf

server = start_server()
workers = cluster.num_tasks("worker")
with replicas():
    global_step = tf.train.get_or_create_global_step()
    v = tf.Variable(5.0)
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(0.01), args.aggregate or workers, total_num_replicas=workers
    )
    train_op = optimizer.minimize(v * v, global_step=global_step)
chief = args.task_index == 0
hook = optimizer.make_session_run_hook(chief)
with tf.train.MonitoredTrainingSession(
    server.target, is_chief=chief, hooks=[hook], checkpoint_dir=args.folder or None, save_checkpoint_secs=1
) as session:
    step = 0
    while not args.last_step or step < args.last_step:
        step, _ = session.run([global_step, train_op])
        if step % args.steps == 0:
            print("step", step, flush=True)
