"""The address at which a task serves metrics for Prometheus, if its environment asks for them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from headwater.cluster.addresses import Address, parse_address
from headwater.errors import InvalidArgumentError

METRICS = "HEADWATER_METRICS"
"""Environment variable that asks for metrics: ``host:port`` to serve them at; with port 0 the system chooses."""


def metrics_address(environ: Mapping[str, str] | None = None) -> Address | None:
    """Returns the address for metrics; None if the environment asks for none.

    Raises:
      InvalidArgumentError: `METRICS` is not an address.
    """
    text = (os.environ if environ is None else environ).get(METRICS)
    if not text:
        return None
    try:
        return parse_address(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{METRICS} is {text!r}, which is not an address: {error}") from error
