"""The orders in which programs import Headwater and Keras."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import EXEC

pytestmark = pytest.mark.slow

ORDERS = {
    "headwater first": "import headwater\nimport keras",
    "a strategy first": "from headwater.keras import ParameterServerStrategy\nimport keras",
    "keras first": "import keras\nfrom headwater.keras import ParameterServerStrategy",
    "keras first, then tf": "import keras\nfrom headwater import tf\nassert tf.keras.Model is keras.Model",
}
USE = """
import sys
import numpy as np
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
board = keras.callbacks.TensorBoard(sys.argv[-1])
model.fit(np.zeros((4, 2)), np.zeros((4, 1)), verbose=0, callbacks=[board])
print("backend", keras.config.backend())
"""
PLAIN = (sys.executable, "-u")
RUN = (sys.executable, "-u", "-m", "headwater", "run", "--workers", "1", "--ps", "0")


def run(folder: Path, way: tuple[str, ...], program: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = folder / "program.py"
    path.write_text(program)
    environ = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    # Without the user's Keras configuration, which might name a backend.
    environ |= {"KERAS_HOME": str(folder / "home"), **env}
    command = [*way, str(path), str(folder / "logs")]
    return subprocess.run(
        command, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "way", [pytest.param(EXEC, marks=pytest.mark.long, id="exec"), pytest.param(PLAIN, id="python")]
)
def test_every_order_works(tmp_path: Path, way: tuple[str, ...], order: str) -> None:
    # Under plain python, no code of Headwater runs if Keras is imported first: the environment names the backend.
    env = {"KERAS_BACKEND": "jax"} if way is PLAIN and order.startswith("keras") else {}
    ended = run(tmp_path, way, ORDERS[order] + USE, **env)
    assert ended.returncode == 0, ended.stdout
    assert "backend jax" in ended.stdout
    assert list((tmp_path / "logs" / "train").iterdir())


def test_an_order_works_in_a_job(tmp_path: Path) -> None:
    ended = run(tmp_path, RUN, ORDERS["keras first"] + USE)
    assert ended.returncode == 0, ended.stdout
    assert "backend jax" in ended.stdout


@pytest.mark.parametrize(
    "second",
    [
        pytest.param("from headwater.keras import Strategy", marks=pytest.mark.long),
        "from headwater import tf; tf.keras.Model",
    ],
)
def test_keras_on_another_backend_is_refused_in_one_line(tmp_path: Path, second: str) -> None:
    ended = run(tmp_path, PLAIN, f"import keras\n{second}\n", KERAS_BACKEND="numpy")
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-1] == (
        "ImportError: Keras was imported before Headwater and runs on 'numpy', but Headwater needs it on JAX: import "
        "headwater first, or start the program with KERAS_BACKEND=jax"
    )


def test_a_backend_that_the_environment_names_is_not_overruled(tmp_path: Path) -> None:
    ended = run(tmp_path, PLAIN, "import headwater\nimport keras\nprint(keras.config.backend())", KERAS_BACKEND="numpy")
    assert ended.stdout.splitlines()[-1] == "numpy"
    ended = run(tmp_path, PLAIN, "import headwater.keras", KERAS_BACKEND="numpy")
    assert "KERAS_BACKEND is 'numpy', but Headwater runs Keras on JAX: set it to 'jax'" in ended.stdout


def test_a_saved_model_finds_layers_that_the_program_has_not_imported(tmp_path: Path) -> None:
    path = f'"{tmp_path / "model.keras"}"'
    ids = "ids = keras.Input((None,), dtype='int64')\n"
    pooled = "pooled = headwater.keras.layers.DynamicEmbedding(2, combiner='mean')(ids)\n"
    build = f"import headwater.keras.layers, keras\n{ids}{pooled}keras.Model(ids, pooled).save({path})"
    assert run(tmp_path, PLAIN, build).returncode == 0
    ended = run(tmp_path, PLAIN, f"import headwater.keras, keras\nprint(keras.models.load_model({path}).layers[-1])")
    assert "<DynamicEmbedding name=dynamic_embedding" in ended.stdout


def test_plots_and_wrappers_import_their_packages_at_first_use(tmp_path: Path) -> None:
    program = (
        "import sys, keras\n"
        "print([name for name in ('matplotlib', 'sklearn') if name in sys.modules])\n"
        "print(callable(keras.visualization.plot_image_gallery), 'matplotlib' in sys.modules)\n"
        "print(keras.wrappers.SKLearnClassifier.__name__, 'sklearn' in sys.modules)\n"
    )
    lines = run(tmp_path, EXEC, program).stdout.splitlines()
    assert lines == ["[]", "True True", "SKLearnClassifier True"]
