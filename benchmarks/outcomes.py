"""What benchmarks make of outcomes that they have measured several times."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any


def medians(outcomes: Sequence[Any]) -> list[float]:
    """Of each field of some outcomes, which are dataclasses of one kind, the median."""
    return [statistics.median(getattr(one, column) for one in outcomes) for column in asdict(outcomes[0])]


def save(path: Path, table: Mapping[str, Sequence[Any]]) -> None:
    """Writes the outcomes of each kind into a file, as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({name: list(map(asdict, outcomes)) for name, outcomes in table.items()}, indent=1))
