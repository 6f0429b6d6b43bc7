"""The ledger of a training on the first ``ps``, with its journal.

Callers hold one lock while they call any method except `flush`, so that an update and its record are atomic.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Collection, Sequence

from headwater.cluster.variables import LOG_DIR
from headwater.ps.accounting.journal import Journal
from headwater.ps.accounting.ledger import Ledger, Nothing, Plan, ReturnedRange, Work

_log = logging.getLogger("headwater")


class Accounts:
    """Record of the applied examples of each epoch. The ledger exists only once a worker has asked for examples.

    Args:
      name: the name of the set of parameters.
      task: the name of the task that keeps this record.
      seed: the seed for the order of epochs for which the workers give no seed.
      log_dir: the folder for the journal; by default the value of ``HEADWATER_LOG_DIR``. Empty: no journal is written.
      clock: returns seconds since 1970.
      run: the number that identifies the ledger in journals; None for a random number.
    """

    def __init__(
        self,
        name: str,
        task: str,
        seed: int,
        log_dir: str | None = None,
        clock: Callable[[], float] = time.time,
        run: int | None = None,
    ) -> None:
        self._name = name
        self._task = task
        self._seed = seed
        self._log_dir = os.environ.get(LOG_DIR, "") if log_dir is None else log_dir
        self._clock = clock
        self._run = run
        self._ledger: Ledger | None = None
        self._journal: Journal | None = None

    # Requests of workers ----------------------------------------------------------------------------------------------

    def assign_range(
        self,
        worker: str,
        training: int,
        first: int,
        last: int,
        plan: Plan,
        share: tuple[int, int] | None,
        update: int,
        *,
        joins: bool = False,
    ) -> tuple[Work, int] | Nothing:
        """Assigns a range of examples to a worker, see `Ledger.assign_range`. ``update`` is the current version.

        Returns:
          The range and the seed of its epoch's order; or the reason why there is no range.
        """
        ledger = self._ledger_for(training, update)
        known = set(ledger.plans())
        offer = ledger.assign_range(worker, first, last, plan, share, joins=joins)
        self._record_epochs(ledger, known)
        return (offer, ledger.plans()[offer.epoch].seed or 0) if isinstance(offer, Work) else offer

    def confirm_range(self, worker: str, work: Work, plan: Plan, update: int) -> bool:
        """Lets a worker keep a range that another ledger has assigned, see `Ledger.confirm_range`."""
        ledger = self._ledger_for(0, update)
        known = set(ledger.plans())
        held = ledger.confirm_range(worker, work, plan)
        self._record_epochs(ledger, known)
        return held

    def _record_epochs(self, ledger: Ledger, known: Collection[int]) -> None:
        for epoch, begun in ledger.plans().items():
            # Record the plan of an epoch before its first range: `headwater audit` checks the ranges against the plan.
            if epoch not in known:
                plan = begun.size, begun.unit, begun.batch, begun.shuffle, begun.seed
                self._journal_record("epoch", ledger.training, epoch, *plan)

    def _ledger_for(self, training: int, update: int) -> Ledger:
        ledger = self._ledger
        if ledger is None:
            ledger = self._ledger = Ledger(
                run=self._run or secrets.randbelow((1 << 63) - 1) + 1, seed=self._seed, training=training
            )
            self._open_journal("begins", ledger, update)
        elif training > ledger.training:
            # Give each training its own seed, so that its epochs have different orders.
            seed = ledger.seed + training - ledger.training
            ledger = self._ledger = Ledger(run=ledger.run, seed=seed, training=training)
        return ledger

    def first_open_epoch(self) -> int:
        """Returns the first epoch that is not over."""
        return 0 if self._ledger is None else self._ledger.first_open_epoch()

    def has_work(self, training: int, first: int, last: int) -> bool:
        """Returns whether a worker should ask for a range, see `Ledger.has_work`."""
        ledger = self._ledger
        return ledger is None or ledger.training < training or ledger.has_work(first, last)

    def ranges_set_aside(self, first: int, last: int) -> str:
        """Describes the ranges of some epochs that were set aside, with the reasons."""
        ledger = self._ledger
        return "; ".join(f"{work}: {reason}" for work, reason in ledger.ranges_set_aside(first, last)) if ledger else ""

    def holds(self, worker: str, work: Work) -> bool:
        """Returns whether a worker holds a range."""
        return self._ledger is not None and self._ledger.holds(worker, work)

    def holders(self) -> list[str]:
        """Returns the workers that hold ranges."""
        return [] if self._ledger is None else self._ledger.holders()

    def record_gradient(self, worker: str, works: Sequence[Work]) -> bool:
        """Records the gradient of ranges; returns whether it may be applied, see `Ledger.record_gradient`."""
        if not works:  # the program does not account for its examples
            return True
        # A ledger that was lost in a restart has not assigned these ranges: the gradient is dropped, and the ranges are
        # assigned again.
        return self._ledger is not None and self._ledger.record_gradient(worker, works)

    def return_dropped(self, worker: str, works: Sequence[Work]) -> None:
        """Makes ranges available again, because their gradient arrived too late to be applied."""
        if self._ledger is not None:
            self._ledger.return_dropped(worker, works)

    def mark_applied(self, update: int) -> None:
        """Marks the gathered ranges as part of update number ``update``."""
        ledger = self._ledger
        if ledger is None:
            return
        applied = ledger.mark_applied()
        if applied.ranges:
            # Only queued here: `flush` writes the record before an answer acknowledges the update.
            ranges = [[worker, *work] for worker, work in applied.ranges]
            self._journal_record("applied", update, self._clock(), ledger.training, ranges)
        for epoch in applied.over:
            self._journal_record("over", self._clock(), ledger.training, epoch)
            _log.info("%s: each example of epoch %d of %r is applied", self._task, epoch, self._name)

    def return_gathered(self, reason: str) -> None:
        """Makes the gathered ranges available again, because their update has failed."""
        if self._ledger is not None:
            self._record_returned(self._ledger.return_gathered(reason))

    def return_failed(self, worker: str, work: Work, reason: str) -> None:
        """Takes a range back from a worker, see `Ledger.return_failed`."""
        if self._ledger is not None:
            self._record_returned(self._ledger.return_failed(worker, work, reason))

    def return_ranges(self, worker: str, reason: str) -> None:
        """Takes back the ranges of a worker that has left or was lost, see `Ledger.return_ranges`."""
        if self._ledger is not None:
            self._record_returned(self._ledger.return_ranges(worker, reason))

    def restore_ranges(self, worker: str) -> None:
        """Restores the ranges of a worker that counted as lost and has returned."""
        if self._ledger is not None:
            self._ledger.restore_ranges(worker)

    def reclaim(self, worker: str, work: Work) -> bool:
        """Restores a range to the worker from which it was taken; see `Ledger.reclaim`.

        Returns:
          Whether the range was restored: False if it has been assigned again.
        """
        return self._ledger is not None and self._ledger.reclaim(worker, work)

    def handle_restart(self, worker: str) -> None:
        """Takes back the ranges of a worker that was restarted."""
        if self._ledger is not None:
            self._record_returned(self._ledger.handle_restart(worker))

    def _record_returned(self, backs: Sequence[ReturnedRange]) -> None:
        ledger = self._ledger
        assert ledger is not None
        for worker, work, tries, aside, reason in backs:
            self._journal_record("back", self._clock(), ledger.training, worker, *work, tries, aside, reason)
            if aside:
                _log.error(
                    "%s: %s is set aside after %d tries, the last by %s: %s. The epoch cannot be completed",
                    self._task,
                    work,
                    tries,
                    worker,
                    reason,
                )
            elif reason:
                _log.warning("%s: %s, held by %s, is assigned again: %s", self._task, work, worker, reason)

    # Saving -----------------------------------------------------------------------------------------------------------

    def to_bytes(self, again: Collection[str] | None = None) -> bytes | None:
        """Returns the ledger as bytes, see `Ledger.to_bytes`; None if there is no ledger."""
        return None if self._ledger is None else self._ledger.to_bytes(again)

    def restore(self, data: bytes, update: int) -> int:
        """Restores the ledger of the parameters of version ``update``; returns the number of its training.

        Raises:
          InvalidArgumentError: ``data`` does not encode a ledger.
        """
        self._ledger = Ledger.from_bytes(data)
        self._open_journal("restored", self._ledger, update)
        return self._ledger.training

    def _open_journal(self, what: str, ledger: Ledger, update: int) -> None:
        if self._log_dir:
            first = (what, ledger.run, self._name, self._task, self._clock(), update)
            self._journal = Journal(self._log_dir, first, clock=self._clock)

    def _journal_record(self, *record: object) -> None:
        if self._journal is not None:
            self._journal.add(*record)

    def flush(self) -> None:
        """Writes the pending records to the journal. Called before an answer acknowledges the recorded updates."""
        if self._journal is not None:
            self._journal.flush()

    def __str__(self) -> str:
        return "" if self._ledger is None else str(self._ledger)
