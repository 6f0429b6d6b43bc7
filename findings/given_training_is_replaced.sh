#!/bin/sh
# Common guess: a layer that is called with training=True or training=False in a functional model keeps this value, as in
#   Monte Carlo dropout, Dropout(0.5)(x, training=True), and in fine-tuning, base(x, training=False), which Keras's guide
#   to transfer learning recommends. Keras 2 keeps it.
# Fact: in Keras 3, fit, evaluate and predict replace it by their own phase: predict drops nothing, and fit updates the
#   statistics of batch normalization in the base.
# Version: keras 3.15.1; the same code is in keras 3.0.5.
# Source: keras/src/models/functional.py, operation_fn; keras-team/keras#20285.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.7.1
cat > "$folder/program.py" <<'EOF'
import keras
import numpy as np

layers = keras.layers
x = np.ones((4, 200), "float32")
inputs = keras.Input((200,))
dropping = keras.Model(inputs, layers.Dropout(0.5)(inputs, training=True))
dropped = int((dropping.predict(x, verbose=0) == 0).sum())

normalization = layers.BatchNormalization()
base = keras.Sequential([keras.Input((200,)), normalization])
model = keras.Model(inputs, layers.Dense(1)(base(inputs, training=False)))
model.compile("sgd", "mse")
model.fit(x, x[:, :1], verbose=0)
changed = bool(np.any(np.asarray(normalization.moving_mean) != 0))

print("keras", keras.__version__)
print("zeros in the output of Dropout(0.5)(x, training=True) in predict:", dropped, "of", x.size)
print("statistics of base(x, training=False) changed by fit:", changed)
assert dropped == 0 and changed
EOF
KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/program.py"
