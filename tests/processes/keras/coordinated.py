"""Functions that a coordinator schedules change variables of no model, directly and through an optimizer."""

import json
import os
import sys

import numpy as np
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
task = json.loads(os.environ["TF_CONFIG"])["task"]
if task["type"] in ("ps", "worker"):
    tf.distribute.Server(resolver.cluster_spec(), job_name=task["type"], task_index=task["index"]).join()
    sys.exit(0)
strategy = tf.distribute.ParameterServerStrategy(resolver)
with strategy.scope():
    count, last, rate = tf.Variable(0.0), tf.Variable(0.0), tf.Variable(2.0, trainable=False)
    weights = tf.Variable([1.0, 2.0])
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.5)
    average = tf.keras.metrics.Mean()


@tf.function
def add():
    return strategy.run(lambda: count.assign_add(rate) + 0.0)


@tf.function
def put(value):
    return strategy.run(lambda: last.assign(value) + 0.0)


@tf.function
def train():
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * weights)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        return loss

    return strategy.run(step)


@tf.function
def measure():
    def step():
        average.update_state(rate)
        return rate + 0.0

    return strategy.run(step)


coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
for function in (add, put, train, measure):
    coordinator.register(function)


def results(function, times, *args):
    found = [coordinator.schedule(function, args=args) for _ in range(times)]
    coordinator.join()
    return [round(float(each.fetch()), 4) for each in found]


print("added", sorted(results(add, 5)), float(count.numpy()), flush=True)
rate.assign(3.0)
print("added", sorted(results(add, 2)), float(count.numpy()), flush=True)
print("put", results(put, 4, 7.0), float(last.numpy()), flush=True)
losses = sorted(results(train, 3), reverse=True)
print("trained", losses, [round(float(weight), 4) for weight in weights.numpy()], flush=True)
print("iterations", int(np.asarray(optimizer.iterations)), flush=True)
print("measured", results(measure, 4), float(average.result()), flush=True)
