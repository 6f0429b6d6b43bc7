"""Requests to the witness of a ``ps`` within this process that can be killed."""

from __future__ import annotations

from headwater.errors import UnavailableError
from headwater.state.views import View, WitnessRequest
from headwater.state.witness import RequestView


class LivingAsk:
    """Sends a ``ps``'s requests to the witness until the ``ps`` is killed.

    In contrast to a killed process, the threads of a ``ps`` within this process run on for a moment after it is killed.
    Because its channels are closed, one of these threads may conclude that the other replica is lost, and ask to be
    alone: this would remove the replica that survives.

    Args:
      ask: asks the witness.
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
