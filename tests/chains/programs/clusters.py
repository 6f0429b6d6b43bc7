"""Points from CSV files: centers on a parameter server, moved by mini-batches of two workers, served for new points."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from parts import Turns, on_servers, report, serve, start_server

STEPS, BATCH = 30, 16
CENTERS = [(0.0, 4.0), (4.0, 1.0), (-3.0, -2.0)]
FIRST = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, -1.0]], np.float32)


def write_points(path, index):
    """Writes points around three centers; each worker has others."""
    numbers = np.random.RandomState(index)
    with open(path, "w") as file:
        for row in range(160):
            file.write("%.4f,%.4f\n" % tuple(numbers.normal(CENTERS[row % 3], 0.6)))


def clusters(points):
    return tf.contrib.factorization.KMeans(points, 3, FIRST, use_mini_batch=True).training_graph()


def read_before_adding(graph):
    """Orders reads of numbers of points before additions to them; TensorFlow's order is random."""
    for adding in graph.get_operations():
        if adding.type == "ScatterAdd":
            adding._add_control_inputs([op for op in adding.inputs[1].consumers() if op.type == "GatherV2"])


class Choose(tf.train.SessionRunHook):
    """Lets the chief choose the first centers."""

    def __init__(self, choose):
        self.choose = choose

    def after_create_session(self, session, coord):
        del coord
        session.run(self.choose)


def train(target, index, folder):
    """Takes one worker's steps; returns its sums of distances."""
    path = os.path.join(folder, "points.csv")
    write_points(path, index)
    lines = tf.data.TextLineDataset(path).map(lambda line: tf.stack(tf.decode_csv(line, [[0.0], [0.0]])))
    with on_servers(index):
        _, _, distances, _, choose, move = clusters(lines.repeat().batch(BATCH).make_one_shot_iterator().get_next())
        read_before_adding(move.graph)
        total = tf.reduce_sum(distances[0])
        update = tf.group(move, tf.train.get_or_create_global_step().assign_add(1))
    turns = Turns(index, tf.train.Saver(), os.path.join(folder, "clusters"))
    hooks = [Choose(choose), turns] if index == 0 else [turns]
    with tf.train.MonitoredTrainingSession(
        target, is_chief=index == 0, hooks=hooks, save_summaries_steps=None, save_summaries_secs=None
    ) as session:
        return [session.run([total, update])[0] for _ in range(STEPS)]


def main():
    target, index = start_server()
    folder = tempfile.mkdtemp()
    losses = train(target, index, folder)
    if index == 0:
        with tf.Graph().as_default(), tf.Session() as session:
            points = tf.placeholder(tf.float32, [None, 2], "points")
            scores, nearest, _, _, _, _ = clusters(points)
            tf.train.Saver().restore(session, os.path.join(folder, "clusters"))
            asked = {"points": np.array([[0.1, 3.4], [-1.4, 0.2], [2.5, -2.0]], np.float32)}
            report(losses, serve(session, {"points": points}, {"nearest": nearest[0], "scores": scores[0]}, asked))
    shutil.rmtree(folder)


main()
