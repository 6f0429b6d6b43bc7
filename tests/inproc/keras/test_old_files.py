"""Files that Keras 2 has written, in TensorFlow 1.15 and in tf_keras 2.21, by ``tools/record_old_models.py``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest

from headwater import tf
from headwater.keras.old_files import model_of_old_config
from headwater.keras.saving import load_model

FOLDER = Path(__file__).parents[2] / "data" / "keras2"
WRITERS = ("tf1", "tf_keras")
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def expected_of(writer: str) -> tuple[list[Any], list[Any], dict[str, Any]]:
    found = json.loads((FOLDER / f"{writer}.expected.json").read_text())
    labels = np.asarray(found["labels"])
    return [np.asarray(found["text"], np.int32), np.asarray(found["image"])], [labels, labels[:, :1]], found


def require_predictions(model: Any, inputs: list[Any], found: dict[str, Any]) -> None:
    for ours, theirs in zip(model.predict(inputs, verbose=0), found["predicted"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_loaded_model_predicts_and_continues_its_training(writer: str) -> None:
    inputs, targets, found = expected_of(writer)
    model = load_model(str(FOLDER / f"{writer}.h5"))
    require_predictions(model, inputs, found)
    history = model.fit(inputs, targets, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["loss"], found["losses"], rtol=1e-5)
    assert {"chosen_loss", "amount_mae"} <= set(history)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", ["model.h5", "model.weights.h5"])
def test_a_model_of_json_gets_its_weights(writer: str, name: str, tmp_path: Path) -> None:
    inputs, _, found = expected_of(writer)
    model = tf.keras.models.model_from_json((FOLDER / f"{writer}.json").read_text())
    shutil.copy(FOLDER / f"{writer}.h5", tmp_path / name)
    model.load_weights(str(tmp_path / name))
    require_predictions(model, inputs, found)


def test_state_of_an_optimizer_that_the_file_lacks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "model.h5"
    shutil.copy(FOLDER / "tf1.h5", path)
    with h5py.File(path, "r+") as file:
        group = file["optimizer_weights"]
        group.attrs["weight_names"] = [name for name in group.attrs["weight_names"] if b"/m:" not in name]
    load_model(str(path))
    assert f"{path} does not contain the optimizer's momentum of all variables" in caplog.text


def test_unknown_parts_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="layer 'square' is a Lambda, whose function is in the file as code"):
        model_of_old_config({"class_name": "Lambda", "config": {"name": "square", "function": ["", None, None]}})
    with pytest.raises(TypeError, match="colour"):
        model_of_old_config({"class_name": "Dense", "config": {"name": "it", "units": 2, "colour": "red"}})
    path = tmp_path / "weights.h5"
    with h5py.File(path, "w") as file:
        file.attrs["keras_version"] = np.bytes_("2.2.4")
    with pytest.raises(ValueError, match="contains weights only"):
        load_model(str(path))


def test_old_spellings_of_layers() -> None:
    normal = {"class_name": "LayerNormalization", "config": {"name": "n", "axis": [1, 2], "dtype": "float32"}}
    assert list(model_of_old_config(normal).axis) == [1, 2]
    policy = {"class_name": "Policy", "config": {"name": "mixed_float16"}}
    dense = {"class_name": "Dense", "config": {"units": 1, "dtype": policy}}
    assert model_of_old_config(dense).compute_dtype == "float16"
    layers = [{"class_name": "Dense", "config": {"name": "d", "units": 1, "batch_input_shape": [None, 3]}}]
    sequence = model_of_old_config({"class_name": "Sequential", "config": layers})
    assert isinstance(sequence, keras.Sequential)
    assert sequence.input_shape == (None, 3)


def test_a_sequence_of_layers(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    written = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="d")])
    written.compile("sgd", "mse")
    written.save(path)
    layers = [{"class_name": "Dense", "config": {"name": "d", "units": 1, "batch_input_shape": [None, 3]}}]
    sgd = {"class_name": "SGD", "config": {"name": "SGD", "learning_rate": 0.25, "momentum": 0.5, "decay": 0.125}}
    training = {"loss": "mse", "metrics": ["mae"], "loss_weights": None, "optimizer_config": sgd}
    with h5py.File(path, "r+") as file:
        file.attrs["keras_version"] = "2.2.4-tf"
        file.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": layers})
        file.attrs["training_config"] = json.dumps(training)
        del file["optimizer_weights"]
    model = load_model(str(path))
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(model.predict(x, verbose=0), written.predict(x, verbose=0))
    assert (model.loss, model.optimizer.momentum, model.optimizer.decay) == ("mse", 0.5, 0.125)
    assert float(model.optimizer.learning_rate) == 0.25
