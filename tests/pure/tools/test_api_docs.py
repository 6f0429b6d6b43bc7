"""The reference shows the names that programs use, and each of them can be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = """
import importlib, pdoc.doc, api_docs
shown = api_docs.prepare()
print(len(shown))
for name in ("headwater", "headwater.keras", "headwater.tf1.compat.tf.nn"):
    module = pdoc.doc.Module(importlib.import_module(name))
    print(name, *module.members, *(each.fullname for each in module.submodules))
from headwater.tf1.functional import raw_ops
print(len([getattr(raw_ops, each) for each in dir(raw_ops)]))
"""


@pytest.mark.slow
def test_public_names_are_shown_and_no_others() -> None:
    shown = subprocess.run(
        [sys.executable, "-W", "error:.*does not resolve", "-c", PROGRAM],
        cwd=REPOSITORY / "tools",
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    count, package, strategies, nn, raw = shown.stdout.splitlines()
    assert int(count) > 80
    assert package == "headwater ParameterServer report"
    assert {"ParameterServerStrategy", "MultiWorkerMirroredStrategy", "ClusterCoordinator"} <= set(strategies.split())
    assert "headwater.keras.mirrored" not in strategies
    assert {"relu", "embedding_lookup"} <= set(nn.split())
    assert int(raw) > 400
