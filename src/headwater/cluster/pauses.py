"""The one place that calls `time.sleep`, for polling."""

from __future__ import annotations

import time


def pause(seconds: float) -> None:
    """Sleeps between two polls of a condition without notification, such as a file that another machine writes.

    A thread that another thread stops waits for an `Event` instead, so that it can be woken.
    """
    time.sleep(max(0.0, seconds))  # noqa: TID251  see above
