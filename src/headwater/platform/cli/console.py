"""Where tables are printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_WITHOUT_TERMINAL = 1000


def table_console() -> Console:
    """Standard output, for tables; without a terminal lines are for other programs, and are not broken."""
    from rich.console import Console  # noqa: PLC0415  takes a moment, which not every command needs

    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL)
