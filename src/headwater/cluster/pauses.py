"""Time that passes."""

from __future__ import annotations

import time


def pause(seconds: float) -> None:
    """Lets time pass before something is tried or looked at again that nothing announces, such as a file that another
    machine writes. A thread that another one ends waits for an `Event` instead, which that one sets."""
    time.sleep(max(0.0, seconds))  # noqa: TID251  see above
