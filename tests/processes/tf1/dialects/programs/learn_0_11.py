"""An estimator of TensorFlow 0.11's contrib.learn, with arrays and columns."""

import itertools

import numpy as np
import tensorflow as tf

random = np.random.RandomState(7)
x = random.randn(200, 3).astype(np.float32)
y = (x[:, 0] + x[:, 1] > 0).astype(np.int32)
columns = [tf.contrib.layers.real_valued_column("", dimension=3)]
classifier = tf.contrib.learn.DNNClassifier(hidden_units=[8], n_classes=2, feature_columns=columns)


def examples():
    return {"": tf.constant(x)}, tf.constant(y)


classifier.fit(input_fn=examples, steps=120)
found = classifier.evaluate(input_fn=examples, steps=1)
guesses = np.array(list(itertools.islice(classifier.predict(input_fn=examples), 20)))
print("0.11: accuracy %s, step %d, %s" % (found["accuracy"] > 0.9, found["global_step"], guesses.shape))
