"""Runs under TensorFlow 1.15: prints a saved model's predictions of serialized examples as JSON.

Arguments: the folder of the model, and a file of examples.
"""

import json
import sys

import tensorflow as tf

model, examples = sys.argv[1:]
with tf.Session() as session:
    signature = tf.saved_model.load(session, ["serve"], model).signature_def["predict"]
    feed = {signature.inputs["examples"].name: list(tf.python_io.tf_record_iterator(examples))}
    print(json.dumps(session.run(signature.outputs["logistic"].name, feed).ravel().tolist()))
