"""Entry point of ``python -m headwater``, and of this file run by its path.

`headwater.platform.cli.execute` uses the path to start a program in a new interpreter.
"""

from __future__ import annotations

import sys

# The first entry is the folder of this file, or the current one: neither may shadow modules of the standard library.
if not sys.flags.safe_path:
    del sys.path[0]

from headwater.platform.cli import main

if __name__ == "__main__":
    sys.exit(main())
