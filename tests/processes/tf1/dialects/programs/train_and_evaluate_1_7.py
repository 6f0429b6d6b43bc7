"""Training and evaluating in turns, with TensorFlow 1.7's estimators."""

import os
import sys

import numpy as np
import tensorflow as tf

random = np.random.RandomState(2)
x = random.randn(120, 2).astype(np.float32)
y = (x.sum(1) > 0).astype(np.int32)


def input_fn(count=None):
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
    return dataset.repeat(count).batch(30).make_one_shot_iterator().get_next()


columns = [tf.feature_column.numeric_column("x", shape=[2])]
folder = os.path.join(sys.argv[1], "model")
config = tf.estimator.RunConfig(model_dir=folder, tf_random_seed=3, save_checkpoints_steps=30)
estimator = tf.estimator.LinearClassifier(columns, config=config, optimizer=tf.train.FtrlOptimizer(0.5))
train_spec = tf.estimator.TrainSpec(input_fn, max_steps=60)
eval_spec = tf.estimator.EvalSpec(lambda: input_fn(1), steps=None, throttle_secs=0, start_delay_secs=0)
found, _ = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
print(
    "1.7: accuracy %s, step %d, %s"
    % (found["accuracy"] > 0.95, found["global_step"], sorted(estimator.get_variable_names())[:2])
)
