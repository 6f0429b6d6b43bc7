"""Synchronous replicas of TensorFlow 0.10: a ps and two workers, with towers between graphs."""

import threading

import tensorflow as tf

workers, servers = tf.test.create_local_cluster(num_workers=2, num_ps=1)
found = {}


def work(index):
    graph = tf.Graph()
    where = tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:%d" % index)
    with graph.as_default(), tf.device(where):
        global_step = tf.Variable(0, name="global_step", trainable=False)
        w = tf.Variable(0.0, name="w")
        loss = tf.square(w - 10.0)
        opt = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2, total_num_replicas=2, replica_id=index
        )
        train_op = opt.minimize(loss, global_step=global_step)
        chief = index == 0
        runner = opt.get_chief_queue_runner()
        tokens = opt.get_init_tokens_op()
        sv = tf.train.Supervisor(
            is_chief=chief,
            init_op=tf.initialize_all_variables(),
            local_init_op=opt.chief_init_op if chief else opt.local_step_init_op,
            ready_for_local_init_op=opt.ready_for_local_init_op,
            global_step=global_step,
        )
    with sv.prepare_or_wait_for_session(workers[index].target) as session:
        if chief:
            sv.start_queue_runners(session, [runner])
            session.run(tokens)
        step = 0
        while step < 20:
            _, step = session.run([train_op, global_step])
        found[index] = (step, session.run(w))


threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("0.10: replicas ended at %s, w %.1f" % (sorted(int(step) for step, _ in found.values()), found[0][1]))
