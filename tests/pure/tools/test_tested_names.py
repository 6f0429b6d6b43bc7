"""Every name of TensorFlow that is there occurs in a test, unless a list says why not."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "tools"))
import tested_names  # noqa: E402


@pytest.mark.slow
def test_every_name_is_tested() -> None:
    checked = subprocess.run(
        [sys.executable, str(REPOSITORY / "tools" / "tested_names.py")], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("code", "name", "found"),
    [
        ("tf.nn.relu(x)", "tf.nn.relu", True),
        ("nn = tf.nn\nnn.relu(x)", "tf.nn.relu", True),
        ("from tensorflow.python.util import nest", "tf.python.util.nest", True),
        ("x = 'tf.add(1, 2)'", "tf.add", True),
        ("x = '''\n1 1\ntf.add(1, 2)\n'''", "tf.add", True),
        ("'''Of tf.add(1, 2)'''", "tf.add", False),
        ("# tf.add(1, 2)", "tf.add", False),
        ("x = 'of tf.add'", "tf.add", False),
    ],
)
def test_names_in_code_are_found(code: str, name: str, found: bool) -> None:
    assert (name in set(tested_names.names_in(ast.parse(code)))) is found
