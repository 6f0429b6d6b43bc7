"""The command ``headwater`` for an interpreter: ``python -m headwater``, or this file's path in place of a program's.

By path it is how `headwater.platform.cli.execute` starts a program in a fresh interpreter.
"""

from __future__ import annotations

import sys

# The folder of this file, or the current one: neither may hide a module of the standard library from our own imports.
if not sys.flags.safe_path:
    del sys.path[0]

from headwater.platform.cli import main

if __name__ == "__main__":
    sys.exit(main())
