#!/bin/sh
# Common guess: keras.metrics.Metric.reset_state() gives each variable of a metric its initial value, so that a running
#   minimum that is added with a large initial value starts each epoch with this value.
# Fact: it assigns zeros to all variables, whatever their initializers are. The minimum is right in the first epoch only if
#   nothing resets the metric before; fit() resets it at the start of each epoch, so that it is 0 at the end of all epochs.
# Version: keras 3.15.1 with jax 0.10.2.
# Source: keras/src/metrics/metric.py, reset_state and add_variable.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.10.2
cat > "$folder/program.py" <<'EOF'
import keras
import numpy as np


class Smallest(keras.metrics.Metric):
    """Is the smallest prediction of an epoch."""

    def __init__(self):
        super().__init__(name="smallest")
        self.least = self.add_variable((), initializer=keras.initializers.Constant(1e9), name="least")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.least.assign(keras.ops.minimum(self.least, keras.ops.min(y_pred)))

    def result(self):
        return self.least.value


metric = Smallest()
before = float(metric.result())
metric.reset_state()
after = float(metric.result())
model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
model.compile(keras.optimizers.SGD(0.0), "mse", metrics=[metric])
epochs = model.fit(np.full((4, 1), 5.0), np.zeros((4, 1)), epochs=2, verbose=0).history["smallest"]
print("keras", keras.__version__)
print("value of a new metric", before)
print("value after reset_state", after)
print("smallest prediction of each epoch, all of which are 5:", epochs)
assert (before, after) == (1e9, 0.0), (before, after)
assert epochs == [0.0, 0.0], epochs
EOF
KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/program.py"
