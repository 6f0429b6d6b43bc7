"""Rings of points from CSV files: two workers train copies by elastic averaging, and the centers are served."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from parts import Turns, on_servers, report, serve, start_server, values

STEPS, BATCH, SIZE = 40, 16, 12


def write_points(path, index):
    """Writes points of three rings; each worker has others."""
    numbers = np.random.RandomState(index)
    with open(path, "w") as file:
        for row in range(160):
            angle = numbers.uniform(0, 2 * np.pi)
            radius = row % 3 + numbers.uniform(0.2, 0.8)
            file.write("%.4f,%.4f,%d\n" % (radius * np.cos(angle), radius * np.sin(angle), row % 3))


def read_points(path):
    points = tf.data.TextLineDataset(path).map(lambda line: tf.decode_csv(line, [[0.0], [0.0], [0]]))
    x, y, label = points.repeat().batch(BATCH).make_one_shot_iterator().get_next()
    return tf.stack([x, y], 1), label


def network(points):
    found = points
    for name, shape in (("first", [2, SIZE]), ("second", [SIZE, SIZE]), ("last", [SIZE, 3])):
        with tf.variable_scope(name):
            weights = tf.get_variable("weights", initializer=tf.constant(values(name, shape)))
            bias = tf.get_variable("bias", [shape[1]], initializer=tf.zeros_initializer())
            found = tf.nn.xw_plus_b(found, weights, bias)
            found = found if name == "last" else tf.tanh(found)
    return found


def train(target, index, folder):
    """Trains one worker's copies; returns its losses."""
    path = os.path.join(folder, "points.csv")
    write_points(path, index)
    points, label = read_points(path)
    getter = tf.contrib.opt.ElasticAverageCustomGetter(worker_device="/job:worker/task:%d" % index)
    with on_servers(index):
        with tf.variable_scope("", custom_getter=getter):
            loss = tf.losses.sparse_softmax_cross_entropy(label, network(points))
        step = tf.train.get_or_create_global_step()
    # Each worker counts its own steps: on the parameter server one count would be of both.
    with tf.device("/job:worker/task:%d" % index):
        optimizer = tf.contrib.opt.ElasticAverageOptimizer(
            tf.train.AdagradOptimizer(0.3), 2, getter, communication_period=3, moving_rate=0.3, rho=0.01
        )
        update = optimizer.minimize(loss, global_step=step)
        started = optimizer.make_session_run_hook(index == 0, index)
    turns = Turns(index, optimizer.swapping_saver(), os.path.join(folder, "centers"))
    with tf.train.MonitoredTrainingSession(
        target, is_chief=index == 0, hooks=[started, turns], save_summaries_steps=None, save_summaries_secs=None
    ) as session:
        return [session.run([loss, update])[0] for _ in range(STEPS)]


def main():
    target, index = start_server()
    folder = tempfile.mkdtemp()
    losses = train(target, index, folder)
    if index == 0:
        with tf.Graph().as_default(), tf.Session() as session:
            points = tf.placeholder(tf.float32, [None, 2], "points")
            shares = tf.nn.softmax(network(points))
            tf.train.Saver().restore(session, os.path.join(folder, "centers"))
            asked = {"points": np.array([[0.1, 0.4], [-1.4, 0.2], [1.5, -2.0]], np.float32)}
            report(losses, serve(session, {"points": points}, {"shares": shares}, asked))
    shutil.rmtree(folder)


main()
