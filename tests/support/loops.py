"""Choice of compiled loops or NumPy for operations on the host."""

from __future__ import annotations

import pytest

from headwater.tables import compiled as loops


def use_loops(monkeypatch: pytest.MonkeyPatch, *, compiled: bool) -> None:
    """Uses compiled loops for all work, or for none."""

    def pays(loop: loops.Compiled, work_ns: int) -> bool:
        return compiled

    monkeypatch.setattr(loops.Compiled, "pays", pays)
    monkeypatch.setattr(loops, "_INTERPRETED_ELEMENTS", -1)
