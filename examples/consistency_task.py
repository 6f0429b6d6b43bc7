"""Runs a task of a cluster that trains a classifier with the consistency mode ``--choice``; `consistency.py` starts it.

Worker 0 periodically prints the loss on held-out examples, as JSON; worker 1 delays each step by ``--slow_down``
seconds.
"""

import argparse
import json
import os
import threading
import time

import numpy as np
import tensorflow as tf

from headwater.ps.consistency import from_text
from headwater.tf1.training.consistency import ConsistentOptimizer

FEATURES, CLASSES, BATCH = 64, 10, 64


def examples(count, seed):
    """Returns noisy inputs (count, 64) and their classes: the nearest of ten random directions."""
    directions = np.random.RandomState(0).randn(FEATURES, CLASSES).astype("float32")
    random = np.random.RandomState(seed)
    x = random.randn(count, FEATURES).astype("float32")
    return x, (x @ directions + random.randn(count, CLASSES)).argmax(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choice", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--slow_down", type=float, required=True)
    arguments = parser.parse_args()
    config = json.loads(os.environ["TF_CONFIG"])
    job, index = config["task"]["type"], config["task"]["index"]
    server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
    if job == "ps":
        server.join()
    with tf.device(
        tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=server.server_def.cluster)
    ):
        x = tf.placeholder(tf.float32, [None, FEATURES])
        y = tf.placeholder(tf.int64, [None])
        hidden = tf.layers.dense(x, 64, tf.nn.relu, name="hidden")
        logits = tf.layers.dense(hidden, CLASSES, name="logits")
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        step = tf.train.get_or_create_global_step()
        optimizer = ConsistentOptimizer(tf.train.GradientDescentOptimizer(0.2), from_text(arguments.choice))
        train = optimizer.minimize(loss, global_step=step)
        (statistics,) = optimizer.statistics().values()
    hook = optimizer.make_session_run_hook(index == 0)
    test_x, test_y = examples(2000, seed=1)
    train_x, train_y = examples(20000, seed=2 + index)
    random = np.random.RandomState(index)
    pause = threading.Event()
    with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=[hook]) as session:

        def step_once():
            batch = random.randint(0, len(train_x), BATCH)
            session.run(train, {x: train_x[batch], y: train_y[batch]})

        def look():
            return session.run([step, loss, statistics], {x: test_x, y: test_y})

        # The first step includes preparation, such as compilation; the clock starts after it.
        step_once()
        look()
        begin = time.time()
        own_steps = 0
        while time.time() - begin < arguments.seconds:
            if index == 1:
                pause.wait(arguments.slow_down)
            step_once()
            own_steps += 1
            if index == 0 and own_steps % 20 == 1:
                at, found, record = look()
                print(json.dumps({"step": int(at), "seconds": time.time() - begin, "loss": float(found)}))
                print(f"staleness: mean {record[3] / max(1, record[0]):.2f}, greatest {record[2]}")


if __name__ == "__main__":
    main()
