"""Writes the saved models in this folder with TensorFlow 2."""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

FOLDER = Path(sys.argv[1])


class Module(tf.Module):
    """A module with variables, a table, and functions with and without signatures."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
        self.count = tf.Variable(0, trainable=False, name="count")
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
        self.table = tf.lookup.StaticHashTable(pairs, -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def __call__(self, x):
        self.count.assign_add(1)
        return {"y": x @ self.w}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(self, keys):
        return self.table.lookup(keys)

    @tf.function
    def sums(self, x, training=False):
        total = tf.constant(0.0)
        for _ in tf.range(3):  # pyright: ignore[reportGeneralTypeIssues]
            total += tf.reduce_sum(x)
        return total if training else total * 2


def export_model(name, model, inputs):
    """Sets the weights of a model to fixed values, exports it, and stores its predictions."""
    for index, weight in enumerate(model.trainable_weights):
        count = int(np.prod(weight.shape))
        weight.assign(np.sin(np.arange(count) + index).reshape(weight.shape) / 2)
    model.export(FOLDER / name, verbose=False)
    (FOLDER / f"{name}.txt").write_text(" ".join(map(str, np.asarray(model(inputs)).ravel())) + "\n")


module = Module()
module.sums(tf.ones([2]))
module.sums(tf.ones([3]), training=True)
signatures = {"serving_default": module.__call__, "look": module.look}
tf.saved_model.save(module, FOLDER / "module", signatures)  # pyright: ignore[reportAttributeAccessIssue]

layers = tf.keras.layers
sequence = [layers.Embedding(6, 3, mask_zero=True), layers.GRU(2), layers.Dense(1)]
export_model("sequence", tf.keras.Sequential([layers.Input((None,), dtype="int32"), *sequence]), np.array([[1, 2, 0]]))

vectors = layers.TextVectorization(output_sequence_length=4, vocabulary=["cat", "sat", "the"])
text = [vectors, layers.Embedding(5, 2), layers.Flatten(), layers.Dense(1)]
sentences = tf.constant([["The cat, sat."], ["a dog"]])
export_model("text", tf.keras.Sequential([layers.Input((1,), dtype="string"), *text]), sentences)
