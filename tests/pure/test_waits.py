"""Waits are ended by events; other pauses are marked as such."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "headwater"


@pytest.mark.slow
def test_every_event_is_set_somewhere() -> None:
    texts = {path.relative_to(SOURCE): path.read_text() for path in SOURCE.rglob("*.py")}
    all_of_it = "\n".join(texts.values())
    never_set = [
        f"{path}: {name}"
        for path, text in texts.items()
        for name in re.findall(r"(\w+)(?:: [^=\n]+)? = threading\.Event\(\)", text)
        if not re.search(rf"\b_?{name.lstrip('_')}\.set\b", all_of_it)
    ]
    assert never_set == []
    assert [str(path) for path, text in texts.items() if "Event().wait" in text] == []
