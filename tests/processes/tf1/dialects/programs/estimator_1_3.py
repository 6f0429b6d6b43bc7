"""An estimator of TensorFlow 1.3 with a model function, and its export."""

import os
import sys

import numpy as np
import tensorflow as tf

x = np.linspace(-1.0, 1.0, 40).astype(np.float32).reshape(-1, 1)
y = 3.0 * x - 1.0


def model(features, labels, mode, params):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [], initializer=tf.zeros_initializer())
    guess = w * features["x"] + b
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"guess": tf.estimator.export.PredictOutput({"guess": guess})}
        return tf.estimator.EstimatorSpec(mode, predictions={"guess": guess}, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, guess)
    train = tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train, eval_metric_ops={"mae": tf.metrics.mean_absolute_error(labels, guess)}
    )


config = tf.estimator.RunConfig().replace(tf_random_seed=1, save_checkpoints_steps=50)
estimator = tf.estimator.Estimator(model, os.path.join(sys.argv[1], "model"), config, params={"rate": 0.5})
train_input = tf.estimator.inputs.numpy_input_fn({"x": x}, y, batch_size=40, num_epochs=None, shuffle=False)
estimator.train(train_input, steps=60)
once = tf.estimator.inputs.numpy_input_fn({"x": x}, y, batch_size=40, num_epochs=1, shuffle=False)
found = estimator.evaluate(once)
guesses = [each["guess"][0] for each in estimator.predict(once)]
receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None, 1])})
exported = estimator.export_savedmodel(os.path.join(sys.argv[1], "export"), receiver)
with tf.Graph().as_default(), tf.Session() as session:
    meta = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], exported)
    signature = meta.signature_def["guess"]
    served = session.run(signature.outputs["guess"].name, {signature.inputs["x"].name: [[2.0]]})
print(
    "1.3: mae %.3f, step %d, first %.2f, served %.2f" % (found["mae"], found["global_step"], guesses[0], served[0, 0])
)
