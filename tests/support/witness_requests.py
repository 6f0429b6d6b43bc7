"""Requests to the witness of a ``ps`` within this process that can be killed."""

from __future__ import annotations

from headwater.errors import UnavailableError
from headwater.state.views import View, WitnessRequest
from headwater.state.witness import RequestView


class WitnessRequests:
    """Sends a ``ps``'s requests to the witness until the ``ps`` is killed.

    The threads of a ``ps`` within this process continue for a moment after the ``ps`` is killed, unlike threads of a
    killed process. Because its channels are closed, one of these threads may conclude that the other replica is lost,
    and request a view with its own replica only: this would remove the surviving replica.

    Args:
      ask: sends a request to the witness.
    """

    def __init__(self, ask: RequestView) -> None:
        self._ask = ask
        self._killed = False

    def kill(self) -> None:
        """Blocks all further requests. Call this before the channels of the ``ps`` are closed."""
        self._killed = True

    def __call__(self, name: str, shard: int, request: WitnessRequest) -> View | None:
        if self._killed:
            raise UnavailableError(None, None, "this ps is killed")
        return self._ask(name, shard, request)
