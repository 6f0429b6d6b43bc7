"""Choice of compiled loops or NumPy for operations on the host."""

from __future__ import annotations

import importlib

import pytest

from headwater.graph.kernels import compiled_loops


def use_loops(monkeypatch: pytest.MonkeyPatch, *, compiled: bool) -> None:
    """Uses compiled loops for all work, or for none."""
    importlib.import_module("headwater.tables.compiled")
    monkeypatch.setattr(compiled_loops, "_CALL_NS", 0 if compiled else 1 << 62)
