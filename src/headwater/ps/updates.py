"""The updates that a ``ps`` makes of what workers give: `headwater.ps.consistency` decides, an `Updater` computes."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headwater.errors import InvalidArgumentError
from headwater.ps.accounting.accounts import Accounts
from headwater.ps.consistency import (
    Apply,
    Asynchronous,
    BoundedStaleness,
    Decision,
    Event,
    Go,
    State,
    Updated,
    decide,
)
from headwater.ps.layout import Layout
from headwater.ps.memory import NO_MEMORY, no_memory
from headwater.ps.recovery import WayBack
from headwater.ps.round_sums import RoundSums
from headwater.ps.rounds import Round
from headwater.ps.serving_context import ServingContext
from headwater.ps.talks import Request, WorkerTalk
from headwater.ps.updater import Updater

_log = logging.getLogger("headwater")

#: Variables that an error names at most.
_SHOWN_NAMES = 5


class Updates:
    """The values of a task's blocks with what is to become their next update. The host's lock is held in all methods.

    Args:
      context: of the host.
      index: its number among the ``ps``.
      layout: what every ``ps`` has.
      updater: this task's blocks.
      accounts: for the examples of what is applied.
      staleness_aware, round_sums: see `headwater.ps.host.HostedParameters`.

    Attributes:
      updater: this task's blocks.
      accounts: for the examples of what is applied.
      state: what `decide` knows of the workers that take part.
      round: the gradients of the next update.
      round_sums: see above.
      filled: generation of the values; 0 while there are none.
      made: how many updates were made.
      staleness_total: of all gradients that were applied.
      staleness_max: the largest of these.
      knobs: those of the latest gradient; empty before the first.
      way_back: how the values went back to those that were saved; None where they have not.
      talks: by worker the conversation with it.
      latest: by worker its latest request.
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
        self._held = [layout.variables[block.variable].name for block in layout.blocks[index]]
        self._staleness_aware = staleness_aware
        self.updater = updater
        self.accounts = accounts
        # Whether a worker is too far ahead is for one task to say: two might have seen it join at different steps, and
        # each hold up another one.
        choice = context.choice
        self.state = State(choice=Asynchronous() if isinstance(choice, BoundedStaleness) and index else choice)
        self.round = Round()
        self.round_sums = round_sums
        self.filled: int = 0
        self.made: int = 0
        self.staleness_total: int = 0
        self.staleness_max: int = 0
        self.knobs: Sequence[float] = ()
        self.way_back: WayBack | None = None
        self.talks: dict[str, WorkerTalk] = {}
        self.latest: dict[str, Request] = {}
        self.free: set[str] = set()

    def event(self, event: Event) -> None:
        """Has `decide` hear of an event, and does what that asks for."""
        self.perform(decide(self.state, event, self._context.clock()))

    def perform(self, decision: Decision) -> None:
        """Does what `decide` has asked for.

        Raises:
          InvalidArgumentError: gradients do not fit together.
          ResourceExhaustedError: there was not enough memory for an update.
        """
        self.state = decision.state
        if decision.reason:
            _log.info("%s: %s", self._context.task, decision.reason)
        for action in decision.actions:
            if isinstance(action, Go):
                self.free.add(action.worker)
                if (talk := self.talks.get(action.worker)) is not None:
                    talk.turn.notify_all()
            elif isinstance(action, Apply):
                stale = self._staleness_aware and action.staleness > 1
                total = self.round_sums.total if self.round_sums is not None else None
                try:
                    self.round.apply(self.updater, 1 / action.staleness if stale else 1.0, total)
                except BaseException as error:
                    reason = self._refused(error)
                    self._spoil(str(reason))
                    raise reason from error
                # An update of several gradients is counted by what follows.
                self.accounts.applied(self.state.version + self.state.updating)
                self.made += 1
                self.staleness_total += action.staleness
                self.staleness_max = max(self.staleness_max, action.staleness)
        if decision.state.updating:
            self.event(Updated())

    def gathered_of(self) -> set[str]:
        """Whose gradients have been gathered for the next update, whether or not they still wait for it here."""
        state = self.state
        if not state.gathers:
            return set()
        return {worker for worker, latest in self.latest.items() if latest.applied and latest.version == state.version}

    def asked_again(self) -> set[str] | None:
        """Whose gradients have been gathered for the next update, where each of them waits for it here: they bring it
        again to who serves them then. None where one of them does not."""
        state = self.state
        waiting = {
            worker
            for worker in self.gathered_of() & state.members.keys() & self.talks.keys()
            if state.members[worker].gave == 1 and state.members[worker].waits_since is not None
        }
        return waiting if len(waiting) == state.gathered else None

    def _refused(self, error: BaseException) -> BaseException:
        """What is said of an update that could not be made."""
        if isinstance(error, NO_MEMORY):
            names = sorted(set(self._held))
            shown = ", ".join(names[:_SHOWN_NAMES]) + ", ..." * (len(names) > _SHOWN_NAMES)
            return no_memory(error, self._context.task, f"an update of {shown}") or error
        if isinstance(error, ValueError):
            return InvalidArgumentError(None, None, f"gradients do not fit together: {error}")
        return error

    def _spoil(self, reason: str) -> None:
        """An update could not be made: the gradients that were to be part of it are not applied."""
        self.accounts.spoiled(reason)
        if self.state.updating:
            for request in self.latest.values():
                request.applied = request.applied and request.version != self.state.version
            self.event(Updated())
