"""Fails when less than 95 % of what users of the package can reach has a type, or `Any` stands too often in the source.

Pyright's own measure, ``pyright --verifytypes``: a symbol counts when it, and all that it is made of, has a declared
type that any type checker understands. Dependencies' types do not count.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LEAST = 0.95
"""The least share of symbols with a type."""
MOST_ANY = 28.8
"""How often `Any` may stand in 1,000 lines of the source. Lower it when fewer are left; never raise it."""
SOURCE = Path(__file__).resolve().parent.parent / "src" / "headwater"


def any_per_thousand() -> float:
    """How often the word `Any` stands in 1,000 lines of the source's Python files."""
    texts = [path.read_text() for path in SOURCE.rglob("*.py")]
    words = sum(len(re.findall(r"\bAny\b", text)) for text in texts)
    return 1000 * words / sum(text.count("\n") for text in texts)


def few_enough() -> bool:
    """Prints how often `Any` stands; whether that is within the limit."""
    found = any_per_thousand()
    print(f"Any stands {found:.1f} times in 1,000 lines; at most {MOST_ANY:.1f} may")
    return found <= MOST_ANY


def main() -> int:
    """Prints the measures; 1 where one of them is missed, with the symbols that have no type."""
    few = few_enough()
    pyright = Path(sys.executable).with_name("pyright")
    command = [str(pyright), "--verifytypes", "headwater", "--ignoreexternal", "--outputjson"]
    # The package as users see it, not this folder's own configuration.
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PATH": f"{pyright.parent}{os.pathsep}{os.environ['PATH']}"}
        found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    completeness = json.loads(found.stdout)["typeCompleteness"]
    share = completeness["completenessScore"]
    counts = completeness["exportedSymbolCounts"]
    total = sum(counts.values())
    print(f"{share:.1%} of {total} symbols have a type; at least {LEAST:.0%} must")
    if share >= LEAST:
        return 0 if few else 1
    for symbol in completeness["symbols"]:
        if symbol["isExported"] and not symbol["isTypeKnown"]:
            print(symbol["name"])
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
