"""The examples in the reference that `make docs` writes run, and have the results that they show."""

from __future__ import annotations

import doctest
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_SOURCE = Path(__file__).resolve().parents[2] / "src" / "headwater"

#: By public name, the module that defines it: names that newcomers look up first.
_EXAMPLES = {
    "headwater.ParameterServer": "ps/pytrees.py",
    "headwater.ps.consistency.from_text": "ps/consistency.py",
    "headwater.keras.ParameterServerStrategy": "keras/parameter_server/strategy.py",
    "headwater.state.aims.distribute_replicas": "state/aims.py",
    "headwater.graph.resources.packing.pack_elements": "graph/resources/packing.py",
    "headwater.tables.Table": "tables/table.py",
    "headwater.tables.snapshots.FrozenTable": "tables/snapshots.py",
    "headwater.tf1.compat.tf.Session": "graph/session/session.py",
    "headwater.tf1.compat.tf.train.Server": "graph/server/server.py",
    "headwater.tf1.compat.tf.train.replica_device_setter": "tf1/training/device_setter.py",
}


def test_every_example_of_the_source_is_tried() -> None:
    assert {str(path.relative_to(_SOURCE)) for path in _SOURCE.rglob("*.py") if ">>> " in path.read_text()} == set(
        _EXAMPLES.values()
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("name", _EXAMPLES)
def test_a_documented_example_prints_its_output(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    documented: Any = getattr(importlib.import_module(module), attribute)
    within = importlib.import_module(documented.__module__)
    tests = doctest.DocTestFinder().find(documented, name, module=within, globs=dict(vars(within)))
    examples = [example for test in tests for example in test.examples]
    in_file = re.findall(r"^\s*>>> ", (_SOURCE / _EXAMPLES[name]).read_text(), re.MULTILINE)
    assert len(examples) == len(in_file)
    said: list[str] = []
    report: Callable[[str], object] = said.append
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL, verbose=False)
    for test in tests:
        runner.run(test, out=report)
    assert not runner.failures, "".join(said)
