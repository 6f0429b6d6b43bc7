"""Hooks that are called when a module is imported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from headwater.import_hooks import on_import


def test_all_hooks_of_a_module_are_called_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hooked_module.py").write_text("said = ['code']")
    monkeypatch.syspath_prepend(tmp_path)
    before: list[str] = []
    on_import("hooked_module", lambda module: module.said.append("first"), before=lambda: before.append("before"))
    on_import("hooked_module", lambda module: module.said.append("second"))
    assert "hooked_module" not in sys.modules
    module = importlib.import_module("hooked_module")
    on_import("hooked_module", lambda module: module.said.append("at once"))
    assert module.said == ["code", "first", "second", "at once"]
    assert before == ["before"]


def test_a_hook_that_a_hook_adds_is_called_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hooked_again.py").write_text("said = []")
    monkeypatch.syspath_prepend(tmp_path)
    on_import("hooked_again", lambda _: on_import("hooked_again", lambda module: module.said.append("added")))
    assert importlib.import_module("hooked_again").said == ["added"]
