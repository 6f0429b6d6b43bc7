"""The console for tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_WITHOUT_TERMINAL = 1000


def table_console() -> Console:
    """Returns a console for tables on standard output; without a terminal, it does not wrap lines."""
    from rich.console import Console  # noqa: PLC0415  takes a moment, which not every command needs

    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL)
