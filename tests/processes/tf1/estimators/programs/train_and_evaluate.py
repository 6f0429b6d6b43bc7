"""Any task of a cluster, as ``TF_CONFIG`` specifies: trains, serves variables or evaluates."""

import os
import sys

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.INFO)
numbers = np.random.RandomState(0)
EPOCHS = int(os.environ["EPOCHS"]) if os.environ["EPOCHS"] else None
X = numbers.standard_normal((64, 3)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int64)


def training():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(EPOCHS).batch(16)


def testing():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(16)


def main():
    config = tf.estimator.RunConfig(model_dir=sys.argv[-1], save_checkpoints_steps=20)
    estimator = tf.estimator.DNNClassifier([8], [tf.feature_column.numeric_column("x", 3)], config=config)
    train = tf.estimator.TrainSpec(training, max_steps=100)
    evaluate = tf.estimator.EvalSpec(testing, steps=None, start_delay_secs=0, throttle_secs=0)
    print("task", config.task_type, config.task_id, config.is_chief)
    tf.estimator.train_and_evaluate(estimator, train, evaluate)
    if config.task_type in ("chief", "master", "evaluator"):
        print("evaluated", estimator.evaluate(testing)["global_step"])
    print("done")


main()
