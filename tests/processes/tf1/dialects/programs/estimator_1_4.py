"""An estimator of TensorFlow 1.4 with feature columns and datasets."""

import sys

import numpy as np
import tensorflow as tf

WORDS = ["red", "green", "blue"]
random = np.random.RandomState(5)
colours = random.choice(WORDS, 90)
sizes = random.rand(90).astype(np.float32)
labels = ((colours == "red") | (sizes > 0.8)).astype(np.int32)


def input_fn(epochs):
    dataset = tf.data.Dataset.from_tensor_slices(({"colour": colours, "size": sizes}, labels))
    return dataset.shuffle(90, seed=1).repeat(epochs).batch(30).make_one_shot_iterator().get_next()


colour = tf.feature_column.categorical_column_with_vocabulary_list("colour", WORDS)
size = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("size"), [0.2, 0.4, 0.6, 0.8])
estimator = tf.estimator.LinearClassifier(
    feature_columns=[colour, size],
    model_dir=sys.argv[1],
    optimizer=tf.train.FtrlOptimizer(1.0),
    config=tf.estimator.RunConfig(tf_random_seed=3),
)
estimator.train(lambda: input_fn(None), steps=60)
found = estimator.evaluate(lambda: input_fn(1), steps=3)
print("1.4: accuracy %s, step %d, %s" % (found["accuracy"] > 0.9, found["global_step"], sorted(found)[:2]))
