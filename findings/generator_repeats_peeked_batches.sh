#!/bin/sh
# Common guess: keras.Model.fit(generator, epochs=3) with a generator that ends trains each batch once; the later epochs have
#   no data, and train nothing.
# Fact: Keras reads the first two batches in advance to learn their structure, and puts them before the rest again in each
#   epoch. Each later epoch trains on these two batches, so that their share of the updates grows with the number of epochs.
# Version: keras 3.15.1 with jax 0.10.2.
# Source: keras/src/trainers/data_adapters/generator_data_adapter.py, peek_and_restore.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.10.2
cat > "$folder/program.py" <<'EOF'
import warnings

import keras
import numpy as np

warnings.simplefilter("ignore")


def batches():
    """Yields four batches of one row; the loss of batch i is 100 to the power of i."""
    for number in range(4):
        yield np.full((1, 1), 10.0**number), np.zeros((1, 1))


model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
model.compile(keras.optimizers.SGD(0.0), "mse")
losses = model.fit(batches(), epochs=3, verbose=0).history["loss"]
updates = int(model.optimizer.iterations.value)
print("keras", keras.__version__)
print("mean loss of each epoch", losses)
print("updates", updates, "of 4 batches")
# The mean of 1, 100, 10,000 and 1,000,000, and then twice the mean of 1 and 100.
assert losses == [252525.25, 50.5, 50.5], losses
assert updates == 8, updates
EOF
KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/program.py"
