#!/bin/sh
# Common guess: keras.callbacks.BackupAndRestore(save_freq=N) records the epoch that is being trained, also after training
#   was restored: a job that is interrupted twice continues in the epoch of its second interruption.
# Fact: the callback learns the epoch only in on_epoch_end. Until the first epoch after a restart ends, its backups are
#   labelled epoch 0, so that a second interruption within this epoch makes the next run repeat all epochs.
# Version: keras 3.15.1 with jax 0.10.2.
# Source: keras/src/callbacks/backup_and_restore.py, on_train_begin, on_epoch_end and _save_model.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.10.2
cat > "$folder/program.py" <<'EOF'
import sys

import keras
import numpy as np


class Interrupt(keras.callbacks.Callback):
    """Ends training by an exception before a batch of an epoch."""

    def __init__(self, epoch, batch):
        super().__init__()
        self.at = (epoch, batch)
        self.epochs = []

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(epoch)

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epochs[-1], batch) == self.at:
            raise InterruptedError


def epochs_of_run(folder, interrupted):
    """Trains 4 epochs of 4 batches, or until it is interrupted; returns the epochs that began."""
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    interrupt = Interrupt(*interrupted)
    backup = keras.callbacks.BackupAndRestore(folder, save_freq=1)
    try:
        model.fit(np.ones((8, 2)), np.ones((8, 1)), batch_size=2, epochs=4, verbose=0, callbacks=[backup, interrupt])
    except InterruptedError:
        pass
    return interrupt.epochs


runs = [epochs_of_run(sys.argv[1], at) for at in ((2, 2), (2, 3), (9, 9))]
print("keras", keras.__version__)
for number, epochs in enumerate(runs, 1):
    print(f"run {number} began epochs", epochs)
# Runs 1 and 2 are interrupted within epoch 2. The last one continues with epoch 0.
assert runs == [[0, 1, 2], [2], [0, 1, 2, 3]], runs
EOF
KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/program.py" "$folder/backup"
