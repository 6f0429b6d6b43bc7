"""The command ``headwater``."""

from __future__ import annotations


def main() -> int:
    """Runs the command that ``sys.argv`` names, and returns its exit code."""
    print("headwater")
    return 0
