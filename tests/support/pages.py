"""Programs and commands in pages of the documentation, for tests that follow a page as a reader does."""

from __future__ import annotations

import re
from pathlib import Path

_DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    """Returns the code blocks of a language in a page of ``docs``, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", (_DOCS / page).read_text(), re.M | re.S)


def write_files(page: str, language: str, folder: Path) -> None:
    """Writes each block of a language that begins with a comment such as ``# clicks.py`` to the file of that name."""
    for block in blocks(page, language):
        if found := re.match(r"# (\S+\.\w+)\n", block):
            (folder / found[1]).write_text(block)
