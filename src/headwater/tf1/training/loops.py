"""Loops: of training under a supervisor, and over new checkpoints."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from headwater.cluster.pauses import pause
from headwater.errors import AbortedError
from headwater.tf1.training.checkpoint_state import latest_checkpoint
from headwater.tf1.training.supervisor import Supervisor

_logger: Final = logging.getLogger(__name__)
_POLL_INTERVAL_S: Final = 1.0


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., object],
    args: Sequence[object] | None = None,
    kwargs: Mapping[str, object] | None = None,
    master: str = "",
) -> None:
    """Calls ``train_step_fn(session, *args, **kwargs)`` in a managed session until the supervisor stops.

    After an AbortedError, which a lost task may cause, the loop continues in a new session.
    """
    again = True
    while again:
        again = False
        try:
            with supervisor.managed_session(master) as sess:
                while not supervisor.should_stop():
                    train_step_fn(sess, *(args or ()), **(kwargs or {}))
        except AbortedError:
            again = True


def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """Yields the newest checkpoint of a folder, and then each newer one that appears.

    Args:
      min_interval_secs: least seconds between two checkpoints.
      timeout: number of seconds to wait for a newer checkpoint; None: forever.
      timeout_fn: called after the timeout; waiting continues unless it returns True.
    """
    last: str | None = None
    while True:
        found = wait_for_new_checkpoint(checkpoint_dir, last, timeout=timeout)
        if found is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        begin = time.monotonic()
        last = found
        yield found
        pause(max(0.0, begin + min_interval_secs - time.monotonic()))


def wait_for_new_checkpoint(
    checkpoint_dir: str,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = _POLL_INTERVAL_S,
    timeout: float | None = None,
) -> str | None:
    """Waits until the newest checkpoint of a folder differs from ``last_checkpoint``; returns its path.

    Args:
      seconds_to_sleep: the time between two looks into the folder.
      timeout: seconds after which to return None; None: wait forever.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    _logger.info("Waiting for new checkpoint at %s", checkpoint_dir)
    while True:
        found = latest_checkpoint(checkpoint_dir)
        if found is not None and found != last_checkpoint:
            return found
        left = seconds_to_sleep if deadline is None else deadline - time.monotonic()
        if left <= 0:
            return None
        pause(min(left, seconds_to_sleep))
