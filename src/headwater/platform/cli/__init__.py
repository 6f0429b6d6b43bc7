"""The command ``headwater``.

``headwater exec`` replaces ``python`` and is dispatched before anything slow is imported; all other commands are
typer's, in `headwater.platform.cli.app`.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Runs the command in ``sys.argv``, and returns its exit code: 2 for wrong arguments."""
    if sys.argv[1:2] == ["exec"]:
        from headwater.platform.cli.execute import execute  # noqa: PLC0415  half of its start-up time would be typer's

        return execute(sys.argv[2:])
    from headwater.platform.cli.app import run_app  # noqa: PLC0415  see above

    return run_app()
