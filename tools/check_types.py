"""Fails when less than 95 % of what a user of the package can reach has a type.

Pyright's own measure, ``pyright --verifytypes``: a symbol counts when it, and all that it is made of, has a declared
type that any type checker understands. Dependencies' types do not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LEAST = 0.95
"""The least share of symbols with a type."""


def main() -> int:
    """Prints the share, and the symbols without a type where that is too small."""
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
        return 0
    for symbol in completeness["symbols"]:
        if symbol["isExported"] and not symbol["isTypeKnown"]:
            print(symbol["name"])
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
