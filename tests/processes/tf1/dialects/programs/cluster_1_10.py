"""Distributed training in TensorFlow 1.10: a ps and two workers in one process, asynchronous, with hooks."""

import threading

import tensorflow as tf

workers, servers = tf.test.create_local_cluster(2, 1)
counts = [0, 0]


def work(index):
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:%d" % index)):
            step = tf.train.get_or_create_global_step()
            table = tf.get_variable("table", [6, 2], initializer=tf.zeros_initializer(), use_resource=True)
            rows = tf.nn.embedding_lookup(table, [index, index + 2, index + 4])
            loss = tf.reduce_sum(tf.square(rows - 1.0))
            train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
        config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % index])
        with tf.train.MonitoredTrainingSession(
            master=workers[index].target,
            is_chief=index == 0,
            hooks=[tf.train.StopAtStepHook(last_step=120)],
            config=config,
        ) as session:
            while not session.should_stop():
                session.run(train)
                counts[index] += 1


threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("1.10: both took part %s, steps %s" % (min(counts) > 0, 119 <= sum(counts) <= 122))
