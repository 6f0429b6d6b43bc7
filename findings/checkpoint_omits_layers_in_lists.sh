#!/bin/sh
# Common guess: tf.train.Checkpoint(model=model) saves all weights of a Keras model, so that another instance gets them by
#   restore.
# Fact: of a subclassed model of Keras 3, it does not save layers that the model has in a list or dict. After
#   restore(path).assert_consumed(), which succeeds, these layers keep their initial weights. model.save_weights saves them.
# Version: tensorflow-cpu 2.21.0 with keras 3.15.1.
# Source: keras/src/backend/tensorflow/trackable.py; Keras wraps lists in TrackedList, which TensorFlow does not track.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow-cpu==2.21.0 keras==3.15.1
cat > "$folder/program.py" <<'EOF'
import sys

import keras
import numpy as np
import tensorflow as tf


class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = keras.layers.Dense(1)
        self.rest = [keras.layers.Dense(1)]
        self.named = {"last": keras.layers.Dense(1)}

    def call(self, x):
        return self.named["last"](self.rest[0](self.first(x)))


def made(value):
    model = Model()
    model(np.ones((1, 1), "float32"))
    for variable in model.weights:
        variable.assign(np.full(variable.shape, value, "float32"))
    return model


path = tf.train.Checkpoint(model=made(7.0)).save(sys.argv[1] + "/c")
restored = made(0.0)
tf.train.Checkpoint(model=restored).restore(path).assert_consumed()
print("tensorflow", tf.__version__, "keras", keras.__version__)
print("saved:", [name for name, _ in tf.train.list_variables(path)])
kernels = [float(variable.numpy().item()) for variable in restored.weights if variable.name == "kernel"]
print("restored kernels of the attribute, the list and the dict:", kernels)
assert kernels == [7.0, 0.0, 0.0]
EOF
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" "$folder"
