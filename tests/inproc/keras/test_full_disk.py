"""The disk becomes full while Keras trains: training continues, and earlier saves stay complete."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater.keras import saving
from headwater.keras.callbacks import BackupAndRestore, ModelCheckpoint
from headwater.keras.tensorboard import TensorBoard
from tests.support.small_disk import SmallDisk, small_disk

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


def test_keras_trains_on(disk: SmallDisk, caplog: pytest.LogCaptureFixture) -> None:
    model = keras.Sequential([keras.Input((100,)), keras.layers.Dense(500)])
    model.compile("sgd", "mse")
    data = np.ones((8, 100), np.float32), np.ones((8, 500), np.float32)

    class Full(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                disk.fill()
            elif epoch == 3:
                disk.free()

    callbacks = [
        Full(),
        ModelCheckpoint(str(disk.path / "model"), save_best_only=True, monitor="loss", mode="min"),
        BackupAndRestore(str(disk.path / "backup"), delete_checkpoint=False),
        TensorBoard(str(disk.path / "logs"), write_graph=False),
    ]
    kept: list[bytes] = []

    class Look(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            kept.append((disk.path / "model").read_bytes())

    history = model.fit(*data, epochs=4, verbose=0, callbacks=[*callbacks, Look()])
    gc.collect()  # Failed writes leave no object that cannot be closed, which Python 3.13 and later would report.
    assert len(history.epoch) == 4
    assert kept[0] == kept[1] == kept[2] != kept[3]
    for what in ("model", "backup/training-state"):
        assert f"Cannot write {disk.path / what}" in caplog.text
    loaded = saving.load_model(disk.path / "model")
    assert all(np.array_equal(a, b) for a, b in zip(loaded.get_weights(), model.get_weights(), strict=True))
