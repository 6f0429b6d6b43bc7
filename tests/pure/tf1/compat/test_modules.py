"""The finder, on a small namespace in place of `headwater.tf1.compat.tf`."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from headwater.tf1.compat.modules import Finder, install

NAMESPACE = "stand_in_for_tf"


def _module(name: str, **attributes: object) -> ModuleType:
    module = ModuleType(name, f"The text of {name}.")
    module.__dict__.update(attributes)
    return module


@pytest.fixture(autouse=True)
def namespace(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """``import tensorflow`` gives the stand-in, until the test ends."""

    class Session: ...

    namespace = _module(
        NAMESPACE,
        __version__="1.15.0",
        Session=Session,
        add=lambda a, b: ("add", a, b),
        train=_module(f"{NAMESPACE}.train", AdamOptimizer=type("AdamOptimizer", (), {})),
        nn=_module(f"{NAMESPACE}.nn", relu="relu", rnn_cell=_module(f"{NAMESPACE}.nn.rnn_cell", LSTMCell="lstm")),
        app=_module(f"{NAMESPACE}.app", flags=_module(f"{NAMESPACE}.flags", FLAGS="flags")),
        flags=_module(f"{NAMESPACE}.flags", FLAGS="flags"),
        contrib=SimpleNamespace(layers=SimpleNamespace(fully_connected="fc")),
        errors=_module(f"{NAMESPACE}.errors", AbortedError="aborted"),
        keras=_module(f"{NAMESPACE}.keras", layers=_module(f"{NAMESPACE}.keras.layers", Dense="dense")),
    )
    monkeypatch.setitem(sys.modules, NAMESPACE, namespace)
    monkeypatch.setattr(sys, "meta_path", [Finder(namespace=NAMESPACE), *sys.meta_path])
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "tensorflow"}
    for name in before:
        del sys.modules[name]
    yield namespace
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]:
        del sys.modules[name]
    sys.modules.update(before)


def test_the_root_gives_the_namespace(namespace: ModuleType) -> None:
    import tensorflow as tf

    assert tf.__name__ == "tensorflow"
    assert tf.__version__ == "1.15.0"
    assert tf.Session is namespace.Session
    assert tf.train.AdamOptimizer is namespace.train.AdamOptimizer


@pytest.mark.parametrize(
    ("name", "attribute", "value"),
    [
        ("tensorflow.compat.v1", "__version__", "1.15.0"),
        ("tensorflow.compat.v1.nn", "relu", "relu"),
        ("tensorflow.nn.rnn_cell", "LSTMCell", "lstm"),
        ("tensorflow.contrib.layers", "fully_connected", "fc"),
        ("tensorflow.keras.layers", "Dense", "dense"),
        ("tensorflow.python.keras.layers", "Dense", "dense"),
        ("tensorflow.python.framework.errors", "AbortedError", "aborted"),
        ("tensorflow.python.framework.errors_impl", "AbortedError", "aborted"),
        ("tensorflow.python.ops.nn_ops", "relu", "relu"),
        ("tensorflow.python.ops.rnn_cell_impl", "LSTMCell", "lstm"),
        ("tensorflow.python.platform.flags", "FLAGS", "flags"),
        ("tensorflow.app.flags", "FLAGS", "flags"),
    ],
)
def test_names_that_programs_import(name: str, attribute: str, value: object) -> None:
    module = importlib.import_module(name)
    assert module.__name__ == name
    assert getattr(module, attribute) == value


def test_sources_of_tensorflow_lead_to_its_namespace(namespace: ModuleType) -> None:
    from tensorflow.python.client import session
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import math_ops
    from tensorflow.python.training import adam

    assert session.Session is namespace.Session
    assert ops.Session is namespace.Session
    assert math_ops.add(1, 2) == ("add", 1, 2)
    assert adam.AdamOptimizer is namespace.train.AdamOptimizer


def test_submodules_are_attributes_without_an_import(namespace: ModuleType) -> None:
    import tensorflow as tf

    assert tf.compat.v1.Session is namespace.Session
    assert tf.python.ops.math_ops.add is namespace.add


def test_messages_are_imported_from_their_packages() -> None:
    from tensorflow.core.example import example_pb2
    from tensorflow.core.framework import graph_pb2
    from tensorflow.core.util import event_pb2

    assert graph_pb2.GraphDef().ByteSize() == 0
    assert example_pb2.Example().ByteSize() == 0
    assert event_pb2.Event().ByteSize() == 0


def test_star_brings_the_public_names(namespace: ModuleType) -> None:
    names: dict[str, object] = {}
    exec("from tensorflow import *", names)
    assert names["Session"] is namespace.Session
    assert names["add"] is namespace.add


@pytest.mark.parametrize(
    ("expression", "module"),
    [("tf.absent", "tensorflow"), ("tf.train.absent", "tensorflow.train"), ("tf.nn.absent", "tensorflow.nn")],
)
def test_a_missing_attribute_is_named(expression: str, module: str) -> None:
    import tensorflow as tf

    with pytest.raises(AttributeError) as caught:
        eval(expression, {"tf": tf})
    assert str(caught.value) == (
        f"module '{module}' has no attribute 'absent' in Headwater; docs/compatibility.md lists the names that exist"
    )
    assert not hasattr(tf, "__wrapped__")


@pytest.mark.parametrize(
    "statement",
    ["import tensorflow.absent", "from tensorflow import absent", "from tensorflow.python.absent import x"],
)
def test_a_missing_module_is_named(statement: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"Headwater has no 'tensorflow\..*absent'; docs/compatibility.md"):
        exec(statement, {})


@pytest.mark.parametrize(
    ("statement", "replacement"),
    [
        ("import tensorflow.contrib.gan as tfgan", "use two losses with two `tf.train` optimizers"),
        ("from tensorflow.contrib import tensor_forest", "use scikit-learn's random forests"),
        ("from headwater.tf1.compat import tf; tf.contrib.learn.monitors.ExportMonitor", "use `tf.estimator`"),
        ("from headwater.tf1.compat import tf; tf.contrib.timeseries.ARRegressor", "use statsmodels"),
    ],
)
def test_the_error_of_a_missing_name_of_contrib_says_its_replacement(statement: str, replacement: str) -> None:
    with pytest.raises((AttributeError, ModuleNotFoundError), match=re.escape(replacement)):
        exec(statement, {})


def test_a_function_is_no_module() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"tensorflow\.add"):
        importlib.import_module("tensorflow.add")


def test_other_modules_are_left_alone() -> None:
    finder = Finder(namespace=NAMESPACE)
    assert finder.find_spec("tensorflow_probability") is None
    assert finder.find_spec("json") is None


def test_tensorboard_does_not_take_it_for_tensorflow() -> None:
    assert importlib.import_module("tensorboard.compat.notf") is not None
    del sys.modules["tensorboard.compat.notf"]


def test_a_second_installation_changes_nothing() -> None:
    present = next(finder for finder in sys.meta_path if isinstance(finder, Finder))
    before = list(sys.meta_path)
    assert install() is present
    assert sys.meta_path == before


def test_a_dependency_that_is_missing_is_not_taken_for_a_missing_attribute(
    namespace: ModuleType, tmp_path: Path
) -> None:
    import tensorflow as tf

    (tmp_path / "needy.py").write_text("import not_installed\n")
    namespace.__dict__["__path__"] = [str(tmp_path)]
    with pytest.raises(ModuleNotFoundError, match="not_installed"):
        _ = tf.needy
