"""Callbacks of mirrored models: which worker writes which files, and how a restarted run uses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater.data.io.event_file import summary_iterator
from headwater.errors import DataLossError
from headwater.keras import saving
from headwater.keras.callbacks import BackupAndRestore, ModelCheckpoint
from headwater.keras.tensorboard import TensorBoard
from tests.support.mirrored import with_workers

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
Y = np.random.default_rng(1).integers(0, 2, 40).astype("int32")


def make_model() -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dropout(0.3), keras.layers.Dense(2)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return model


def fit(model: Any, *callbacks: Any, **settings: Any) -> Any:
    return model.fit(X, Y, batch_size=10, verbose=0, callbacks=list(callbacks), **settings).history


def test_one_process_writes_checkpoints_under_any_name(tmp_path: Path) -> None:
    def body(rank: int, mirror: Any) -> Any:
        model = mirror(make_model())
        folder = tmp_path / str(rank)
        fit(
            model,
            ModelCheckpoint(folder / "by-{epoch}-{batch}", save_freq=3),
            ModelCheckpoint(folder / "weights", save_weights_only=True),
            ModelCheckpoint(str(folder / "best.keras"), monitor="loss", mode="max", save_best_only=True),
            keras.callbacks.ModelCheckpoint(str(folder / "keras.weights.h5"), save_weights_only=True),
            epochs=2,
        )
        if rank == 0:
            model.save(folder / "model")
            model.save_weights(folder / "model-weights")
            before = model.get_weights()
            model.load_weights(folder / "model-weights")
            assert all((ours == theirs).all() for ours, theirs in zip(model.get_weights(), before, strict=True))
        return model.get_weights()

    weights, _ = with_workers(2, body)
    names = {path.name for path in (tmp_path / "0").iterdir()}
    assert names == {"by-1-3", "by-2-2", "weights", "best.keras", "keras.weights.h5", "model", "model-weights"}
    assert not (tmp_path / "1").exists()
    loaded = saving.load_model(tmp_path / "0" / "model")
    assert all((ours == theirs).all() for ours, theirs in zip(loaded.get_weights(), weights, strict=True))
    loaded = saving.load_model(tmp_path / "0" / "by-2-2")
    assert int(loaded.optimizer.iterations) == 6
    other = make_model()
    other.optimizer.build(other.trainable_variables)
    for name in ("weights", "keras.weights.h5"):
        other.set_weights([weight * 0 for weight in weights])
        saving.load_weights(other, tmp_path / "0" / name)
        assert all((ours == theirs).all() for ours, theirs in zip(other.get_weights(), weights, strict=True))


def test_a_file_with_code_is_not_loaded(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Lambda(lambda value: value * 2)])
    saving.save_model(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"[Ll]ambda"):
        saving.load_model(tmp_path / "model")


def test_the_previous_file_is_intact_after_a_failed_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model()
    saving.save_model(model, tmp_path / "model")
    before = (tmp_path / "model").read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        saving.save_model(model, tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_tensorboard_files_are_written_once(tmp_path: Path) -> None:
    def body(rank: int, mirror: Any) -> Any:
        board = TensorBoard(tmp_path / str(rank), histogram_freq=1, update_freq="batch")
        return fit(mirror(make_model()), board, epochs=2, validation_data=(X[:10], Y[:10]))

    history, _ = with_workers(2, body)
    assert [path.name for path in tmp_path.iterdir()] == ["0"]
    found: dict[str, list[float]] = {}
    for part in ("train", "validation"):
        for file in (tmp_path / "0" / part).iterdir():
            for event in summary_iterator(file):
                for value in event.summary.value:
                    found.setdefault(f"{part}/{value.tag}", []).append(value.simple_value)
    np.testing.assert_allclose(found["train/epoch_loss"], history["loss"], rtol=1e-6)
    np.testing.assert_allclose(found["validation/epoch_accuracy"], history["val_accuracy"], rtol=1e-6)
    assert len(found["train/batch_loss"]) == 8
    assert {"train/keras", "train/epoch_learning_rate", "validation/evaluation_loss_vs_iterations"} <= found.keys()


class Interrupted(Exception):
    """Ends a run early."""


class InterruptAt(keras.callbacks.Callback):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps = steps

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._steps -= 1
        if not self._steps:
            raise Interrupted


# The case in which the number of steps of an epoch does not divide the number of steps of the data.
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "settings", [{}, {"steps_per_epoch": 3}, {"steps_per_execution": 2}], ids=lambda settings: "-".join(settings)
)
def test_an_interrupted_run_resumes_at_the_next_step(tmp_path: Path, count: int, settings: dict[str, Any]) -> None:
    settings = dict(settings)
    at_once = settings.pop("steps_per_execution", 1)

    def run(folder: str, steps: int, epochs: int = 3) -> Any:
        models = [make_model() for _ in range(count)]  # not in the threads, which share one source of random numbers

        def body(rank: int, mirror: Any) -> Any:
            model = models[rank]
            model.steps_per_execution = at_once
            mirror(model)
            backup = BackupAndRestore(tmp_path / folder, save_freq=2, delete_checkpoint=False)
            try:
                history = fit(model, backup, InterruptAt(steps), epochs=epochs, shuffle=count == 1, **settings)
            except Interrupted:
                return None
            return history["loss"][-1], [np.asarray(variable.value).tobytes() for variable in model.variables]

        return with_workers(count, body)

    undisturbed = run("undisturbed", 0)
    assert run("disturbed", 5) == [None] * count
    assert run("disturbed", 0) == undisturbed


def test_the_state_of_another_model_is_refused(tmp_path: Path) -> None:
    fit(make_model(), BackupAndRestore(tmp_path, delete_checkpoint=False))
    other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    other.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    with pytest.raises(ValueError, match="holds the state of another model"):
        fit(other, BackupAndRestore(tmp_path))


def test_saved_state_consists_of_arrays_and_json(tmp_path: Path) -> None:
    fit(make_model(), BackupAndRestore(tmp_path, delete_checkpoint=False))
    with np.load(tmp_path / "training-state", allow_pickle=False) as found:
        description = json.loads(found["headwater"].tobytes())
        assert description["epoch"] == 1
        assert len(description["paths"]) == len(found.files) - 1


def test_a_flipped_bit_in_the_state_is_noticed(tmp_path: Path) -> None:
    model = make_model()
    fit(model, BackupAndRestore(tmp_path, delete_checkpoint=False))
    path = tmp_path / "training-state"
    whole = path.read_bytes()
    weights = model.get_weights()
    backup = BackupAndRestore(tmp_path)
    backup.set_model(model)
    noticed: list[str] = []
    choice = np.random.default_rng(0)
    for place in choice.integers(8 * len(whole), size=100).tolist():
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        model.set_weights([weight * 0 for weight in weights])
        try:
            backup.restore()
        except DataLossError as error:
            noticed.append(error.message)
        else:  # for example the time in the archive
            assert all((ours == theirs).all() for ours, theirs in zip(model.get_weights(), weights, strict=True))
    assert len(noticed) > 50
    assert all(message.startswith(f"{path} is damaged") for message in noticed)


def test_a_flipped_bit_in_a_model_is_noticed(tmp_path: Path) -> None:
    saving.save_model(make_model(), tmp_path / "model")
    whole = bytearray((tmp_path / "model").read_bytes())
    whole[whole.index(b"model.weights.h5") + 1000] ^= 4
    (tmp_path / "model").write_bytes(whole)
    with pytest.raises(DataLossError, match=f"{tmp_path / 'model'} is damaged"):
        saving.load_model(tmp_path / "model")


class OfBatches(keras.callbacks.Callback):
    """Records the logs of the batches of evaluations."""

    def __init__(self) -> None:
        super().__init__()
        self.logs: list[Any] = []

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.logs.append([float(value) for value in logs.values()])


def test_logs_of_the_batches_of_an_evaluation_cover_all_workers() -> None:
    def evaluated(model: Any, *, records: bool = True) -> Any:
        callback = OfBatches()
        listed = [callback] if records else []
        held = {"validation_data": (X, Y), "validation_batch_size": 16}
        history = model.fit(X, Y, batch_size=10, verbose=0, shuffle=False, callbacks=listed, **held).history
        last = model.evaluate(X, Y, batch_size=16, verbose=0, callbacks=listed)
        return callback.logs, history["val_loss"], last

    def without_dropout() -> Any:
        model = make_model()
        model.layers[1].rate = 0.0
        model.set_weights([np.full_like(value, 0.1) for value in model.get_weights()])
        return model

    logs, *results = evaluated(without_dropout())
    assert len(logs) == 6
    # One process has no such callback: all processes agree to combine the logs of each batch.
    found = with_workers(2, lambda rank, mirror: evaluated(mirror(without_dropout()), records=rank == 0))
    np.testing.assert_allclose(found[0][0], logs, rtol=1e-5)
    for _, *others in found:
        for ours, theirs in zip(others, results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)
