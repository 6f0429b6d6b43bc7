"""A ``ps`` that is told to end leaves its state with the chief, and goes on with that when it is started anew.

For ``recovery="copy"``: without this, it would go on with what the chief read last. What it leaves
(`headwater.task.left_states`) are the words (signature, facts, names, accounts): ``facts`` are those of
`headwater.parameters.host_state.HostState`, and the tensors are values of all blocks, the optimizer's state, of these
names, and, where it ``accounts`` for examples, the ledger.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np

from headwater.consistency import KOfN
from headwater.errors import InvalidArgumentError, OpError
from headwater.parameters.host import HostedParameters
from headwater.parameters.host_state import HostState
from headwater.task.answers import bad_header
from headwater.task.left_states import StateAtChief
from headwater.task.links import WaitingLink

_log = logging.getLogger("headwater")


class LeavingState:
    """On a ``ps``: leaves the state of a set with the chief, and fetches it.

    Args:
      host: the set.
      index: the number of this ``ps``.
      task: its name.
      chief: the name of the chief.
      link: to that.
    """

    def __init__(self, host: HostedParameters, *, index: int, task: str, chief: str, link: WaitingLink) -> None:
        self._host = host
        self._task = task
        self._chief = chief
        self._kept = StateAtChief(host.name, index, chief, link)

    @staticmethod
    def suits(host: HostedParameters, choice: object) -> bool:
        """Whether a state is all that there is of a set. Rows of tables are none of it, nor are gradients that wait for
        those of others while their workers go on."""
        return not host.tables and not isinstance(choice, KOfN)

    def restore(self) -> bool:
        """Goes on with what it has left, if the chief has it. Before the set is served.

        Returns:
          Whether the chief has answered.
        """
        try:
            answer = self._kept.fetch()
            if answer is None:
                return True
            match answer.header:
                case (str(signature), facts, [*names], bool(accounts)):
                    pass
                case _:
                    raise bad_header(answer, self._chief)
            if signature != self._host.signature:
                raise InvalidArgumentError(None, None, "it is of other variables")
            state = _state_of(facts, [str(name) for name in names], accounts, list(answer.tensors))
            self._host.memory.resume(state, time.time())
        except OpError as error:
            _log.info("%s has no state of %r with %s: %s", self._task, self._host.name, self._chief, error.message)
            return isinstance(error, InvalidArgumentError)  # it has answered with what is of no use here
        _log.warning(
            "%s goes on with its state of version %d, which %s has kept", self._task, state.version, self._chief
        )
        return True

    def leave(self) -> bool:
        """Leaves the state with the chief; nothing that changes after it is answered.

        Returns:
          Whether the chief has it, or there was none.
        """
        host = self._host
        host.hold_until_end("this task to come back: it leaves its state with the chief, and ends")
        state = host.memory.state()
        if state is None:
            return True
        host.updates.accounts.flush()  # no answer leaves any more that would have it do so
        tensors = [*state.values, *state.state.values()]
        if state.ledger is not None:
            tensors.append(np.frombuffer(state.ledger, np.uint8))
        words = (host.signature, state.facts(), list(state.state), state.ledger is not None)
        try:
            self._kept.leave(words, tensors)
        except OpError as error:
            _log.info(
                "%s could not leave its state of %r with %s, which will bring what it has read last: %s",
                self._task,
                host.name,
                self._chief,
                error.message,
            )
            return False
        _log.warning(
            "%s has left its state of version %d with %s until it is back", self._task, state.version, self._chief
        )
        return True


def _state_of(facts: Any, names: list[str], accounts: bool, arrays: list[Any]) -> HostState:
    ledger = arrays.pop().tobytes() if accounts else None
    count = len(arrays) - len(names)
    return HostState.of(facts, ledger, arrays[:count], dict(zip(names, arrays[count:], strict=True)))
