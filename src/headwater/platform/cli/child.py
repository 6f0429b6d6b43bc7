"""First steps of a process started by ``headwater run``: they make the process end with its launcher, and own its port.

The launcher configures the process through the environment:

- ``HEADWATER_PARENT``: the launcher's process id. The variable is removed after reading, so that it applies to this
  process only.
- ``HEADWATER_LISTEN_FDS``: JSON, from ``host:port`` to the number of an inherited file descriptor of a socket that is
  bound to that address and listens; the task's server uses this socket instead of binding the address itself.
"""

from __future__ import annotations

import os
import signal

from headwater.cluster.variables import LISTEN_FDS

PARENT = "HEADWATER_PARENT"

_PR_SET_PDEATHSIG = 1


def apply_launcher_settings() -> None:
    """Applies the launcher's settings; does nothing if no launcher started this process.

    Raises:
      SystemExit: the launcher has already exited.
    """
    parent = os.environ.pop(PARENT, "")
    if parent.isdecimal():
        _end_with(int(parent))
    listening = os.environ.get(LISTEN_FDS)
    if listening:
        _keep_from_children(listening)


def _end_with(parent: int) -> None:
    """Asks the kernel for SIGKILL when the thread that started this process ends."""
    import ctypes  # noqa: PLC0415  costs several ms that other programs need not pay

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # the launcher exited before prctl took effect
        raise SystemExit(128 + signal.SIGKILL)


def _keep_from_children(listening: str) -> None:
    """Keeps the sockets from child processes, which would otherwise hold the port after this process has exited."""
    import json  # noqa: PLC0415  as above

    for descriptor in json.loads(listening).values():
        os.set_inheritable(descriptor, False)
