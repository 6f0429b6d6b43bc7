"""Hooks that are called when a module is imported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from headwater.import_hooks import load_at_first_use, on_import


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


def test_a_module_is_loaded_at_its_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seldom").mkdir()
    (tmp_path / "seldom" / "__init__.py").write_text("from seldom import part")
    (tmp_path / "seldom" / "part.py").write_text("import seldom_needed\nvalue = seldom_needed.value + 1")
    (tmp_path / "seldom_needed.py").write_text("value = 41")
    monkeypatch.syspath_prepend(tmp_path)
    load_at_first_use({"seldom"})
    package = importlib.import_module("seldom")
    assert "seldom_needed" not in sys.modules
    assert package.part.value == 42
    assert "seldom_needed" in sys.modules


def test_a_missing_module_is_an_import_error_at_once() -> None:
    load_at_first_use({"no_such_module_anywhere"})
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        importlib.import_module("no_such_module_anywhere")
