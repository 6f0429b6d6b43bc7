"""Any task of a cluster: an estimator whose `model_fn` uses layers of ``tf.keras``; the chief exports it."""

import sys

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.INFO)
numbers = np.random.RandomState(0)
IDS = numbers.randint(0, 20, (256, 3))
LABELS = (IDS.sum(1) > 28).astype(np.float32)


class Interactions(tf.keras.layers.Layer):
    """Products of all pairs of rows, with a scale."""

    def build(self, shape):
        self.scale = self.add_weight("scale", shape=[int(shape[-1])], initializer=tf.keras.initializers.Ones())
        super().build(shape)

    def call(self, inputs):
        squares = tf.square(tf.reduce_sum(inputs, axis=1)) - tf.reduce_sum(tf.square(inputs), axis=1)
        return 0.5 * squares * self.scale


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    rows = tf.keras.layers.Embedding(20, 4, embeddings_initializer="glorot_uniform")(features["ids"])
    hidden = tf.keras.layers.concatenate([tf.keras.layers.Flatten()(rows), Interactions()(rows)])
    dense = tf.keras.layers.Dense(8, activation="relu", kernel_regularizer=tf.keras.regularizers.l2(1e-4))
    normal = tf.keras.layers.BatchNormalization(momentum=0.9)
    hidden = normal(dense(hidden), training=training)
    logits = tf.squeeze(tf.keras.layers.Dense(1, name="logits")(hidden), axis=1)
    chances = tf.keras.activations.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"chances": chances})}
        return tf.estimator.EstimatorSpec(mode, predictions={"chances": chances}, export_outputs=outputs)
    loss = tf.keras.losses.BinaryCrossentropy()(labels, chances) + tf.add_n(dense.losses)
    if not training:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    print("devices", sorted({variable.device for variable in tf.global_variables()}))
    print("variables", sorted(variable.op.name for variable in tf.trainable_variables()))
    with tf.control_dependencies(normal.updates):
        step = tf.train.AdagradOptimizer(0.2).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def training_data():
    return tf.data.Dataset.from_tensor_slices(({"ids": IDS}, LABELS)).repeat().batch(64)


def all_data():
    return tf.data.Dataset.from_tensor_slices(({"ids": IDS}, LABELS)).batch(256)


def main():
    estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(model_dir=sys.argv[-1]))
    train = tf.estimator.TrainSpec(training_data, max_steps=150)
    evaluate = tf.estimator.EvalSpec(all_data, steps=1, start_delay_secs=0, throttle_secs=0)
    tf.estimator.train_and_evaluate(estimator, train, evaluate)
    if estimator.config.is_chief:
        print("loss", estimator.evaluate(all_data)["loss"])
        ids = {"ids": tf.placeholder(tf.int64, [None, 3], "ids")}
        folder = estimator.export_savedmodel(
            sys.argv[-1] + "/exported", tf.estimator.export.build_raw_serving_input_receiver_fn(ids)
        )
        served = tf.contrib.predictor.from_saved_model(folder.decode())({"ids": IDS})["chances"]
        expected = [each["chances"] for each in estimator.predict(all_data)]
        print("same", np.allclose(served, expected, atol=1e-5), "right", np.mean((served > 0.5) == LABELS))
    print("done")


main()
