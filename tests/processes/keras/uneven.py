"""Counts the examples that two workers with uneven data process in a custom training loop."""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
X = np.arange(45, dtype="float32").reshape(-1, 1)


@tf.function
def step(batch):
    ones = strategy.run(lambda part: tf.reduce_sum(tf.ones_like(part)), args=(batch,))
    return strategy.reduce("SUM", ones, None)


def show(name, dataset):
    seen = [float(step(batch)) for batch in dataset]
    print(name, len(seen), sum(seen), flush=True)


def own(context):
    return tf.data.Dataset.from_tensor_slices(X[: 16 + 13 * context.input_pipeline_id]).batch(4)


def filtered(context):
    return own(context).filter(lambda part: tf.reduce_sum(part) >= 0)


show("known", strategy.distribute_datasets_from_function(own))
show("filtered", strategy.distribute_datasets_from_function(filtered))
show("none", strategy.distribute_datasets_from_function(lambda context: own(context).take(context.input_pipeline_id)))
show("divided", strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(X).batch(8)))
