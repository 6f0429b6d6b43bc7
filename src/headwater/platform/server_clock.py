"""The clock of the platform's server: it continues the previous server's clock, even if the system clock was set.

Deadlines, pauses and expiry times are stored as times. So the file ``clock`` stores the time of day at which the
machine started. This time is valid until the machine's next start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from headwater.cluster.telemetry.clocks import SteadyClock
from headwater.data.io.files import atomic_write
from headwater.data.io.sealed import pack_json, read_json
from headwater.errors import DataLossError, NotFoundError
from headwater.platform.host.processes import boot_id

_log = logging.getLogger(__name__)


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def server_clock(
    data_dir: Path, *, wall: Callable[[], float] = time.time, since_boot: Callable[[], float] = _since_boot
) -> SteadyClock:
    """Returns the clock of a server.

    Args:
      data_dir: the server's folder.
      wall: returns seconds since 1970.
      since_boot: returns seconds since the machine's start.
    """
    path = data_dir / "clock"
    boot = boot_id()
    try:
        known = read_json(path)
        if known["boot"] == boot:
            origin = float(known["origin"])
            set_by = wall() - since_boot() - origin
            if abs(set_by) > 60:
                _log.warning(
                    "the system clock was set by %+.0f s, which is ignored until this machine restarts", set_by
                )
            return SteadyClock(lambda: origin + since_boot(), since_boot)
    except NotFoundError:
        pass
    except DataLossError as error:
        _log.warning("%s. Times continue from the clock's present time", error.message)
    origin = wall() - since_boot()
    with atomic_write(path) as file:
        file.write(pack_json({"boot": boot, "origin": origin}))
    return SteadyClock(lambda: origin + since_boot(), since_boot)
