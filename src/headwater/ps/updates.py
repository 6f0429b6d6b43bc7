"""Builds updates from the gradients of workers: `headwater.ps.consistency` decides, an `Updater` computes."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headwater.errors import InvalidArgumentError
from headwater.ps.accounting.accounts import Accounts
from headwater.ps.consistency import (
    Apply,
    Asynchronous,
    BoundedStaleness,
    ConsistencyDecision,
    Discard,
    Event,
    Go,
    TrainingState,
    Updated,
    decide,
)
from headwater.ps.layout import Layout
from headwater.ps.memory import memory_errors, no_memory
from headwater.ps.recovery import RecoveryReport
from headwater.ps.round_sums import RoundSums
from headwater.ps.rounds import Round
from headwater.ps.serving_context import ServingContext
from headwater.ps.updater import Updater
from headwater.ps.worker_connections import Request, WorkerConnection

_log = logging.getLogger("headwater")

#: Maximum number of variables that an error names.
_SHOWN_NAMES = 5


class Updates:
    """The values of a task's blocks and the gradients gathered for their next update. All methods need the host's lock.

    Args:
      context: the task, its options and the lock; see `ServingContext`.
      index: the number of this ``ps``.
      layout: the placement of all blocks on all ``ps``.
      updater: holds and updates this task's blocks.
      accounts: records which examples the applied gradients have used.
      staleness_aware, round_sums: see `headwater.ps.host.HostedParameters`.

    Attributes:
      updater: holds and updates this task's blocks.
      accounts: records which examples the applied gradients have used.
      state: the membership and the counters from which `decide` decides.
      round: the gradients of the next update.
      round_sums: exchange of sums over gradients with the other ``ps``; None if it is not needed.
      filled: generation of the values; 0 while there are none.
      made: number of updates made by this object.
      staleness_total: sum of the staleness of all applied gradients.
      staleness_max: largest staleness of an applied gradient.
      hyperparameters: the hyperparameters sent with the latest gradient; empty before the first.
      recovery_report: how the saved values were recovered; None if nothing was recovered.
      connections: the connection of each worker, by its name.
      latest: the latest request of each worker, by its name.
      free: the workers that may begin their next step.
    """

    def __init__(
        self,
        context: ServingContext,
        index: int,
        layout: Layout,
        updater: Updater,
        accounts: Accounts,
        *,
        staleness_aware: bool,
        round_sums: RoundSums | None,
    ) -> None:
        self._context = context
        self._block_names = [layout.variables[block.variable].name for block in layout.blocks[index]]
        self._staleness_aware = staleness_aware
        self.updater = updater
        self.accounts = accounts
        # With bounded staleness, only the first ps decides whether a worker is too many steps ahead. If a worker joins,
        # two ps may count its steps from different numbers. Each of them could then delay another worker, and these
        # workers would wait for each other.
        choice = context.choice
        self.state = TrainingState(choice=Asynchronous() if isinstance(choice, BoundedStaleness) and index else choice)
        self.round = Round()
        self.round_sums = round_sums
        self.filled: int = 0
        self.made: int = 0
        self.staleness_total: int = 0
        self.staleness_max: int = 0
        self.hyperparameters: Sequence[float] = ()
        self.recovery_report: RecoveryReport | None = None
        self.connections: dict[str, WorkerConnection] = {}
        self.latest: dict[str, Request] = {}
        self.free: set[str] = set()

    def event(self, event: Event) -> None:
        """Passes an event to `headwater.ps.consistency.decide`, and executes the decision."""
        self.perform(decide(self.state, event, self._context.clock()))

    def perform(self, decision: ConsistencyDecision) -> None:
        """Performs a decision of `decide`.

        Raises:
          InvalidArgumentError: the gradients of a round do not match in number or shape.
          ResourceExhaustedError: there was not enough memory for an update.
        """
        self.state = decision.state
        if decision.reason:
            _log.info("%s: %s", self._context.task, decision.reason)
        for action in decision.actions:
            if isinstance(action, Go):
                self.free.add(action.worker)
                # Wake only the thread of this worker: threads of workers that still wait would wake up for nothing.
                if (connection := self.connections.get(action.worker)) is not None:
                    connection.turn.notify_all()
            elif isinstance(action, Discard):
                _log.warning("%s drops gradients: %s", self._context.task, action.reason)
                self.round.clear()
                self.accounts.return_gathered(action.reason)
            elif isinstance(action, Apply):
                stale = self._staleness_aware and action.staleness > 1
                total = self.round_sums.total if self.round_sums is not None else None
                try:
                    self.round.apply(self.updater, 1 / action.staleness if stale else 1.0, total)
                except BaseException as error:
                    reason = self._error_of_update(error)
                    self._discard_round(str(reason))
                    raise reason from error
                # `decide` has counted an update of one gradient in the version already; it counts an update of several
                # gradients only at the event `Updated` below.
                self.accounts.mark_applied(self.state.version + self.state.updating)
                self.made += 1
                self.staleness_total += action.staleness
                self.staleness_max = max(self.staleness_max, action.staleness)
        if decision.state.updating:
            self.event(Updated())

    def gathering_workers(self) -> set[str]:
        """Returns the workers whose gradients are gathered for the next update, whether or not they still wait here."""
        state = self.state
        if not state.gathers:
            return set()
        return {worker for worker, latest in self.latest.items() if latest.applied and latest.version == state.version}

    def workers_to_push_again(self) -> set[str] | None:
        """Returns the workers whose gradients are gathered, if all of them wait here; None otherwise.

        A worker that waits pushes its gradient again, to the server that takes over. The gradient of a worker that does
        not wait would be lost in a move.
        """
        state = self.state
        waiting = {
            worker
            for worker in self.gathering_workers() & state.members.keys() & self.connections.keys()
            if state.members[worker].gave == 1 and state.members[worker].waits_since is not None
        }
        return waiting if len(waiting) == state.gathered else None

    def _error_of_update(self, error: BaseException) -> BaseException:
        """Returns the error to report for an update that could not be made."""
        if isinstance(error, memory_errors()):
            names = sorted(set(self._block_names))
            shown = ", ".join(names[:_SHOWN_NAMES]) + ", ..." * (len(names) > _SHOWN_NAMES)
            return no_memory(error, self._context.task, f"an update of {shown}") or error
        if isinstance(error, ValueError):
            return InvalidArgumentError(f"gradients do not fit together: {error}")
        return error

    def _discard_round(self, reason: str) -> None:
        """Discards the gradients of an update that could not be made, so that they count as not applied."""
        self.accounts.return_gathered(reason)
        if self.state.updating:
            for request in self.latest.values():
                request.applied = request.applied and request.version != self.state.version
            # End the round although no update was made: its workers wait for the end.
            self.event(Updated())
