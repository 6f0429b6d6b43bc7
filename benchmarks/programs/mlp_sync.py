"""Trains a 784-100-10 network with Adam synchronously, batch 100: every update is of the mean gradient of all workers.

Each worker counts its steps for ``--seconds`` after 200 to warm up. A worker that left would keep the others waiting,
so all continue a little longer than they count.
"""

import json
import os
import tempfile
import threading
import time

import numpy as np
from common import begin, start_server, task_arguments, tf, used

WARM_UP = 200
GO_ON_S = 3

args = task_arguments(hidden=100)
server, on_worker = start_server(args)
chief = args.task_index == 0
workers = len(args.worker_hosts.split(","))
random = np.random.RandomState(args.task_index)
images = random.rand(10000, 784).astype("float32")
labels = np.eye(10, dtype="float32")[random.randint(0, 10, 10000)]
x = tf.placeholder(tf.float32, [None, 784])
y = tf.placeholder(tf.float32, [None, 10])
with on_worker:
    w1 = tf.Variable(tf.truncated_normal([784, args.hidden], stddev=1.0 / 28))
    b1 = tf.Variable(tf.zeros([args.hidden]))
    w2 = tf.Variable(tf.truncated_normal([args.hidden, 10], stddev=args.hidden**-0.5))
    b2 = tf.Variable(tf.zeros([10]))
    hidden = tf.nn.relu(tf.nn.xw_plus_b(x, w1, b1))
    probabilities = tf.nn.softmax(tf.nn.xw_plus_b(hidden, w2, b2))
    loss = -tf.reduce_sum(y * tf.log(tf.clip_by_value(probabilities, 1e-10, 1.0)))
    global_step = tf.Variable(0, name="global_step", trainable=False)
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.AdamOptimizer(0.01), replicas_to_aggregate=workers, total_num_replicas=workers
    )
    train_op = optimizer.minimize(loss, global_step=global_step)
queue_runner = optimizer.get_chief_queue_runner()
init_tokens = optimizer.get_init_tokens_op()

supervisor = tf.train.Supervisor(
    is_chief=chief,
    logdir=tempfile.mkdtemp(),
    init_op=tf.global_variables_initializer(),
    local_init_op=optimizer.chief_init_op if chief else optimizer.local_step_init_op,
    ready_for_local_init_op=optimizer.ready_for_local_init_op,
    summary_op=None,
    saver=None,
    global_step=global_step,
    recovery_wait_secs=1,
)
config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % args.task_index])
session = supervisor.prepare_or_wait_for_session(server.target, config=config)
if chief:
    supervisor.start_queue_runners(session, [queue_runner])
    session.run(init_tokens)
steps = [0]
warm, pause = threading.Event(), threading.Event()


def count():
    warm.wait()
    begin()
    before, start = steps[0], time.time()
    pause.wait(args.seconds)
    done = steps[0] - before
    print(json.dumps(dict(used(done), task=args.task_index, rate=done / (time.time() - start))), flush=True)
    pause.wait(GO_ON_S)
    os._exit(0)


threading.Thread(target=count, daemon=True).start()
while True:
    at = 100 * (steps[0] % 100)
    session.run([train_op, global_step], {x: images[at : at + 100], y: labels[at : at + 100]})
    steps[0] += 1
    if steps[0] == WARM_UP:
        warm.set()
