"""Handoff of the state of a ``ps`` that shuts down gracefully: the chief keeps it for the next incarnation.

Used with ``recovery="copy"``; otherwise the next incarnation would start with the values that the chief read last. The
state (`headwater.cluster.task.deposited_states`) has the header (signature, facts, names, parts): ``facts`` and the
tensors, whose names are ``names``, are the result of `headwater.ps.host_state.HostState.pack`. The state has ``parts``
parts. Each part has the header (table, start), and the rows of the table with that number from row ``start`` on, with
their optimizer state.
"""

from __future__ import annotations

import logging
import time
from typing import Final

from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.deposited_states import PART_BYTES, FetchedState, StateAtChief
from headwater.errors import InvalidArgumentError, OpError
from headwater.ps.consistency import KOfN
from headwater.ps.host import HostedParameters
from headwater.ps.host_state import HostState

_log = logging.getLogger("headwater")

#: How long a graceful shutdown waits for the gathered gradients of a round to be applied, in seconds.
ROUND_S: Final = 5.0


class StateDeposit:
    """Deposits the state of a set on a ``ps`` with the chief, and restores it from there.

    Args:
      host: the set.
      task: the name of this ``ps``.
      storage: access to the state that the chief keeps.
    """

    def __init__(self, host: HostedParameters, task: str, storage: StateAtChief) -> None:
        self._host = host
        self._task = task
        self._chief = storage.chief
        self._storage = storage

    def restore(self) -> bool:
        """Continues from the state that the chief keeps, if it has one. Called before the set is served.

        Returns:
          Whether the chief has answered.
        """
        try:
            fetched = self._storage.fetch()
            if fetched is None:
                return True
            state = self._state_of(fetched)
            fetched.discard_at_chief()
            self._host.memory.resume(state, time.time())
        except OpError as error:
            _log.info(
                "%s cannot restore its state of %r from %s: %s", self._task, self._host.name, self._chief, error.message
            )
            return isinstance(error, InvalidArgumentError)  # the chief answered, but its state is unusable
        _log.warning(
            "%s continues with its state of version %d, which was deposited with %s",
            self._task,
            state.version,
            self._chief,
        )
        return True

    def deposit(self) -> bool:
        """Deposits the state with the chief. Later changes are not acknowledged.

        Returns:
          Whether the chief has the state, or there was no state to deposit.
        """
        host = self._host
        what = "this task to restart: it deposits its state with the chief and shuts down"
        # With k of n gradients, a worker may continue before its gradient is applied. It would not push the gradient
        # again, so the gradient would be lost.
        goes_on = isinstance(host.updates.state.choice, KOfN)
        if goes_on and not host.waiting.freeze_outside_rounds(what, ROUND_S):
            _log.warning("%s shuts down and loses the gradients of an incomplete round", self._task)
        # Freeze before the snapshot: a gradient that is acknowledged after it would be lost.
        host.freeze_until_end(what)
        try:
            with host.lock:  # hold the lock until all parts of the rows are sent, so that no round completes in between
                state = host.memory.state(last=True)
                if state is None:
                    return True
                parts = self._deposit_rows()
            host.updates.accounts.flush()  # otherwise answers flush the journal, but this task sends no further answers
            facts, arrays = state.pack()
            words = (host.signature, facts, [name for name, _ in arrays], parts)
            self._storage.deposit(words, [array for _, array in arrays])
        except OpError as error:
            _log.info(
                "%s could not deposit its state of %r with %s, which will send the latest values that it has: %s",
                self._task,
                host.name,
                self._chief,
                error.message,
            )
            return False
        _log.warning(
            "%s has deposited its state of version %d with %s for its next incarnation",
            self._task,
            state.version,
            self._chief,
        )
        return True

    def _deposit_rows(self) -> int:
        """Deposits the rows of tables with the chief; returns the number of parts."""
        parts = 0
        for number, start, rows in self._host.rows_of_tables(PART_BYTES):
            self._storage.deposit_part(parts, (number, start), rows)
            parts += 1
        return parts

    def _state_of(self, fetched: FetchedState) -> HostState:
        """Returns the state from the result of `deposit`, after writing its rows into the tables."""
        match fetched.words:
            case (str(signature), facts, [*names], int(parts)):
                pass
            case _:
                raise InvalidArgumentError(f"the deposited state is malformed: {str(fetched.words)[:80]}")
        if signature != self._host.signature:
            raise InvalidArgumentError("the deposited state belongs to other variables")
        for at in range(parts):
            part = fetched.part(at)
            match part.header:
                case (int(table), int(start)) if 0 <= table < len(self._host.tables):
                    self._host.tables[table].write(start, part.tensors)
                case _:
                    raise bad_header(part, self._chief)
        return HostState.unpack(facts, [str(name) for name in names], fetched.tensors)
