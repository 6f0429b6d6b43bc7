"""Assigns the steps of an epoch to workers. Pure; only the first ``ps`` assigns steps.

Steps are assigned one at a time. So an epoch has exactly as many steps as the program requests, even if workers join or
leave. If an update uses gradients of several workers, a step is a round: all members get the same step number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.ps.protocol import EPOCH_OVER, TRAINING_OVER, UNKNOWN_STEPS


@dataclass(kw_only=True, slots=True)
class StepNumbers:
    """Step numbers of the current epoch.

    Attributes:
      in_rounds: whether a step is a round of all workers, rather than a step of one worker.
      epoch: the current epoch, from 0; -1 before the first.
      given: number of steps assigned in the current epoch; unused with ``in_rounds``: then the version counts steps.
      base: the version of the values at which the epoch began.
      steps: length of the epoch; `UNKNOWN_STEPS` until it is known.
      longest: the largest number of steps for which a worker has had data.
      ends: the number of steps after which the data of a worker ended; None while no worker has reported an end.
      stopped: whether training was stopped early.
      asked: by worker, the latest epoch for which it has requested a step.
      at_work: by worker, the step that it is computing.
    """

    in_rounds: bool
    epoch: int = -1
    given: int = 0
    base: int = 0
    steps: int = UNKNOWN_STEPS
    longest: int = 0
    ends: int | None = None
    stopped: bool = False
    asked: dict[str, int] = field(default_factory=dict[str, int])
    at_work: dict[str, int] = field(default_factory=dict[str, int])

    def step(self, version: int) -> int:
        """Returns the number of the next step."""
        # A round makes exactly one update, so the version counts its steps, and no second counter has to be kept
        # consistent with it.
        return version - self.base if self.in_rounds else self.given

    def assign(self, worker: str, epoch: int, steps: int, version: int) -> int:
        """Assigns the next step to ``worker``.

        Args:
          worker: the worker that asks; it has completed its previous step.
          epoch: the epoch of the worker. The first worker that asks for a later epoch begins that epoch.
          steps: number of steps of that epoch, or `UNKNOWN_STEPS`.
          version: the version of the values.

        Returns:
          The step's number, `EPOCH_OVER` or `TRAINING_OVER`.
        """
        self.at_work.pop(worker, None)
        if self.stopped:
            return TRAINING_OVER
        self.reach(epoch, steps, version)
        step = self.step(version)
        # A worker that is still in an earlier epoch gets no step of the current one.
        if epoch < self.epoch or (self.steps != UNKNOWN_STEPS and step >= self.steps):
            return EPOCH_OVER
        self.given += 1
        self.at_work[worker] = step
        return step

    def reach(self, epoch: int, steps: int, version: int) -> None:
        """Begins ``epoch``, unless this epoch or a later one has already begun.

        Args:
          epoch: the epoch to begin.
          steps: number of steps of the epoch, or `UNKNOWN_STEPS`.
          version: the current version of the values.
        """
        # Begin only a later epoch: a slow worker must not restart an epoch that others have begun.
        if epoch > self.epoch:
            self.epoch, self.given, self.base, self.steps = epoch, 0, version, steps
            self.longest, self.ends = 0, None

    def end_epoch(self, epoch: int, step: int) -> None:
        """Ends ``epoch`` before ``step``, because a worker has no data for that step."""
        # The epoch ends for all workers when one worker has no more data: in rounds, the other workers would
        # wait forever for a gradient of that worker.
        if epoch == self.epoch and (self.steps == UNKNOWN_STEPS or step < self.steps):
            self.steps = self.ends = step

    @property
    def uneven(self) -> bool:
        """Whether the data of one worker have ended before another worker's."""
        return self.ends is not None and self.longest > self.ends

    def busy_in(self, epoch: int, *, but: str) -> list[str]:
        """Returns the workers other than ``but`` that are computing a step of ``epoch`` or an earlier one."""
        return sorted(other for other in self.at_work if other != but and self.asked.get(other, epoch + 1) <= epoch)

    def complete_step(self, worker: str) -> None:
        """Records that a worker has completed its step."""
        self.longest = max(self.longest, self.at_work.pop(worker, -1) + 1)

    def forget_worker(self, worker: str, *, resumes: bool = False) -> None:
        """Forgets a worker that no longer takes part; with ``resumes``, keeps the epoch in which the worker will
        resume."""
        self.at_work.pop(worker, None)
        if not resumes:
            self.asked.pop(worker, None)

    def may_begin(self, epoch: int) -> bool:
        """Returns whether all workers have reached the epoch before ``epoch``."""
        # Only workers that have asked for steps count: a worker that has left, or only reads, must not delay others.
        return self.stopped or all(other >= epoch - 1 for other in self.asked.values())

    def has_begun(self, worker: str, epoch: int) -> bool:
        """Returns whether ``worker`` has reached ``epoch``, or does not take part."""
        return self.stopped or self.asked.get(worker, epoch) >= epoch

    def reset(self) -> None:
        """Resets the steps after all workers have finished. The next request then begins a training, in any epoch."""
        self.epoch, self.steps, self.stopped = -1, UNKNOWN_STEPS, False
