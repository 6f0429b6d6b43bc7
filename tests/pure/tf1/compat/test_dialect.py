"""The dialect of a program, from the names that it uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.tf1.compat import tf
from headwater.tf1.compat.dialect import dialect_of

_IMPORT = "import tensorflow as tf\n"


@pytest.mark.parametrize(
    ("program", "dialect"),
    [
        ("tf.Session().run(tf.constant(1))", "1"),
        ("tf.keras.Sequential().fit(x, y)", "2"),
        ("from tensorflow import keras\nkeras.Sequential().fit(x, y)", "2"),
        ("tf.estimator.Estimator(tf.keras.Sequential())", "1"),
        ("print(tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0]))", "2"),
        ("import a_package\na_package.run(tf.constant(1))", "1"),
        ("tf.train.Saver([tf.Variable(1)])", "1"),
        ("def step():\n  with tf.GradientTape() as tape:\n    pass", "2"),
        ("@tf.function\ndef step():\n  pass", "2"),
        ("tf.distribute.coordinator.ClusterCoordinator(strategy)", "2"),
        ("with tf.GradientTape() as tape:\n  pass\ntf.Session()", "1"),
        ("import tensorflow.compat.v1 as old\nold.disable_v2_behavior()\n@tf.function\ndef f(): pass", "1"),
        ("tf.compat.v1.enable_eager_execution()\ntf.placeholder", "2"),
    ],
)
def test_a_programs_names_say_it(program: str, dialect: str) -> None:
    assert dialect_of(compile(_IMPORT + program, "program", "exec")) == dialect


def test_modules_beside_a_program_count(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(_IMPORT + "@tf.function\ndef step(): pass")
    (tmp_path / "sessions.py").write_text("import steps\n" + _IMPORT + "tf.Session()")
    (tmp_path / "broken.py").write_text("def")
    for program, dialect in (("import steps, broken", "2"), ("import sessions", "1"), ("import elsewhere", "1")):
        assert dialect_of(compile(program, str(tmp_path / "program.py"), "exec")) == dialect


def test_a_program_of_graphs_cannot_ask_for_values_at_once() -> None:
    for ask in (tf.enable_eager_execution, tf.enable_v2_behavior):
        with pytest.raises(RuntimeError, match="--dialect 2"):
            ask()
