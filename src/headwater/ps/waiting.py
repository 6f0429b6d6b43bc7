"""Waits of workers on a ``ps``: for values, for the round, for other workers."""

from __future__ import annotations

import threading
from collections.abc import Callable

from headwater.cluster.task import kinds
from headwater.cluster.task.waiting import CHECK_INTERVAL_S, WAIT_INTERVAL_S
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import AbortedError, DeadlineExceededError, FailedPreconditionError, UnavailableError
from headwater.ps.consistency import Released, Tick, waiting_text
from headwater.ps.serving_context import ServingContext
from headwater.ps.updates import Updates
from headwater.ps.worker_connections import WorkerConnection


class Waiting:
    """Waits of workers, each in the thread that serves the worker.

    All waits fail as soon as two workers turn out to run different programs.

    Args:
      context: the task, its options and the lock; see `ServingContext`.
      updates: the updates that workers wait for.

    Attributes:
      frozen_until: in words, the event until which the host's state is frozen and workers wait; empty if it is not
        frozen.
      no_round_until: in words, the event until which no round may begin, so that a worker with the first gradient of a
        round waits; empty if rounds may begin.
    """

    def __init__(self, context: ServingContext, updates: Updates) -> None:
        self._context = context
        self._changed = context.changed
        self._updates = updates
        self.frozen_until: str = ""
        self.no_round_until: str = ""

    def freeze(self, event: str) -> None:
        """Freezes the state for good: no gradient is accepted, and workers wait.

        One update may still be made: if the worker whose gradient is missing leaves, the round becomes complete. The
        exported state lacks that update, so `delay_answer` delays the answers that would acknowledge it.

        Args:
          event: the event for which the workers wait, in words.
        """
        with self._changed:
            self.frozen_until = event

    def freeze_outside_rounds(self, event: str, within_s: float) -> bool:
        """Waits until the state can be frozen without losing a gradient, and then freezes it as `freeze` does.

        No gradient is lost if every worker whose gradient is gathered waits here for an answer: such a worker will push
        its gradient again, to the server that takes over. No round begins during the wait.

        Args:
          event: the event for which the workers wait, in words.
          within_s: how long to wait, in seconds.

        Returns:
          Whether the state is frozen; False if that was not possible within ``within_s`` seconds.
        """
        with self._changed:
            self.no_round_until = event
            until = self._context.clock() + within_s
            # As no new round begins, the wait ends as soon as all workers of the current round wait for answers.
            while (again := self._updates.workers_to_push_again()) is None and self._context.clock() < until:
                self._changed.wait(CHECK_INTERVAL_S)
            self.no_round_until, self.frozen_until = "", "" if again is None else event
            self._changed.notify_all()
            return again is not None

    def delay_answer(self, channel: Channel) -> None:
        """Delays an answer while the state is frozen: it could acknowledge an update that the exported state lacks.

        Args:
          channel: the channel on which the answer will be sent.

        Raises:
          UnavailableError: the channel was closed while the state is frozen, as when the task ends.
        """
        with self._changed:
            # Poll, as nothing notifies this thread when the channel is closed.
            while self.frozen_until and not channel.closed:
                self._changed.wait(CHECK_INTERVAL_S)
            if self.frozen_until:
                what = f"{self._context.task} does not answer: workers wait for {self.frozen_until}"
                raise UnavailableError(what)

    def wait_filled(self, timeout_s: float) -> bool:
        """Waits for values for at most ``timeout_s`` seconds, and returns whether there are any."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._updates.filled), timeout_s)

    # Methods whose caller holds the lock ------------------------------------------------------------------------------

    def require_filled(self) -> None:
        """Raises AbortedError if there are no values."""
        if not self._updates.filled:
            raise AbortedError(f"{self._context.task} was restarted: its values are lost")

    def wait_for_values(self, connection: WorkerConnection) -> None:
        """Waits until there are values."""
        if self.frozen_until:
            self.wait_while_frozen(connection)
        self.wait(connection, lambda: bool(self._updates.filled), "the chief to send values")

    def wait_while_frozen(self, connection: WorkerConnection) -> None:
        """Waits until the state is not frozen."""
        self.wait(connection, lambda: not self.frozen_until, self.frozen_until)

    def wait_for_round(self, connection: WorkerConnection) -> None:
        """Waits until a gradient may be added.

        No gradient may be added while the state is frozen. While `freeze_outside_rounds` waits, no gradient may begin a
        round.
        """

        # Accept gradients of the present round: `freeze_outside_rounds` may wait for the round to complete.
        def may_add() -> bool:
            return not self.frozen_until and not (self.no_round_until and not self._updates.state.gathered)

        self.wait(connection, may_add, self.frozen_until or self.no_round_until)

    def wait(
        self,
        connection: WorkerConnection,
        ready: Callable[[], bool],
        what: str,
        changed: threading.Condition | None = None,
    ) -> None:
        """Releases the lock and waits until ``ready`` returns True. WAIT frames tell the worker the reason.

        Args:
          connection: the connection of the worker that waits.
          ready: the condition, evaluated with the lock held.
          what: the reason for the wait, in words.
          changed: notified when ``ready`` may have become true; by default the condition that every change notifies.

        Raises:
          UnavailableError: the worker is disconnected.
          FailedPreconditionError: workers run different programs.
        """
        changed = changed or self._changed
        self._raise_disagreement()
        # Raise a disagreement first: a worker with another program must get that error even if it need not wait.
        if ready():
            return
        updates, channel, clock = self._updates, connection.channel, self._context.clock
        began = clock()
        speak_at = began + WAIT_INTERVAL_S
        connection.waits_for = what, began
        try:
            # Wake up regularly: no notification tells this thread that its worker has disconnected.
            while not changed.wait_for(ready, CHECK_INTERVAL_S):
                if channel.peer_gone():
                    raise UnavailableError(f"{channel.peer} is gone")
                self._raise_disagreement()
                now, members = clock(), updates.state.members
                # A host has no timer thread, so the threads of waiting workers check the patience deadline.
                if self._context.choice.patience_s is not None:
                    updates.event(Tick())
                    for slow in members.keys() - updates.state.members.keys():
                        updates.accounts.return_ranges(slow, "others waited for it for too long")
                # A worker sends RELEASE only in answer to a WAIT frame, so look for it only after the first one.
                if speak_at > began + WAIT_INTERVAL_S and _is_released(channel):
                    updates.event(Released(connection.worker))
                if now >= speak_at:
                    channel.send(Frame(kinds.WAIT, (what or waiting_text(updates.state, now),)))
                    speak_at = now + WAIT_INTERVAL_S
        finally:
            connection.waits_for = None

    def _raise_disagreement(self) -> None:
        if disagreement := self._context.agreement.disagreement:
            raise other_program(disagreement)


def other_program(differs: str) -> FailedPreconditionError:
    """Returns the error for a worker that runs another program; ``differs`` names the difference."""
    return FailedPreconditionError(f"{differs}: all tasks must run the same program")


def _is_released(channel: Channel) -> bool:
    """Returns whether a worker has answered a WAIT frame with the request to continue without the update."""
    try:
        return channel.recv(0).kind == kinds.RELEASE
    except DeadlineExceededError:
        return False
