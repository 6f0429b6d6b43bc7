"""What a ``ps`` within this process, which can be killed, asks the witness."""

from __future__ import annotations

from headwater.errors import UnavailableError
from headwater.state.views import View, WitnessRequest
from headwater.state.witness import Ask


class LivingAsk:
    """Asks the witness for a ``ps`` as long as that lives.

    Unlike the threads of a killed process, the threads of a ``ps`` that is killed within this process run on for a
    moment: one of them may find that the other copy is gone, because its own channels are, and ask to be alone.

    Args:
      ask: asks the witness.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._killed = False

    def kill(self) -> None:
        """From now on nothing is asked; to be called before the channels of the ``ps`` are closed."""
        self._killed = True

    def __call__(self, name: str, shard: int, request: WitnessRequest) -> View | None:
        if self._killed:
            raise UnavailableError(None, None, "this ps is killed")
        return self._ask(name, shard, request)
