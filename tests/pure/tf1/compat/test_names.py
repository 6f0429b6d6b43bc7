"""The namespace ``tf``: every name exists, and every missing name is explained."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from headwater import tf
from headwater.tf1.compat.names import Area


def _names(module: ModuleType, path: str, seen: set[str]) -> Iterator[tuple[str, Any]]:
    for name in dir(module):
        if name.startswith("_"):
            continue
        value = getattr(module, name)
        yield f"{path}.{name}", value
        if (
            isinstance(value, ModuleType)
            and value.__name__.startswith("headwater.tf1.compat")
            and value.__name__ not in seen
        ):
            seen.add(value.__name__)
            yield from _names(value, f"{path}.{name}", seen)


def test_every_name_leads_somewhere() -> None:
    names = dict(_names(tf, "tf", {tf.__name__}))
    assert len(names) > 1000
    for path in (
        "tf.nn.relu",
        "tf.train.AdamOptimizer",
        "tf.compat.as_bytes",
        "tf.errors.OpError",
        "tf.summary.scalar",
    ):
        assert callable(names[path])


def test_functions_have_docstrings() -> None:
    bare = [
        path
        for path, value in _names(tf, "tf", {tf.__name__})
        if callable(value)
        and (getattr(value, "__module__", "") or "").startswith("headwater.tf1.functional")
        and not value.__doc__
    ]
    assert bare == []


@pytest.mark.parametrize("path", ["tf", "tf.nn", "tf.train"])
def test_a_missing_name_says_where_the_table_is(path: str) -> None:
    module: Any = tf
    for part in path.split(".")[1:]:
        module = getattr(module, part)
    with pytest.raises(AttributeError, match=r"no_such_name.*docs/compatibility\.md"):
        _ = module.no_such_name


def test_a_name_is_reported_once() -> None:
    with pytest.raises(AssertionError, match="sqrt"):
        Area("Roots.", {"math": "sqrt", "cmath": "sqrt"}).table()


@pytest.mark.slow
def test_loading_it_loads_neither_jax_nor_grpc() -> None:
    program = "import sys; from headwater import tf; tf.Graph; tf.nn.relu; print({'jax', 'grpc'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.slow
def test_loading_it_loads_no_package_of_contrib() -> None:
    program = (
        "import sys; from headwater import tf; tf.Graph; tf.nn.relu; tf.nn.rnn_cell.LSTMCell; tf.contrib; "
        "print([name for name in sys.modules if name.startswith('headwater.tf1.contrib')]); "
        "tf.contrib.crf.crf_decode; print('headwater.tf1.contrib.crf' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nTrue\n"
