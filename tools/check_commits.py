"""Checks the subjects of commits: imperative, at most 72 characters, with the package as prefix (CONTRIBUTING.md).

Commits up to `_BASE` were made before this rule. A clone that lacks that commit checks nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_BASE: Final = "e9c2d6d2"
_MAX_CHARACTERS: Final = 72
_SUBJECT = re.compile(r"[a-z0-9_.,/ -]+: [^ ]")
_QUESTION = re.compile(r"(?:\S+: )?(?:who|what|which|whose|one)\b", re.IGNORECASE)


def problems(subjects: Iterable[str]) -> list[str]:
    """Returns one line for each subject that breaks a rule."""
    found: list[str] = []
    for subject in subjects:
        if len(subject) > _MAX_CHARACTERS:
            found.append(f"{subject!r} has {len(subject)} characters; at most {_MAX_CHARACTERS}")
        elif not _SUBJECT.match(subject):
            found.append(f"{subject!r} does not begin with a package, such as 'state: '")
        elif _QUESTION.match(subject):
            found.append(f"{subject!r} begins with a question word; say in the imperative what it changes")
    return found


def main() -> int:
    """Checks the commits since `_BASE`, merges aside."""
    listed = subprocess.run(
        ["git", "log", "--no-merges", "--format=%s", f"{_BASE}..HEAD"],
        cwd=Path(__file__).resolve().parent.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = problems(listed.stdout.splitlines()) if listed.returncode == 0 else []
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
