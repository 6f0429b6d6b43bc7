"""Replicas on two devices of one process, within functions that run as Python because of the two devices."""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    optimizer = tf.keras.optimizers.Adam(0.1)
    average = tf.keras.metrics.Mean()
x, y = np.arange(20, dtype="f").reshape(10, 2), np.ones((10, 1), "f")


@tf.function
def step(batch):
    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(x) - y) ** 2) / 5.0
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        average.update_state(loss)
        return loss

    return strategy.reduce("SUM", strategy.run(replica, args=batch), None)


for batch in strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(5)):
    print("loss", round(float(step(batch)), 3))
print("weights", [round(float(each), 4) for each in np.concatenate([each.ravel() for each in model.get_weights()])])
print("average", round(float(average.result()), 3), "steps", int(np.asarray(optimizer.iterations)))
