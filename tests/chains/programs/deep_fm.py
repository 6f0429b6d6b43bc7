"""Clicks from TFRecord files: DeepFM on a parameter server and two workers, served for serialised examples."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from parts import Turns, on_servers, report, serve, start_server, values

STEPS, BATCH, SIZE = 40, 32, 4
FIELDS = {"user": 40, "item": 30, "tags": 20}


def examples(index):
    """Serialised examples with several tags; a user clicks items whose parity is its own."""
    numbers = np.random.RandomState(index)
    for _ in range(320):
        user, item, tags = numbers.randint(40), numbers.randint(30), numbers.randint(0, 20, numbers.randint(0, 4))
        click = (user + item) % 2 == 0 if numbers.uniform() < 0.9 else numbers.uniform() < 0.5
        ids = {"user": [user], "item": [item], "tags": list(tags), "click": [int(click)]}
        features = {
            name: tf.train.Feature(int64_list=tf.train.Int64List(value=each)) for name, each in sorted(ids.items())
        }
        features["age"] = tf.train.Feature(float_list=tf.train.FloatList(value=[user / 40.0]))
        yield tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def parse(serialized, label=True):
    spec = {name: tf.VarLenFeature(tf.int64) for name in FIELDS}
    spec["age"] = tf.FixedLenFeature([1], tf.float32)
    if label:
        spec["click"] = tf.FixedLenFeature([1], tf.int64)
    return tf.parse_example(serialized, spec)


def table(name, size):
    return tf.get_variable(name, initializer=tf.constant(values(name, [FIELDS[name.split("_")[0]], size])))


def dense(name, inputs, size, activation=None):
    first = tf.constant_initializer(values(name, [inputs.shape[1].value, size]))
    return tf.layers.dense(inputs, size, activation, kernel_initializer=first, name=name)


def network(features):
    """Logits: linear terms, products of embeddings, and a network of the embeddings."""
    logits, embedded = [dense("age", features["age"], 1)], []
    for name in sorted(FIELDS):
        weights, rows = table(name + "_linear", 1), table(name + "_rows", SIZE)
        logits.append(tf.nn.safe_embedding_lookup_sparse([weights], features[name], combiner="sum"))
        embedded.append(tf.nn.safe_embedding_lookup_sparse([rows], features[name], combiner="sqrtn"))
    stacked = tf.stack(embedded, 1)
    pairs = 0.5 * (tf.square(tf.reduce_sum(stacked, 1)) - tf.reduce_sum(tf.square(stacked), 1))
    hidden = tf.concat([*embedded, features["age"]], 1)
    for name, size in (("deep0", 16), ("deep1", 8)):
        hidden = dense(name, hidden, size, tf.nn.relu)
    return tf.add_n([*logits, tf.reduce_sum(pairs, 1, keepdims=True), dense("logit", hidden, 1)])


def train(target, index, folder):
    """Takes one worker's steps; returns its losses."""
    path = os.path.join(folder, "clicks.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for example in examples(index):
            writer.write(example)
    records = tf.data.TFRecordDataset(path).repeat().batch(BATCH).map(parse)
    with on_servers(index):
        features = records.make_one_shot_iterator().get_next()
        logits = network(features)
        loss = tf.losses.sigmoid_cross_entropy(features["click"], logits)
        step = tf.train.get_or_create_global_step()
        wide = [var for var in tf.trainable_variables() if "linear" in var.op.name]
        deep = [var for var in tf.trainable_variables() if var not in wide]
        update = tf.group(
            tf.train.FtrlOptimizer(0.1, l1_regularization_strength=1e-3).minimize(loss, var_list=wide),
            tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step, var_list=deep),
        )
    turns = Turns(index, tf.train.Saver(wide + deep), os.path.join(folder, "model"))
    with tf.train.MonitoredTrainingSession(
        target, is_chief=index == 0, hooks=[turns], save_summaries_steps=None, save_summaries_secs=None
    ) as session:
        return [session.run([loss, update])[0] for _ in range(STEPS)]


def main():
    target, index = start_server()
    folder = tempfile.mkdtemp()
    losses = train(target, index, folder)
    if index == 0:
        with tf.Graph().as_default(), tf.Session() as session:
            asked = tf.placeholder(tf.string, [None], "examples")
            shares = tf.sigmoid(network(parse(asked, label=False)))
            tf.train.Saver().restore(session, os.path.join(folder, "model"))
            lines = np.array(list(examples(2))[:4], object)
            report(losses, serve(session, {"examples": asked}, {"shares": shares}, {"examples": lines}))
    shutil.rmtree(folder)


main()
