"""The check of wording: which texts it reads, which patterns it counts."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import check_prose

SOURCE = '''"""Names of tasks."""

LIMIT = 3
"""What a limit is."""


def known(name: str) -> bool:
    """What it has."""
    # Who asks for `what` is told so.
    raise ValueError(f"{name} is a task that comes from another cluster")
'''


def test_docstrings_comments_and_messages_are_read(tmp_path: Path) -> None:
    path = tmp_path / "names.py"
    path.write_text(SOURCE)
    texts = list(check_prose.texts_of_source(path, "names.py"))
    assert [(text.line, text.text, text.is_docstring) for text in texts] == [
        (1, "Names of tasks.", True),
        (4, "What a limit is.", False),
        (8, "What it has.", True),
        (10, " is a task that comes from another cluster", False),
        (9, "Who asks for `what` is told so.", False),
    ]


def test_patterns_above_their_ceilings_are_named() -> None:
    riddle = (
        "What it has goes to who asks, whose life ends with that of the other one, where it is left out; "
        "the task is told so, and a zero when None stands for it."
    )
    texts = [check_prose.Text("a.py", 1, riddle)]
    named = {line.split("'")[1] for line in check_prose.problems(texts)}
    assert named == {
        "what",
        "what without noun",
        "who",
        "that of",
        "one that",
        "comes",
        "life",
        "where it",
        "is told",
        "leave out",
        "when None",
        "stands for",
    }
    assert check_prose.problems([check_prose.Text("a.py", 1, "Returns the names of `what` and ``who`` it was.")]) == []
