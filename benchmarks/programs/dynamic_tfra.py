"""The peer of ``keys.py rate``: tables of TensorFlow's recommenders-addons in one process, without a network.

For Python with tensorflow-cpu 2.16, tf-keras and tensorflow-recommenders-addons 0.8.
"""

import argparse
import json
import os
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1")

import numpy as np
import tensorflow as tf
from tensorflow_recommenders_addons import dynamic_embedding

TABLES, DIM = 8, 16
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=2048)
parser.add_argument("--seconds", type=float, default=4)
args = parser.parse_args()
random = np.random.default_rng(0)
ids = [tf.constant(random.zipf(1.2, [TABLES, args.batch]) * 7919 % 200_000, tf.int64) for _ in range(50)]
labels = [tf.constant(random.integers(0, 2, args.batch), tf.float32) for _ in range(50)]
begins = tf.keras.initializers.RandomUniform(-0.05, 0.05)
tables = [
    dynamic_embedding.get_variable("table%d" % index, dim=DIM, initializer=begins, devices=["/CPU:0"])
    for index in range(TABLES)
]
optimizer = dynamic_embedding.DynamicEmbeddingOptimizer(tf.keras.optimizers.legacy.Adagrad(0.05))
looked_up = []


@tf.function
def look_up(keys):
    return tf.add_n([table.lookup(keys[index]) for index, table in enumerate(tables)])


@tf.function
def train(keys, wanted):
    def loss():
        rows = []
        looked_up.clear()
        for index, table in enumerate(tables):
            name = "rows%d" % index
            rows.append(dynamic_embedding.embedding_lookup(table, keys[index], name=name))
            looked_up.append(table.get_trainable_by_name(name))
        logits = tf.reduce_sum(tf.add_n(rows), 1)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(wanted, logits))

    optimizer.minimize(loss, lambda: looked_up)


def repeated(act):
    """How often ``act`` can be done in a second."""
    for number in range(20):
        act(number)
    done, began = 0, time.perf_counter()
    while time.perf_counter() < began + args.seconds:
        act(done % 50)
        done += 1
    return done / (time.perf_counter() - began)


rows = TABLES * args.batch
print(
    json.dumps(
        {
            "lookup": repeated(lambda number: look_up(ids[number])) * rows,
            "train": repeated(lambda number: train(ids[number], labels[number])) * rows,
        }
    ),
    flush=True,
)
