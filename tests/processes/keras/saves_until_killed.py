"""Saves one file after the other until it is killed; starts one such process for each line of standard input.

    saves_until_killed.py FOLDER KIND

All weights of a file are its number. Each process prints its process id, the number that it has found, and each number
before it saves a file with it. The processes are forked from one that has imported everything, which prints the exit of
each.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import h5py  # noqa: F401  imported here, once for all lives
import numpy as np

from headwater.keras import saving
from headwater.keras.callbacks import BackupAndRestore, ModelCheckpoint

import keras  # isort: skip - the package before it chooses the backend

folder, kind = Path(sys.argv[1]), sys.argv[2]
#: By kind, the name of the files.
NAMES = {"model": "a-{epoch}.keras", "unnamed": "a-{epoch}", "weights": "a.weights.h5"}


def make_model() -> Any:
    model = keras.Sequential(
        [keras.Input((300,)), keras.layers.Dense(1000, use_bias=False, kernel_initializer="zeros")]
    )
    model.compile("sgd", "mse")
    return model


def number_of(path: Path) -> int:
    return int(path.name.removeprefix("a-").removesuffix(".keras"))


def number_in(model: Any) -> int:
    (found,) = np.unique(model.get_weights()[0])
    return int(found)


def newest(model: Any, backup: Any) -> int:
    """Returns the number of the file that a restarted program finds."""
    if kind == "backup":
        backup.on_train_begin()
        found = number_in(model) if (folder / "training-state").exists() else 0
        assert found == backup._current_epoch
        return found
    paths = [path for path in folder.iterdir() if not path.name.startswith(".")]
    if not paths:
        return 0
    if kind == "weights":
        saving.load_weights(model, paths[0])
        return number_in(model)
    path = max(paths, key=number_of)
    found = number_in(saving.load_model(path))
    assert found == number_of(path)
    return found


def live() -> None:
    model = make_model()
    backup = BackupAndRestore(folder)
    backup.set_model(model)
    checkpoint = ModelCheckpoint(folder / NAMES.get(kind, ""), save_weights_only=kind == "weights")
    checkpoint.set_model(model)
    number = newest(model, backup)
    print("process", os.getpid(), flush=True)
    print("found", number, flush=True)
    while True:
        number += 1
        model.set_weights([np.full((300, 1000), number)])
        print("saves", number, flush=True)
        if kind == "backup":
            backup._current_epoch = number
            backup.save()
            continue
        checkpoint.on_epoch_end(number - 1, {})
        if kind != "weights" and number > 2:
            Path(str(folder / NAMES[kind]).format(epoch=number - 2)).unlink(missing_ok=True)


# JAX computes nothing before the fork, and has no threads in this process.
warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
warnings.filterwarnings("ignore", "You are saving your model as an HDF5 file")
for _ in sys.stdin:
    child = os.fork()
    if not child:
        live()
    os.waitpid(child, 0)
    print("ended", 0, flush=True)
