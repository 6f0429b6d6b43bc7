"""The counts of these tests are of a step in its steady state, with compiled executables."""

from __future__ import annotations

import pytest

from headwater.graph.runtime.mode_choice import VARIABLE


@pytest.fixture(autouse=True)
def in_executables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles parts of plans at once, which otherwise happens after a number of runs."""
    monkeypatch.setenv(VARIABLE, "on")
