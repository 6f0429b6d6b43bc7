"""Builds a model of --variables small variables on a ps, and says how long it takes until its first step is done."""

import json
import tempfile
import time

from common import begin, start_server, task_arguments, tf, used

args = task_arguments(variables=10)
server, on_worker = start_server(args)
start = time.time()
with on_worker:
    variables = [tf.Variable(tf.fill([8], 1.0), name="v%d" % i) for i in range(args.variables)]
    loss = tf.add_n([tf.reduce_sum(tf.square(v)) for v in variables])
    global_step = tf.Variable(0, name="global_step", trainable=False)
    train_op = tf.train.AdagradOptimizer(0.01).minimize(loss, global_step=global_step)
    init_op = tf.global_variables_initializer()
built = time.time()
supervisor = tf.train.Supervisor(
    logdir=tempfile.mkdtemp(), init_op=init_op, summary_op=None, saver=None, global_step=global_step
)
config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
with supervisor.managed_session(server.target, config=config) as session:
    ready = time.time()
    session.run([train_op, global_step])
    first = time.time()
    session.run([train_op, global_step])
    begin()
    began, steps = time.time(), 0
    while time.time() - began < args.seconds:
        session.run([train_op, global_step])
        steps += 1
    rate = steps / (time.time() - began)
    print(
        json.dumps(
            dict(used(steps), rate=rate, build_s=built - start, ready_s=ready - built, first_step_s=first - ready)
        ),
        flush=True,
    )
