"""Export and import of the whole state of a ``ps``: for its saved state, and for another server that takes over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headwater.ps.consistency import Restarted, Stopped
from headwater.ps.host_state import Answered, HostState
from headwater.ps.membership import CONNECT_TIMEOUT_S, Membership
from headwater.ps.recovery import RecoveryReport
from headwater.ps.serving_context import ServingContext
from headwater.ps.updates import Updates
from headwater.ps.worker_connections import Request


class HostMemory:
    """Exports the whole state of a host at one moment, and installs such a state.

    Args:
      context: the task, its options and the lock; see `ServingContext`.
      incarnation: incarnation of the host.
      updates: holds the values.
      workers: membership of the workers.
      names: names of the host's blocks.
    """

    def __init__(
        self, context: ServingContext, incarnation: int, updates: Updates, workers: Membership, names: Sequence[str]
    ) -> None:
        self._incarnation = incarnation
        self._changed = context.changed
        self._updates = updates
        self._workers = workers
        self._names = names

    def state(self, *, last: bool = False) -> HostState | None:
        """Returns the whole state except rows of tables; None while there are no values.

        Arrays are not copied: an update that runs while an array is in use writes its result to a new array.

        Args:
          last: whether this incarnation acknowledges no later update. If, in addition, each gradient is an update, the
            state contains the ranges of examples that workers hold: the next incarnation must accept a gradient that
            other ``ps`` have already applied.
        """
        updates, workers, step_numbers = self._updates, self._workers, self._workers.step_numbers
        with self._changed:
            if not updates.filled:
                return None
            # The state does not contain the gathered gradients of an unfinished round: the workers push these again.
            again = updates.gathering_workers()
            holds = last and not updates.state.gathers
            answered = {
                worker: Answered(
                    incarnation=incarnation,
                    number=latest.number,
                    applied=latest.applied,
                    version=latest.version,
                    step_number=latest.step_number,
                    assigned_work=latest.assigned_work if holds else None,
                )
                if worker not in again and (latest := updates.latest.get(worker)) is not None
                else Answered(incarnation=incarnation)
                for worker, incarnation in workers.incarnations.items()
            }
            return HostState(
                version=updates.state.version,
                filled=updates.filled,
                incarnation=self._incarnation,
                trainings=workers.trainings,
                seed=workers.seed,
                steps=(step_numbers.epoch, step_numbers.given, step_numbers.base, step_numbers.steps),
                answered=answered,
                sums=workers.sums.all_sums(),
                ledger=updates.accounts.to_bytes(() if holds else None),
                values=updates.updater.values(None),
                state=updates.updater.state(),
            )

    def resume(self, state: HostState, at: float) -> None:
        """Continues from a state that an earlier incarnation saved ``at``, in seconds since 1970. Called before
        serving.

        Raises:
          InvalidArgumentError: the arrays have wrong shapes.
        """
        updates, workers, step_numbers = self._updates, self._workers, self._workers.step_numbers
        with self._changed:
            updates.updater.fill(state.values, list(state.state.values()))
            if state.ledger is not None:
                updates.accounts.restore(state.ledger, state.version)
            updates.filled, workers.trainings, workers.seed = state.filled, state.trainings, state.seed
            step_numbers.epoch, step_numbers.given, step_numbers.base, step_numbers.steps = state.steps
            for worker, one in state.answered.items():
                workers.incarnations[worker] = one.incarnation
                # If a worker has no number here, its gradient was part of an unfinished round, and it pushes that
                # gradient again as a new request.
                if one.number >= 0:
                    updates.latest[worker] = Request(
                        number=one.number,
                        applied=one.applied,
                        version=one.version,
                        step_number=one.step_number,
                        assigned_work=one.assigned_work,
                    )
            workers.expect_holders(CONNECT_TIMEOUT_S)
            workers.sums.restore(state.sums)
            updates.event(Restarted(state.version))
            updates.recovery_report = RecoveryReport(
                incarnation=state.incarnation, version=state.version, at=at, names=self._names
            )

    def words(self) -> Any:
        """Returns the state without the values, for another server that has the values and takes over.

        It consists of values that fit into the header of a frame; see `install_words`. The lock is held.
        """
        updates, workers, step_numbers = self._updates, self._workers, self._workers.step_numbers
        at_work, asked = sorted(step_numbers.at_work.items()), sorted(step_numbers.asked.items())
        # The state does not contain the gathered gradients of an unfinished round. Workers that wait for the round push
        # their gradients again, so their requests are recorded as unknown (number -1). Some workers have continued
        # without waiting, because another ``ps`` rejected their gradient. They do not push again, so their requests are
        # recorded as rejected.
        gathered = updates.gathering_workers()
        again = gathered - workers.not_waiting()
        latest = {
            **updates.latest,
            **{worker: replace(updates.latest[worker], applied=False) for worker in gathered},
            **dict.fromkeys(again, Request(number=-1)),
        }
        return (
            (updates.filled, updates.state.version, updates.made, workers.trainings, workers.seed),
            (workers.began, workers.chief, workers.may_stop, workers.chief_resumes),
            (
                step_numbers.epoch,
                step_numbers.given,
                step_numbers.base,
                step_numbers.steps,
                step_numbers.stopped,
                at_work,
                asked,
            ),
            [
                (
                    worker,
                    workers.incarnations.get(worker, 0),
                    one.number,
                    one.applied,
                    one.version,
                    one.step_number,
                    one.assigned_work,
                )
                for worker, one in latest.items()
            ],
            (
                sorted(updates.state.members),
                sorted(workers.resting),
                sorted(workers.away),
                sorted(workers.finished),
                updates.state.formed,
            ),
            sorted(workers.sums.all_sums().items()),
            updates.accounts.to_bytes(again),
        )

    def install_words(self, words: Any, connect_within_s: float) -> None:
        """Takes over from another server. The values must be installed here already.

        Args:
          words: the result of `words` on the other server.
          connect_within_s: how long members may take to connect here, in seconds; later, absent members are removed.
        """
        (filled, version, update_count, trainings, seed), beginning, steps, requests, others, sums, ledger = words
        began, chief, may_stop, resumes = beginning
        members, resting, away, finished, formed = others
        updates, workers, step_numbers = self._updates, self._workers, self._workers.step_numbers
        with self._changed:
            updates.made, workers.trainings, workers.seed = update_count, trainings, seed
            workers.began, workers.chief = None if began is None else tuple(began), chief
            workers.may_stop, workers.chief_resumes = may_stop, resumes
            (
                step_numbers.epoch,
                step_numbers.given,
                step_numbers.base,
                step_numbers.steps,
                step_numbers.stopped,
                at_work,
                asked,
            ) = steps
            step_numbers.at_work, step_numbers.asked = dict(at_work), dict(asked)
            for worker, incarnation, number, applied, gradient_version, step_number, work in requests:
                workers.incarnations[worker] = incarnation
                updates.latest[worker] = Request(
                    number=number,
                    applied=applied,
                    version=gradient_version,
                    step_number=step_number,
                    assigned_work=work,
                )
            workers.sums.restore(dict(sums))
            if ledger is not None:
                updates.accounts.restore(ledger, version)
            updates.event(Restarted(version))
            workers.expect(set(members), set(resting), connect_within_s)
            # Workers that hold ranges but are not members will not push the gradients: assign their ranges again.
            for worker in updates.accounts.holders():
                if worker not in members and worker not in resting:
                    updates.accounts.return_ranges(worker, "it was lost before its update was made")
            updates.state = replace(updates.state, formed=formed)
            if step_numbers.stopped:
                updates.event(Stopped())
            workers.away, workers.finished = set(away), set(finished)
            updates.filled = filled
            self._changed.notify_all()
