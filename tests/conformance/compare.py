"""Compares an outcome with the one that is stored: numbers to the precision of float32."""

from __future__ import annotations

import math
from typing import Any


def same(ours: Any, theirs: Any, where: str = "outcome", tolerance: float = 2e-5) -> None:
    """AssertionError that says where the two first differ."""
    if isinstance(theirs, list):
        assert isinstance(ours, list), f"{where}: {ours!r} instead of {theirs!r}"
        assert len(ours) == len(theirs), f"{where}: {ours!r} instead of {theirs!r}"
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            same(mine, other, f"{where}[{index}]", tolerance)
    elif isinstance(theirs, dict):
        assert isinstance(ours, dict), f"{where}: {ours!r} instead of {theirs!r}"
        assert sorted(ours) == sorted(theirs), f"{where}: {ours!r} instead of {theirs!r}"
        for key, other in theirs.items():
            same(ours[key], other, f"{where}[{key!r}]", tolerance)
    elif isinstance(theirs, float) and isinstance(ours, float):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        close = math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
        assert both_nan or close, f"{where}: {ours!r} instead of {theirs!r}"
    else:
        assert ours == theirs, f"{where}: {ours!r} instead of {theirs!r}"
