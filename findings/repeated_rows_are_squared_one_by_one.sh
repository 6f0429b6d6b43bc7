#!/bin/sh
# Common guess: the backend of Keras does not change the update of an embedding: if a batch contains an id twice, its row
#   gets the gradient that both places add up to, and adaptive optimizers square this sum.
# Fact: on TensorFlow the gradient of the rows stays divided by places, and its square is computed place by place: with an
#   id twice, the second moment is half as large as on JAX, and the row moves too far. It concerns Adam, AdamW, Nadam,
#   RMSprop, Adagrad, Adadelta and Ftrl. SGD, Adamax and Lion agree, and so do all optimizers if no id repeats.
# Version: keras 3.15.1 with tensorflow 2.21.0 and with jax 0.10.2.
# Source: keras/src/backend/tensorflow/sparse.py (functions of IndexedSlices by their values), and update_step of the
#   optimizers, which calls square on the gradient.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 tensorflow-cpu==2.21.0 jax==0.10.2
cat > "$folder/program.py" <<'EOF'
import json
import sys

import keras
import numpy as np

NAMES = ["SGD", "Adamax", "Lion", "Adam", "AdamW", "Nadam", "RMSprop", "Adagrad", "Adadelta", "Ftrl"]


def row_after(optimizer, ids):
    """Trains 3 steps on one pair of ids, with the squared sum of their rows as loss; returns the row of id 0."""
    model = keras.Sequential([
        keras.layers.Input((2,), dtype="int32"),
        keras.layers.Embedding(2, 1, embeddings_initializer="ones"),
        keras.layers.Flatten(),
        keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", trainable=False),
    ])
    model.compile(optimizer, loss="mse")
    model.fit(np.array([ids]), np.zeros((1, 1)), epochs=3, verbose=0)
    return float(model.layers[0].get_weights()[0][0, 0])


json.dump({f"{name} {ids}": row_after(getattr(keras.optimizers, name)(0.1), ids)
           for ids in ([0, 1], [0, 0]) for name in NAMES}, sys.stdout)
EOF
for backend in tensorflow jax; do
    KERAS_BACKEND=$backend TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" \
        > "$folder/$backend.json" 2> "$folder/log" || { cat "$folder/log"; exit 1; }
done
"$folder/venv/bin/python" - "$folder" <<'EOF'
import importlib.metadata
import json
import sys

found = [json.load(open(f"{sys.argv[1]}/{backend}.json")) for backend in ("tensorflow", "jax")]
print(*(f"{name} {importlib.metadata.version(name)}" for name in ("keras", "tensorflow-cpu", "jax")))
differ = []
for case, (tensorflow, jax) in ((case, [values[case] for values in found]) for case in found[0]):
    print(f"{case}: TensorFlow {tensorflow:.5f}, JAX {jax:.5f}")
    if abs(tensorflow - jax) > 1e-5:
        differ.append(case)
adaptive = ("Adam", "AdamW", "Nadam", "RMSprop", "Adagrad", "Adadelta", "Ftrl")
assert differ == [f"{name} [0, 0]" for name in adaptive], differ
EOF
